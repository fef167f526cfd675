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

    Who is in both stores is what an attacker on membership asks. How many are is the n of a release,
    which is public once that is paid for, and is in no message before.
    """

    rows: tuple[Rows, ...]  # one for each store

    @property
    def n(self) -> int:
        """Number of people who are in all stores."""
        return len(self.rows[0])

    def __repr__(self) -> str:
        """Say nothing of the rows."""
        return "<Matched (private)>"


def match(ids: Sequence[Ids], *, labels: Sequence[str], order: int = 0) -> Matched:
    """Find the people who are in every store, each at one row.

    `ids[k]` are the labels of all rows of store k, compared letter by letter. The order is that of
    the rows of store `order`, which is then read front to back: give the one where other orders are
    dear (text, or the widest). Where a store's rows turn out to be all of them as stored, or a stretch,
    they are returned as a range.

    Errors give no id and no count. Cost: a hash table of each store's ids; one to two
    seconds for a million people.
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
        # Where everybody of `base` is in `array`; null for nobody.
        found = compute.index_in(base, value_set=array)
        kept &= np.asarray(found.is_valid())
        places.append(np.asarray(found.fill_null(-1), dtype=np.intp))
    if not kept.any():
        raise too_few()
    return Matched(rows=tuple(_compact(place[kept]) for place in places))


def too_few() -> InputError:
    """Return the one refusal of people who were matched, whatever is wrong with how many they are.

    Nobody kept, nobody in all files, fewer than a plan needs, others than those of an earlier release:
    told apart, these would answer, for nothing, who is in a file.
    """
    return InputError(
        "too few people are in all of these files and lists for this release (an extension needs as "
        "many as the earlier one has). Check that all of them write ids in the same way (leading zeros, "
        "a prefix, family and person id joined) and that the id columns are the right ones. Nothing "
        "was charged"
    )


def _refuse_unusable(array: Any, label: str) -> None:
    """Refuse ids that are empty or repeated; one message, which tells nothing of how many or which."""
    from pyarrow import compute

    empty = compute.any(compute.equal(compute.utf8_trim_whitespace(array), "")).as_py()
    if empty or compute.count_distinct(array).as_py() != len(array):
        raise InputError(
            f"files are joined by ids that are there and differ, and those of {label} break one of the "
            "two",
            remedy=Message.of(
                "Keep one row of each person; if a person owns several, put features and outcomes into "
                "one table and declare how many (",
                Argument("rows_per_person", ...),
                ")",
            ),
        )


def _compact(rows: NDArray[np.intp]) -> Rows:
    """Return a stretch of rows as a range, which takes no memory."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first == len(rows) and bool((np.diff(rows) == 1).all()):
        return range(first, last)
    return rows
