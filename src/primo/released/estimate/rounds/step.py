"""The coefficients and the clip of the next round, from released numbers alone.

The coefficients are what the library's own estimator makes of all rounds so far, pooled; or those after
one more small step, where most of the covariance is lost in noise and small steps were seen to pay
(`gradual`, `trial`). The clip is a multiple (`lengths`) of the root mean square length of the residuals
that they leave, which is known from released numbers too: n·s² = Σ‖y‖² − ⟨W, ÃW⟩. One standard deviation
of what noise does to s² is added: too long a clip costs a little, too short a one moves the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from primo._util.threads import blas_threads
from primo.planning.plan import Plan
from primo.released.estimate.centring import centred
from primo.released.estimate.rounds.gradual import gradual_step
from primo.released.estimate.rounds.lengths import Lengths, clip_in_lengths, residual_lengths
from primo.released.estimate.rounds.pooling import expected_product, pool
from primo.released.estimate.rounds.trial import is_gradual, is_lost
from primo.released.estimate.selection import estimate
from primo.released.moments import ReleasedMoments
from primo.released.rounds import ReleasedRound, Step

__all__ = ["next_step"]

Matrix = NDArray[np.float64]

#: Residuals are not expected to become shorter by more than this from one round to the next: a clip that
#: is far too short would say nothing of what is left. After the first step they hardly change, and what
#: follows from Σ‖y‖² may be all noise, as with a far-off mean.
FASTEST, SETTLED = 2.0, 1.25
WIDE = 0.5  # of the outcomes' norm
LEAST_EXPLAINED = 0.03  # of Σ‖y‖², for the first step
_FEW = 128  # features, below which several BLAS threads cost more than they bring


def next_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Step:
    """Estimate from all rounds together, and say how long the residuals of that will be.

    Guarantee: a deterministic function of released numbers; costs no privacy.
    Cost: that of `released.estimate.estimate`.
    """
    known = residual_lengths(plan, rounds)
    with blas_threads(1 if plan.d < _FEW else None):
        if is_lost(plan):
            coefficients = gradual_step(plan, rounds, partial(_estimate, plan))
            # Steps are small: the next residuals are about as long as the last.
            length = float(known.lengths[-1])
        else:
            coefficients, length = _whole_step(plan, rounds, known)
    noise = rounds[-1].outcome_sigma * math.sqrt(plan.l) / plan.n
    clip = math.sqrt(length**2 + noise)
    clip *= clip_in_lengths(known.directions, normal=_about_normal(plan, rounds, known))
    # Of the outcomes themselves, a clip is changed only where their bound is far too long.
    if not coefficients.any() and clip > WIDE * plan.outcomes.norm:
        clip = plan.outcomes.norm
    return Step(coefficients=coefficients, clip=min(clip, plan.outcomes.norm))


def _whole_step(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths
) -> tuple[Matrix, float]:
    """Return the estimate (width, l) and the length of the residuals that it leaves.

    All rounds look at the outcomes themselves until the estimate explains more than a little, and more
    than the error of Σ‖r‖².
    """
    coefficients = _estimate(plan, rounds)
    whole = float(known.lengths[0]) ** 2
    explained = 1 - _square_left(plan, rounds, known, coefficients) / whole
    error = rounds[-1].outcome_sigma * math.sqrt(plan.l) / plan.n
    least = LEAST_EXPLAINED + error / whole
    if explained < least and not rounds[-1].coefficients.any():
        return np.zeros_like(coefficients), float(known.lengths[-1])
    return coefficients, _length_left(plan, rounds, known, coefficients)


def _estimate(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the library's own estimate (width, l) of all rounds together."""
    pooled = pool(plan, rounds)
    problem = ReleasedMoments(
        plan=plan,
        feature_names=(),
        outcome_names=(),
        covariance=pooled.covariance,
        association=pooled.association,
        outcome_moments=pooled.outcome_moments,
        reproducible=False,
        backend="",
        scales=pooled.scales,
        started=pooled.offset,
    )
    found = centred(problem)
    return found.restore(estimate(found.moments).coefficients)


def _length_left(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, coefficients: Matrix
) -> float:
    """Return the root mean square length of the residuals that coefficients leave."""
    first, last = float(known.lengths[0]), float(known.lengths[-1])
    left = math.sqrt(max(_square_left(plan, rounds, known, coefficients), 0.0))
    # A round that clipped nearly all residuals does not say that they have become shorter.
    fastest = SETTLED if rounds[-1].coefficients.any() else FASTEST
    least = last if known.saturated and len(rounds) > 1 else last / fastest
    return min(max(left, least), first)


def _square_left(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, coefficients: Matrix
) -> float:
    """Return the mean squared length of residuals as it follows from the outcomes' own."""
    pooled = pool(plan, rounds)
    predicted = expected_product(plan, pooled.covariance, pooled.scales.covariance, coefficients)
    explained = float(np.einsum("ij,ij->", coefficients, predicted)) / plan.n
    return float(known.lengths[0]) ** 2 - explained


def _about_normal(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> bool:
    """Whether the last round's residuals speak for the model of their lengths.

    Small steps are taken where much is explained, and have no other length to compare with: most of the
    covariance that it follows from is lost in noise.
    """
    if is_gradual(plan, rounds):
        return True
    if len(rounds) < 2:
        return False
    expected = _square_left(plan, rounds, known, rounds[-1].coefficients)
    error = rounds[0].outcome_sigma * math.sqrt(plan.l) / plan.n
    return expected > 0 and known.about_normal(expected, error)
