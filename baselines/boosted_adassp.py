r"""BoostedAdaSSP (Tang et al. 2023, arXiv 2303.03451) for many outcomes that share one covariance.

AdaSSP as the learner of gradient boosting: the covariance and its penalty are released once, then T
times the association of what is left, of residuals shortened to a fixed clip,

    W ← W + (XᵀX + noise + λI)⁻¹ (Xᵀ clip(Y − XW) + noise).

The smallest eigenvalue, the covariance and all T associations get a third of mu² each, as AdaSSP's three
releases do, under replace-one and by the exact Gaussian curve: sensitivities b_x², √2·b_x² and, for each
round, 2·b_x·c. Clipping comes after the residual, so nothing else about a residual matters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from baselines.base import Baseline, Guarantee, Matrix, shortened
from baselines.gaussian import (
    ASSOCIATION,
    COVARIANCE,
    FAILURE,
    ROUNDING,
    guarantee_of,
    noise_penalty,
    symmetric_noise,
)
from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.released.estimate.closed_forms import ridge_filter

__all__ = ["BoostedAdaSSP", "boosted_scales"]


class BoostedAdaSSP(Baseline):
    """Gradient boosting with AdaSSP on clipped residuals.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every baseline.
    rounds : int, default 100
        T, as in the paper.
    clip : float, default 1.0
        Residuals are shortened to this many `outcome_bounds`.
    failure : float, default 0.05
        ρ of the rule for λ.

    Notes
    -----
    Guarantee: `guarantee_`, at most (epsilon, delta). Cost: T passes, O(T·n·d·l + d³).
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        rounds: int = 100,
        clip: float = 1.0,
        failure: float = FAILURE,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.rounds = rounds
        self.clip = clip
        self.failure = failure

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        if self.rounds < 1 or not self.clip > 0:
            raise InputError(f"rounds={self.rounds!r} and clip={self.clip!r} must be positive")
        d, l = features.shape[1], outcomes.shape[1]
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        lowest_scale, covariance_scale, association_scale = boosted_scales(budget, self.rounds)
        b_x, c, rng = self.feature_bounds, self.clip * self.outcome_bounds, self._rng()
        covariance = features.T @ features
        sigma_0, sigma_1 = lowest_scale * b_x**2, covariance_scale * b_x**2
        lowest = float(np.linalg.eigvalsh(covariance)[0]) + rng.normal(scale=sigma_0)
        lowest -= sigma_0 * math.sqrt(math.log(6 / self.delta))
        self.penalty_ = max(0.0, noise_penalty(d, sigma_1, self.failure) - max(0.0, lowest))
        noisy = covariance + symmetric_noise(rng, d, sigma_1, svec=True)[0]
        values, vectors = np.linalg.eigh(noisy)
        inverse = (vectors * ridge_filter(values, self.penalty_)) @ vectors.T
        slopes = np.zeros((d, l))
        for _ in range(self.rounds):
            left = shortened(outcomes - features @ slopes, c)
            noise = rng.normal(scale=association_scale * b_x * c, size=(d, l))
            slopes += inverse @ (features.T @ left + noise)
        spent = lowest_scale**-2 + (COVARIANCE / covariance_scale) ** 2
        spent += self.rounds * (ASSOCIATION / association_scale) ** 2
        return slopes, guarantee_of(spent, self.delta, f"{self.rounds + 2} Gaussian releases")


def boosted_scales(budget: Budget, rounds: int) -> tuple[float, float, float]:
    """Return σ₀/b_x², σ₁/b_x² and σ₂/(b_x·c) of each round; together they cost mu of the budget."""
    third = mu_of(budget) / math.sqrt(3) / ROUNDING
    return 1 / third, COVARIANCE / third, ASSOCIATION * math.sqrt(rounds) / third
