"""The attack on a release whose bounds are found first: all stages are seen, and tested together.

Every canary is longer than any norm, so that it is shortened to whatever is found, and falls into bins
of its own in the histograms of row lengths and of its columns, before and after it is replaced. The
noise of a stage decides the bounds of the next; given the stages before it, each stage is an attack like
any other, on the plan as it was settled by then. The log-likelihood ratios of all stages add up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.audit.attack import Attack, Flags, GaussAttack, NewBits, Part, SampledAttack
from primo.audit.block_attack import BlockAttack
from primo.audit.laws import OfGaussians
from primo.audit.numbers import Vector
from primo.audit.perturbed_attack import PerturbedAttack
from primo.audit.round_attack import RoundAttack
from primo.audit.settings import Rows, Setting, as_source, canary_rows, worst_cosine
from primo.planning.plan import Plan
from primo.privacy.centre_search import RADIUS
from primo.privacy.lengths import BINS_PER_OCTAVE
from primo.released.found_centres import centred_plan, plan_for_sums
from primo.released.found_columns import plan_with_columns
from primo.released.found_norms import settled_plan
from primo.rows.lengths import fold_lengths
from primo.rows.sums import fold_sums
from primo.rows.values import fold_values
from primo.wall import mechanism, stages
from primo.wall.sealing import plan_digest

__all__ = ["NormAttack", "attack_on", "stages_of"]

#: Octaves above the other rows at which the canaries' lengths begin, and over which they spread.
_ABOVE, _OVER = 8, 24

#: Octaves below the other rows at which values in columns of other canaries lie: too small to count.
_BELOW = 24


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage before the moments: what is summed, released, and settled by it."""

    fold: Callable[..., Any]
    release: Callable[..., Any]
    settle: Callable[[Plan, Any], Plan]
    unit: int  # noise scale: a sum of 1 is so many grid units
    variance_bits: int
    each: int  # sums in what is released as 1
    blocks: tuple[str, ...]  # private ones that are released

    @property
    def weight(self) -> Fraction:
        """One over the noise variance of a sum."""
        return Fraction(self.unit**2, 2**self.variance_bits)


def stages_of(plan: Plan) -> list[Stage]:
    """Return the stages of a plan in their order, as `primo.workflow.stages` runs them."""
    found = []
    if (columns := plan.column_search) is not None:
        found.append(
            Stage(
                fold=fold_values,
                release=stages.release_columns,
                settle=plan_with_columns,
                unit=columns.unit,
                variance_bits=columns.variance_bits,
                each=1,
                blocks=_searched(columns),
            )
        )
    if (centres := plan.centre_search) is not None:
        found.append(
            Stage(
                fold=fold_lengths,
                release=stages.release_first_lengths,
                settle=plan_for_sums,
                unit=centres.counts.unit,
                variance_bits=centres.counts.variance_bits,
                each=1,
                blocks=_searched(centres),
            )
        )
        found.append(
            Stage(
                fold=fold_sums,
                release=stages.release_sums,
                settle=centred_plan,
                unit=centres.unit,
                variance_bits=centres.variance_bits,
                each=RADIUS,
                blocks=_searched(centres),
            )
        )
    assert plan.norm_search is not None
    found.append(
        Stage(
            fold=fold_lengths,
            release=mechanism.release_lengths,
            settle=settled_plan,
            unit=plan.norm_search.unit,
            variance_bits=plan.norm_search.variance_bits,
            each=1,
            blocks=tuple(block for block in plan.counted if plan.is_private(block)),
        )
    )
    return found


def _searched(search: Any) -> tuple[str, ...]:
    return tuple(block for block in ("features", "outcomes") if getattr(search, block))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _Folded:
    """Sums of a stage under the plan by then."""

    by_coin: tuple[Any, Any]
    middle: Vector  # halfway between the two data sets
    moved: tuple[NDArray[np.int64], ...]  # by each canary, from replaced to there


class NormAttack(OfGaussians):
    """All canaries at once, as `GaussAttack`, in a release with norm="auto"."""

    def __init__(self, setting: Setting) -> None:
        (self.plan,) = setting.plans
        self.there = np.arange(setting.canaries) % 2 == 0
        self._canaries = long_canaries(self.plan, setting.canaries, worst_cosine(self.plan))
        self._stages = stages_of(self.plan)
        self._part = lru_cache(maxsize=64)(self._make_part)
        self._folded = lru_cache(maxsize=64)(self._fold)
        self._plans: dict[bytes, Plan] = {}
        first = self._part(self._key(self.plan))
        self._sources = first.sources
        distances = list(first.distances)
        for i, stage in enumerate(self._stages):
            for j, delta in enumerate(self._folded(i, self._key(self.plan)).moved):
                distances[j] += stage.weight * int(delta @ delta)
        self.distances = tuple(distances)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        bits, plan, released = new_bits(), self.plan, None
        scores = np.zeros(len(self.there))
        for i, stage in enumerate(self._stages):
            folded = self._folded(i, self._key(plan))
            released = stage.release(folded.by_coin[coin], plan, bits=bits)
            noisy = _numbers(released, stage) * stage.each - folded.middle
            scores += [float(stage.weight) * float(delta @ noisy) for delta in folded.moved]
            plan = stage.settle(plan, released)
        part = self._part(self._key(plan))
        moments = mechanism.release(
            part.moments[coin],
            plan,
            feature_names=part.sources[coin].feature_names,
            outcome_names=part.sources[coin].outcome_names,
            bits=bits,
            lengths=released,
        )
        return scores + part.scores(moments), self.there ^ coin

    def _key(self, plan: Plan) -> bytes:
        """Name a plan; arrays in it cannot be looked up."""
        key = plan_digest(plan)
        if len(self._plans) > 256:
            self._plans.clear()
        self._plans[key] = plan
        return key

    def _make_part(self, key: bytes) -> Part:
        """Return the moments at the bounds of a plan."""
        return Part.build(self._plans[key], self.there, self._canaries)

    def _fold(self, place: int, key: bytes) -> _Folded:
        """Return the sums of a stage under a plan."""
        stage, plan = self._stages[place], self._plans[key]
        one, other = (stage.fold(source, plan, threads=1) for source in self._sources)
        alone = replace(plan, n=1)
        moved = []
        for j in range(len(self.there)):
            there, replaced = (
                stage.fold(as_source(x[j : j + 1], y[j : j + 1]), alone, threads=1)
                for x, y in self._canaries
            )
            moved.append(_numbers(there, stage) - _numbers(replaced, stage))
        middle = (_numbers(one, stage) + _numbers(other, stage)) / 2
        return _Folded(by_coin=(one, other), middle=middle, moved=tuple(moved))


def attack_on(setting: Setting) -> Attack:
    """Build the attack on the worst neighbours of a setting; their rows are made up."""
    if setting.norms_found:
        return NormAttack(setting)
    if setting.rounds != 1:
        return RoundAttack(setting)
    if setting.covariance != "full":
        return BlockAttack(setting)
    if setting.association == "perturbed":
        return PerturbedAttack(setting)
    return GaussAttack(setting) if setting.sampled is None else SampledAttack.build(setting)


def long_canaries(plan: Plan, canaries: int, cosine: float) -> tuple[Rows, Rows]:
    """Return canaries far longer than other rows, every one in bins of its own.

    In the columns of other canaries they have values that the moments round to 0, but that fall into
    other bins before and after a canary is replaced.
    """
    kept, replaced = canary_rows(plan, canaries, cosine)
    j = np.arange(canaries)[:, None]
    apart = min(BINS_PER_OCTAVE, _OVER * BINS_PER_OCTAVE // (2 * canaries)) or 1
    moved = []
    for k, (x, y) in enumerate((kept, replaced)):
        scale = np.exp2(_ABOVE + (apart * (2 * j + k) + 0.5) / BINS_PER_OCTAVE)
        tiny = np.exp2(-_BELOW - (j + 0.125) / 4) * (1 - 2 * k)
        moved.append(
            tuple(
                np.where(block == 0, tiny, block * scale / norm)
                for block, norm in ((x, plan.features.norm), (y, plan.outcomes.norm))
            )
        )
    # What is public of a row stays the same.
    (x, y), (xx, yy) = moved
    if not plan.is_private("features"):
        xx = x
    if not plan.is_private("outcomes"):
        yy = y
    return (x, y), (xx, yy)


def _numbers(sums: Any, stage: Stage) -> NDArray[Any]:
    """Return all sums of a stage, or what was released of them, as one vector."""
    return np.concatenate([np.ravel(getattr(sums, block)) for block in stage.blocks])
