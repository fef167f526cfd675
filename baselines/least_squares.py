"""Regression without any privacy: what the private methods are measured against.

Both work in the eigenbasis of XᵀX, from the moments alone, so that they also serve where rows were never
held. Neither shortens rows unless told to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from baselines.base import ExactMoments, Guarantee, Matrix, MomentBaseline
from primo.errors import InputError

__all__ = ["LeastSquares", "Ridge"]

_GRID = 61  # penalties tried before the best one is refined
_SMALLEST, _LARGEST = 1e-8, 1e4  # of the largest eigenvalue


class LeastSquares(MomentBaseline):
    """Least squares; of all minimisers the one of minimal norm. No privacy.

    Parameters
    ----------
    feature_bounds, outcome_bounds : float, default infinite
        Norms to which longer rows are shortened.
    """

    def __init__(
        self, *, feature_bounds: float = math.inf, outcome_bounds: float = math.inf
    ) -> None:
        self.feature_bounds = feature_bounds
        self.outcome_bounds = outcome_bounds

    def _from_moments(self, moments: ExactMoments) -> tuple[Matrix, Guarantee | None]:
        spectrum = _Spectrum(moments)
        # The rounding error of XᵀX; directions below it are not in the data.
        cutoff = len(spectrum.values) * np.finfo(np.float64).eps * spectrum.values.max()
        inverse = np.zeros_like(spectrum.values)
        np.divide(1.0, spectrum.values, out=inverse, where=spectrum.values > cutoff)
        return spectrum.slopes(inverse), None


class Ridge(MomentBaseline):
    """Ridge regression with one penalty for all outcomes. No privacy.

    Parameters
    ----------
    penalty : float or "gcv", default "gcv"
        λ of (XᵀX + λI)W = XᵀY, or the choice by generalised cross-validation: the minimum of
        n·Σ‖y_j - ŷ_j‖²/(n - Σ a/(a + λ))² (Golub, Heath & Wahba 1979). That is leave-one-out with
        every row's leverage replaced by the mean leverage, the part of it that moments determine.
    penalties : sequence of float, optional
        Penalties to choose from; a wide grid around the spectrum, refined, if None.
    feature_bounds, outcome_bounds : float, default infinite
        Norms to which longer rows are shortened.

    Attributes
    ----------
    penalty_ : float
    """

    def __init__(
        self,
        *,
        penalty: float | str = "gcv",
        penalties: Sequence[float] | None = None,
        feature_bounds: float = math.inf,
        outcome_bounds: float = math.inf,
    ) -> None:
        self.penalty = penalty
        self.penalties = penalties
        self.feature_bounds = feature_bounds
        self.outcome_bounds = outcome_bounds

    def _from_moments(self, moments: ExactMoments) -> tuple[Matrix, Guarantee | None]:
        spectrum = _Spectrum(moments)
        self.penalty_ = self._chosen(spectrum)
        divisor = spectrum.values + self.penalty_
        inverse = np.divide(1.0, divisor, out=np.zeros_like(divisor), where=divisor > 0)
        return spectrum.slopes(inverse), None

    def _chosen(self, spectrum: _Spectrum) -> float:
        if self.penalty != "gcv":
            if isinstance(self.penalty, str) or not 0 <= self.penalty < math.inf:
                raise InputError(f"penalty={self.penalty!r} must be 'gcv' or a number, at least 0")
            return float(self.penalty)
        if self.penalties is not None:
            return float(min(self.penalties, key=spectrum.cross_validation))
        largest = float(spectrum.values.max())
        if largest == 0:
            return 0.0
        grid = math.log(largest) + np.linspace(math.log(_SMALLEST), math.log(_LARGEST), _GRID)
        scores = [spectrum.cross_validation(math.exp(point)) for point in grid]
        best = int(np.argmin(scores))
        around = (grid[max(best - 1, 0)], grid[min(best + 1, _GRID - 1)])
        refined: Any = minimize_scalar(
            lambda point: spectrum.cross_validation(math.exp(point)),
            bounds=around,
            method="bounded",
        )
        return math.exp(refined.x if refined.fun < scores[best] else grid[best])


class _Spectrum:
    """Moments in the eigenbasis of XᵀX."""

    def __init__(self, moments: ExactMoments) -> None:
        values, self.vectors = np.linalg.eigh(moments.covariance)
        self.values = np.maximum(values, 0.0)
        self.rotated = self.vectors.T @ moments.association  # (d, l)
        self.energy = np.einsum("ij,ij->i", self.rotated, self.rotated)  # over outcomes, (d,)
        self.squares = float(moments.squares.sum())
        self.n = moments.n

    def slopes(self, inverse: Matrix) -> Matrix:
        """Return coefficients (d, l) for a filter over the eigenvalues."""
        return np.asarray(self.vectors @ (inverse[:, None] * self.rotated))

    def cross_validation(self, penalty: float) -> float:
        """Return the generalised cross-validation score, summed over outcomes."""
        divisor = self.values + penalty
        explained = self.energy * (self.values + 2 * penalty) / divisor**2
        residual = max(self.squares - float(explained.sum()), 0.0)
        freedom = self.n - float((self.values / divisor).sum())
        return math.inf if freedom <= 0 else self.n * residual / freedom**2
