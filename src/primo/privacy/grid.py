"""The integer grid: data and noise on one lattice, with no rounding in between.

The steps h_x and h_y of the data grid are free public choices. They are chosen so that the noise
variances that the budget asks for are powers of two *in grid units* (h_x⁴, h_x²h_y², h_y⁴). So moments
are integers, noise is an integer, their sum is the release, and the sensitivity is a ratio of integers
that can be checked with fractions.

The outcome moments cost nothing extra (mathematics.md section 2): with s = min(q²/4p, q/2) the joint
distance is what covariance and association cost without them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.errors import Argument, InputError, Message
from primo.privacy.sensitivity import joint_distance

__all__ = [
    "LARGEST_VARIANCE_BITS",
    "SMALLEST_VARIANCE_BITS",
    "Grid",
    "bits_of_squares",
    "joint_grid",
    "make_grid",
    "too_large",
]

#: A row has squared norm at most 2**40 in grid units: 2**13 such rows add exactly in float64.
_LARGEST_SQUARED_BITS = 40
#: Noise of variance 2**114 stays inside int64 beside moments below 2**62.
LARGEST_VARIANCE_BITS = 114
#: Lower limit of every noise variance; `lattice_margin` is charged for it.
SMALLEST_VARIANCE_BITS = 58


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Integer radii of quantised rows and noise variances, all in grid units.

    Variances are powers of two and are given by their exponents. A symmetric block's variance belongs
    to its diagonal; off the diagonal it is one bit less (svec, mathematics.md section 2).
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

    def fits(self, n: int) -> bool:
        """Whether sums over n rows, noise included, fit the integers, and the noise is not too small."""
        radii = (self.feature_radius_squared, self.outcome_radius_squared)
        bits = (
            self.covariance_variance_bits - 1,
            self.association_variance_bits,
            self.outcome_variance_bits - 1,
        )
        return (
            0 < min(radii) <= max(radii) <= 2 ** max(0, bits_of_squares(n))
            and min(bits) >= SMALLEST_VARIANCE_BITS
            and max(bits) <= LARGEST_VARIANCE_BITS
        )

    @property
    def exact_rows(self) -> int:
        """How many rows can be summed in float64 without rounding."""
        return int(2**53 // max(self.feature_radius_squared, self.outcome_radius_squared))


def joint_grid(*, mu: float, split: float, n: int) -> Grid:
    """Choose a grid that spends at most mu on all blocks together, with split ratio k = q/p.

    Guarantee: ``joint_distance(grid.p, grid.q, grid.s) <= mu**2`` as exact fractions, for `both`;
    the costs under `features` and `outcomes` (s, or p, public) are no larger.
    """
    # f(p, q) = mu² with q = k·p. The factor leaves room for the rounding of floats here;
    # the exact fractions are checked below.
    p = mu**2 / (2 + 2 * split + split**2 / 2) * (1 - 1e-11)
    grid = make_grid(p=p, q=split * p, n=n)
    if joint_distance(grid.p, grid.q, grid.s) > Fraction(mu) ** 2:
        raise AssertionError(f"{grid} exceeds mu={mu!r}")  # a bug, never the user's fault
    return grid


def make_grid(*, p: float, q: float, n: int, feature_radius_squared: int | None = None) -> Grid:
    """Choose radii and variances with the given squared ratios of bound to noise, never above them.

    Parameters
    ----------
    p, q
        For the covariance and the association; the outcome moments get s = min(q²/4p, q/2) or less.
    n
        Number of rows: all sums have to fit int64.
    feature_radius_squared
        Keep this radius, of an earlier release whose covariance is used again, instead of a new one.
    """
    s = min(q * q / (4 * p), q / 2)
    squared_bits = min(
        bits_of_squares(n),
        math.floor(LARGEST_VARIANCE_BITS / 2 + math.log2(min(p, q, s)) / 2),
    )
    if squared_bits < 24:
        raise too_large(n)
    # radius² = √p·σ₁ with σ₁ = 2^c, at most 2^squared_bits.
    c = math.floor(squared_bits - math.log2(p) / 2)
    # Rounded down as fractions: a float that is rounded up to a whole number would be above the ratio.
    feature = feature_radius_squared or math.isqrt(math.floor(Fraction(p) * Fraction(4) ** c))
    association_bits = math.floor(squared_bits + math.log2(feature / q))
    outcome = math.floor(Fraction(q) * Fraction(2) ** association_bits / feature)
    # The next power of two, unless a radius that is hardly smaller reaches the one before.
    outcome_bits = math.ceil(2 * math.log2(outcome) - math.log2(s) - 1e-6)
    outcome = min(outcome, math.floor(math.sqrt(s) * 2.0 ** (outcome_bits / 2)))
    grid = Grid(
        feature_radius_squared=feature,
        outcome_radius_squared=outcome,
        covariance_variance_bits=2 * c,
        association_variance_bits=association_bits,
        outcome_variance_bits=outcome_bits,
    )
    if not grid.fits(n):
        raise too_large(n)
    return grid


def bits_of_squares(n: int) -> int:
    """Bits of a squared norm with which the sums over n rows fit int64."""
    return min(_LARGEST_SQUARED_BITS, 61 - max(1, n - 1).bit_length())


def too_large(n: int) -> InputError:
    """Return the error for a release that int64 cannot hold."""
    return InputError(
        f"a release of {n} rows at this budget does not fit the 64-bit integers that primo counts "
        "with",
        remedy=Message.of(
            "use fewer rows, or another epsilon or number of ", Argument("covariance_rows")
        ),
    )
