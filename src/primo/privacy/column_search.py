"""Finding centre and scale of every column: noisy counts of values over a public grid.

A row falls into one bin of each column's histogram, whatever its value. Replacing it takes one count
away and adds one elsewhere in every column: the histograms of k columns move by at most √(2k) together,
and rows that differ in every column's bin reach it. Units and noise are those of
`primo.privacy.norm_search`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.privacy.norm_search import LARGEST_UNIT, VARIANCE_BITS

__all__ = ["ColumnSearch", "column_search", "columns_speak"]

#: Standard deviations of a count: so many rows find most columns.
ENOUGH = 40.0


@dataclass(frozen=True, kw_only=True)
class ColumnSearch:
    """Which columns are counted, and with how much noise; fixed before any row is read.

    Guarantee: histograms of the values of the `columns` columns of the blocks marked here, times `unit`,
    plus discrete Gaussian noise of variance 2**`variance_bits`, are √`spent`-GDP under replace-one.
    """

    features: bool  # whether columns of features are counted
    outcomes: bool
    columns: int  # of these blocks together
    unit: int  # grid units for one row
    variance_bits: int = VARIANCE_BITS

    @property
    def spent(self) -> Fraction:
        """Squared mu of the noisy histograms, exactly."""
        return Fraction(2 * self.columns * self.unit**2, 2**self.variance_bits)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on a count, in rows."""
        return math.exp2(self.variance_bits / 2) / self.unit


def column_search(
    *, mu: float, features: bool, outcomes: bool, columns: int
) -> ColumnSearch | None:
    """Choose the unit with which the histograms spend at most `mu`; None where mu does not fit."""
    unit = math.floor(math.exp2(VARIANCE_BITS / 2) * mu / math.sqrt(2 * columns) * (1 - 1e-12))
    if not 1 <= unit <= LARGEST_UNIT:
        return None
    search = ColumnSearch(features=features, outcomes=outcomes, columns=columns, unit=unit)
    if search.spent > Fraction(mu) ** 2:
        raise AssertionError(f"{search} exceeds mu={mu!r}")  # a bug, never the user's fault
    return search


def columns_speak(n: int, sigma: float) -> bool:
    """Whether histograms of n rows with this noise find most columns; from public numbers alone."""
    return n > ENOUGH * sigma
