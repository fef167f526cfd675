"""Estimators with a formula: ridge, as in the paper, and the filter of mathematics.md section 6.

Both are kept for comparison and for speed; neither is as good as the simulated filters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.released.estimate.problem import NoisyMoments

__all__ = ["closed_form_filter", "default_ridge_lambda", "ridge_filter"]

Floats = NDArray[np.float64]


def default_ridge_lambda(moments: NoisyMoments) -> float:
    """Return √(d/2)·σ₁, half the radius of the covariance noise's spectrum (AdaSSP's scale)."""
    d, _ = moments.shape
    return float(np.sqrt(d / 2) * moments.covariance_sigma)


def ridge_filter(values: Floats, ridge_lambda: float) -> Floats:
    """Return 1/(a⁺ + λ): ridge on the nearest positive semi-definite matrix.

    Clipping at zero first is what keeps an indefinite covariance from producing an exploding
    answer; where Â is positive semi-definite this is (Â + λI)⁻¹. Directions with a⁺ + λ = 0 get 0.
    """
    if not (np.isfinite(ridge_lambda) and ridge_lambda >= 0):
        raise InputError(
            Argument("ridge_lambda"), f" must be finite and not negative, not {ridge_lambda}"
        )
    divisor = np.maximum(values, 0.0) + ridge_lambda
    cutoff = len(values) * np.finfo(np.float64).eps * np.abs(values).max()
    return np.divide(1.0, divisor, out=np.zeros_like(values), where=divisor > cutoff)


def closed_form_filter(values: Floats, moments: NoisyMoments) -> tuple[Floats, float]:
    """Return a⁺/(a⁺² + λ²) with λ² = σ₂²/τ² + σ₁²(d+1)/2, and τ² by the method of moments.

    Noise of variance σ² on the outcomes themselves adds σ²a to σ₂².
    """
    d, l = moments.shape
    sigma1, sigma2 = moments.covariance_sigma, moments.association_sigma
    association = moments.association
    energy = float(np.einsum("ij,ij->", association, association)) / l - d * sigma2**2
    energy -= moments.row_variance * float(values.sum())
    size = max(float(values @ values) - sigma1**2 * d * (d + 1) / 2, float(values.sum()) ** 2 / d)
    tau2 = max(0.0, energy) / size if size > 0 else 0.0
    if tau2 == 0:
        return np.zeros_like(values), 0.0
    positive = np.maximum(values, 0.0)
    shrinkage = (sigma2**2 + moments.row_variance * positive) / tau2 + sigma1**2 * (d + 1) / 2
    divisor = positive**2 + shrinkage
    cutoff = (d * np.finfo(np.float64).eps * np.abs(values).max()) ** 2
    return np.divide(positive, divisor, out=np.zeros_like(values), where=divisor > cutoff), tau2
