"""What was predicted before any data was read, and what is predicted at other budgets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from primo.errors import BoundsError, InputError
from primo.forecast.assumptions import Signal, as_signal
from primo.forecast.forecast import Prediction, predict, predict_ways
from primo.forecast.knowledge import better_knowledge, replanned
from primo.forecast.law import law_of
from primo.forecast.reduced import reduction_of
from primo.forecast.table import Better
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import as_one_round

__all__ = ["Outlook", "outlook_of", "plan_at"]

#: Budgets on the trade-off curve, besides the chosen one.
EPSILONS = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0, 20.0)
REPEATS = 4  # of the simulation, for the shape of that curve


@dataclass(frozen=True, kw_only=True)
class Outlook:
    """Predictions under a stated assumption; no number in it depends on data."""

    signal: Signal  # with the shares of the squared bounds that it implies
    assumptions: tuple[str, ...]  # all of them, in words
    chosen: Prediction
    chosen_epsilon: float
    curve: tuple[tuple[float, Prediction], ...]  # ascending budgets, the chosen one too; one round
    better: tuple[Better, ...]  # what better public knowledge would have gained


def outlook_of(plan: Plan, signal: Signal | None = None) -> Outlook | str:
    """Predict R² at the chosen budget and at others, or say why that is not done.

    Deterministic, from public numbers alone. Cost: a few seconds.
    """
    if plan.calibration != "exact":
        return "noise scales as printed in the paper are not forecast"
    if plan.sampled is not None:
        return "a covariance of sampled rows is not forecast"
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        return "a covariance of a reference panel is not forecast"
    if plan.blocks is not None:
        return (
            f"a release of {plan.blocks.part} is forecast by a dry run or a plan, not in a report"
        )
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and plan.width <= plan.n:
        return "public features in blocks are forecast by a dry run, not in a report"
    assumed, one = as_signal(signal), as_one_round(plan)
    law = law_of(plan, assumed)
    epsilons = {*EPSILONS, plan.budget.epsilon}
    plans = {}
    for epsilon in sorted(epsilons):
        try:
            plans[epsilon] = one if epsilon == plan.budget.epsilon else plan_at(plan, epsilon)
        # A budget at which these numbers do not fit the integers, or that finds no norm.
        except (InputError, BoundsError):
            continue
    found = predict_ways(
        [(made, plan.association) for made in plans.values()],
        estimators=("auto",),
        signal=assumed,
        most_repeats=REPEATS,
    )
    chosen = predict(plan, association=plan.association, signal=assumed)
    curve = {epsilon: only for epsilon, (only,) in zip(plans, found, strict=True)}
    of_one = chosen
    if chosen.one_round_r2 is not None:
        of_one = replace(chosen, r2=chosen.one_round_r2, one_round_r2=None)
    curve = _through(of_one, plan.budget.epsilon, curve)
    return Outlook(
        signal=law.spreads(),
        assumptions=(*law.words, *filter(None, (reduction_of([plan]).words, _one_round(plan)))),
        chosen=chosen,
        chosen_epsilon=plan.budget.epsilon,
        curve=tuple(curve.items()),
        better=better_knowledge(
            plan,
            association=plan.association,
            estimator="auto",
            signal=assumed,
            than=of_one.r2,
        ),
    )


def _one_round(plan: Plan) -> str:
    """Say what is forecast as one round; empty where there is one."""
    if plan.rounds is None:
        return ""
    return (
        f"the release has {plan.round_count} rounds; other budgets and better public knowledge are "
        "forecast as one round"
    )


def _through(
    chosen: Prediction, epsilon: float, curve: dict[float, Prediction]
) -> dict[float, Prediction]:
    """Shift a curve of few repeats so that it goes through the chosen budget's own forecast.

    All budgets see the same simulated rows, so what one has too much the others have, too.
    """
    shift = chosen.r2 - curve[epsilon].r2
    shifted = {at: replace(made, r2=made.r2 + shift) for at, made in curve.items()}
    return shifted | {epsilon: chosen}


def plan_at(plan: Plan, epsilon: float) -> Plan:
    """Return the plan of the same release at another epsilon."""
    return replanned(plan, epsilon=epsilon)
