"""The paper's ReuseCovGauss (Algorithm 1 with GaussMech), made to keep the budget it is given.

Two separate Gaussian releases at (ε/2, δ/2) with the paper's noise multiplier c(ε, δ), an iid upper
triangle on the covariance, and a plain inverse. Its printed sensitivities are too small for replace-one
neighbours (by √2 for the covariance, by 2 for the association, mathematics.md section 2); the right
ones are used here, so that it is compared at equal true privacy.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baselines.gaussian import ASSOCIATION, COVARIANCE, symmetric_noise
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
    noise = symmetric_noise(rng, d, half * COVARIANCE * feature_norm**2, svec=False)[0]
    noisy = covariance + noise + ridge * np.eye(d)
    scale = half * ASSOCIATION * feature_norm * outcome_norm
    blurred = association + rng.normal(scale=scale, size=association.shape)
    return np.asarray(np.linalg.solve(noisy, blurred), dtype=np.float64)
