"""A release as one vector of numbers in grid units, and lengths in units of its noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.release import Release
from primo.rows.moments import Moments

__all__ = ["Integers", "NoiseUnits", "Vector", "after_noise", "before_noise"]

Integers = NDArray[np.int64]
Vector = NDArray[np.float64]


def before_noise(moments: Moments) -> Integers:
    """Return all moments as one vector; both triangles of a symmetric block are in it."""
    blocks = (moments.covariance, moments.association, moments.outcome)
    return np.concatenate([block.ravel() for block in blocks])


def after_noise(release: Release) -> Vector:
    """Return the released values of the same numbers, in the same order and units."""
    plan = release.plan
    x, y = plan.feature_step, plan.outcome_step
    blocks = [release.association / (x * y), release.outcome_moments / y**2]
    if plan.covariance_origin is CovarianceOrigin.ROWS:
        blocks.insert(0, release.covariance / (x**2 * plan.sampling_factor))
    return np.concatenate([block.ravel() for block in blocks])


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseUnits:
    """The noise that a plan claims for each number.

    Numbers without noise have a scale here too. It is never used, because they are the same for all
    neighbours.
    """

    variance_bits: Integers  # (numbers,) log₂ of the variance
    copies: Integers  # (numbers,) how often the vector holds the number: 2 off a diagonal

    @classmethod
    def of(cls, plan: Plan) -> NoiseUnits:
        """Read the noise off the plan, in the order of `before_noise`."""

        def symmetric(width: int, bits: int) -> tuple[Integers, Integers]:
            diagonal = np.eye(width, dtype=np.int64)
            return (bits - plan.triangle_bits * (1 - diagonal)).ravel(), (2 - diagonal).ravel()

        def plain(size: int, bits: int) -> tuple[Integers, Integers]:
            return np.full(size, bits), np.ones(size, dtype=np.int64)

        grid = plan.grid
        blocks = [plain(plan.width * plan.l, grid.association_variance_bits)]
        if plan.covariance_origin is CovarianceOrigin.ROWS:
            blocks.insert(0, symmetric(plan.width, grid.covariance_variance_bits))
        outcome = symmetric if plan.full_outcome_moments else plain
        blocks.append(outcome(plan.l, grid.outcome_variance_bits))
        bits, copies = (np.concatenate(column) for column in zip(*blocks, strict=True))
        return cls(variance_bits=bits, copies=copies)

    def whitened(self, delta: Integers) -> Vector:
        """Return Δ/variance; its inner product with Δ is the squared length of Δ in noise scales."""
        weights: Vector = delta / self.copies * np.exp2(-self.variance_bits)
        return weights

    def squared_length(self, delta: Integers) -> Fraction:
        """Return the squared length of a difference in noise scales, exactly."""
        total = Fraction(0)
        for i in np.flatnonzero(delta):
            variance = 2 ** int(self.variance_bits[i])
            total += Fraction(int(delta[i]) ** 2, int(self.copies[i]) * variance)
        return total
