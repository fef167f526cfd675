"""The protocols that every data format implements.

A format implements `Columns`: named columns over all rows of one store. `SplitSource` and
`PairedSource` (module `sources.paired`) make a `Source`, with features and outcomes, from one or two of
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = ["Block", "Columns", "Ids", "Rows", "Source", "is_source"]

#: Which stored rows to read, in which order; a range where possible, because it takes no memory.
Rows = range | NDArray[np.intp]

#: Labels of the people who own the rows, in stored order.
Ids = NDArray[np.str_]


@dataclass(frozen=True, kw_only=True)
class Block:
    """Features and outcomes of some rows, in the data's own units."""

    features: NDArray[Any]  # (rows, d)
    outcomes: NDArray[Any]  # (rows, l)

    def __repr__(self) -> str:
        """Show no values."""
        return "<Block (private)>"


class Columns(Protocol):
    """Named columns of numbers, one value per row, in one store (a file, an array, a frame).

    A frozen value that can be pickled: it holds paths and choices, and opens what it needs in
    `blocks`, so that a worker on another machine can read its share. Opening checks what can be checked
    without reading cells (names, counts, sizes, magic bytes). Where a person owns several rows
    (haplotypes), it has an attribute `rows_per_person`; where rows have ids, an attribute `id_names`
    says which columns hold them ("" for labels without a name).
    """

    @property
    def n(self) -> int:
        """Number of stored rows."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, without repeats; they are schema, and public."""
        ...

    def ids(self) -> Ids | None:
        """Return the id of the owner of each stored row, or None where the store has no ids."""
        ...

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in that order, as arrays of exactly `rows` (the last: fewer).

        Arrays are numeric (int8 stays int8, missing values are NaN in floats), and are not written to
        after they were yielded. Memory is a few blocks, never the whole store.
        """
        ...


class Source(Protocol):
    """A table of rows with features and outcomes, read in blocks.

    Names and shape are schema and public; what `blocks` and `ids` give is private. Where a person owns
    several rows, it has an attribute `rows_per_person`; an attribute `id_names` says which columns hold
    the ids.
    """

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features."""
        ...

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the l outcomes."""
        ...

    def ids(self) -> Ids | None:
        """Return the id of the owner of each row, or None where the rows have no labels."""
        ...

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield every row once, at most `rows` at a time."""
        ...

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop` as a separate source, without reading them."""
        ...


def is_source(value: Any) -> TypeGuard[Source]:
    """Whether a user gave a source rather than an array or a frame."""
    return hasattr(value, "blocks") and hasattr(value, "outcome_names")
