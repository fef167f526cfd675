"""From a release to coefficients in the data's own units; public side of the wall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.estimate import NoisyMoments, estimate
from primo.release import Release

__all__ = ["Coefficients", "coefficients"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Coefficients:
    """Linear predictors of all outcomes: ``Y ≈ X @ slopes + intercept``, in the data's own units."""

    slopes: Matrix  # (d, l)
    intercept: Matrix  # (l,)
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    estimator: str  # the member of the family that was used, with its parameters

    def predict(self, features: Matrix) -> Matrix:
        """Return the predicted outcomes (rows, l)."""
        return features @ self.slopes + self.intercept


def coefficients(
    release: Release, *, estimator: str = "auto", ridge_lambda: float | None = None
) -> Coefficients:
    """Estimate all regressions from the released numbers alone.

    Guarantee: post-processing; costs no privacy, whatever `estimator` is and however often it is
    called on the same release.
    Cost: O(d³ + d²l).
    """
    plan = release.plan
    moments, feature_means, outcome_means = _centred(release)
    fitted = estimate(moments, estimator=estimator, ridge_lambda=ridge_lambda)
    offset = outcome_means - feature_means @ fitted.coefficients
    slopes = fitted.coefficients * plan.outcomes.scale
    slopes /= plan.features.scale[:, None]
    return Coefficients(
        slopes=slopes,
        intercept=plan.outcomes.centre
        + plan.outcomes.scale * offset
        - plan.features.centre @ slopes,
        feature_names=release.feature_names,
        outcome_names=release.outcome_names,
        estimator=fitted.name,
    )


def _centred(release: Release) -> tuple[NoisyMoments, Matrix, Matrix]:
    """Eliminate the constant feature: moments about the released means, and those means.

    Without an intercept the means are the public centres, that is zero in scaled units.
    """
    plan = release.plan
    sigma1, sigma2 = plan.covariance_sigma, plan.association_sigma
    covariance, association = release.covariance, release.association
    outcome = release.outcome_moments
    if not plan.intercept:
        feature_means, outcome_means = np.zeros(plan.d), np.zeros(plan.l)
    else:
        mass = plan.n * plan.constant
        feature_means = covariance[:-1, -1] / mass
        means_sigma = sigma2 / mass if plan.protection.outcomes_private else 0.0
        outcome_means, kept = _shrunk_means(association[-1] / mass, means_sigma)
        covariance = covariance[:-1, :-1] - plan.n * np.outer(feature_means, feature_means)
        association = association[:-1] - plan.n * np.outer(feature_means, outcome_means)
        if plan.full_outcome_moments:
            outcome = outcome - plan.n * np.outer(outcome_means, outcome_means)
        else:
            outcome = outcome - plan.n * outcome_means**2
        # The means are noisy too: what their noise adds to an average entry of the centred moments.
        lean = float(np.mean(feature_means**2)) / plan.constant**2
        sigma2 = np.sqrt(
            sigma2**2
            + kept * lean * (means_sigma * mass) ** 2
            + float(np.mean(outcome_means**2)) * sigma1**2 / (2 * plan.constant**2)
        )
        sigma1 *= np.sqrt(1 + 2 * lean)
    moments = NoisyMoments(
        n=plan.n,
        covariance=covariance,
        association=association,
        outcome_moments=outcome,
        covariance_sigma=float(sigma1),
        association_sigma=float(sigma2),
        outcome_sigma=plan.outcome_sigma,
    )
    return moments, feature_means, outcome_means


def _shrunk_means(means: Matrix, sigma: float) -> tuple[Matrix, float]:
    """Shrink noisy outcome means toward the public centre by empirical Bayes.

    With thousands of outcomes the noise on a mean can exceed the mean; the share of their spread that
    is not noise is known, so the best linear shrinkage is too.
    """
    spread = float(np.mean(means**2))
    kept = max(0.0, 1.0 - sigma**2 / spread) if spread > 0 else 0.0
    return kept * means, kept
