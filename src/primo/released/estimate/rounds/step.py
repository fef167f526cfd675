"""The coefficients and the clip of the next round, from released numbers alone.

The coefficients are what the library's own estimator makes of all rounds so far, pooled. The clip is a
part of the root mean square length of the residuals that they leave, which is known from released
numbers too: n·s² = Σ‖y‖² − 2⟨W, Ĝ⟩ + ⟨W, ÂW⟩, and the error that the estimator expects of itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primo._util.threads import blas_threads
from primo.planning.plan import Plan
from primo.released.estimate.centring import centred
from primo.released.estimate.rounds.lengths import Z, slopes
from primo.released.estimate.rounds.pooling import pool
from primo.released.estimate.selection import estimate
from primo.released.moments import ReleasedMoments
from primo.released.rounds import ReleasedRound, Step

__all__ = ["next_step"]

SHORTEST = 0.02  # of the outcomes' length: no residuals are expected to be shorter
_FEW = 128  # features, below which several BLAS threads cost more than they bring


def next_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Step:
    """Estimate from all rounds together, and say how long the residuals of that will be.

    Guarantee: a deterministic function of released numbers; costs no privacy.
    Cost: that of `released.estimate.estimate`.
    """
    with blas_threads(1 if plan.d < _FEW else None):
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
        )
        found = centred(problem)
        fitted = estimate(found.moments)
        coefficients = found.restore(fitted.coefficients)
        explained = 2 * pooled.association - pooled.covariance @ coefficients
    _, length = slopes(plan.n, rounds)
    left = plan.n * length**2 - float(np.einsum("ij,ij->", coefficients, explained))
    left = max(left, 0.0) + (fitted.predicted_excess or 0.0)
    clip = Z * max(math.sqrt(left / plan.n), SHORTEST * length)
    return Step(coefficients=coefficients, clip=min(clip, plan.outcomes.norm))
