"""The one protocol behind which every data format stands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Block", "Source"]


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some rows, features beside outcomes, in the data's own units."""

    features: NDArray[Any]  # (rows, d)
    outcomes: NDArray[Any]  # (rows, l)

    def __repr__(self) -> str:
        """Say that there is something, and nothing of what it is."""
        return "<Block (private)>"


class Source(Protocol):
    """A table of rows that can be walked once, in blocks.

    Names and shape are schema and public; what `blocks` yields is private.
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

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield every row once, at most `rows` at a time."""
        ...
