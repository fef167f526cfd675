"""What was to be expected before any data was read, and at other budgets."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from primo.bounds import Bounds, Clip
from primo.errors import InputError, WeakGuaranteeWarning
from primo.planner import extension_plan, make_plan
from primo.planning.assumptions import Signal
from primo.planning.forecast import Prediction, predict
from primo.plans import CovarianceOrigin, Plan

__all__ = ["Outlook", "outlook_of", "plan_at"]

#: Budgets on the trade-off curve, beside the chosen one.
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
COARSE = (0.1, 0.5, 2.0, 5.0, 20.0)
LARGE, TOO_LARGE = 300, 700  # directions; a forecast costs their cube


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Predictions under a stated assumption; no number in it depends on data."""

    signal: Signal
    chosen: Prediction
    chosen_epsilon: float
    curve: tuple[tuple[float, Prediction], ...]  # ascending budgets, the chosen one among them


def outlook_of(plan: Plan, signal: Signal | None = None) -> Outlook | str:
    """Predict R² at the chosen budget and at others, or say why that is not done.

    Deterministic, from public numbers alone. Cost: a few seconds.
    """
    directions = min(plan.d, plan.n)
    if plan.calibration != "exact":
        return "noise scales as printed in the paper are not forecast"
    if plan.sampled is not None:
        return "a covariance of sampled rows is not forecast"
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        return "a covariance of a reference panel is not forecast"
    if directions > TOO_LARGE:
        return f"a forecast for {directions} directions takes minutes; primo.plan makes it"
    assumed = signal or Signal()
    epsilons = {*(EPSILONS if directions <= LARGE else COARSE), plan.budget.epsilon}
    curve = []
    for epsilon in sorted(epsilons):
        try:
            made = plan if epsilon == plan.budget.epsilon else plan_at(plan, epsilon)
        except InputError:  # a budget at which these numbers do not fit the integers
            continue
        curve.append((epsilon, predict(made, association=plan.association, signal=assumed)))
    return Outlook(
        signal=assumed,
        chosen=dict(curve)[plan.budget.epsilon],
        chosen_epsilon=plan.budget.epsilon,
        curve=tuple(curve),
    )


def plan_at(plan: Plan, epsilon: float) -> Plan:
    """Return the plan of the same release at another epsilon."""
    delta, outcomes = plan.budget.delta, _bounds(plan.outcomes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakGuaranteeWarning)  # said when the release was planned
        if plan.earlier_mu:  # the covariance is paid for already
            return extension_plan(
                plan, l=plan.l, epsilon=epsilon, delta=delta, outcome_bounds=outcomes
            )
        return make_plan(
            n=plan.n,
            d=plan.d,
            l=plan.l,
            epsilon=epsilon,
            delta=delta,
            protection=plan.protection,
            feature_bounds=_bounds(plan.features),
            outcome_bounds=outcomes,
            intercept=plan.intercept,
            split=plan.split if plan.covariance_noisy else None,
            outcome_moments="full" if plan.full_outcome_moments else "diagonal",
            association=plan.association,
        )


def _bounds(clip: Clip) -> Bounds:
    """Return bounds with the same norm; a forecast depends on nothing else in them."""
    return Bounds(norm=clip.norm)
