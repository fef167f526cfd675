"""The paper's ReuseCovGauss (Algorithm 1 with GaussMech), made to keep the budget it is given.

Two separate Gaussian releases at (ε/2, δ/2) with the paper's noise multiplier c(ε, δ), an iid upper
triangle on the covariance, and a plain inverse. Its printed sensitivities are too small for replace-one
neighbours (by √2 for the covariance, by 2 for the association, mathematics.md section 2); the right
ones are used here, so that it is compared at equal true privacy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.privacy.paper import noise_multiplier

__all__ = ["reuse_cov_gauss"]

Matrix = NDArray[np.float64]


def reuse_cov_gauss(
    covariance: Matrix,
    association: Matrix,
    *,
    feature_norm: float,
    outcome_norm: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    ridge: float = 0.0,
) -> Matrix:
    """Return coefficients (d, l) from exact moments (d, d), (d, l) of rows within the norms.

    Floating-point noise from a seeded generator: for experiments, not for private data.
    """
    d = len(covariance)
    half = noise_multiplier(epsilon / 2, delta / 2)
    upper = np.triu(rng.normal(scale=half * math.sqrt(2) * feature_norm**2, size=(d, d)))
    noisy = covariance + upper + np.triu(upper, 1).T + ridge * np.eye(d)
    scale = half * 2 * feature_norm * outcome_norm
    noise = rng.normal(scale=scale, size=association.shape)
    return np.asarray(np.linalg.solve(noisy, association + noise), dtype=np.float64)
