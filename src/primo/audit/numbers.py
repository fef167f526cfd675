"""A release as one vector of numbers in grid units, and lengths in units of its noise."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from primo.moments import Moments
from primo.plans import CovarianceOrigin, Plan
from primo.release import Release

__all__ = ["Integers", "Vector", "after_noise", "before_noise", "squared_length", "whitened"]

Integers = NDArray[np.int64]
Vector = NDArray[np.float64]


def before_noise(moments: Moments) -> Integers:
    """Return all moments as one vector; both triangles of a symmetric block are in it."""
    blocks = (moments.covariance, moments.association, moments.outcome)
    return np.concatenate([block.ravel() for block in blocks])


def after_noise(release: Release) -> Vector:
    """Return what was released of the same numbers, in the same order and units."""
    plan = release.plan
    x, y = plan.feature_step, plan.outcome_step
    blocks = [release.association / (x * y), release.outcome_moments / y**2]
    if plan.covariance_origin is CovarianceOrigin.ROWS:
        blocks.insert(0, release.covariance / (x**2 * plan.sampling_factor))
    return np.concatenate([block.ravel() for block in blocks])


def whitened(plan: Plan, delta: Integers) -> Vector:
    """Return Δ/variance: the product of a difference with it is its squared length in noise scales."""
    bits, copies = _variances(plan)
    weights: Vector = delta / copies * np.exp2(-bits)
    return weights


def squared_length(plan: Plan, delta: Integers) -> Fraction:
    """Return the squared length of a difference in noise scales, exactly."""
    bits, copies = _variances(plan)
    return sum(
        (
            Fraction(int(delta[i]) ** 2, int(copies[i]) * 2 ** int(bits[i]))
            for i in np.flatnonzero(delta)
        ),
        Fraction(0),
    )


def _variances(plan: Plan) -> tuple[Integers, Integers]:
    """Return log₂ of the noise variance of each number, and in how many places the number stands.

    Numbers without noise have no place here, and need none: no neighbour changes them.
    """

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
    return bits, copies
