"""The coefficients and the clip of the next round, from released numbers alone.

The coefficients are what the library's own estimator makes of all rounds so far, pooled; or those after
one more small step, where most of the covariance is lost in noise (`gradual`, `trial`). The clip is a
multiple (`lengths`) of the root mean square length of the residuals that they leave, which is known from
released numbers too: n·s² = Σ‖y‖² − ⟨W, ÃW⟩. One standard deviation of what noise does to s² is added:
too long a clip costs a little, too short a one moves the fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from primo._util.remembered import remembered
from primo._util.threads import blas_threads
from primo.planning.plan import Plan
from primo.released.estimate.centring import Centred, centred
from primo.released.estimate.rounds.gradual import gradual_step, until_anew
from primo.released.estimate.rounds.lengths import (
    Lengths,
    clip_in_lengths,
    features_kept,
    is_stepped,
    outcomes_kept,
    residual_lengths,
    square_error,
)
from primo.released.estimate.rounds.normal import as_expected, clips_agree
from primo.released.estimate.rounds.pooling import expected_product, pool, pooled_covariance
from primo.released.estimate.rounds.schedule import held, may_be_gradual, measures, trial_ends
from primo.released.estimate.rounds.trial import short_clips_hold
from primo.released.estimate.selection import fit_filter
from primo.released.moments import ReleasedMoments
from primo.released.rounds import ReleasedRound, Step

__all__ = ["next_step"]

Matrix = NDArray[np.float64]

#: Residuals are not expected to become shorter by more than this from one round to the next: a clip that
#: is far too short would say nothing of what is left. After the first step they hardly change, and what
#: follows from Σ‖y‖² may be all noise, as with a far-off mean.
FASTEST, SETTLED = 2.0, 1.25
WIDE = 0.5  # of the outcomes' norm
#: Of Σ‖y‖² about the means, that slopes explain before rounds take residuals of them; and where clips
#: would not be shorter than `SHORTER` norms, so that only the covariance's noise acts on less.
LEAST_EXPLAINED, MUCH, SHORTER = 0.03, 0.1, 0.8
#: Of the squared length that residuals have by what is explained, that they have to have at least for
#: their length to be believed; and where short clips let through what they should.
LEAST_LEFT, LEAST_OF_NORMAL = 0.5, 0.15
SHORT = 0.25  # clip in lengths of rounds of small steps; what it costs, c/κ, hardly becomes less
#: Of the covariance, that a step is chosen with. The final estimate has up to eight times as many: what
#: a step lacks, the next one sees.
REPLICAS = 8
_FEW = 128  # features, below which several BLAS threads cost more than they bring
_pool = remembered(pool)  # a step asks for it several times
_covariance = remembered(pooled_covariance)


def next_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Step:
    """Estimate from all rounds together, and say how long the residuals of that will be.

    Guarantee: a deterministic function of released numbers; costs no privacy.
    Cost: that of `released.estimate.selection.fit_filter`.
    """
    known = residual_lengths(plan, rounds)
    with blas_threads(1 if plan.d < _FEW else None):
        if may_be_gradual(plan):
            return _small_step(plan, rounds, known)
        coefficients, length = _whole_step(plan, rounds, known)
        # Tails of residuals may be long: how long is seen by shortening them little by little.
        clip = max(_clip(plan, rounds, known, length), rounds[-1].clip / FASTEST)
    # Of the outcomes themselves, a clip is changed only where their bound is far too long.
    if not coefficients.any() and clip > WIDE * plan.outcomes.norm:
        clip = plan.outcomes.norm
    return Step(coefficients=coefficients, clip=min(clip, plan.outcomes.norm))


def _clip(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, length: float) -> float:
    """Return the clip for residuals of this root mean square length."""
    noise = square_error(plan, rounds[-1])
    if clips_agree(plan, rounds, known):
        length, normal = float(known.lengths[-1]), True
    else:
        left = _square_left(plan, rounds, known, rounds[-1].coefficients)
        normal = as_expected(plan, rounds, known, left)
    return math.sqrt(length**2 + noise) * clip_in_lengths(known.directions, normal=normal)


def _small_step(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> Step:
    """Return a small step, and a clip for residuals that are about as long as the last.

    Where the next round looks at the outcomes themselves, the clip is their norm: they may end up in one
    release (`trial`).
    """
    coefficients = gradual_step(plan, rounds, partial(_estimate, plan))
    if not coefficients.any():
        return Step(coefficients=coefficients, clip=plan.outcomes.norm)
    square, count = float(known.lengths[-1]) ** 2, len(rounds)
    decided = count >= trial_ends(plan)
    normal = short_clips_hold(plan, rounds, known)
    # Clips that follow lengths seen through clips end at the bulk of residuals, if some are far longer
    # than most. What coefficients explain tells how long all of them are.
    left = _explained_square(plan, rounds, known)
    if decided and square < (LEAST_OF_NORMAL if normal else LEAST_LEFT) * left:
        square, normal = left, False
    short = (normal or not decided) and not measures(plan, count)
    times = SHORT if short else clip_in_lengths(known.directions, normal=False)
    clip = times * math.sqrt(square + square_error(plan, rounds[-1]))
    return Step(coefficients=coefficients, clip=min(clip, plan.outcomes.norm))


def _explained_square(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> float:
    """Return the mean squared length of the last round's residuals as it follows from what is explained.

    Σ‖y‖² − Σ‖r‖² = ⟨W, AW⟩ + 2⟨W, XᵀR⟩ for any W, and the noise of Â and of this round's XᵀR do not
    depend on W. ⟨W, ÂW⟩ is of shortened rows; where nearly all are, nobody knows by how much, and less
    seems to be explained than is.
    """
    last = rounds[-1]
    covariance, sigma = _covariance(until_anew(plan, rounds))
    share = features_kept(plan, covariance, sigma)[1]
    predicted = covariance @ last.coefficients / share + 2 * last.association / known.slopes[-1]
    explained = float(np.einsum("ij,ij->", last.coefficients, predicted)) / plan.n
    own = known.lengths[: held(plan)]
    return float(np.mean(own**2)) / outcomes_kept(plan, rounds)[1] - explained


def _whole_step(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths
) -> tuple[Matrix, float]:
    """Return the coefficients (width, l) and the length of the residuals that they leave.

    They are the estimate where its slopes explain enough of how outcomes vary about their means;
    otherwise the means alone, where residuals of these are much shorter; otherwise 0, so that the round
    is one of the outcomes themselves. Rounds that took slopes go on with them.
    """
    found = _centred(plan, rounds)
    coefficients = _estimate_of(found)
    length = _length_left(plan, rounds, known, coefficients)
    if is_stepped(plan, rounds[-1]):
        return coefficients, length
    means = np.zeros_like(coefficients)
    if plan.intercept:
        means[-1] = found.outcome_means / plan.constant
    about_means = float(known.lengths[-1]) ** 2
    if not rounds[-1].coefficients.any():
        about_means = _square_left(plan, rounds, known, means)
    explained = about_means - _square_left(plan, rounds, known, coefficients)
    error = square_error(plan, rounds[-1])
    about_means = max(about_means, error)  # noise may make it negative
    shorter = _clip(plan, rounds, known, length) <= SHORTER * plan.outcomes.norm
    least, times = (LEAST_EXPLAINED, 1.0) if shorter or not plan.intercept else (MUCH, 2.0)
    if explained > least * about_means + times * error:
        return coefficients, length
    length = _length_left(plan, rounds, known, means)
    if means.any() and _clip(plan, rounds, known, length) <= SHORTER * plan.outcomes.norm:
        return means, length
    return np.zeros_like(coefficients), float(known.lengths[0])


def _estimate(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the library's own estimate (width, l) of all rounds together."""
    return _estimate_of(_centred(plan, rounds))


def _estimate_of(found: Centred) -> Matrix:
    fitted = fit_filter(found.moments, most_replicas=REPLICAS)
    return found.restore(fitted.estimate(found.moments).coefficients)


def _centred(plan: Plan, rounds: Sequence[ReleasedRound]) -> Centred:
    """Return the problem that all rounds together leave to the estimator."""
    pooled = _pool(plan, rounds)
    return centred(
        ReleasedMoments(
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
    )


def _length_left(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, coefficients: Matrix
) -> float:
    """Return the root mean square length of the residuals that coefficients leave."""
    first, last = float(known.lengths[0]), float(known.lengths[-1])
    left = math.sqrt(max(_square_left(plan, rounds, known, coefficients), 0.0))
    # A round that clipped nearly all residuals does not say that they have become shorter.
    fastest = SETTLED if is_stepped(plan, rounds[-1]) else FASTEST
    least = last if known.saturated and len(rounds) > 1 else last / fastest
    return min(max(left, least), first)


def _square_left(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths, coefficients: Matrix
) -> float:
    """Return the mean squared length of residuals as it follows from the outcomes' own."""
    if not coefficients.any():  # rounds of the outcomes themselves need no covariance for that
        return float(known.lengths[0]) ** 2
    pooled = _pool(plan, rounds)
    predicted = expected_product(plan, pooled.covariance, pooled.scales.covariance, coefficients)
    explained = float(np.einsum("ij,ij->", coefficients, predicted)) / plan.n
    return float(known.lengths[0]) ** 2 - explained
