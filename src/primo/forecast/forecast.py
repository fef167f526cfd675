"""How well a release will predict, before any data is read: a small simulation of a release.

Under stated assumptions about the rows (`Law`: their means, their spread, what explains them) the
forecast draws some thousand rows, shortens them to the bounds, sums them, adds Gaussian noise of the
plan's exact scales to all sums, the means among them, estimates with the real estimators, and scores the
coefficients on new rows. Nothing here sees a row of data. Large problems are stood for by smaller ones
(`reduced`), so the time does not depend on n, d or l.

Several rounds are simulated as such (`round_releases`), in fewer repeats: what they gain over one round
with the budget of all, in the same repeats, is added to the forecast of that.

What is left out: rounding onto the grid, and every difference between the data and the assumptions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from primo._util.threads import blas_threads
from primo.errors import InputError
from primo.forecast.assumptions import Signal, as_signal, preferred
from primo.forecast.expected_norms import with_expected_norms
from primo.forecast.law import Law, law_of
from primo.forecast.reduced import (
    MOST_WHOLE,
    Reduction,
    reduced_law,
    reduction_of,
    whole_outcomes,
)
from primo.forecast.round_releases import release_rounds
from primo.forecast.simulate import Drawn, draw
from primo.planning.association import with_association
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import as_one_round
from primo.planning.settings import check_association
from primo.released.estimate import ESTIMATORS

__all__ = ["MANY", "Draws", "Prediction", "is_forecast", "predict", "predict_all", "predict_ways"]

MOST_OUTCOMES, FEWER_OUTCOMES = 200, 100  # simulated; more are represented by these
MOST_REPEATS, FEWEST_REPEATS = 12, 4
MANY = 128  # features beyond which a repeat takes longer, and varies less
SMALL, SMALL_REPEATS = 20, 40  # features up to which repeats cost next to nothing, and their number
ENOUGH = 100  # outcomes, over all repeats
ROUND_REPEATS, FEW_FEATURES = 8, 50  # of several rounds, with at most so many features
_SEED = 20_231_107


@dataclass(kw_only=True, eq=False)
class Draws:
    """What forecasts have in common that differ in their budget alone."""

    rows: dict[tuple[object, ...], Drawn] = field(default_factory=dict)  # by what they depend on
    ideal: float | None = None  # R² without privacy


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """Out-of-sample R²: on new rows of the same kind, which are not shortened.

    Pooled over outcomes: total and residual sums of squares are added up first.
    """

    r2: float  # of the private coefficients, intercept included
    no_privacy_r2: float  # of the best fit without privacy: a ridge with the ideal penalty
    standard_error: float  # of r2, from the finite number of draws
    one_round_r2: float | None = None  # of one round with the budget of all, if there are several
    gain_error: float = 0.0  # standard error of the difference of the two


def is_forecast(plan: Plan) -> bool:
    """Whether the forecast covers a plan: not the paper's noise, blocks, or other rows' covariance."""
    return (
        plan.calibration == "exact"
        and plan.sampled is None
        and plan.covariance_origin not in (CovarianceOrigin.REFERENCE, CovarianceOrigin.BLOCKS)
    )


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
    """Predict R² for several estimators of the same simulated releases; see `predict_ways`."""
    return predict_ways([(plan, association)], estimators=estimators, signal=signal)[0]


def predict_ways(
    ways: Sequence[tuple[Plan, str]],
    *,
    estimators: Sequence[str],
    signal: Signal,
    most_repeats: int = SMALL_REPEATS,
    draws: Draws | None = None,
) -> list[tuple[Prediction, ...]]:
    """Predict R² for several plans and associations, and several estimators of each.

    The plans have n, d, l and bounds in common, so that they can share the simulated rows.

    Deterministic: draws come from a fixed seed (nobody is protected by them), and are the same for
    every plan of the same n, d and l, so that predictions can be compared and bisected. Where only the
    budget differs between calls, hand the same `draws` to all: rows are drawn once.

    Cost: a few calls of each estimator on at most 512 features and, unless YᵀY is exact, `MOST_OUTCOMES`
    outcomes: about a second, whatever the sizes (`reduced`). Several rounds take a second more.
    """
    for plan, association in ways:
        check_association(association, plan.protection)
    for name in estimators:
        if name not in ESTIMATORS:
            raise InputError(
                f"unknown estimator {name!r}",
                argument="estimator",
                value=name,
                remedy=f"choose one of {', '.join(ESTIMATORS)}",
            )
    asked = len(ways)
    several = [k for k, (plan, _) in enumerate(ways) if plan.rounds is not None]
    ways = [*ways, *((as_one_round(ways[k][0]), ways[k][1]) for k in several)]
    # Several associations have a plan in common: what follows from it is made once.
    of_plans = [id(plan) for plan, _ in ways]
    each = {id(plan): plan for plan, _ in ways}
    expected = {k: with_expected_norms(plan, signal) for k, plan in each.items()}
    known = {k: law_of(*found) for k, found in expected.items()}
    settled, laws = [expected[k] for k in of_plans], [known[k] for k in of_plans]
    ways = [
        (with_association(plan, association), association)
        for (plan, _), (_, association) in zip(settled, ways, strict=True)
    ]
    size = reduction_of([plan for plan, _ in ways])
    reduced = {k: reduced_law(law, size) for k, law in known.items()}
    simulated_laws = [reduced[k] for k in of_plans]
    with blas_threads(1):  # small matrices
        scores = _scores(ways, simulated_laws, size, estimators, most_repeats, draws)
    draws = Draws() if draws is None else draws
    if draws.ideal is None:
        draws.ideal = _without_privacy(laws[0], n=ways[0][0].n, d=ways[0][0].d)
    shapes = len(signal.alignments)
    # In the repeats of several rounds, their gain over one with the budget of all.
    found = [tuple(_predictions(np.array(of), draws.ideal, shapes)) for of in scores]
    for one, k in enumerate(several, start=asked):
        gained = np.array(scores[k]) - np.array(scores[one][: len(scores[k])])
        gains = _predictions(gained, draws.ideal, shapes)
        found[k] = tuple(map(_gaining, found[one], gains))
    return found[:asked]


def _gaining(one: Prediction, gain: Prediction) -> Prediction:
    """Return the prediction of several rounds: that of one, and what they gain."""
    return dataclasses.replace(
        one,
        r2=one.r2 + gain.r2,
        standard_error=math.hypot(one.standard_error, gain.standard_error),
        one_round_r2=one.r2,
        gain_error=gain.standard_error,
    )


def _scores(
    ways: Sequence[tuple[Plan, str]],
    laws: Sequence[Law],
    size: Reduction,
    estimators: Sequence[str],
    most_repeats: int,
    draws: Draws | None,
) -> list[list[list[float]]]:
    """R² of every way, (repeats, estimators) each."""
    scores: list[list[list[float]]] = [[] for _ in ways]
    for repeat in range(most_repeats):
        drawn = {} if draws is None else draws.rows
        for (plan, association), law, found in zip(ways, laws, scores, strict=True):
            simulated = _simulated(plan, size)
            if repeat >= _repeats(size.d, simulated, plan.round_count):
                continue
            kind: tuple[object, ...] = (simulated, plan.covariance_origin)
            kind += (plan.features.norm, plan.outcomes.norm)
            if draws is not None:
                kind += (repeat, size, law.signal, *law.features.key, *law.outcomes.key)
            if kind not in drawn:
                drawn[kind] = draw(plan, law, simulated, size=size, seed=(_SEED, repeat))
            cohort = drawn[kind].under(plan)
            if plan.rounds is None:
                release = cohort.release(association)
            else:
                release = release_rounds(drawn[kind], plan)
            found.append([cohort.r2(release, name) for name in estimators])
    return scores


def _simulated(plan: Plan, size: Reduction) -> int:
    """Return how many outcomes are simulated; they stand for all."""
    if whole_outcomes(plan):
        return min(size.l, MOST_WHOLE)
    return min(size.l, MOST_OUTCOMES if size.d <= MANY else FEWER_OUTCOMES)


def _repeats(d: int, simulated: int, rounds: int = 1) -> int:
    """Return how many cohorts are drawn: an even number, so that both usual alignments count alike."""
    if rounds > 1:
        most = ROUND_REPEATS if d <= FEW_FEATURES else FEWEST_REPEATS
        return min(_repeats(d, simulated), most)
    most = SMALL_REPEATS if d <= SMALL else MOST_REPEATS if d <= MANY else FEWEST_REPEATS
    wanted = max(FEWEST_REPEATS, math.ceil(ENOUGH / simulated))
    return min(most, wanted + wanted % 2)


def _predictions(scores: NDArray[np.float64], ideal: float, shapes: int) -> Iterator[Prediction]:
    """Average over repeats, which take the shapes of the signal in turn.

    The standard error is that of the mean over the same shapes; with one draw of each, their
    difference cannot be told from chance and is included.
    """
    count = len(scores)
    if count >= 2 * shapes:
        parts = [scores[shape::shapes] for shape in range(shapes)]
        variances = [part.var(axis=0, ddof=1) / len(part) for part in parts]
        errors = np.sqrt(np.sum(variances, axis=0)) / shapes
    else:
        errors = scores.std(axis=0, ddof=1) / math.sqrt(count)
    for r2, error in zip(scores.mean(axis=0), errors, strict=True):
        yield Prediction(r2=float(r2), no_privacy_r2=ideal, standard_error=float(error))


def _without_privacy(law: Law, *, n: int, d: int) -> float:
    """Return the R² on new rows of the best ridge without privacy, averaged over alignments."""
    signal = law.signal
    values, spread = signal.spectrum(d), law.features.sd**2
    # A ridge that knows in which directions slopes are large equals a plain ridge on scaled features.
    shapes = [values * preferred(values, spread, alignment) for alignment in signal.alignments]
    scaled = [s[s > 0] / s.sum() for s in shapes]
    return float(np.mean([_ideal_ridge(s, share=signal.r2, n=n) for s in scaled]))


def _ideal_ridge(values: NDArray[np.float64], *, share: float, n: int) -> float:
    """Return the R² on new rows of a ridge with the ideal penalty, fitted to n unclipped rows.

    `values` are the eigenvalues, of sum 1, of features whose slopes have variance τ² in every
    direction; with residuals of variance s² the ideal penalty is s²/τ². The error is the limit of
    random matrix theory (Dobriban and Wager 2018), which is close for ten rows already; estimating the
    mean costs s²/n more. Far from n = d it is least squares.
    """
    penalty = max(1 - share, 1e-9) / share / n  # values of a sum of 1, so τ² is the share explained

    def excess(kappa: float) -> float:
        return kappa * (1 - float(np.sum(values / (values + kappa))) / n) - penalty

    # κ is the effective penalty; above penalty + Σ values / n the function is positive.
    kappa = brentq(excess, 0.0, penalty + 1.0 / n, xtol=1e-15)
    kept = values / (values + kappa)
    bias = share * float(values @ (1 - kept) ** 2)
    error = (1 - share + bias) / (1 - float(kept @ kept) / n)
    return 1 - error - (1 - share) / n
