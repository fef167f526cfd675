"""The integer grid: data and noise on one lattice, with no rounding in between.

The steps h_x and h_y of the data grid are free public choices. They are chosen so that the noise
variances that the budget asks for are powers of two *in grid units*:

    σ₁² = 2^(2c),   σ₂² = 2^(c+o-1),   σ₃² = 2^(2o)      in units of h_x⁴, h_x²h_y², h_y⁴

which works for all three blocks at once because the free outcome moments (s = q²/4p) tie their noise
to the others': σ₁σ₃ = 2σ₂². So moments are integers, noise is an integer, their sum is the release,
and the sensitivity is a ratio of integers that can be checked with fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.errors import InputError
from primo.privacy.sensitivity import joint_distance

__all__ = ["SMALLEST_VARIANCE_BITS", "Grid", "choose_grid"]

#: A row has squared norm at most 2**40 in grid units: 2**13 such rows add exactly in float64.
_LARGEST_SQUARED_BITS = 40
#: Noise of standard deviation 2**57 stays inside int64 beside moments below 2**62.
_LARGEST_SIGMA_BITS = 57
#: Lower limit of every noise variance; `lattice_margin` is charged for it.
SMALLEST_VARIANCE_BITS = 58


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Integer radii of quantised rows and noise variances, all in grid units.

    Variances are powers of two and are given by their exponents. A symmetric block's variance belongs
    to its diagonal; off the diagonal it is one bit less (the svec convention of section 2).
    """

    feature_radius_squared: int  # bound on ‖x‖² of a quantised row, constant included
    outcome_radius_squared: int
    covariance_variance_bits: int
    association_variance_bits: int
    outcome_variance_bits: int

    @property
    def p(self) -> Fraction:
        """Squared bound over noise variance of the covariance."""
        return Fraction(self.feature_radius_squared**2, 2**self.covariance_variance_bits)

    @property
    def q(self) -> Fraction:
        """Squared bound over noise variance of the association."""
        return Fraction(
            self.feature_radius_squared * self.outcome_radius_squared,
            2**self.association_variance_bits,
        )

    @property
    def s(self) -> Fraction:
        """Squared bound over noise variance of the outcome moments."""
        return Fraction(self.outcome_radius_squared**2, 2**self.outcome_variance_bits)

    @property
    def exact_rows(self) -> int:
        """How many rows can be summed in float64 without rounding."""
        return int(2**53 // max(self.feature_radius_squared, self.outcome_radius_squared))


def choose_grid(*, mu: float, split: float, n: int) -> Grid:
    """Choose radii and variances that spend at most mu with split ratio k = q/p.

    Guarantee: ``joint_distance(grid.p, grid.q, grid.s) <= mu**2`` as exact fractions, for `both`;
    the costs under `features` and `outcomes` (s, or p, public) are no larger.
    """
    # f(p, q) = mu² with q = k·p; s rides along free. The factor leaves room for the float rounding
    # of these two roots; the fractions below have the last word.
    p = mu**2 / (2 + 2 * split + split**2 / 2) * (1 - 1e-12)
    root_p, root_s = math.sqrt(p), split * math.sqrt(p) / 2
    squared_bits = min(
        _LARGEST_SQUARED_BITS,
        61 - max(1, n - 1).bit_length(),
        _LARGEST_SIGMA_BITS + math.floor(math.log2(min(root_p, root_s))),
    )
    if squared_bits < 24:
        raise InputError(
            f"a release of {n} rows at mu={mu:.3g} does not fit 64-bit integers; raise epsilon or "
            "split the rows"
        )
    # radius² = √p·σ₁ with σ₁ = 2^c, and likewise for the outcomes, each at most 2^squared_bits.
    c = math.floor(squared_bits - math.log2(root_p))
    o = math.floor(squared_bits - math.log2(root_s))
    grid = Grid(
        feature_radius_squared=math.floor(root_p * 2.0**c),
        outcome_radius_squared=math.floor(root_s * 2.0**o),
        covariance_variance_bits=2 * c,
        association_variance_bits=c + o - 1,
        outcome_variance_bits=2 * o,
    )
    if joint_distance(grid.p, grid.q, grid.s) > Fraction(mu) ** 2:
        raise AssertionError(f"grid {grid} exceeds mu={mu!r}")  # a bug, never the user's fault
    smallest = min(grid.covariance_variance_bits - 1, grid.association_variance_bits, 2 * o - 1)
    if smallest < SMALLEST_VARIANCE_BITS:
        raise AssertionError(f"grid {grid} is too coarse for its lattice margin")
    return grid
