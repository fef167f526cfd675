"""What an estimator is given (released numbers) and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError

__all__ = ["Estimate", "NoisyMoments"]

Floats = NDArray[np.float64]

NUMERICAL_NOISE = 1e-24  # of the mean squared association: stands in for σ₂² = 0


@dataclass(frozen=True, kw_only=True)
class NoisyMoments:
    """Released second moments of centred data, as sums over rows, with the scale of their noise.

    A symmetric matrix released at scale σ carries N(0, σ²) on its diagonal and N(0, σ²/2) off it
    (mathematics.md section 2). Everything here is public.
    """

    n: int
    covariance: Floats  # (d, d) XᵀX + noise; may be indefinite
    association: Floats  # (d, l) XᵀY + noise
    outcome_moments: Floats  # (l, l) YᵀY + noise, or its diagonal (l,)
    covariance_sigma: float  # 0 where the features are public
    association_sigma: float
    outcome_sigma: float  # 0 where the outcomes are public
    mean_noise: Floats | None = None
    """(l,) variance that the noise of the means adds to an outcome's association; None: nothing."""
    outcome_errors: Floats | None = None
    """(l,) standard deviations of the outcome moments' diagonal; None: `outcome_sigma`."""
    carried: float = 0.0
    """Share of the coefficients that earlier rounds had found when the residuals were taken: the noise
    of the covariance does not act on what they found (`estimate.rounds`); 0 for one release."""
    row_variance: float = 0.0
    """Variance σ² of noise on the outcomes themselves: the association has σ²·A of it, A the covariance
    (exact). It acts as a larger residual variance of a row does, and is 0 for noise on moments."""
    started: Floats | None = None
    """(d, l) mean coefficients that rounds took residuals of; None for one release."""
    decomposed: tuple[Floats, Floats] | None = None
    """Eigenvalues (ascending) and eigenvectors of the covariance, where they are known already."""
    doubt: float = 0.0
    """What the odds that features explain nothing are multiplied by, less 1 (`nothing`)."""
    slopes_kept: float = 1.0
    """What slopes are multiplied by: below 1 where all rows of features were shortened (`shortened`)."""
    largest_variation: float = np.inf
    """What Σ_j ‖y_j‖² is at most by the public bounds: n times the squared norm of a row."""

    def __post_init__(self) -> None:
        d, l = self.association.shape if self.association.ndim == 2 else (0, 0)
        if d < 1 or l < 1:
            raise InputError(
                f"the association must be (d, l) with d, l ≥ 1, not {self.association.shape}"
            )
        if self.covariance.shape != (d, d):
            raise InputError(
                f"the covariance has shape {self.covariance.shape}; the association, of shape"
                f" {(d, l)}, needs {(d, d)}"
            )
        if self.outcome_moments.shape not in {(l, l), (l,)}:
            raise InputError(
                f"the outcome moments have shape {self.outcome_moments.shape}; the association, of"
                f" shape {(d, l)}, needs {(l, l)} or the diagonal {(l,)}"
            )
        if self.n < 1:
            raise InputError(f"n must be at least 1, not {self.n}")
        for name in ("covariance", "association", "outcome_moments"):
            if not np.isfinite(getattr(self, name)).all():
                raise InputError(f"{name} contains NaN or infinity: the release is damaged")
        for name in ("covariance_sigma", "association_sigma", "outcome_sigma"):
            sigma = getattr(self, name)
            if not (np.isfinite(sigma) and sigma >= 0):
                raise InputError(f"{name} must be finite and not negative, not {sigma}")
        if self.row_variance > 0 and self.covariance_sigma > 0:
            raise InputError("noise on the outcomes themselves goes with an exact covariance")
        if not 0 <= self.carried < 1:
            raise InputError(f"carried must be at least 0 and below 1, not {self.carried}")

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of features and outcomes, (d, l)."""
        d, l = self.association.shape
        return d, l

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues (ascending) and eigenvectors of the covariance; decomposed once."""
        if self.decomposed is not None:
            return self.decomposed
        values, vectors = np.linalg.eigh(self.covariance)
        return values, vectors

    @cached_property
    def rotated(self) -> Floats:
        """Association along the eigenvectors of the covariance, (d, l); not to be written into."""
        return np.asarray(self.spectrum[1].T @ self.association)

    @property
    def noise_variances(self) -> Floats:
        """Noise variance of an entry of each outcome's association, (l,); never quite 0."""
        d, l = self.shape
        energy = float(np.einsum("ij,ij->", self.association, self.association))
        variance = max(self.association_sigma**2, NUMERICAL_NOISE * energy / (d * l), 1e-300)
        return np.full(l, variance) + (0.0 if self.mean_noise is None else self.mean_noise)

    @property
    def typical_noise(self) -> float:
        """Noise variance of an entry of the association, averaged over directions of the features."""
        values, _ = self.spectrum
        return self.association_sigma**2 + self.row_variance * max(float(values.mean()), 0.0)

    @property
    def squares(self) -> Floats:
        """Released ‖y‖² of each outcome, (l,)."""
        moments = self.outcome_moments
        return np.asarray(np.diagonal(moments) if moments.ndim == 2 else moments)

    @property
    def square_errors(self) -> Floats:
        """Standard deviations of the noise of `squares`, (l,)."""
        errors = self.outcome_errors
        return np.full(self.shape[1], self.outcome_sigma) if errors is None else errors

    def most_variation(self, deviations: float) -> Floats:
        """Return ‖y‖² and so many standard deviations of its noise for each outcome, (l,)."""
        return np.maximum(self.squares, 0.0) + deviations * self.square_errors

    @property
    def total_variation(self) -> float:
        """Released Σ_j ‖y_j‖², or the scale of its noise if that is larger; no more than possible.

        Up to noise, no fit explains more.
        """
        moments = self.outcome_moments
        total = np.trace(moments) if moments.ndim == 2 else moments.sum()
        noise = self.outcome_sigma * float(np.sqrt(len(moments)))
        return min(max(float(total), noise), self.largest_variation)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Fitted coefficients and how they were arrived at."""

    coefficients: Floats = field(repr=False)  # (d, l)
    name: str  # the member of the family that made them; never "auto"
    parameters: Mapping[str, float]
    predicted_excess: float | None
    """Expected ‖X(W − W_OLS)‖²_F, summed over outcomes; None for the closed forms."""
    along: Floats | None = field(default=None, repr=False)
    """Coefficients along the eigenvectors of the covariance, (d, l); None for the closed forms."""
