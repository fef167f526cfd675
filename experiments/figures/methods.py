"""Everything that is compared, by name: the paper's variants, the baselines and primo.

"printed" follows the paper exactly: its noise scales (which do not keep the stated budget,
docs/paper-constants.md), the longest row and √l·max|y| for bounds, no ridge, and a QR solve. The same
name without it has primo's calibration, the tighter norms that all other methods get too, and a ridge.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import primo
from baselines.adassp import AdaSSP
from baselines.base import Baseline, MomentBaseline
from baselines.boosted_adassp import BoostedAdaSSP
from baselines.diffprivlib import DiffprivlibRegression
from baselines.dpsgd import DPSGDEach, DPSGDJoint
from baselines.hessian_mixing import HessianMixing
from baselines.least_squares import LeastSquares, Ridge
from baselines.ssp import ComposedSSP
from experiments.figures.from_moments import release_moments
from experiments.figures.problem import Problem
from experiments.tuning import tuned
from primo.errors import InputError, ReproducibleNoiseWarning
from primo.forecast.compare import choose_plan
from primo.planning.settings import Settings
from primo.wall.noise import RandomBits

__all__ = ["METHODS", "Fit", "Method"]

Matrix = NDArray[np.float64]

#: DP-SGD by outcome is run on this many outcomes (a third for images), chosen at random, at the privacy
#: of one among all l: outcomes of a model are exchangeable, so the mean R² is that of all of them.
SAMPLED_OUTCOMES = 12

_RELEASE = ("protection", "association", "calibration", "rounds")  # settings of a release
_ALMOST_NONE = 1e-10  # of the trace of XᵀX: a ridge that only makes a singular system solvable
_SHORT = 0.5  # seconds, below which a fit is timed twice


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Coefficients, what they truly cost, and how long they took."""

    slopes: Matrix  # (d, l) or (d, chosen)
    epsilon: float
    delta: float
    seconds: float  # NaN where no rows were read
    chosen: NDArray[np.int64] | None = None  # outcomes that were fitted, if not all


@dataclass(frozen=True, kw_only=True)
class Method:
    """One line of a figure."""

    name: str
    label: str
    protection: str  # "both", "features", "outcomes", or "none"
    fit: Callable[[Problem, float, float, int], Fit]  # problem, ε, δ, seed
    needs_rows: bool = False
    baseline: bool = False  # someone else's method, in the comparison at equal true privacy


def _printed(**options: Any) -> Callable[[Problem, float, float, int], Fit]:
    """Run the paper's algorithm exactly, with λ = 0 or, for collinear features, close to 0."""
    options |= {"calibration": "paper", "estimator": "ridge", "solver": "qr"}

    def fit(problem: Problem, epsilon: float, delta: float, seed: int) -> Fit:
        try:
            return _primo(**options, ridge_lambda=0.0)(problem, epsilon, delta, seed)
        except InputError as error:
            if "singular" not in str(error):
                raise
        least = _ALMOST_NONE * float(np.trace(problem.truth.covariance))
        return _primo(**options, ridge_lambda=least)(problem, epsilon, delta, seed)

    return fit


def _primo(**options: Any) -> Callable[[Problem, float, float, int], Fit]:
    """Run the library itself: `PrimoRegressor` on rows, the same release on moments, in one round."""
    options = {"rounds": 1, **options}
    printed = options.get("calibration") == "paper"
    how = {k: v for k, v in options.items() if k in ("estimator", "ridge_lambda", "solver")}
    what = {k: v for k, v in options.items() if k in _RELEASE}
    if printed:  # the paper releases no outcome moments and shortens no row
        what["outcome_moments"] = "diagonal"

    def fit(problem: Problem, epsilon: float, delta: float, seed: int) -> Fit:
        norms, moments = (problem.feature_norm, problem.outcome_norm), problem.moments
        if printed:
            norms = problem.feature_reach, math.sqrt(problem.l) * problem.outcome_largest
            moments = problem.whole_moments
        rows = problem.rows
        if rows is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReproducibleNoiseWarning)
                model = primo.PrimoRegressor(
                    epsilon,
                    delta,
                    feature_bounds=norms[0],
                    outcome_bounds=norms[1],
                    fit_intercept=False,
                    random_state=seed,
                    n_jobs=1,
                    **what,
                    **how,
                )
                seconds = _timed(lambda: model.fit(*rows))
            plan, slopes = model.release_.plan, model.coef_.T
        else:
            seconds = math.nan
            plan = choose_plan(
                Settings(
                    epsilon=epsilon,
                    delta=delta,
                    feature_bounds=primo.Bounds(norm=norms[0]),
                    outcome_bounds=primo.Bounds(norm=norms[1]),
                    fit_intercept=False,
                    **{"association": "gauss", **what, "rounds": 1},
                ),
                n=problem.n,
                d=problem.d,
                l=problem.l,
            )
            release = release_moments(moments, plan, bits=RandomBits.seeded(seed))
            slopes = primo.coefficients(release, **how).slopes
        return Fit(slopes=slopes, epsilon=plan.epsilon, delta=delta, seconds=seconds)

    return fit


def _baseline(kind: type[Baseline], **options: Any) -> Callable[..., Fit]:
    """Run a private baseline within the problem's bounds; an option may be a function of the problem."""

    def fit(problem: Problem, epsilon: float, delta: float, seed: int) -> Fit:
        given = {k: v(problem) if callable(v) else v for k, v in options.items()}
        bounds = {"feature_bounds": problem.feature_norm, "outcome_bounds": problem.outcome_norm}
        model = kind(epsilon, delta, random_state=seed, **bounds | given)
        return _fit_baseline(model, problem)

    return fit


def _timed(work: Callable[[], object]) -> float:
    """Run a fit and return its seconds; twice if it is short, since first calls load and compile."""
    best = math.inf
    for _ in range(2):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if best > _SHORT:
            break
    return best


def _not_private(make: Callable[[], Baseline]) -> Callable[..., Fit]:
    """Run a baseline without bounds or a budget."""
    return lambda problem, *_: _fit_baseline(make(), problem)


def _fit_baseline(model: Baseline, problem: Problem) -> Fit:
    seconds, rows = math.nan, problem.rows
    if rows is not None:
        seconds = _timed(lambda: model.fit(*rows))
    elif isinstance(model, MomentBaseline):
        private = model.get_params().get("epsilon") is not None
        model.fit_moments(problem.moments if private else problem.whole_moments)
    else:
        raise TypeError(f"{type(model).__name__} needs rows")
    slopes, spent = model.coef_.T, model.guarantee_
    chosen = getattr(model, "fitted_outcomes_", None)
    if chosen is not None:
        slopes = slopes[:, chosen]
        seconds *= problem.l / len(chosen)
    return Fit(
        slopes=slopes,
        epsilon=math.inf if spent is None else spent.epsilon,
        delta=1.0 if spent is None else spent.delta,
        seconds=seconds,
        chosen=chosen,
    )


def _dpsgd(variant: str) -> Callable[..., Fit]:
    """Run DP-SGD with what was tuned on separate simulated data (`experiments.tuning`)."""

    def fit(problem: Problem, epsilon: float, delta: float, seed: int) -> Fit:

        options: dict[str, Any] = tuned(variant, d=problem.d, l=problem.l).parameters()
        # Gradients are clipped, so rows need not be; their reach only sets the unit of the tuning.
        options["feature_bounds"] = problem.feature_reach
        options["outcome_bounds"] = problem.outcome_reach
        if variant == "each":
            options["outcome_limit"] = problem.outcome_limit
            options["fitted_outcomes"] = min(problem.l, SAMPLED_OUTCOMES if problem.d < 500 else 4)
        kind: type[Baseline] = DPSGDEach if variant == "each" else DPSGDJoint
        return _baseline(kind, **options)(problem, epsilon, delta, seed)

    return fit


def _clip(problem: Problem) -> float:
    return problem.outcome_clip


def _limit(problem: Problem) -> float:
    return problem.feature_limit


_PROJECTED = {"association": "projection"}
_OUTCOMES, _FEATURES = {"protection": "outcomes"}, {"protection": "features"}
_RIDGE = {"estimator": "ridge"}
_ROUNDS = {"rounds": "auto"}  # the default

_ALL = (
    Method(
        name="ols",
        label="least squares (not private)",
        protection="none",
        fit=_not_private(LeastSquares),
    ),
    Method(name="ridge", label="ridge (not private)", protection="none", fit=_not_private(Ridge)),
    Method(
        name="gauss-printed",
        label="ReuseCovGauss, as printed",
        protection="both",
        fit=_printed(),
    ),
    Method(
        name="gauss", label="ReuseCovGauss, calibrated", protection="both", fit=_primo(**_RIDGE)
    ),
    Method(
        name="proj-x-printed",
        label="ReuseCovProj_X, as printed",
        protection="outcomes",
        fit=_printed(**_OUTCOMES, **_PROJECTED),
    ),
    Method(
        name="proj-x",
        label="ReuseCovProj_X, calibrated",
        protection="outcomes",
        fit=_primo(**_OUTCOMES, **_PROJECTED, **_RIDGE),
    ),
    Method(
        name="proj-y-printed",
        label="ReuseCovProj_Y, as printed",
        protection="features",
        needs_rows=True,
        fit=_printed(**_FEATURES, **_PROJECTED),
    ),
    Method(
        name="proj-y",
        label="ReuseCovProj_Y, calibrated",
        protection="features",
        needs_rows=True,
        fit=_primo(**_FEATURES, **_PROJECTED, **_RIDGE),
    ),
    Method(
        name="ssp-advanced",
        label="SSP × l, advanced composition",
        protection="both",
        baseline=True,
        fit=_baseline(ComposedSSP, composition="advanced", outcome_limit=_clip),
    ),
    Method(
        name="ssp-gdp",
        label="SSP × l, GDP composition",
        protection="both",
        baseline=True,
        fit=_baseline(ComposedSSP, composition="gdp", joint=True, outcome_limit=_clip),
    ),
    Method(
        name="adassp",
        label="AdaSSP",
        protection="both",
        baseline=True,
        fit=_baseline(AdaSSP, joint=True),
    ),
    Method(
        name="boosted-adassp",
        label="BoostedAdaSSP",
        protection="both",
        baseline=True,
        needs_rows=True,
        fit=_baseline(BoostedAdaSSP),
    ),
    Method(
        name="ihm",
        label="Iterative Hessian Mixing",
        protection="both",
        baseline=True,
        needs_rows=True,
        fit=_baseline(HessianMixing),
    ),
    Method(
        name="dpsgd-each",
        label="DP-SGD × l (Opacus)",
        protection="both",
        baseline=True,
        needs_rows=True,
        fit=_dpsgd("each"),
    ),
    Method(
        name="dpsgd-joint",
        label="DP-SGD, jointly (Opacus)",
        protection="both",
        baseline=True,
        needs_rows=True,
        fit=_dpsgd("joint"),
    ),
    Method(
        name="diffprivlib",
        label="diffprivlib, as it counts",
        protection="both",
        needs_rows=True,
        fit=_baseline(DiffprivlibRegression, feature_limit=_limit, outcome_limit=_clip),
    ),
    Method(
        name="diffprivlib-true",
        label="diffprivlib, at the true budget",
        protection="both",
        baseline=True,
        needs_rows=True,
        fit=_baseline(
            DiffprivlibRegression,
            feature_limit=_limit,
            outcome_limit=_clip,
            at_true_budget=True,
            accounting="approximate",
        ),
    ),
    Method(name="primo", label="primo", protection="both", fit=_primo(**_ROUNDS)),
    Method(
        name="primo-one-round",
        label="primo, one round",
        protection="both",
        fit=_primo(),
    ),
    Method(
        name="primo-outcomes",
        label="primo, outcomes protected",
        protection="outcomes",
        fit=_primo(**_OUTCOMES, **_ROUNDS),
    ),
    Method(
        name="primo-features",
        label='primo, features protected (association="auto")',
        protection="features",
        needs_rows=True,
        fit=_primo(**_FEATURES, association="auto", **_ROUNDS),
    ),
    Method(
        name="primo-features-one-round",
        label='primo, features protected (association="auto"), one round',
        protection="features",
        needs_rows=True,
        fit=_primo(**_FEATURES, association="auto"),
    ),
)

METHODS = {method.name: method for method in _ALL}
