"""Private integers of the two blocks, features and outcomes, summed over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockSums"]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BlockSums:
    """Sums over rows; add two of them to merge two sets of rows."""

    rows: int
    features: NDArray[np.int64]
    outcomes: NDArray[np.int64]

    def __add__(self, other: Self) -> Self:
        """Merge; exact and in any order."""
        return type(self)(
            rows=self.rows + other.rows,
            features=self.features + other.features,
            outcomes=self.outcomes + other.outcomes,
        )

    def __repr__(self) -> str:
        """Show no number."""
        return f"<{type(self).__name__} (private)>"
