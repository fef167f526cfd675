"""How well a release will predict, before any data is read: a small simulation on moments alone.

XᵀX and XᵀY are all that an estimator sees, and under a stated assumption about the signal their law is
known: XᵀY = AW + A^(1/2)Z·s for least squares with residual variance s². So the prediction draws moments
of the assumed kind, adds Gaussian noise of the plan's exact scales, runs the real estimators and scores
them. Nothing here sees a row, and the time does not depend on n, nor on l beyond `MOST_OUTCOMES`.

What is left out: rows cut at the bounds, the noise of the means (the intercept), and features or
outcomes that are not what `Signal` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from primo.errors import InputError
from primo.estimate import ESTIMATORS, estimate
from primo.mechanisms.projection import works_on_projected
from primo.planning.assumptions import Signal, as_signal
from primo.planning.simulate import draw, expected_ols
from primo.planning.theory import check_association
from primo.plans import CovarianceOrigin, Plan
from primo.privacy.protection import Protection

__all__ = ["Prediction", "predict", "predict_all"]

MOST_OUTCOMES = 200  # simulated; more are represented by these
MOST_REPEATS = 24
FEWEST_REPEATS = 4
LARGE = 200  # features, beyond which two repeats are enough
_SEED = 20_231_107


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """In-sample R² pooled over outcomes (total and residual sums of squares added up first)."""

    r2: float  # of the private coefficients
    ols_r2: float  # of least squares without privacy, on the same draws
    standard_error: float  # of r2, from the finite number of draws


def predict(
    plan: Plan, *, association: str = "gauss", estimator: str = "auto", signal: Signal | None = None
) -> Prediction:
    """Predict R² for one way to release and estimate; see `predict_all`."""
    return predict_all(
        plan, association=association, estimators=(estimator,), signal=as_signal(signal)
    )[0]


def predict_all(
    plan: Plan, *, association: str, estimators: Sequence[str], signal: Signal
) -> tuple[Prediction, ...]:
    """Predict R² for several estimators of the same simulated releases.

    Deterministic: draws come from a fixed seed (nobody is protected by them), and are the same for
    every plan of the same d and l, so that predictions can be compared and bisected.

    Cost: a few calls of each estimator on d features and at most `MOST_OUTCOMES` outcomes.
    """
    check_association(association, plan.protection)
    for name in estimators:
        if name not in ESTIMATORS:
            raise InputError(f"unknown estimator {name!r}; choose one of {', '.join(ESTIMATORS)}")
    simulated = min(plan.l, MOST_OUTCOMES)
    if plan.protection is Protection.FEATURES and plan.full_outcome_moments:
        simulated = plan.l  # two-sided filters of exact YᵀY: no part of it stands for the whole
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and signal.eigenvalues is None:
        plan = replace(plan, d=plan.n)  # only the row space of public features matters
    repeats = min(MOST_REPEATS, max(FEWEST_REPEATS, math.ceil(4 * MOST_REPEATS / simulated)))
    if plan.d > LARGE:  # every direction is a draw of its own, and each repeat costs d³
        repeats = 2
    scores = np.empty((repeats, len(estimators)))
    ols = np.empty(repeats)
    for repeat in range(repeats):
        cohort = draw(plan, signal, simulated, seed=(_SEED, repeat))
        releases = {way: cohort.release(plan, way) for way in {"gauss", association}}
        ols[repeat] = cohort.score(cohort.least_squares())
        for column, name in enumerate(estimators):
            way = association if works_on_projected(name, plan.protection) else "gauss"
            moments = releases[way]
            scores[repeat, column] = cohort.score(estimate(moments, estimator=name).coefficients)
    # Least squares is cheap to draw often, so its luck in these few draws is known and taken out, in
    # proportion to what the estimator reaches of it.
    expected = expected_ols(plan, signal, simulated, seed=_SEED)
    share = np.clip(scores.mean(axis=0) / ols.mean(), 0.0, 1.0)
    scores -= np.outer(ols - expected, share)
    errors = scores.std(axis=0, ddof=1) / math.sqrt(repeats)
    return tuple(
        Prediction(r2=float(r2), ols_r2=expected, standard_error=float(error))
        for r2, error in zip(scores.mean(axis=0), errors, strict=True)
    )
