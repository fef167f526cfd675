"""The first stage of a release with norm="auto": noisy histograms of row lengths, and what they cost.

A row falls into one bin of each histogram, whatever its length. Replacing it takes one count away and
adds one elsewhere: a histogram moves by at most √2, two of them by at most 2 (mathematics.md section
11). Counts are multiplied by a public integer, `unit`, so that the discrete Gaussian of variance
2**VARIANCE_BITS added to them has the scale that the budget asks for; the ratio of the two is a
fraction that is checked exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.errors import InputError

__all__ = ["DEFAULT_SHARE", "NormSearch", "norm_search", "speaks"]

#: Share of mu² that the histograms get unless told otherwise.
DEFAULT_SHARE = 0.05

#: Standard deviations of a count: so many rows tell a typical length.
ENOUGH = 20.0

#: The same where no range gives a norm that could be used instead: of several columns, and of one or
#: two, whose lengths spread over more bins.
ENOUGH_ALONE, ENOUGH_NARROW = 30.0, 45.0

_SEVERAL = 3  # columns

#: Variance of the noise in grid units, as a power of two: large, so that the lattice does not show.
VARIANCE_BITS = 60

#: Grid units for one row, at most: counts of 2**21 rows fit int64 with their noise.
LARGEST_UNIT = 2**40


@dataclass(frozen=True, kw_only=True)
class NormSearch:
    """What is counted, and with how much noise; fixed before any row is read.

    Guarantee: histograms of the lengths of the private blocks marked here, times `unit`, plus discrete
    Gaussian noise of variance 2**`variance_bits`, are √`spent`-GDP under replace-one.
    """

    features: bool  # whether lengths of rows of features are counted, with noise
    outcomes: bool
    unit: int  # grid units for one row
    variance_bits: int = VARIANCE_BITS

    @property
    def spent(self) -> Fraction:
        """Squared mu of the noisy histograms, exactly."""
        squared_distance = 2 * (int(self.features) + int(self.outcomes))
        return Fraction(squared_distance * self.unit**2, 2**self.variance_bits)

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on a count, in rows."""
        return math.exp2(self.variance_bits / 2) / self.unit


def norm_search(*, mu: float, features: bool, outcomes: bool) -> NormSearch:
    """Choose the unit with which the histograms spend at most `mu`, and hardly less."""
    histograms = int(features) + int(outcomes)
    unit = math.floor(math.exp2(VARIANCE_BITS / 2) * mu / math.sqrt(2 * histograms) * (1 - 1e-12))
    if not 1 <= unit <= LARGEST_UNIT:
        raise InputError(
            f"a budget of mu = {mu:.3g} is too small or too large to count row lengths with",
            remedy="state the norm",
        )
    search = NormSearch(features=features, outcomes=outcomes, unit=unit)
    if search.spent > Fraction(mu) ** 2:
        raise AssertionError(f"{search} exceeds mu={mu!r}")  # a bug, never the user's fault
    return search


def speaks(n: int, sigma: float, *, alone: bool = False, columns: int = 3) -> bool:
    """Whether a histogram of n rows with noise of this size can tell a typical length.

    From public numbers alone. Most lengths lie within one octave or two, that is 8 to 16 bins, and all
    rows together must stand out from the noise of so many. Where nothing but the histogram says how
    long rows are (`alone`), it must tell nearly always.
    """
    enough = ENOUGH
    if alone:
        enough = ENOUGH_ALONE if columns >= _SEVERAL else ENOUGH_NARROW
    return n > enough * sigma
