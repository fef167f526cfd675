"""Other people's methods on the problems of the suite, within the bounds of a plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baselines.adassp import AdaSSP
from baselines.base import Baseline, shortened
from baselines.hessian_mixing import HessianMixing
from benchmarks.stress.problem import Problem
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip

__all__ = ["RIVALS", "predict_rival", "rivals_for"]

Matrix = NDArray[np.float64]

RIVALS: dict[str, type[Baseline]] = {"AdaSSP": AdaSSP, "IHM": HessianMixing}


#: Features, above which sketches of six rows for each take minutes.
MOST_SKETCHED = 400


def rivals_for(problem: Problem) -> tuple[str, ...]:
    """Return the rivals that are run on a problem."""
    n, d, _ = problem.shape
    return tuple(name for name in RIVALS if name != "IHM" or d <= min(n, MOST_SKETCHED))


def predict_rival(name: str, problem: Problem, plan: Plan, seed: int) -> Matrix:
    """Fit a rival with the budget of a plan, and predict the held-out outcomes in their own units.

    It sees the rows as the plan does: about public centres, in public units, cut to their ranges and
    shortened to their norms, with the plan's constant as a further feature.
    """
    model = RIVALS[name](
        plan.budget.epsilon,
        plan.budget.delta,
        feature_bounds=plan.feature_norm,
        outcome_bounds=plan.outcomes.norm,
        random_state=seed,
    )
    features = shortened(_scaled(problem.features, plan.features), plan.features.norm)
    model.fit(
        _with_constant(features, plan),
        shortened(_scaled(problem.outcomes, plan.outcomes), plan.outcomes.norm),
    )
    held = _with_constant(_scaled(problem.held_features, plan.features), plan)
    predicted = held @ np.atleast_2d(model.coef_).T
    return np.asarray(plan.outcomes.centre + plan.outcomes.scale * predicted)


def _scaled(rows: Matrix, clip: Clip) -> Matrix:
    scaled = (rows - clip.centre) / clip.scale
    return np.clip(scaled, *clip.ends) if clip.box else scaled


def _with_constant(rows: Matrix, plan: Plan) -> Matrix:
    if not plan.intercept:
        return rows
    return np.column_stack([rows, np.full(len(rows), plan.constant)])
