"""The coefficients and the clip of the next round, from released numbers alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primo.planning.plan import Plan
from primo.released.estimate.centring import centred
from primo.released.estimate.rounds.pooling import pool
from primo.released.estimate.selection import estimate
from primo.released.moments import ReleasedMoments
from primo.released.rounds import ReleasedRound, Scales, Step

__all__ = ["next_step"]

ROOM = 1.1  # times the root mean square length of the residuals


def next_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Step:
    """Estimate what the last residuals have left, with the covariance of all rounds, and add it.

    Guarantee: a deterministic function of released numbers; costs no privacy.
    Cost: that of `released.estimate.estimate`.
    """
    last, pooled = rounds[-1], pool(plan, rounds)
    problem = ReleasedMoments(
        plan=plan,
        feature_names=(),
        outcome_names=(),
        covariance=pooled.covariance,
        association=last.association,
        outcome_moments=last.outcome_moments,
        reproducible=False,
        backend="",
        scales=Scales(
            covariance=pooled.scales.covariance,
            association=last.association_sigma,
            outcome=last.outcome_sigma,
        ),
    )
    found = centred(problem)
    left = found.restore(estimate(found.moments).coefficients)
    moments = last.outcome_moments
    squares = float(np.trace(moments) if moments.ndim == 2 else moments.sum())
    squares = max(squares, last.outcome_sigma * math.sqrt(plan.l))
    clip = ROOM * math.sqrt(squares / plan.n)
    return Step(coefficients=last.coefficients + left, clip=min(clip, plan.outcomes.norm))
