"""The attacks: worst-case neighbours, real releases of them, and the best test between the two.

A release adds Gaussian noise to integer moments. Between two data sets whose moments differ by Δ the
best test is the likelihood ratio, which is linear: the released numbers projected on Δ, each divided
by its variance. Δ is computed in integers from the rows that the real program counted, never from a
formula of `primo.privacy`, so that a wrong formula is found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from primo.audit.laws import Law, OfGaussians, SampledLaw
from primo.audit.numbers import NoiseUnits, Vector, after_noise, before_noise
from primo.audit.settings import Rows, Setting, as_source, canary_rows, worst_cosine
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.release import Release
from primo.rows.moments import Moments, fold
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall import mechanism
from primo.wall.noise import RandomBits

__all__ = ["Attack", "Flags", "GaussAttack", "NewBits", "Part", "SampledAttack"]

Flags = NDArray[np.bool_]
NewBits = Callable[[], RandomBits]


class Attack(Protocol):
    """A game: a coin chooses between two data sets, one is released, the attack guesses which."""

    @property
    def law(self) -> Law:
        """What the claimed noise allows this attack."""

    @property
    def distance(self) -> float:
        """How far apart the neighbours are in noise scales: the mu that they reach."""

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""


class GaussAttack(OfGaussians):
    """All canaries at once, every second one replaced; the coin swaps all rows and replacements.

    The rows of different canaries move the released numbers in orthogonal directions, so the law of a
    score depends on its own canary only: each score tests between two neighbours. Half of the canaries
    are present whatever the coin, so the number of right guesses varies no more than that of independent
    guesses with the same mean chance (Hoeffding 1956), whether or not both kinds of error are equally
    likely.

    The moments are folded once and released many times. Folding draws no random numbers, so the releases
    have the law of whole fits, and with the same bits they are the same numbers.
    """

    def __init__(self, setting: Setting) -> None:
        cosine = worst_cosine(setting.plans[0])
        self.there = np.arange(setting.canaries) % 2 == 0
        self.parts = tuple(
            Part.build(plan, self.there, canary_rows(plan, setting.canaries, cosine))
            for plan in setting.plans
        )
        each = zip(*(part.distances for part in self.parts), strict=True)
        self.distances = tuple(sum(parts, Fraction(0)) for parts in each)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        releases = self.release(coin, new_bits)
        scores = [part.scores(r) for part, r in zip(self.parts, releases, strict=True)]
        return np.sum(scores, axis=0), self.there ^ coin

    def release(self, coin: bool, new_bits: NewBits) -> list[Release]:
        """Release the data set that the coin chooses, and its extension."""
        releases: list[Release] = []
        for part in self.parts:
            source = part.sources[coin]
            released = mechanism.release(
                part.moments[coin],
                part.plan,
                feature_names=source.feature_names,
                outcome_names=source.outcome_names,
                bits=new_bits(),
                covariance=_given_covariance(part.plan, releases),
            )
            releases.append(released)
        return releases


def _given_covariance(plan: Plan, earlier: Sequence[Release]) -> NDArray[np.float64] | None:
    """Return the covariance that a plan does not take from its rows."""
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        return np.eye(plan.width)
    return earlier[0].covariance if earlier else None


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Part:
    """One release of the game: two data sets, and the projections that tell them apart."""

    plan: Plan
    sources: tuple[ArraySource, ArraySource]  # by the coin
    moments: tuple[Moments, Moments]
    weights: csr_array  # (canaries, numbers) Δ/variance
    middle: Vector  # (canaries,) projection halfway between a row and its replacement
    distances: tuple[Fraction, ...]

    @classmethod
    def build(cls, plan: Plan, there: Flags, canaries: tuple[Rows, Rows]) -> Part:
        """Make two data sets that differ in all canaries, and the test for each canary."""
        rng = np.random.default_rng(0)  # the rows beside the canaries: any will do
        shapes = (plan.n - len(there), plan.d), (plan.n - len(there), plan.l)
        others = tuple(rng.normal(size=shape) for shape in shapes)
        sources = _data_set(canaries, there, others), _data_set(canaries, ~there, others)
        one, other = (fold(source, plan, threads=1) for source in sources)
        moved = [_moved(plan, canaries, j) for j in range(len(there))]
        units = NoiseUnits.of(plan)
        weights = vstack([csr_array(units.whitened(delta)[None]) for delta in moved], format="csr")
        centre = (before_noise(one) + before_noise(other)) / 2
        return cls(
            plan=plan,
            sources=sources,
            moments=(one, other),
            weights=weights,
            middle=weights @ centre,
            distances=tuple(units.squared_length(delta) for delta in moved),
        )

    def scores(self, release: Release) -> Vector:
        """Return the log-likelihood ratio of every canary."""
        scores: Vector = self.weights @ after_noise(release) - self.middle
        return scores


def _data_set(canaries: tuple[Rows, Rows], there: Flags, others: tuple[Vector, ...]) -> ArraySource:
    original, replaced = canaries
    chosen = [np.where(there[:, None], a, b) for a, b in zip(original, replaced, strict=True)]
    features, outcomes = (np.vstack(pair) for pair in zip(chosen, others, strict=True))
    return as_source(features, outcomes)


def _moved(plan: Plan, canaries: tuple[Rows, Rows], j: int) -> NDArray[np.int64]:
    """Return by how much the moments with one canary exceed those with its replacement."""
    sample = np.ones(1, dtype=np.bool_) if plan.draws_sample else None
    there, replaced = (
        before_noise(fold(as_source(x[j : j + 1], y[j : j + 1]), plan, sample=sample, threads=1))
        for x, y in canaries
    )
    return there - replaced


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SampledAttack:
    """One canary among rows that all equal its replacement.

    The moments of a fit then depend on its secret sample only through whether the canary is drawn, so
    two sets of moments for each side of the coin cover all samples. The sample is drawn as in a fit.
    """

    plan: Plan
    law: SampledLaw
    sources: tuple[ArraySource, ArraySource]  # by the coin
    moments: tuple[tuple[Moments, Moments], ...]  # by the coin, and by whether the canary is drawn
    directions: tuple[Vector, Vector]  # for covariance and rest; projections have unit noise
    start: Vector  # the numbers without the canary, which are the same for all samples

    @classmethod
    def build(cls, setting: Setting) -> SampledAttack:
        """Try eleven cosines of x and x′; take the one with the largest ε at the claimed noise."""
        (plan,) = setting.plans
        attacks = [cls._at(plan, float(cosine)) for cosine in np.linspace(0.0, 0.95, 11)]
        return max(attacks, key=lambda attack: attack.law.epsilon_at(setting.delta))

    @classmethod
    def _at(cls, plan: Plan, cosine: float) -> SampledAttack:
        canaries = canary_rows(plan, 1, cosine)
        others = tuple(np.repeat(block, plan.n - 1, axis=0) for block in canaries[1])
        there = np.array([True])
        sources = _data_set(canaries, there, others), _data_set(canaries, ~there, others)
        sampled = plan.sampled or plan.n
        without = np.arange(plan.n) >= plan.n - sampled  # the canary is the first row
        moments = tuple(
            (
                fold(source, plan, sample=without, threads=1),
                fold(source, plan, sample=without[::-1], threads=1),
            )
            for source in sources
        )
        delta = _moved(plan, canaries, 0)
        covariance = np.arange(len(delta)) < plan.width**2
        units = NoiseUnits.of(plan)
        first, second = units.whitened(delta * covariance), units.whitened(delta * ~covariance)
        lengths = math.sqrt(first @ delta), math.sqrt(second @ delta)
        return cls(
            plan=plan,
            law=SampledLaw(rate=sampled / plan.n, covariance=lengths[0], rest=lengths[1]),
            sources=sources,
            moments=moments,
            directions=(first / lengths[0], second / lengths[1]),
            start=before_noise(moments[1][0]).astype(np.float64),
        )

    @property
    def distance(self) -> float:
        """How far apart the neighbours are in noise scales if the canary was drawn."""
        return math.hypot(self.law.covariance, self.law.rest)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Fit once; return the score of the canary (above 0: "there"), and the truth."""
        moved = after_noise(self.release(coin, new_bits)) - self.start
        score = self.law.score(*(float(direction @ moved) for direction in self.directions))
        return np.array([score]), np.array([not coin])

    def release(self, coin: bool, new_bits: NewBits) -> Release:
        """Draw the sample and release, as `primo.workflow.pipeline.make_release` does."""
        bits = new_bits()
        sample = bits.subset(self.plan.n, self.plan.sampled or self.plan.n, label="sample")
        source = self.sources[coin]
        return mechanism.release(
            self.moments[coin][int(sample[0])],
            self.plan,
            feature_names=source.feature_names,
            outcome_names=source.outcome_names,
            bits=bits,
        )
