"""Finding the centre of a block: noisy counts of row lengths, then a noisy sum of shortened rows.

The counts say how long rows are, and so to which length they are shortened before they are summed.
Shortened rows are vectors of integers of length at most `RADIUS`. Replacing one moves the sum of a block
by at most twice that, however many columns there are, and the sums of two blocks by 2√2 of it together;
opposite rows reach it. Counts move by √2 for each block, as in `primo.privacy.norm_search`.
Sums are multiplied by a public integer, `unit`, so that noise of variance 2**SUM_VARIANCE_BITS has the
scale that the budget asks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.privacy.norm_search import NormSearch, norm_search

__all__ = ["RADIUS", "SUM_VARIANCE_BITS", "CentreSearch", "centre_search", "centring_pays"]

#: Length of a row in grid units once it is shortened to the norm of the sums.
RADIUS = 2**20

#: Variance of the noise of the sums, in units of a grid unit over `unit`.
SUM_VARIANCE_BITS = 80

#: Bits of the largest sum, before the noise.
_SUM_BITS = 61

#: Share of the stage's budget (of mu²) that counts lengths; the rest is for the sums.
COUNTS = 1 / 3

#: Length of the noise of the mean, in units of the norm, up to which a centre helps.
TOLERABLE = 0.4


@dataclass(frozen=True, kw_only=True)
class CentreSearch:
    """What is counted and summed to find centres, and with how much noise; fixed before any row is read.

    Guarantee: histograms of row lengths as `counts` says, and then sums of rows of length at most
    `RADIUS` of the same blocks, times `unit`, plus discrete Gaussian noise of variance
    2**`variance_bits`, are √`spent`-GDP under replace-one.
    """

    features: bool  # whether a centre of the features is found
    outcomes: bool
    count_unit: int  # of the histograms, as in `NormSearch`
    unit: int  # what sums are multiplied by
    variance_bits: int = SUM_VARIANCE_BITS

    @property
    def counts(self) -> NormSearch:
        """The histograms that say which norm the rows of the sums are shortened to."""
        return NormSearch(features=self.features, outcomes=self.outcomes, unit=self.count_unit)

    @property
    def blocks(self) -> int:
        """How many blocks have their centre found."""
        return int(self.features) + int(self.outcomes)

    @property
    def spent(self) -> Fraction:
        """Squared mu of the histograms and the sums together, exactly."""
        squared_distance = 4 * self.blocks * RADIUS**2
        sums = Fraction(squared_distance * self.unit**2, 2**self.variance_bits)
        return self.counts.spent + sums

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each entry of a sum, in units of the norm of its rows."""
        return math.exp2(self.variance_bits / 2) / (self.unit * RADIUS)


def centre_search(*, mu: float, n: int, features: bool, outcomes: bool) -> CentreSearch | None:
    """Choose units with which counts and sums spend at most `mu`; None where mu is too small."""
    blocks = int(features) + int(outcomes)
    counts = norm_search(mu=math.sqrt(COUNTS) * mu, features=features, outcomes=outcomes)
    left = math.sqrt(1 - COUNTS) * mu * (1 - 1e-12)
    unit = math.floor(math.exp2(SUM_VARIANCE_BITS / 2) * left / math.sqrt(4 * blocks) / RADIUS)
    unit = min(unit, 2**_SUM_BITS // (n * RADIUS))  # so that no sum leaves int64
    if unit < 1:
        return None
    search = CentreSearch(features=features, outcomes=outcomes, count_unit=counts.unit, unit=unit)
    if search.spent > Fraction(mu) ** 2:
        raise AssertionError(f"{search} exceeds mu={mu!r}")  # a bug, never the user's fault
    return search


def centring_pays(*, n: int, columns: int, sigma: float) -> bool:
    """Whether a mean with this noise helps more than it costs; from public numbers alone.

    `sigma` is the noise on each entry of a *sum* of rows of length 1. The noise of the mean then has the
    length √columns·σ/n, and stays in the rows as an offset of that length.
    """
    return math.sqrt(columns) * sigma / n < TOLERABLE
