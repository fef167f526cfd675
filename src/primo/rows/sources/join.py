"""The same people in several stores: which row of each to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.rows.sources.base import Ids, Rows

__all__ = ["Matched", "match", "too_few"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Matched:
    """Row i of the joined table is row `rows[k][i]` of store k.

    Who is in both stores is what a membership attack tries to find out. How many people are in both is
    the n of a release: it is public once the release is paid for, and is in no message before.
    """

    rows: tuple[Rows, ...]  # one for each store

    @property
    def n(self) -> int:
        """Number of people who are in all stores."""
        return len(self.rows[0])

    def __repr__(self) -> str:
        """Show no rows."""
        return "<Matched (private)>"


def match(ids: Sequence[Ids], *, labels: Sequence[str], order: int = 0) -> Matched:
    """Find the people who are in every store, each at one row.

    `ids[k]` are the labels of all rows of store k, compared character by character. The result follows
    the order of store `order`, which is then read front to back: choose the store for which any other
    order is expensive (text, or the widest). Where the rows of a store are consecutive, they are
    returned as a range.

    Errors show no id and no count. Cost: a hash table of each store's ids; one to two seconds for a
    million people.
    """
    import pyarrow
    from pyarrow import compute

    arrays = [pyarrow.array(np.asarray(part)) for part in ids]
    for array, label in zip(arrays, labels, strict=True):
        _refuse_unusable(array, label)
    base = arrays[order]
    kept = np.ones(len(base), dtype=bool)
    places: list[NDArray[Any]] = []
    for array in arrays:
        if array is base:
            places.append(np.arange(len(base)))
            continue
        # The row in `array` of each person in `base`; null where there is none.
        found = compute.index_in(base, value_set=array)
        kept &= np.asarray(found.is_valid())
        places.append(np.asarray(found.fill_null(-1), dtype=np.intp))
    if not kept.any():
        raise too_few()
    return Matched(rows=tuple(_compact(place[kept]) for place in places))


def too_few() -> InputError:
    """Return the one error for all cases in which the number of matched people is wrong.

    Nobody kept, nobody in all files, fewer than a plan needs, not those of an earlier release: different
    messages for these would reveal, without any charge, who is in a file.
    """
    return InputError(
        "too few people are in all of these files and lists for this release (an extension needs as "
        "many as the earlier one has). Check that all of them write ids in the same way (leading zeros, "
        "a prefix, family and person id joined) and that the id columns are the right ones. Nothing "
        "was charged"
    )


def _refuse_unusable(array: Any, label: str) -> None:
    """Refuse empty and repeated ids; one message for both, which does not say which or how many."""
    from pyarrow import compute

    empty = compute.any(compute.equal(compute.utf8_trim_whitespace(array), "")).as_py()
    if empty or compute.count_distinct(array).as_py() != len(array):
        raise InputError(
            f"to join files, every row needs an id and no id may repeat; those of {label} break one of "
            "these rules",
            remedy=Message.of(
                "Keep one row of each person; if a person owns several, put features and outcomes into "
                "one table and declare how many (",
                Argument("rows_per_person", ...),
                ")",
            ),
        )


def _compact(rows: NDArray[np.intp]) -> Rows:
    """Return consecutive rows as a range, which takes no memory."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first == len(rows) and bool((np.diff(rows) == 1).all()):
        return range(first, last)
    return rows
