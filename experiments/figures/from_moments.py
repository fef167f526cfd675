"""A true release from exact moments, where there are more outcomes than rows of them can be held.

The plan, the exact noise, the projection and the estimators are those of the program. Only reading the
rows is left out; the moments come from their exact law
(`experiments.figures.outcomes`), for rows that no bound clips.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from baselines.base import ExactMoments
from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.protection import Protection
from primo.released.projection import project_onto_features
from primo.released.release import Release
from primo.rows.moments import Moments
from primo.wall import mechanism
from primo.wall.noise import RandomBits

__all__ = ["release_moments"]


def release_moments(moments: ExactMoments, plan: Plan, *, bits: RandomBits) -> Release:
    """Release exact moments, put on the plan's grid, as `primo.workflow.pipeline` would.

    The plan has no intercept and bounds that are norms alone, so that scaled units are the data's own.
    """
    if plan.intercept or not (plan.features.is_plain and plan.outcomes.is_plain):
        raise InputError("moments are released without intercept and with norms for bounds")
    outcome = moments.outcome if plan.full_outcome_moments else moments.squares
    x, y = plan.feature_step, plan.outcome_step
    made = mechanism.release(
        Moments(
            rows=moments.n,
            covariance=_steps(moments.covariance, x * x),
            association=_steps(moments.association, x * y),
            outcome=_steps(outcome, y * y),
        ),
        plan,
        feature_names=tuple(f"x{i}" for i in range(plan.d)),
        outcome_names=tuple(f"y{j}" for j in range(plan.l)),
        bits=bits,
    )
    if plan.association != "projection":
        return made
    if plan.protection is not Protection.OUTCOMES:
        raise InputError("the projection onto public outcomes needs their rows")
    radius = np.sqrt(plan.n) * plan.outcomes.norm
    projected = project_onto_features(made.association, made.covariance, radius=float(radius))
    return dataclasses.replace(made, projected=projected)


def _steps(values: NDArray[np.float64], step: float) -> NDArray[np.int64]:
    return np.rint(values / step).astype(np.int64)
