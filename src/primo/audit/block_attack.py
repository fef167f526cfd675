"""The attack on a covariance inside blocks of features, or on its diagonal alone.

Blocks and outcome moments ride along with the association, so a pair of neighbours can be as far apart
as mu although only the association differs: rows with opposite features and the same outcomes. Half of
the canaries are such pairs. The other half *trade length between blocks*: a row is as long as its first
block may be there and short in its second, its replacement the other way round, with the opposite sign.
These pairs come within 1.3 % of mu, and would exceed it if a block's noise had half of its variance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from primo.audit.attack import Flags, NewBits
from primo.audit.laws import OfGaussians
from primo.audit.numbers import Integers, Vector
from primo.audit.settings import BLOCK_SHARE, Rows, Setting, as_source
from primo.planning.plan import Plan
from primo.privacy.protection import Protection
from primo.released.release import Release
from primo.rows.block_moments import BlockMoments, fold_blocks
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.blocks import release_blocks

__all__ = ["BlockAttack", "block_canaries"]


class BlockAttack(OfGaussians):
    """All canaries at once, as `attack.GaussAttack`, in a release with blocks of features.

    Every canary has two blocks of features and an outcome to itself, so the differences of two canaries
    have no number in common.
    """

    def __init__(self, setting: Setting) -> None:
        (self.plan,) = setting.plans
        self.there = np.arange(setting.canaries) % 2 == 0
        canaries = block_canaries(self.plan, setting.canaries)
        rng = np.random.default_rng(0)  # the rows beside the canaries: any will do
        others = tuple(
            rng.normal(size=(self.plan.n - setting.canaries, width))
            for width in (self.plan.d, self.plan.l)
        )
        self.sources: tuple[ArraySource, ArraySource] = (
            _data_set(canaries, self.there, others),
            _data_set(canaries, ~self.there, others),
        )
        self.moments = tuple(fold_blocks(source, self.plan, threads=1) for source in self.sources)
        self._numbers = _Numbers.of(self.plan)
        moved = [self._moved(canaries, j) for j in range(setting.canaries)]
        self.distances = tuple(self._numbers.squared_length(delta) for delta in moved)
        self.weights = vstack(
            [csr_array(self._numbers.whitened(delta)[None]) for delta in moved], format="csr"
        )
        one, other = (self._numbers.before_noise(moments) for moments in self.moments)
        self._middle: Vector = self.weights @ ((one + other) / 2)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        released = self._numbers.after_noise(self.release(coin, new_bits))
        return self.weights @ released - self._middle, self.there ^ coin

    def release(self, coin: bool, new_bits: NewBits) -> Release:
        """Release the data set that the coin chooses."""
        source = self.sources[coin]
        return release_blocks(
            self.moments[coin],
            self.plan,
            feature_names=source.feature_names,
            outcome_names=source.outcome_names,
            bits=new_bits(),
        )

    def _moved(self, canaries: tuple[Rows, Rows], j: int) -> Integers:
        """Return by how much the numbers with one canary exceed those with its replacement."""
        there, replaced = (
            self._numbers.before_noise(
                fold_blocks(as_source(x[j : j + 1], y[j : j + 1]), self.plan, threads=1)
            )
            for x, y in canaries
        )
        return there - replaced


def block_canaries(plan: Plan, canaries: int) -> tuple[Rows, Rows]:
    """Return the (features, outcomes) of the canaries and of their replacements.

    Canary j has the blocks 2j and 2j + 1. Its first block is √¾ of the row's norm long, as long as it
    may be, its second ½; all features of a block are equal. Canaries 0, 1, 4, 5 … are replaced by rows
    with opposite features, the others trade the lengths of their blocks besides. Where features are
    public, outcomes are opposite instead.
    """
    if plan.blocks is None:
        raise AssertionError("the plan has no blocks")
    starts = plan.blocks.starts
    x, replaced = np.zeros((2, canaries, plan.d))
    y = np.zeros((canaries, plan.l))
    long, short = math.sqrt(BLOCK_SHARE), math.sqrt(1 - BLOCK_SHARE)
    for j in range(canaries):
        lengths = long, short
        traded = (short, long) if j // 2 % 2 else lengths
        for k in (0, 1):
            inside = slice(starts[2 * j + k], starts[2 * j + k + 1])
            each = plan.features.norm / math.sqrt(inside.stop - inside.start)
            x[j, inside] = lengths[k] * each
            replaced[j, inside] = -traded[k] * each
        y[j, j] = plan.outcomes.norm
    if plan.protection is Protection.OUTCOMES:
        return (x, y), (x, -y)
    # Opposite outcomes would be nearer: the constant, which is one of them, stays.
    return (x, y), (replaced, y)


def _data_set(canaries: tuple[Rows, Rows], there: Flags, others: tuple[Vector, ...]) -> ArraySource:
    kept, replaced = canaries
    chosen = [np.where(there[:, None], a, b) for a, b in zip(kept, replaced, strict=True)]
    features, outcomes = (np.vstack(pair) for pair in zip(chosen, others, strict=True))
    return as_source(features, outcomes)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Numbers:
    """Everything that is released as one vector in grid units, and the noise that the plan claims.

    Numbers without noise have a scale here too. It is never used, because they are the same for all
    neighbours.
    """

    plan: Plan
    places: Integers  # of the lower triangles, among all products inside blocks
    units: Integers  # by which these are multiplied before the noise
    variance_bits: Integers  # (numbers,) log₂ of the variance

    @classmethod
    def of(cls, plan: Plan) -> _Numbers:
        """Read the noise off the plan."""
        assert plan.blocks is not None
        blocks, grid = plan.blocks, plan.grid
        places, units, inside = [], [], []
        at = 0
        for width, unit, bits in zip(
            blocks.widths.tolist(), blocks.unit, blocks.variance_bits, strict=True
        ):
            row, column = np.tril_indices(width)
            places.append(at + row * width + column)
            units.append(np.full(len(row), unit))
            inside.append(bits - (row != column))
            at += width * width
        outcome = np.full(plan.l, grid.outcome_variance_bits)
        if plan.full_outcome_moments:
            row, column = np.tril_indices(plan.l)
            outcome = grid.outcome_variance_bits - (row != column)
        bits = [
            *inside,
            np.full(plan.d * plan.l, grid.association_variance_bits),
            np.full(plan.d * plan.intercept, grid.association_variance_bits),
            outcome,
            np.full(plan.l * plan.intercept, grid.outcome_variance_bits - 1),
        ]
        return cls(
            plan=plan,
            places=np.concatenate(places),
            units=np.concatenate(units),
            variance_bits=np.concatenate(bits).astype(np.int64),
        )

    def before_noise(self, moments: BlockMoments) -> Integers:
        """Return the exact numbers."""
        parts = (
            moments.blocks[self.places] * self.units,
            moments.association.ravel(),
            moments.feature_sums,
            self._triangle(moments.outcome),
            moments.outcome_sums,
        )
        return np.concatenate(parts)

    def after_noise(self, release: Release) -> Vector:
        """Return the released values of the same numbers, in the same order and units."""
        plan, blocks = self.plan, release.blocks
        assert blocks is not None
        x, y = plan.feature_step, plan.outcome_step
        inside = np.concatenate([part.ravel() for part in blocks.covariance])[self.places]
        parts = [inside * self.units / x**2, release.association[: plan.d].ravel() / (x * y)]
        if plan.intercept:
            parts.append(blocks.sums * ((plan.constant_steps or 1) / x))
        parts.append(self._triangle(release.outcome_moments) / y**2)
        if plan.intercept:
            parts.append(release.association[plan.d] / y**2)
        return np.concatenate(parts)

    def whitened(self, delta: Integers) -> Vector:
        """Return Δ/variance; its inner product with Δ is the squared length of Δ in noise scales."""
        return np.asarray(delta * np.exp2(-self.variance_bits))

    def squared_length(self, delta: Integers) -> Fraction:
        """Return the squared length of a difference in noise scales, exactly."""
        return sum(
            (
                Fraction(int(delta[i]) ** 2, 2 ** int(self.variance_bits[i]))
                for i in np.flatnonzero(delta)
            ),
            Fraction(0),
        )

    def _triangle(self, outcome: NDArray[Any]) -> NDArray[Any]:
        """Return the diagonal, or the lower triangle where all of it is released."""
        if not self.plan.full_outcome_moments:
            return outcome.ravel()
        return np.asarray(outcome[np.tril_indices(self.plan.l)])
