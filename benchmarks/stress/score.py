"""One draw: a release, several estimators of that same release, scored on held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import primo
from benchmarks.stress.checks import Fit, check_fit, forecast
from benchmarks.stress.problem import Cell, Problem
from benchmarks.stress.rivals import predict_rival, rivals_for

__all__ = ["ESTIMATORS", "METHODS", "ONE_ROUND", "Draw", "Score", "make_release", "score_draw"]

Matrix = NDArray[np.float64]

ESTIMATORS = ("auto", "ridge", "filter")
METHODS = (*ESTIMATORS, "mean only")
ONE_ROUND = "one round"  # the default of a release of its own, beside several rounds
FORECASTS = 3  # draws of a cell that are forecast: what they differ in is the panel
JUDGED = 6  # draws of a cell whose published coefficients are estimated, which takes many fits


@dataclass(frozen=True, kw_only=True)
class Score:
    """Held-out R² of one method in one draw."""

    median: float  # over outcomes
    mean: float  # over outcomes, each in units of its own variance
    pooled: float  # sums over outcomes in scaled units


@dataclass(frozen=True, kw_only=True)
class Draw:
    """All results of one draw of a cell."""

    shape: tuple[int, int, int]  # n, d, l
    scores: dict[str, Score]  # by method, "true mean" included; with rounds also the rivals
    fit: Fit
    forecast: float | None  # R² predicted before the data; of the first draws only

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Draw:
        """Return the draw from the dict that `dataclasses.asdict` made."""
        return cls(
            shape=tuple(found["shape"]),
            scores={name: Score(**score) for name, score in found["scores"].items()},
            fit=Fit(**found["fit"]),
            forecast=found["forecast"],
        )


def make_release(cell: Cell, problem: Problem, seed: int, rounds: int | str = 1) -> primo.Release:
    """Fit the rows with seeded noise: repeatable, and marked as not for publication."""
    n, _, _ = problem.shape
    model = primo.PrimoRegressor(
        cell.epsilon,
        1 / n**2 if cell.delta is None else cell.delta,
        protection=cell.protection,
        feature_bounds=problem.feature_bounds,
        outcome_bounds=problem.outcome_bounds,
        fit_intercept=cell.intercept,
        estimator="ridge",  # the cheapest: estimators are compared afterwards
        rounds=rounds,
        n_jobs=1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        warnings.simplefilter("ignore", primo.WeakGuaranteeWarning)
        release: primo.Release = model.fit(problem.features, problem.outcomes).release_
    return release


def released_means(release: primo.Release) -> Matrix:
    """Return the released means of the outcomes; without an intercept, the public centres."""
    plan = release.plan
    scaled = np.zeros(plan.l)
    if plan.intercept:
        scaled = release.association[-1] / (plan.n * plan.constant)
    return np.asarray(plan.outcomes.centre + plan.outcomes.scale * scaled)


def r_squared(problem: Problem, predicted: Matrix, scale: Matrix) -> Score:
    """Score predictions (m, l) or one constant per outcome (l,)."""
    y = problem.held_outcomes
    error = np.mean((y - predicted) ** 2, axis=0)
    spread = np.var(y, axis=0)
    by_outcome = 1 - error / spread
    return Score(
        median=float(np.median(by_outcome)),
        mean=float(np.mean(by_outcome)),
        pooled=float(1 - np.sum(error / scale**2) / np.sum(spread / scale**2)),
    )


def score_draw(cell: Cell, draw: int, rounds: int | str = 1) -> Draw:
    """Make one release and judge everything that is made from it; with rounds also one and rivals."""
    rng = cell.rng(draw)
    problem = cell.problem(rng)
    seed = int(rng.integers(2**31))
    release = make_release(cell, problem, seed, rounds)
    scale = release.plan.outcomes.scale
    scores = {}
    for name in ESTIMATORS:
        fitted = primo.coefficients(release, estimator=name)
        scores[name] = r_squared(problem, fitted.predict(problem.held_features), scale)
    scores["mean only"] = r_squared(problem, released_means(release), scale)
    scores["true mean"] = r_squared(problem, problem.outcomes.mean(axis=0), scale)
    if rounds != 1:
        one = primo.coefficients(make_release(cell, problem, seed))
        scores[ONE_ROUND] = r_squared(problem, one.predict(problem.held_features), scale)
        for name in rivals_for(problem):
            made = predict_rival(name, problem, release.plan, seed)
            scores[name] = r_squared(problem, made, scale)
    return Draw(
        shape=problem.shape,
        scores=scores,
        fit=check_fit(release, problem, judged=draw < JUDGED),
        forecast=forecast(release, problem) if draw < FORECASTS else None,
    )
