"""From a release to coefficients in the data's own units; public side of the wall."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.estimate import ESTIMATORS, NoisyMoments, estimate
from primo.estimate.reuse_cov import (
    SOLVERS,
    adassp_lambda,
    gauss_error,
    projection_error,
    reuse_cov,
    theorem_lambda,
)
from primo.mechanisms.projection import works_on_projected
from primo.plans import CovarianceOrigin
from primo.privacy.budget import is_number
from primo.release import Release, expect_release
from primo.threads import blas_threads

__all__ = [
    "Coefficients",
    "centred_moments",
    "check_estimation",
    "coefficients",
    "released_feature_means",
    "shrunk_means",
]

LAMBDA_RULES = ("theorem", "adassp")

Matrix = NDArray[np.float64]

_FEW = 128  # features, below which several BLAS threads cost more than they bring


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Linear predictors of all outcomes: ``Y ≈ X @ slopes + intercept``, in the data's own units."""

    slopes: Matrix  # (d, l)
    intercept: Matrix  # (l,)
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    estimator: str  # the member of the family that was used

    def predict(self, features: Matrix) -> Matrix:
        """Return the predicted outcomes (rows, l)."""
        return features @ self.slopes + self.intercept


def coefficients(
    release: Release,
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
        "auto", "ridge", "filter", "one-sided" or "two-sided" (`primo.estimate.estimate`).
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
    """
    check_estimation(
        estimator=estimator,
        ridge_lambda=ridge_lambda,
        coefficient_norm=coefficient_norm,
        solver=solver,
    )
    with blas_threads(1 if expect_release(release).plan.d < _FEW else None):
        return _coefficients(release, estimator, ridge_lambda, coefficient_norm, solver)


def _coefficients(
    release: Release,
    estimator: str,
    ridge_lambda: float | str | None,
    coefficient_norm: float | None,
    solver: str,
) -> Coefficients:
    plan = release.plan
    moments, feature_means, outcome_means = centred_moments(_for_estimator(release, estimator))
    if isinstance(ridge_lambda, str):
        ridge_lambda = _rule(ridge_lambda, release, moments, coefficient_norm)
    fitted = estimate(moments, estimator=estimator, ridge_lambda=ridge_lambda)
    scaled = fitted.coefficients
    if solver != "fast":
        scaled = reuse_cov(
            moments.covariance,
            moments.association,
            n=plan.n,
            ridge_lambda=fitted.parameters["lambda"],
            solver=solver,
        )
    if release.public_features is not None:
        scaled = release.public_features.row_space.expand(scaled)
    offset = outcome_means - feature_means @ scaled
    slopes = scaled * plan.outcomes.scale
    slopes /= plan.features.scale[:, None]
    centre = plan.outcomes.centre + plan.outcomes.scale * offset
    return Coefficients(
        slopes=slopes,
        intercept=centre - plan.features.centre @ slopes,
        feature_names=release.feature_names,
        outcome_names=release.outcome_names,
        estimator=fitted.name,
    )


def check_estimation(
    *,
    estimator: str,
    ridge_lambda: float | str | None,
    coefficient_norm: float | None,
    solver: str,
) -> None:
    """Refuse what `coefficients` would refuse, before a release is paid for."""
    if estimator not in ESTIMATORS:
        raise InputError(
            f"estimator={estimator!r} is unknown; choose one of {', '.join(ESTIMATORS)}"
        )
    if solver not in SOLVERS:
        raise InputError(f"solver={solver!r} is unknown; choose one of {', '.join(SOLVERS)}")
    for name, given in (("ridge_lambda", ridge_lambda is not None), ("solver", solver != "fast")):
        if given and estimator != "ridge":
            raise InputError(f'{name} belongs to estimator="ridge", not to {estimator!r}')
    if isinstance(ridge_lambda, str):
        if ridge_lambda not in LAMBDA_RULES:
            raise InputError(
                f'ridge_lambda={ridge_lambda!r} is unknown; give a number, "theorem", "adassp" or None'
            )
        norm = coefficient_norm
        if ridge_lambda == "theorem" and not (is_number(norm) and 0 < (norm or 0) < math.inf):
            raise InputError(
                f'ridge_lambda="theorem" needs a positive coefficient_norm, not {norm!r}: the norm of '
                "a typical outcome's coefficients in scaled units, from public knowledge"
            )
    elif ridge_lambda is not None and not (
        is_number(ridge_lambda) and 0 <= ridge_lambda < math.inf
    ):
        raise InputError(f"ridge_lambda={ridge_lambda!r} must be a number, not negative")


def _for_estimator(release: Release, estimator: str) -> Release:
    """Forget the projection where an estimator does better with the association before it."""
    if works_on_projected(estimator, release.plan.protection):
        return release
    return replace(release, projected=None)


def _rule(
    rule: str, release: Release, moments: NoisyMoments, coefficient_norm: float | None
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
        error = gauss_error(d=d, association_sigma=moments.association_sigma)
    return theorem_lambda(
        d=d,
        coefficient_norm=float(coefficient_norm or 0),
        covariance_sigma=moments.covariance_sigma,
        association_error=error,
    )


def centred_moments(release: Release) -> tuple[NoisyMoments, Matrix, Matrix]:
    """Eliminate the constant feature: moments about the released means, and those means.

    Without an intercept the means are the public centres, that is zero in scaled units. Public
    features that outnumber the rows are replaced by their row space.
    """
    plan = release.plan
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and release.public_features is None:
        raise InputError(
            "this release has more public features than rows and was loaded without them; attach "
            "them first: release = primo.with_public_features(release, X)"
        )
    # The estimators expect svec noise; an iid triangle has twice its variance off the diagonal.
    sigma1 = plan.covariance_sigma * math.sqrt(2 - plan.triangle_bits)
    sigma2, association = plan.association_sigma, release.association
    if release.projected is not None:
        sigma2 *= release.projected.noise_left
        association = release.projected.association
    covariance = release.covariance
    outcome = release.outcome_moments
    feature_means, outcome_means = np.zeros(plan.d), np.zeros(plan.l)
    if plan.intercept:
        mass = plan.n * plan.constant
        feature_means, certain = shrunk_means(
            released_feature_means(release, mass), sigma1 / math.sqrt(2) / mass
        )
        means_sigma = sigma2 / mass if plan.protection.outcomes_private else 0.0
        outcome_means, kept = shrunk_means(association[-1] / mass, means_sigma)
        if release.public_features is None:
            covariance = covariance[:-1, :-1] - plan.n * np.outer(feature_means, feature_means)
        association = association[:-1] - plan.n * np.outer(feature_means, outcome_means)
        if plan.full_outcome_moments:
            outcome = outcome - plan.n * np.outer(outcome_means, outcome_means)
        else:
            outcome = outcome - plan.n * outcome_means**2
        # The means are noisy too: what their noise adds to an average entry of the centred moments.
        lean = float(np.mean(feature_means**2)) / plan.constant**2
        sigma2 = math.sqrt(
            sigma2**2
            + kept * lean * (means_sigma * mass) ** 2
            + certain * float(np.mean(outcome_means**2)) * sigma1**2 / (2 * plan.constant**2)
        )
        sigma1 *= math.sqrt(1 + 2 * certain * lean)
    if release.public_features is not None:
        space = release.public_features.row_space
        covariance, association = np.diag(space.values), space.reduce(association)
    moments = NoisyMoments(
        n=plan.n,
        covariance=covariance,
        association=association,
        outcome_moments=outcome,
        covariance_sigma=sigma1,
        association_sigma=sigma2,
        outcome_sigma=plan.outcome_sigma,
    )
    return moments, feature_means, outcome_means


def released_feature_means(release: Release, mass: float) -> Matrix:
    """Means of the features in scaled units: released beside the constant, or public."""
    if release.public_features is not None:
        return release.public_features.means
    return release.covariance[:-1, -1] / mass


def shrunk_means(means: Matrix, sigma: float) -> tuple[Matrix, float]:
    """Shrink noisy means toward the public centres by empirical Bayes; return the share kept, too.

    With thousands of outcomes the noise on a mean can exceed the mean; the share of their spread that
    is not noise is known, so the best linear shrinkage is too. Noise on the means of the features is
    worse than it looks: it enters the association of every outcome in proportion to *its* mean.
    """
    spread = float(np.mean(means**2))
    kept = max(0.0, 1.0 - sigma**2 / spread) if spread > 0 else 0.0
    return kept * means, kept
