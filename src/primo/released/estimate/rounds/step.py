"""The coefficients and the clip of the next round, from released numbers alone.

The coefficients are what the library's own estimator makes of all rounds so far, pooled; or those after
one more small step, where most of the covariance is lost in noise (`gradual`). The clip is a
part of the root mean square length of the residuals that they leave, which is known from released
numbers too: n·s² = Σ‖y‖² − 2⟨W, Ĝ⟩ + ⟨W, ÂW⟩, and the error that the estimator expects of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primo._util.threads import blas_threads
from primo.planning.plan import Plan
from primo.released.estimate.centring import centred
from primo.released.estimate.rounds.gradual import gradual_step, is_gradual
from primo.released.estimate.rounds.lengths import Lengths, clip_in_lengths, residual_lengths
from primo.released.estimate.rounds.pooling import expected_product, pool
from primo.released.estimate.selection import estimate
from primo.released.moments import ReleasedMoments
from primo.released.rounds import ReleasedRound, Step

__all__ = ["next_step"]

Matrix = NDArray[np.float64]

#: Residuals are not expected to become shorter by more than this from one round to the next: a clip that
#: is far too short would say nothing of what is left.
FASTEST = 2.0
_FEW = 128  # features, below which several BLAS threads cost more than they bring


def next_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Step:
    """Estimate from all rounds together, and say how long the residuals of that will be.

    Guarantee: a deterministic function of released numbers; costs no privacy.
    Cost: that of `released.estimate.estimate`.
    """
    known = residual_lengths(plan, rounds)
    with blas_threads(1 if plan.d < _FEW else None):
        if is_gradual(plan):  # steps are small: the next residuals are about as long as the last
            coefficients, length = gradual_step(plan, rounds), float(known.lengths[-1])
        else:
            coefficients, length = _estimate(plan, rounds, known)
    clip = clip_in_lengths(known.directions) * length
    return Step(coefficients=coefficients, clip=min(clip, plan.outcomes.norm))


def _estimate(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> tuple[Matrix, float]:
    """Return the library's own estimate (width, l), and the length of the residuals it leaves."""
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
    fitted = estimate(found.moments)
    coefficients = found.restore(fitted.coefficients)
    predicted = expected_product(plan, pooled.covariance, pooled.scales.covariance, coefficients)
    first, last = float(known.lengths[0]), float(known.lengths[-1])
    left = plan.n * first**2 - float(np.einsum("ij,ij->", coefficients, predicted))
    # A round that clipped nearly all residuals does not say that they have become shorter.
    least = last if known.saturated and len(rounds) > 1 else last / FASTEST
    return coefficients, min(max(math.sqrt(max(left, 0.0) / plan.n), least), first)
