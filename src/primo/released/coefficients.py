"""From a release to coefficients in the data's own units; public side of the wall."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from primo._util.threads import blas_threads
from primo.errors import Argument, InputError, Message
from primo.privacy.clip import Clip
from primo.released.decomposed import centred_of, estimate_of
from primo.released.estimate import NoisyMoments, estimate
from primo.released.estimate.blocks import fit_blocks
from primo.released.estimate.blocks.marginal import is_marginal, scaled_down
from primo.released.estimate.blocks.released import centred_blocks
from primo.released.estimate.reuse_cov import (
    adassp_lambda,
    gauss_error,
    projection_error,
    reuse_cov,
    theorem_lambda,
)
from primo.released.estimate.rounds import gradual_coefficients, is_gradual
from primo.released.estimation import Estimation
from primo.released.moments import ReleasedMoments, expect_release
from primo.released.projection import works_on_projected
from primo.released.reach import reach_of, within_reach

__all__ = ["Coefficients", "coefficients", "estimate_coefficients", "for_estimator"]

Matrix = NDArray[np.float64]

_FEW = 128  # features, below which several BLAS threads cost more than they bring


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Linear predictors of all outcomes: ``Y ≈ X @ slopes + intercept``, in the data's own units.

    Where the norm of the features was found, and neither ranges nor scales are stated, `predict`
    shortens rows of more than three times that norm (`primo.released.reach`).

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> fitted = primo.coefficients(model.fit(X, Y).release_)
    >>> fitted.slopes.shape, fitted.intercept.shape, fitted.outcome_names
    ((2, 3), (3,), ('y0', 'y1', 'y2'))
    >>> fitted.predict(X[:4]).shape
    (4, 3)
    """

    slopes: Matrix  # (d, l)
    intercept: Matrix  # (l,)
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    estimator: str  # the member of the family that was used
    reach: Clip | None = field(
        default=None, repr=False
    )  # what rows are shortened by; None: nothing

    def predict(self, features: Matrix) -> Matrix:
        """Return the predicted outcomes (rows, l)."""
        return np.asarray(within_reach(features, self.reach) @ self.slopes + self.intercept)


def coefficients(
    release: ReleasedMoments,
    *,
    estimator: str = "auto",
    ridge_lambda: float | str | None = None,
    coefficient_norm: float | None = None,
    solver: str = "fast",
) -> Coefficients:
    """Estimate all regressions from the released numbers alone.

    Parameters
    ----------
    release
        What `fit` released, or a loaded one.
    estimator
        "auto", "ridge", "filter", "one-sided" or "two-sided" (`primo.released.estimate.estimate`).
    ridge_lambda
        For the ridge: a number on the scale of XᵀX in scaled units, "theorem" (Theorems 1 to 3, needs
        `coefficient_norm`), "adassp", or None for √(d/2)·σ₁.
    coefficient_norm
        ‖w‖ of a typical outcome in scaled units, public knowledge for ``ridge_lambda="theorem"``.
    solver
        For the ridge: "fast", or the paper's "qr" and "cg" (Algorithm 3, section 5.3).

    Notes
    -----
    Guarantee: post-processing; costs no privacy, whatever is chosen and however often it is called on
    the same release.
    Cost: O(d³ + d²l).

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> release = model.fit(X, Y).release_
    >>> primo.coefficients(release).slopes.shape
    (2, 3)
    >>> primo.coefficients(release, estimator="ridge", ridge_lambda=10.0).estimator
    'ridge'
    """
    return estimate_coefficients(
        release,
        Estimation(
            estimator=estimator,
            ridge_lambda=ridge_lambda,
            coefficient_norm=coefficient_norm,
            solver=solver,
        ),
    )


def estimate_coefficients(release: ReleasedMoments, estimation: Estimation) -> Coefficients:
    """Estimate as `coefficients` does, with the options as one value."""
    with blas_threads(1 if expect_release(release).plan.d < _FEW else None):
        return _coefficients(release, estimation)


def _coefficients(release: ReleasedMoments, estimation: Estimation) -> Coefficients:
    plan = release.plan
    if estimation.estimator == "auto" and is_gradual(plan, release.rounds):
        return _in_data_units(release, gradual_coefficients(plan, release.rounds), "gradual")
    if release.blocks is not None or release.public_blocks is not None:
        return _from_blocks(release, estimation)
    seen = for_estimator(release, estimation.estimator)
    found = centred_of(seen)
    moments = found.moments
    ridge_lambda = estimation.ridge_lambda
    if isinstance(ridge_lambda, str):
        ridge_lambda = _rule(ridge_lambda, release, moments, estimation.coefficient_norm)
    if estimation.estimator == "auto":
        fitted = estimate_of(seen)
    else:
        fitted = estimate(moments, estimator=estimation.estimator, ridge_lambda=ridge_lambda)
    scaled = fitted.coefficients
    if estimation.solver != "fast":
        scaled = reuse_cov(
            moments.covariance,
            moments.association,
            n=plan.n,
            ridge_lambda=fitted.parameters["lambda"],
            solver=estimation.solver,
        )
    return _in_data_units(release, found.restore(scaled), fitted.name)


def _from_blocks(release: ReleasedMoments, estimation: Estimation) -> Coefficients:
    """Estimate from a covariance inside blocks, which has one estimator."""
    if estimation.estimator != "auto":
        raise InputError(
            Argument("estimator", estimation.estimator),
            f" needs a whole covariance, and this release holds {release.held}",
            remedy=Message.of("choose ", Argument("estimator", "auto")),
        )
    centring = centred_blocks(release)
    slopes = fit_blocks(centring.moments).coefficients
    if is_marginal(centring.moments):
        slopes = scaled_down(centring.moments, slopes)
    if not release.plan.intercept:
        return _in_data_units(release, slopes, "blocks")
    constant = centring.offset(slopes) / release.plan.constant
    return _in_data_units(release, np.vstack([slopes, constant]), "blocks")


def _in_data_units(release: ReleasedMoments, theta: Matrix, estimator: str) -> Coefficients:
    """Turn coefficients of scaled features and the constant (width, l) into slopes and intercepts."""
    plan = release.plan
    offset = plan.constant * theta[-1] if plan.intercept else np.zeros(plan.l)
    slopes = theta[: plan.d] * plan.outcomes.scale
    slopes /= plan.features.scale[:, None]
    centre = plan.outcomes.centre + plan.outcomes.scale * offset
    return Coefficients(
        slopes=slopes,
        intercept=centre - plan.features.centre @ slopes,
        feature_names=release.feature_names,
        outcome_names=release.outcome_names,
        estimator=estimator,
        reach=reach_of(plan),
    )


def for_estimator(release: ReleasedMoments, estimator: str) -> ReleasedMoments:
    """Drop the projection where an estimator does better without it."""
    if release.projected is None or works_on_projected(estimator, release.plan.protection):
        return release
    return replace(release, projected=None)


def _rule(
    rule: str, release: ReleasedMoments, moments: NoisyMoments, coefficient_norm: float | None
) -> float:
    """Return the λ that a named rule gives, from released and public numbers."""
    d, l = moments.shape
    if rule == "adassp":
        return adassp_lambda(moments.covariance, covariance_sigma=moments.covariance_sigma)
    plan = release.plan
    if plan.association == "projection":
        block = release.outcome_moments if plan.protection.features_private else release.covariance
        private_norm = plan.features if plan.protection.features_private else plan.outcomes
        error = projection_error(
            d=d,
            l=l,
            association_sigma=plan.association_sigma,
            radius=math.sqrt(plan.n) * private_norm.norm,
            public_norm=math.sqrt(float(np.trace(block) if block.ndim == 2 else block.sum())),
            private_width=d if plan.protection.features_private else l,
        )
    else:
        error = gauss_error(d=d, association_sigma=math.sqrt(moments.typical_noise))
    return theorem_lambda(
        d=d,
        coefficient_norm=float(coefficient_norm or 0),
        covariance_sigma=moments.covariance_sigma,
        association_error=error,
    )
