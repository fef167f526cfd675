"""The same people in several stores: which row of each to read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.sources.arrow import library
from primo.sources.base import Ids, Rows

__all__ = ["Matched", "match"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Matched:
    """Row i of the joined table is row `rows[k][i]` of store k.

    The counts are public: they are the n of the stores and of the join. The rows are not: who is in
    both stores is what an attacker on membership asks.
    """

    rows: tuple[Rows, ...]  # one for each store
    labels: tuple[str, ...]  # what the stores are called in messages and reports
    counts: tuple[int, ...]  # people in each store

    @property
    def n(self) -> int:
        """Number of people who are in all stores."""
        return len(self.rows[0])

    def __repr__(self) -> str:
        """Show the counts only."""
        return f"<Matched n={self.n} (private)>"

    def __str__(self) -> str:
        """Say how many people were found, for a report."""
        stores = ", ".join(
            f"{count} in {label}" for label, count in zip(self.labels, self.counts, strict=True)
        )
        return f"{self.n} people in all of: {stores}"


def match(ids: Sequence[Ids], *, labels: Sequence[str], order: int = 0) -> Matched:
    """Find the people who are in every store, each at one row.

    `ids[k]` are the labels of all rows of store k, compared letter by letter. The order is that of
    the rows of store `order`, which is then read front to back: give the one where other orders are
    dear (text, or the widest). Where a store's rows turn out to be all of them as stored, or a stretch,
    they are returned as a range.

    Errors give counts, never an id. Cost: a hash table of each store's ids; one to two
    seconds for a million people.
    """
    compute = library("pyarrow.compute")
    arrays = [library().array(np.asarray(part)) for part in ids]
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
        stores = " and ".join(
            f"{label} ({len(array)} people)" for label, array in zip(labels, arrays, strict=True)
        )
        raise InputError(
            f"no id is in all of {stores}; check that they write ids in the same way (leading zeros, "
            "a prefix, family and person id joined) and that the id columns are the right ones"
        )
    return Matched(
        rows=tuple(_compact(place[kept]) for place in places),
        labels=tuple(labels),
        counts=tuple(len(array) for array in arrays),
    )


def _refuse_unusable(array: Any, label: str) -> None:
    compute = library("pyarrow.compute")
    empty = compute.sum(compute.equal(compute.utf8_trim_whitespace(array), "")).as_py() or 0
    if empty:
        raise InputError(
            f"{empty} of the {len(array)} rows of {label} have no id; every row needs one"
        )
    repeated = len(array) - compute.count_distinct(array).as_py()
    if repeated:
        raise InputError(
            f"{repeated} of the {len(array)} rows of {label} repeat the id of an earlier row. One "
            "person must be one row, or is protected less than promised: keep one row of each"
        )


def _compact(rows: NDArray[np.intp]) -> Rows:
    """Return a stretch of rows as a range, which takes no memory."""
    first, last = int(rows[0]), int(rows[-1]) + 1
    if last - first == len(rows) and bool((np.diff(rows) == 1).all()):
        return range(first, last)
    return rows
