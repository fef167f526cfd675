r"""AdaSSP (Wang 2018, arXiv 1803.02596, Algorithm 2) for many outcomes that share one covariance.

Three releases: the smallest eigenvalue of XᵀX, XᵀX itself, and XᵀY of all outcomes with the norm b_y
of a whole row. The first chooses the penalty: as much ridge as lifts the spectrum out of the noise,
none if it is out already.

    λ̃ = max(0, λ_min + σ₀Z - σ₀·√log(6/δ))      λ = max(0, √(d·log(2d²/ρ))·σ₁ - λ̃)

are Wang's lines 2 and 3 with his noise scale written σ. He gives (ε/3, δ/3) to each release for
neighbours that add or remove a row; here each gets mu²/3 of the budget's mu-GDP, exactly, for
neighbours that replace one, and the noise off the diagonal of XᵀX is smaller by √2, which is free.

**Sensitivity of λ_min under replace-one: b_x²**, not 2·b_x². Let M be the sum over the rows that stay.
xxᵀ is positive semi-definite with one eigenvalue, ‖x‖² ≤ b_x², so λ_min(M) ≤ λ_min(M + xxᵀ) ≤ λ_min(M)
+ b_x² (Weyl), and the same with x′. Both data sets have their λ_min in the same interval of length
b_x². It is reached: M = diag(large, ..., large, 0), x along the last axis, x′ = 0.

`guarantee_` counts the second and third release as the one Gaussian release that they are
(mathematics.md section 2); ``joint=True`` calibrates to that.

`primo.released.estimate.reuse_cov.adassp_lambda` is the same λ with a λ̃ taken from the noisy covariance
instead of a release of its own; AdaSSP as published pays for it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from baselines.base import ExactMoments, Guarantee, Matrix, MomentBaseline
from baselines.gaussian import (
    ASSOCIATION,
    COVARIANCE,
    FAILURE,
    ROUNDING,
    Scales,
    guarantee_of,
    noise_penalty,
    symmetric_noise,
)
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.released.estimate.closed_forms import ridge_filter

__all__ = ["AdaSSP", "adassp_scales"]


class AdaSSP(MomentBaseline):
    """Adaptive sufficient statistics perturbation, all outcomes with one covariance.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every baseline.
    failure : float, default 0.05
        ρ of the rule for λ.
    joint : bool, default False
        Calibrate to the exact cost of covariance and association together.

    Attributes
    ----------
    penalty_ : float
        λ, in units of XᵀX.

    Notes
    -----
    Guarantee: `guarantee_`, at most (epsilon, delta). Cost: O(d³ + d²·l).
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        failure: float = FAILURE,
        joint: bool = False,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.failure = failure
        self.joint = joint

    def _from_moments(self, moments: ExactMoments) -> tuple[Matrix, Guarantee | None]:
        d = len(moments.covariance)
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        lowest_scale, scales = adassp_scales(budget, joint=self.joint)
        b_x, rng = self.feature_bounds, self._rng()
        sigma_0, sigma_1 = lowest_scale * b_x**2, scales.covariance * b_x**2
        sigma_2 = scales.association * b_x * self.outcome_bounds

        lowest = float(np.linalg.eigvalsh(moments.covariance)[0]) + rng.normal(scale=sigma_0)
        lowest -= sigma_0 * math.sqrt(math.log(6 / self.delta))
        wanted = noise_penalty(d, sigma_1, self.failure)
        self.penalty_ = max(0.0, wanted - max(0.0, lowest))
        noisy = moments.covariance + symmetric_noise(rng, d, sigma_1, svec=True)[0]
        blurred = moments.association + rng.normal(scale=sigma_2, size=moments.association.shape)
        # λ makes the sum positive definite but for a probability ρ; clipping takes care of that case.
        values, vectors = np.linalg.eigh(noisy)
        slopes = vectors @ (ridge_filter(values, self.penalty_)[:, None] * (vectors.T @ blurred))
        how = "three Gaussian releases, covariance and association as one"
        return slopes, guarantee_of(lowest_scale**-2 + scales.joint, self.delta, how)


def adassp_scales(budget: Budget, *, joint: bool = False) -> tuple[float, Scales]:
    """Return σ₀/b_x² of the smallest eigenvalue and the scales of the moments."""
    mu = mu_of(budget)
    third = mu / math.sqrt(3)
    scales = Scales(covariance=COVARIANCE / third, association=ASSOCIATION / third)
    counted = third**2 + (scales.joint if joint else scales.separate)
    factor = ROUNDING * math.sqrt(counted) / mu
    return factor / third, scales.times(factor)
