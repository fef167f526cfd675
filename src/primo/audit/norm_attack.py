"""The attack on a release whose norms are found first: both stages are seen, and tested together.

Every canary is longer than any norm, so that it is shortened to whatever is found, and falls into bins
of its own in the histograms of row lengths, before and after it is replaced. The noise of the first
stage decides the norms of the second; given the first, the second is an attack like any other, on the
plan as it was settled. The log-likelihood ratios of both stages add up.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from primo.audit.attack import Attack, Flags, GaussAttack, NewBits, Part, SampledAttack
from primo.audit.laws import GaussianLaw, Law
from primo.audit.numbers import Vector
from primo.audit.round_attack import RoundAttack
from primo.audit.settings import Rows, Setting, as_source, canary_rows, worst_cosine
from primo.planning.plan import Plan
from primo.privacy.lengths import BINS_PER_OCTAVE
from primo.released.found_norms import settled_plan
from primo.released.moments import ReleasedLengths
from primo.rows.lengths import Lengths, fold_lengths
from primo.wall import mechanism

__all__ = ["NormAttack", "attack_on"]

#: Octaves above the other rows at which the canaries' lengths begin.
_ABOVE = 8


class NormAttack:
    """All canaries at once, as `GaussAttack`, in a release with norm="auto"."""

    def __init__(self, setting: Setting) -> None:
        (self.plan,) = setting.plans
        self.there = np.arange(setting.canaries) % 2 == 0
        self._cosine = worst_cosine(self.plan)
        self._canaries = long_canaries(self.plan, setting.canaries, self._cosine)
        self._parts: dict[tuple[float, float], Part] = {}
        first = self._part(self.plan)
        self._lengths = tuple(
            fold_lengths(source, self.plan, threads=1) for source in first.sources
        )
        moved = [_counted(self.plan, self._canaries, j) for j in range(setting.canaries)]
        spent = [_squared(self.plan, delta) for delta in moved]
        self.distances = tuple(a + b for a, b in zip(spent, first.distances, strict=True))
        self._moved = moved

    @property
    def distance(self) -> float:
        """How far apart the neighbours are in noise scales, over both stages."""
        return math.sqrt(max(self.distances))

    @property
    def law(self) -> Law:
        """What the claimed noise allows this attack."""
        return GaussianLaw(mu=self.distance)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        bits = new_bits()
        counted = self._lengths[coin]
        lengths = mechanism.release_lengths(counted, self.plan, bits=bits)
        plan = settled_plan(self.plan, lengths)
        part = self._part(plan)
        released = mechanism.release(
            part.moments[coin],
            plan,
            feature_names=part.sources[coin].feature_names,
            outcome_names=part.sources[coin].outcome_names,
            bits=bits,
            lengths=lengths,
        )
        return self._first_stage(lengths) + part.scores(released), self.there ^ coin

    def _part(self, plan: Plan) -> Part:
        """Return the second stage at the norms of a plan."""
        norms = plan.features.norm, plan.outcomes.norm
        if norms not in self._parts:
            self._parts[norms] = Part.build(plan, self.there, self._canaries)
        return self._parts[norms]

    def _first_stage(self, lengths: ReleasedLengths) -> Vector:
        """Return the log-likelihood ratio of every canary in the released counts."""
        search = self.plan.norm_search
        assert search is not None
        scores = np.zeros(len(self.there))
        weight = search.unit**2 / math.exp2(search.variance_bits)
        for block in _private(self.plan):
            middle = sum(getattr(part, block) for part in self._lengths) / 2
            noisy = getattr(lengths, block) - middle
            scores += [weight * float(getattr(delta, block) @ noisy) for delta in self._moved]
        return scores


def attack_on(setting: Setting) -> Attack:
    """Build the attack on the worst neighbours of a setting; their rows are made up."""
    if setting.norms_found:
        return NormAttack(setting)
    if setting.rounds != 1:
        return RoundAttack(setting)
    return GaussAttack(setting) if setting.sampled is None else SampledAttack.build(setting)


def long_canaries(plan: Plan, canaries: int, cosine: float) -> tuple[Rows, Rows]:
    """Return canaries far longer than other rows, every one in bins of its own."""
    kept, replaced = canary_rows(plan, canaries, cosine)
    j = np.arange(canaries)[:, None]
    scales = [np.exp2(_ABOVE + (2 * j + k + 0.5) / BINS_PER_OCTAVE) for k in (0, 1)]
    moved = [
        (x * scale / plan.features.norm, y * scale / plan.outcomes.norm)
        for (x, y), scale in zip((kept, replaced), scales, strict=True)
    ]
    # What is public of a row stays the same.
    (x, y), (xx, yy) = moved
    if not plan.is_private("features"):
        xx = x
    if not plan.is_private("outcomes"):
        yy = y
    return (x, y), (xx, yy)


def _private(plan: Plan) -> tuple[str, ...]:
    return tuple(block for block in plan.counted if plan.is_private(block))


def _counted(plan: Plan, canaries: tuple[Rows, Rows], j: int) -> Lengths:
    """Return by how much one canary moves the counts, from replaced to there."""
    there, replaced = (
        fold_lengths(as_source(x[j : j + 1], y[j : j + 1]), plan, threads=1) for x, y in canaries
    )
    return Lengths(
        rows=0,
        features=there.features - replaced.features,
        outcomes=there.outcomes - replaced.outcomes,
    )


def _squared(plan: Plan, delta: Lengths) -> Fraction:
    """Return the squared length of a difference of counts in noise scales, exactly."""
    search = plan.norm_search
    assert search is not None
    moved: NDArray[np.int64] = np.concatenate([getattr(delta, b) for b in _private(plan)])
    return Fraction(int(moved @ moved) * search.unit**2, 2**search.variance_bits)
