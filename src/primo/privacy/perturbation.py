"""Noise on the outcomes themselves (association="perturbed"), and what it costs.

Under `outcomes` the features are public, so a release of the outcomes with noise on every entry is all
that any statistic needs: whatever is computed from it and from public features costs nothing more
(mathematics.md section 14). Replacing a row moves one row of the outcomes from y to y′, ‖y‖, ‖y′‖ ≤ b,
by at most 2b, at y′ = −y. The other rows stay, so with noise of scale σ the release is (2b/σ)-GDP,
whatever the number of rows and of features.

Quantised rows have squared norm at most R² in grid units. They are multiplied by a public integer,
`unit`, so that the discrete Gaussian of variance 2**VARIANCE_BITS has the scale that the budget asks
for; the ratio of the two is a fraction that is checked exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from primo.errors import InputError

__all__ = ["ROUNDED_BITS", "VARIANCE_BITS", "Perturbation", "perturbation"]

#: Variance of the noise on an entry, as a power of two: large, so that the lattice does not show.
VARIANCE_BITS = 96

#: Noisy entries are published as multiples of 2**-ROUNDED_BITS standard deviations of their noise. That
#: is post-processing; products with integer features are then exact, in any order of summation.
ROUNDED_BITS = 12

#: Bits of the squared norm of a row in grid units, at most: it fits int64 with its noise.
_LARGEST_SQUARED_BITS = 120


@dataclass(frozen=True, kw_only=True)
class Perturbation:
    """How much noise every entry of the outcomes gets; fixed before any row is read."""

    unit: int  # grid units for one step of the quantised outcomes
    variance_bits: int = VARIANCE_BITS

    def spent(self, radius_squared: int) -> Fraction:
        """Return the squared mu, exactly, for rows of at most this squared norm in steps."""
        return Fraction(4 * radius_squared * self.unit**2, 2**self.variance_bits)

    def fits(self, radius_squared: int) -> bool:
        """Whether rows of at most this squared norm fit the integers, and the noise is the usual one."""
        length = radius_squared * self.unit**2
        usual = self.variance_bits == VARIANCE_BITS
        return usual and self.unit >= 1 and length <= 2**_LARGEST_SQUARED_BITS

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on an entry, in steps of the quantised outcomes."""
        return math.exp2(self.variance_bits / 2) / self.unit

    @property
    def dropped_bits(self) -> int:
        """How many bits of a noisy entry are rounded away before it is published."""
        return self.variance_bits // 2 - ROUNDED_BITS


def perturbation(*, mu: float, radius_squared: int) -> Perturbation:
    """Choose the unit with which rows of this squared norm spend at most `mu`, and hardly less.

    Guarantee: ``perturbation.spent(radius_squared) <= mu**2`` as exact fractions.
    """
    radius = math.sqrt(radius_squared)
    unit = math.floor(math.exp2(VARIANCE_BITS / 2) * mu / (2 * radius) * (1 - 1e-12))
    found = Perturbation(unit=unit)
    if not found.fits(radius_squared):
        raise InputError(
            f"a budget of mu = {mu:.3g} is too small or too large for noise on the outcomes",
            remedy="choose another epsilon",
        )
    if found.spent(radius_squared) > Fraction(mu) ** 2:
        raise AssertionError(f"{found} exceeds mu={mu!r}")  # a bug, never the user's fault
    return found
