"""Covariance inside disjoint blocks of features only: what it costs, on a grid of integers.

Rows are shortened so that ‖x‖ ≤ b_x and ‖x_B‖ ≤ b_B for every block B; the sum of the b_B² may exceed
b_x². The constant of an intercept belongs to the outcomes, ŷ = (y, c) with ‖ŷ‖ ≤ b_ŷ, so no block holds
it. Released together are svec(x_B x_Bᵀ) of every block with noise σ_B, xŷᵀ with noise σ₂ and svec(ŷŷᵀ)
with noise σ₃.

**Theorem** (docs/guarantee.md, section 1). If σ_B² ≥ 4·b_B²·σ₂²/b_ŷ² for every block, and
σ₃² ≥ 4·b_ŷ²·σ₂²/b_x², no replaced row moves the release, measured in its noise, by more than
2·b_x·b_ŷ/σ₂: blocks and outcome moments cost nothing beside the association.

As in `privacy.grid` all of this holds between integers and is checked with exact fractions. A block's
sums are multiplied by a whole number before the noise, whose variance is a power of two, and divided by
it afterwards: so the noise of every block can be as small as the theorem allows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from primo.privacy.grid import (
    LARGEST_VARIANCE_BITS,
    SMALLEST_VARIANCE_BITS,
    Grid,
    bits_of_squares,
    too_large,
)

__all__ = ["BlockGrid", "block_grid", "numbers_inside"]

Integers = NDArray[np.int64]

#: A block's sums are multiplied by at most this, which leaves its noise variance 0.1 % from the least.
_LARGEST_UNIT = 2**11

#: Sums over all rows, multiplied, stay below this.
_LARGEST_SUM = 2**61


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockGrid:
    """Borders of blocks of features, and the integer radius and noise of each.

    Block k holds features starts[k] … starts[k + 1] - 1. Its rows have squared norm at most
    radius_squared[k] in grid units. Its sums of products are multiplied by unit[k] and get noise of
    variance 2**variance_bits[k] on the diagonal, half of that off it.
    """

    starts: Integers  # (m + 1,)
    radius_squared: Integers  # (m,)
    unit: Integers  # (m,)
    variance_bits: Integers  # (m,)

    def __eq__(self, other: object) -> bool:
        """Compare number by number; what dataclasses make would ask an array for its truth."""
        if not isinstance(other, BlockGrid):
            return NotImplemented
        names = ("starts", "radius_squared", "unit", "variance_bits")
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    def __repr__(self) -> str:
        """Show how many there are."""
        return f"<BlockGrid of {self.count} blocks, {int(self.starts[-1])} features>"

    @property
    def count(self) -> int:
        """Number of blocks."""
        return len(self.starts) - 1

    @property
    def widths(self) -> Integers:
        """Number of features of each block, (m,)."""
        return np.diff(self.starts)

    @property
    def part(self) -> str:
        """What is held of the covariance, in words."""
        if int(self.widths.max()) == 1:
            return "the diagonal of the covariance only"
        return "the covariance inside blocks of features only"

    @property
    def numbers(self) -> int:
        """How many different numbers the covariances inside all blocks hold."""
        return numbers_inside(self.starts)

    @property
    def steps_sigma(self) -> NDArray[np.float64]:
        """Noise scale on each block's diagonal, in grid units, (m,)."""
        return np.exp2(self.variance_bits / 2) / self.unit

    def covers(self, d: int) -> bool:
        """Whether the blocks hold each of d features once, and every array has its length."""
        m = len(self.starts) - 1
        return (
            m >= 1
            and all(a.shape == (m,) for a in (self.radius_squared, self.unit, self.variance_bits))
            and all(
                a.dtype == np.int64
                for a in (self.starts, self.radius_squared, self.unit, self.variance_bits)
            )
            and int(self.starts[0]) == 0
            and int(self.starts[-1]) == d
            and bool((self.starts[1:] > self.starts[:-1]).all())  # a difference may wrap around
        )

    def holds(self, grid: Grid, n: int) -> bool:
        """Whether the conditions of the theorem hold, as exact integers, and all sums fit int64."""
        association = 2**grid.association_variance_bits
        outcome = grid.outcome_radius_squared
        if 2**grid.outcome_variance_bits * grid.feature_radius_squared < 4 * outcome * association:
            return False
        for radius, unit, bits in self._kinds():
            if not (
                1 <= radius <= grid.feature_radius_squared
                and unit >= 1
                and unit * n * radius <= _LARGEST_SUM
                and SMALLEST_VARIANCE_BITS <= bits - 1 <= LARGEST_VARIANCE_BITS
                and 2**bits * outcome >= 4 * radius * unit**2 * association
            ):
                return False
        return True

    def _kinds(self) -> Iterator[tuple[int, int, int]]:
        """Yield every different triple of radius, unit and bits, as Python integers."""
        table = np.stack([self.radius_squared, self.unit, self.variance_bits], axis=1)
        yield from map(tuple, np.unique(table, axis=0).tolist())


def numbers_inside(starts: Integers) -> int:
    """Return how many different numbers the covariances inside blocks with these borders hold."""
    widths = np.diff(starts)
    return int((widths * (widths + 1) // 2).sum())


def block_grid(
    *, mu: float, n: int, starts: Integers, shares: NDArray[np.float64]
) -> tuple[Grid, BlockGrid]:
    """Choose a grid that spends at most mu on association, blocks and outcome moments together.

    Parameters
    ----------
    mu
        What may be spent.
    n
        Number of rows.
    starts
        Borders of the blocks, (m + 1,).
    shares
        b_B²/b_x² of each block, (m,), at most 1.

    Notes
    -----
    Guarantee: 4·R_x²·R_y²/2**a ≤ mu² and the conditions of the theorem, as exact fractions; the costs
    under `features` and `outcomes` are no larger.
    Cost: one exact calculation for each different radius.

    Both radii are the same integer R, and the variances of outcome moments and of a block as long as
    the whole row are four times that of the association: the conditions then hold with equality.
    `Grid.covariance_variance_bits` is that of such a block; no plan of blocks draws it.
    """
    q = mu**2 / 4 * (1 - 1e-11)
    most = 2.0 ** bits_of_squares(n)
    # R = √q·2^(c/2 - 1) with the largest c for which R and the noise fit.
    bits = math.floor(2 * (math.log2(most) + 1) - math.log2(q))
    bits = min(bits, LARGEST_VARIANCE_BITS + 1)
    radius = math.floor(math.sqrt(q) * 2.0 ** (bits / 2 - 1))
    grid = Grid(
        feature_radius_squared=radius,
        outcome_radius_squared=radius,
        covariance_variance_bits=bits,
        association_variance_bits=bits - 2,
        outcome_variance_bits=bits,
    )
    if radius < 2**24 or not grid.fits(n):
        raise too_large(n)
    radii = np.clip(np.floor(radius * shares), 1, radius).astype(np.int64)
    kinds, where = np.unique(radii, return_inverse=True)
    chosen = np.array([_noise(int(kind), grid, n) for kind in kinds], dtype=np.int64)
    blocks = BlockGrid(
        starts=np.asarray(starts, dtype=np.int64),
        radius_squared=radii,
        unit=chosen[where, 0],
        variance_bits=chosen[where, 1],
    )
    if not blocks.holds(grid, n):
        raise too_large(n)
    if 4 * grid.q > Fraction(mu) ** 2:
        raise AssertionError(f"{grid} exceeds mu={mu!r}")  # a bug, never the user's fault
    return grid, blocks


def _noise(radius: int, grid: Grid, n: int) -> tuple[int, int]:
    """Return the unit and the variance bits of a block's noise: close to the least that is enough."""
    # σ² = 2**bits/unit² has to reach least/outcome.
    least = 4 * radius * 2**grid.association_variance_bits
    outcome = grid.outcome_radius_squared
    largest = max(1, min(_LARGEST_UNIT, _LARGEST_SUM // (n * radius)))
    top = min((largest**2 * least // outcome).bit_length(), LARGEST_VARIANCE_BITS + 1)
    choices = []
    for bits in range(top, top - 3, -1):
        unit = min(math.isqrt(2**bits * outcome // least), largest)
        if unit >= 1:
            choices.append((Fraction(2**bits, unit**2), -bits, unit))
    if not choices:
        raise too_large(n)
    _, bits, unit = min(choices)
    return unit, -bits
