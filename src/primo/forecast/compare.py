"""Predict, before any data is read, how accurate each way of releasing will be, and which is best.

`compare_plans` compares every way to protect, release and estimate; `choose_plan` makes the plan of a
release, with its mechanism chosen by the same predictions if that is asked for. All of it follows from
public numbers and a stated `Signal`, so nothing here can leak, and nothing has to be charged.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from primo.errors import Argument, InputError, Message, WeakGuaranteeWarning
from primo.forecast.assumptions import Signal, as_signal
from primo.forecast.forecast import Draws, Prediction, predict_ways
from primo.forecast.knowledge import better_knowledge
from primo.forecast.law import Law, knows_outcome_units, law_of
from primo.forecast.reduced import reduction_of
from primo.forecast.round_gain import forecast_rounds, repeats_of, rounds_of
from primo.forecast.rounds import recommend_rounds
from primo.forecast.table import R2_TOLERANCE, Better, PlanComparison, Variant
from primo.forecast.theory import Regime, regime
from primo.planning.association import with_association
from primo.planning.make import make_plan
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import AUTO_ROUNDS, check_rounds
from primo.planning.settings import Settings, associations_for, check_association
from primo.privacy.bounds import Bounds, as_bounds
from primo.privacy.budget import is_number
from primo.privacy.protection import Protection

__all__ = [
    "as_count",
    "available_associations",
    "better_association",
    "choose_plan",
    "compare_plans",
    "public_plan",
    "recommend_association",
    "typical_sd",
    "with_deviations",
]

#: What is compared unless told otherwise; "auto" stands for the one- and the two-sided filter.
COMPARED = ("auto", "filter", "ridge")


def compare_plans(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    delta: float | None = None,
    protection: Protection | str | None = None,
    feature_bounds: Bounds | float | tuple[Any, Any] | None = None,
    outcome_bounds: Bounds | float | tuple[Any, Any] | None = None,
    signal: Signal | None = None,
    outcome_sd: float | None = None,
    feature_sd: float | None = None,
    estimators: Sequence[str] = COMPARED,
    fit_intercept: bool = True,
    rounds: int | str = AUTO_ROUNDS,
) -> PlanComparison:
    """Compare all ways to release and estimate, before any data is read.

    Parameters
    ----------
    n, d, l
        Rows, features, outcomes.
    epsilon
        The budget of the whole release.
    delta
        1/n² if not given.
    protection
        "both", "features" or "outcomes"; all three are compared if None.
    feature_bounds, outcome_bounds
        Bounds as for the release. What they say of the columns is used: a centre and a scale are a
        mean and a standard deviation, 0 to 2 are genotypes. If None, a row norm that fits.
    signal
        What is assumed of the data; what it states overrides what the bounds say.
    outcome_sd, feature_sd
        Typical standard deviations in the columns' own units: a short form of those of `signal`.
    estimators
        Which to compare.
    fit_intercept
        Whether the release has a constant feature.
    rounds
        Predict several rounds too, beside one: so many, or as many as "auto" takes.

    Returns
    -------
    PlanComparison
        Deterministic. Nothing in it depends on data, so it may be published and costs no privacy.

    Examples
    --------
    >>> import primo
    >>> signal = primo.Signal(r2=0.3)
    >>> table = primo.compare_plans(n=5000, d=5, l=10, epsilon=5, protection="both", signal=signal)
    >>> table.recommended.association
    'gauss'
    >>> 0 < table.recommended.predicted_r2 <= 0.3
    True
    """
    if not isinstance(estimators, list | tuple) or not estimators:
        raise InputError(
            Argument("estimators", estimators), ' must be a list, for example ["auto", "ridge"]'
        )
    assumed = with_deviations(as_signal(signal), outcome_sd=outcome_sd, feature_sd=feature_sd)
    protections = tuple(Protection) if protection is None else (Protection.parse(protection),)
    check_rounds(rounds)
    plan_of = partial(
        public_plan,
        n=n,
        d=d,
        l=l,
        epsilon=epsilon,
        delta=delta,
        feature_bounds=feature_bounds,
        outcome_bounds=outcome_bounds,
        fit_intercept=fit_intercept,
    )
    plans = [plan_of(protection=kind) for kind in protections]
    several = [] if rounds == 1 else rounds_of(plans, rounds)
    first, draws = plans[0], Draws()
    law = law_of(first, assumed)
    ways = [(made, association) for made in plans for association in available_associations(made)]
    predicted = predict_ways(ways, estimators=estimators, signal=assumed, draws=draws)
    variants = [
        _variant(made, association, name, _regime(made, association, law), prediction)
        for (made, association), predictions in zip(ways, predicted, strict=True)
        for name, prediction in zip(estimators, predictions, strict=True)
    ]
    table = PlanComparison(
        n=first.n,
        d=first.d,
        l=first.l,
        epsilon=first.budget.epsilon,
        delta=first.budget.delta,
        signal=assumed,
        assumptions=law.words,
        simulated=reduction_of(plans).words,
        variants=tuple(variants),
        outcome_sd=None if outcome_bounds is None else typical_sd(first, signal=assumed),
        units_found=not knows_outcome_units(first, assumed),
    )
    if several:
        known = dict(zip(((made.protection, name) for made, name in ways), predicted, strict=True))
        at = estimators.index("auto") if "auto" in estimators else None
        table = dataclasses.replace(
            table,
            rounds=tuple(
                forecast_rounds(
                    found,
                    plan_of(protection=found[0], rounds=found[1]),
                    one=None if at is None else known[found[0], "gauss"][at],
                    signal=assumed,
                    draws=draws,
                )
                for found in several
            ),
        )
    best = table.recommended
    better = better_knowledge(
        first,
        association=best.association,
        estimator=best.estimator,
        signal=assumed,
        than=best.predicted_r2,
    )
    return dataclasses.replace(table, better=better)


def typical_sd(made: Plan, *, signal: Signal | None = None) -> float | None:
    """Return the standard deviation of an outcome, in its own units, that an assumption implies.

    A forecast holds for outcomes that spread about so widely; the median over outcomes. None where
    nothing is assumed of their units, because their norm is found and nothing else is stated.
    """
    assumed = as_signal(signal)
    if not knows_outcome_units(made, assumed):
        return None
    law = law_of(made, assumed)
    return float(np.median(made.outcomes.scale * law.outcomes.sd))


def with_deviations(
    signal: Signal, *, outcome_sd: float | None = None, feature_sd: float | None = None
) -> Signal:
    """Return the signal with standard deviations that were stated separately."""
    for block, sd in (("outcome", outcome_sd), ("feature", feature_sd)):
        if sd is None:
            continue
        if not is_number(sd) or not 0 < sd < math.inf:
            raise InputError(Argument(f"signal.{block}_sd", sd), " must be a positive number")
        stated: dict[str, Any] = {f"{block}_sd": float(sd), f"{block}_spread": None}
        signal = dataclasses.replace(signal, **stated)
    return signal


def public_plan(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    delta: float | None,
    protection: Protection | str,
    feature_bounds: Any = None,
    outcome_bounds: Any = None,
    fit_intercept: bool = True,
    covariance: str = "full",
    blocks: Any = None,
    rounds: int = 1,
) -> Plan:
    """Make the plan of a release that may never be made: delta 1/n² and norms of 1 if not given."""
    n, d, l = as_count("n", n), as_count("d", d), as_count("l", l)
    if delta is None and n < 2:
        raise InputError(
            Argument("n", n),
            " is too few rows to plan for",
            remedy=Message.of(
                "give ", Argument("delta"), ", which is 1/n² otherwise, or at least 2 rows"
            ),
        )
    settings = Settings(
        epsilon=epsilon,
        delta=1.0 / n**2 if delta is None else delta,
        protection=protection,
        feature_bounds=_bounds(feature_bounds, "feature"),
        outcome_bounds=_bounds(outcome_bounds, "outcome"),
        fit_intercept=fit_intercept,
        covariance=covariance,
        blocks=blocks,
        rounds=rounds,
    )
    return make_plan(settings, n=n, d=d, l=l)


def available_associations(made: Plan) -> tuple[str, ...]:
    """Return the mechanisms for XᵀY that a plan can be made with."""
    row_space = made.covariance_origin is CovarianceOrigin.ROW_SPACE
    return associations_for(made.protection, row_space=row_space)


def choose_plan(settings: Settings, *, n: int, d: int, l: int) -> Plan:
    """Make the plan of a release, by `make_plan`, where association and rounds may also be "auto".

    Guarantee: what "auto" chooses is a function of the plan, so of public numbers alone.
    """
    check_association(settings.association, Protection.parse(settings.protection), auto=True)
    check_rounds(settings.rounds)
    if settings.rounds == AUTO_ROUNDS:
        made = choose_plan(dataclasses.replace(settings, rounds=1), n=n, d=d, l=l)
        # Under `features` a projection that was chosen, not asked for, is one way; rounds are another.
        rival = (
            settings.association == "auto"
            and made.association == "projection"
            and made.protection is Protection.FEATURES
        )
        count = recommend_rounds(with_association(made, "gauss") if rival else made)
        # A number of rows for the covariance asks for one release, also where it is all of them.
        if count == 1 or settings.covariance_rows is not None:
            return made
        with warnings.catch_warnings():  # the plan with one round has warned
            warnings.simplefilter("ignore", WeakGuaranteeWarning)
            several = choose_plan(dataclasses.replace(settings, rounds=count), n=n, d=d, l=l)
        return made if rival and not _rounds_are_better(several, made) else several
    if settings.association != "auto":
        return make_plan(settings, n=n, d=d, l=l)
    if settings.rounds != 1:  # rounds and a projection exclude each other
        return make_plan(dataclasses.replace(settings, association="gauss"), n=n, d=d, l=l)
    made = make_plan(dataclasses.replace(settings, association="gauss"), n=n, d=d, l=l)
    chosen = recommend_association(made)
    if chosen == "perturbed":  # has other noise, and another lattice margin
        return make_plan(dataclasses.replace(settings, association=chosen), n=n, d=d, l=l)
    return dataclasses.replace(made, association=chosen)


def _rounds_are_better(several: Plan, projected: Plan) -> bool:
    """Whether rounds are predicted to be more accurate than one round that is projected."""
    (rounds,), (one,) = predict_ways(
        [(several, "gauss"), (projected, "projection")],
        estimators=("auto",),
        signal=as_signal(None),
        most_repeats=repeats_of(several),
    )
    return rounds.r2 > one.r2


def better_association(made: Plan, *, signal: Signal | None = None) -> Better | None:
    """Return another mechanism for XᵀY that is predicted to raise R² by more than `R2_TOLERANCE`.

    None where there is none, and where that is not known: several rounds, and a covariance that is not
    that of all rows. Nothing is read. Cost: one forecast for each mechanism; none under protection of
    both, which has one.
    """
    choices = available_associations(made)
    rows = made.covariance_origin is CovarianceOrigin.ROWS and made.sampled is None
    if len(choices) == 1 or made.rounds is not None or made.calibration != "exact" or not rows:
        return None
    found = predict_ways(
        [(made, name) for name in choices], estimators=("auto",), signal=as_signal(signal)
    )
    scores = {name: only.r2 for name, (only,) in zip(choices, found, strict=True)}
    best = _simplest(scores, made.association)
    if best == made.association:
        return None
    return Better(knowledge=best, predicted_r2=scores[best], instead_of=scores[made.association])


def recommend_association(made: Plan, *, signal: Signal | None = None) -> str:
    """Choose the mechanism for XᵀY from a plan alone: what association="auto" stands for.

    Gauss, unless another is predicted to raise R² by more than `R2_TOLERANCE` with estimator="auto".
    With more public features than rows it is noise on the outcomes themselves: in the row space that is
    no more noise in all than Gauss has, and forecasts of coefficients can hardly tell the two apart. The
    effect of one feature at a time is then more accurate, and needs no matrix of the rows.
    What is not forecast (a covariance that is not that of all rows, the paper's noise) uses Gauss.
    Cost: about a second, whatever the sizes.
    """
    choices = available_associations(made)
    if (
        len(choices) == 1
        or made.calibration != "exact"
        or made.sampled is not None
        or made.covariance_origin not in (CovarianceOrigin.ROWS, CovarianceOrigin.ROW_SPACE)
    ):
        return "gauss"
    if made.covariance_origin is CovarianceOrigin.ROW_SPACE:
        return "perturbed"
    found = predict_ways(
        [(made, name) for name in choices], estimators=("auto",), signal=as_signal(signal)
    )
    scores = {name: only.r2 for name, (only,) in zip(choices, found, strict=True)}
    return _simplest(scores, "gauss")


def _simplest(scores: dict[str, float], simple: str) -> str:
    """Return the name of the highest score, or the simple one if it is within `R2_TOLERANCE`."""
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] > scores[simple] + R2_TOLERANCE else simple


def _variant(
    made: Plan, association: str, estimator: str, found: Regime, prediction: Prediction
) -> Variant:
    made = with_association(made, association)
    return Variant(
        protection=made.protection,
        association=association,
        estimator=estimator,
        covariance_sigma=made.covariance_sigma,
        association_sigma=made.association_sigma,
        outcome_sigma=made.outcome_sigma,
        regime=found,
        predicted_r2=prediction.r2,
        standard_error=prediction.standard_error,
        no_privacy_r2=prediction.no_privacy_r2,
    )


def _regime(made: Plan, association: str, law: Law) -> Regime:
    variance, energy = float(np.mean(law.outcomes.sd**2)), float(law.features.sd @ law.features.sd)
    return regime(
        n=made.n,
        d=made.d,
        l=made.l,
        epsilon=made.budget.epsilon,
        protection=made.protection,
        # The paper puts no noise on outcomes; its rates for XᵀY stand in.
        association="gauss" if association == "perturbed" else association,
        feature_norm=made.features.norm,
        outcome_bound=made.outcomes.norm / math.sqrt(made.l),
        coefficient_norm=math.sqrt(made.d * law.signal.r2 * variance / energy),
    )


def _bounds(value: Any, block: str) -> Bounds:
    return Bounds(norm=1.0) if value is None else as_bounds(value, block)


def as_count(name: str, value: Any) -> int:
    """Return a count as an int, or refuse it by its name."""
    if not is_number(value) or not math.isfinite(value) or value != int(value) or value < 1:
        raise InputError(Argument(name, value), " must be a whole number of at least 1")
    return int(value)
