"""Rows from two arrays in memory (or memory-mapped)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Block, Ids

__all__ = ["ArraySource"]


@dataclass(frozen=True, kw_only=True)
class ArraySource:
    """A `Source` over features (n, d) and outcomes (n, l); blocks are views, nothing is copied."""

    features: NDArray[Any]
    outcomes: NDArray[Any]
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    labels: Ids | None = None  # (n,) id of the owner of each row; private
    id_names: tuple[str, ...] | None = None  # what the labels are called

    def __post_init__(self) -> None:
        """Check that the two arrays are tables of the same rows."""
        for name, array, labels in (
            ("features", self.features, self.feature_names),
            ("outcomes", self.outcomes, self.outcome_names),
        ):
            if array.ndim != 2:
                raise InputError(f"the {name} must be a table (rows, columns), got {array.ndim}-d")
            if array.shape[1] != len(labels):
                raise InputError(f"{array.shape[1]} {name} but {len(labels)} names for them")
            if 0 in array.shape:
                raise InputError(f"the {name} are empty: shape {array.shape}")
        if len(self.features) != len(self.outcomes):
            raise InputError(
                f"{len(self.features)} rows of features but {len(self.outcomes)} rows of outcomes"
            )
        if self.labels is not None and len(self.labels) != len(self.features):
            raise InputError(f"{len(self.features)} rows but {len(self.labels)} labels for them")
        if (self.labels is None) != (self.id_names is None):
            raise InputError("labels need id_names, the names of the columns they come from")

    def __repr__(self) -> str:
        """Show the schema only."""
        return (
            f"<ArraySource n={self.n} d={len(self.feature_names)} "
            f"l={len(self.outcome_names)} (private)>"
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.features)

    def ids(self) -> Ids | None:
        """Return the labels that came with the arrays, or None."""
        return self.labels

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield every row once, at most `rows` at a time."""
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            yield Block(features=self.features[part], outcomes=self.outcomes[part])

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop` as a separate source: views, nothing is copied."""
        return replace(
            self,
            features=self.features[start:stop],
            outcomes=self.outcomes[start:stop],
            labels=None if self.labels is None else self.labels[start:stop],
        )
