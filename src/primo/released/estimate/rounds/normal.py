"""Whether the lengths of residuals follow the normal model, so that clips may be short (`lengths`).

Two ways to see it. (1) The last round's residuals are as long as they should be, given what the outcomes
themselves vary and what slopes explain. (2) A round with a short clip finds residuals as long as a round
with a long clip did: tails that are longer than normal ones, or lengths that are all alike, would make
the two differ. The second needs a round that was tried with a short clip. It is tried after (1), or
where nearly all rows of features were shortened: ⟨W, ÃW⟩ is then far from what slopes explain of whole
rows, and (1) cannot say anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primo.planning.plan import Plan
from primo.released.estimate.rounds.lengths import (
    SATURATED,
    Lengths,
    clip_in_lengths,
    is_stepped,
    square_error,
)
from primo.released.estimate.rounds.pooling import pooled_covariance
from primo.released.rounds import ReleasedRound

__all__ = ["as_expected", "clips_agree"]

AS_EXPECTED = 0.15  # relative difference of squared lengths up to which they count as the same
SEVERAL = 4.0  # directions that residuals have at least, for the model to be seen to hold
KNOWN = 0.2  # relative error of a squared length that this can be judged by


def as_expected(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, left: float) -> bool:
    """Whether the last round's residuals are as long as follows from the outcomes' own length.

    `left` is the mean squared length that follows.
    """
    if not _could_be_normal(rounds, known) or left <= 0:
        return False
    error = rounds[0].outcome_sigma * math.sqrt(plan.l) / plan.n
    return 2 * error <= KNOWN * left and _alike(float(known.lengths[-1]) ** 2, left)


def clips_agree(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> bool:
    """Whether short clips found residuals as long as a long clip did, or should be tried."""
    if not _could_be_normal(rounds, known) or not is_stepped(plan, rounds[-1]):
        return False
    m = known.directions
    middle = (clip_in_lengths(m, normal=False) + clip_in_lengths(m, normal=True)) / 2
    squares = known.lengths**2
    long: list[float] = []  # of rounds before any with a short clip
    short: list[float] = []
    for released, square in zip(rounds, squares, strict=True):
        if not is_stepped(plan, released):
            continue
        if released.clip <= middle * math.sqrt(square):
            short.append(float(square))
        elif not short:
            long.append(float(square))
    if not long:
        return False
    if short:
        return _alike(short[-1], long[-1])
    certain = 2 * square_error(plan, rounds[-1]) <= KNOWN * squares[-1]
    return bool(certain) and _features_shortened(plan, rounds)


def _could_be_normal(rounds: Sequence[ReleasedRound], known: Lengths) -> bool:
    return len(rounds) > 1 and not known.saturated and known.directions >= SEVERAL


def _alike(square: float, other: float) -> bool:
    return abs(square / other - 1) < AS_EXPECTED


def _features_shortened(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    """Whether nearly all rows of features were shortened to their norm."""
    norm = plan.features.norm
    if plan.features.longest <= norm:
        return False
    covariance, _ = pooled_covariance(rounds)
    squares = float(np.trace(covariance[: plan.d, : plan.d])) / plan.n
    return squares >= SATURATED * norm**2
