"""Compare what the program states, goodness of fit and forecast, with the truth. One function each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import primo
from benchmarks.stress.problem import Problem
from primo.forecast.forecast import predict
from primo.released import uncertainty

__all__ = ["Fit", "check_fit", "forecast"]

Matrix = NDArray[np.float64]

LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Fit:
    """What a release says of its fit in one draw, compared outcome by outcome."""

    outcomes: int
    intervals: int  # trusted intervals of outcomes with signal
    covered: int  # of these, how many hold the true R²
    broken: int  # intervals that do not hold their estimate, or leave [0, 1]
    published: float | None  # estimated R² of what is published, pooled; None if not trusted


def check_fit(release: primo.Release, problem: Problem, *, judged: bool) -> Fit:
    """Compare R² intervals with the population where it is known, with these rows where it is not.

    An outcome without any signal is left out of the count: an interval that starts at 0 covers it
    nearly always. What is published is estimated where `judged`: that runs the estimator many times.
    """
    known = problem.explained is not None
    truth = problem.explained if problem.explained is not None else least_squares(problem)
    try:
        found = release.goodness_of_fit(level=LEVEL, target="population" if known else "rows")
    except primo.InputError:  # more features than rows: nothing is stated
        return Fit(outcomes=len(truth), intervals=0, covered=0, broken=0, published=None)
    counted = found.trusted & (truth > 0)
    held = (found.lower <= truth) & (truth <= found.upper)
    estimate = found.r_squared
    whole = (found.lower >= 0) & (found.lower <= estimate)
    whole &= (estimate <= found.upper) & (found.upper <= 1)
    return Fit(
        outcomes=len(truth),
        intervals=int(counted.sum()),
        covered=int((held & counted).sum()),
        broken=int((~whole).sum()),
        published=published(release) if judged else None,
    )


def published(release: primo.Release) -> float | None:
    """Return what is said of the published coefficients, where it is not doubted."""
    made = uncertainty.published_r_squared(release)
    return float(made.pooled) if made.pooled_trusted else None


def least_squares(problem: Problem) -> Matrix:
    """Return R² per outcome of least squares on the fitted rows."""
    x = problem.features - problem.features.mean(axis=0)
    y = problem.outcomes - problem.outcomes.mean(axis=0)
    slopes = np.linalg.lstsq(x, y, rcond=None)[0]
    return np.asarray(1 - np.sum((y - x @ slopes) ** 2, axis=0) / np.sum(y**2, axis=0))


def assumed_r2(problem: Problem, scale: Matrix) -> float:
    """Return the share of variance that a forecast is told: the true one, or adjusted least squares.

    Outcomes count as in the score that it is compared with: by their variance in scaled units.
    """
    if problem.explained is not None:
        shares = problem.explained
    else:
        n, d, _ = problem.shape
        shares = 1 - (1 - least_squares(problem)) * (n - 1) / max(n - d - 1, 1)
    share = float(np.average(shares, weights=problem.held_outcomes.var(axis=0) / scale**2))
    return min(max(share, 1e-3), 0.999)


def forecast(release: primo.Release, problem: Problem) -> float:
    """Return the R² that is predicted from the plan, the panel of held-out rows and the true share."""
    plan = release.plan
    x, y = problem.held_features, problem.held_outcomes
    scaled = (x - plan.features.centre) / plan.features.scale
    values = np.linalg.eigvalsh(np.atleast_2d(np.cov(scaled.T)))
    signal = primo.Signal(
        r2=assumed_r2(problem, plan.outcomes.scale),
        feature_mean=tuple(x.mean(axis=0)),
        feature_sd=tuple(np.maximum(x.std(axis=0), 0.01 * plan.features.scale)),
        outcome_mean=tuple(y.mean(axis=0)),
        outcome_sd=tuple(np.maximum(y.std(axis=0), 0.01 * plan.outcomes.scale)),
        eigenvalues=tuple(np.maximum(values, 0.0)),
    )
    return predict(plan, signal=signal).r2
