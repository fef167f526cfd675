"""Moments of cohorts that do not exist, drawn under a `Signal`, and their releases.

The noise on A = XᵀX has no preferred direction, so A may be taken to be diagonal; outcomes that are not
simulated are like those that are, so a sample of them stands for all, with the noise that all cause.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.estimate import NoisyMoments
from primo.estimate.rowspace import rank_cutoff
from primo.mechanisms.projection import Projected, project_onto_features, shares_kept
from primo.planning.assumptions import Signal
from primo.plans import Plan
from primo.privacy.protection import Protection

__all__ = ["Cohort", "draw", "expected_ols"]

Floats = NDArray[np.float64]

BULK = 120  # eigenvalues that stand for the residual part of the spectrum of YᵀY


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """Exact moments of one simulated cohort, in a basis in which XᵀX is diagonal."""

    values: Floats  # (d,) XᵀX
    association: Floats  # (d, m) XᵀY
    outcome_moments: Floats  # (m, m) YᵀY or (m,)
    signal_variance: float  # τ², of a coefficient
    residual_variance: float  # s²
    seed: tuple[int, int]

    def least_squares(self) -> Floats:
        """Return the coefficients without privacy."""
        seen = self.values > 0
        return np.where(seen, self.association.T / np.where(seen, self.values, 1.0), 0.0).T

    def score(self, coefficients: Floats) -> float:
        """R² of coefficients on this cohort, pooled over outcomes."""
        gain = 2 * np.sum(coefficients * self.association)
        gain -= np.sum(self.values[:, None] * coefficients**2)
        moments = self.outcome_moments
        return float(gain / (np.trace(moments) if moments.ndim == 2 else moments.sum()))

    def release(self, plan: Plan, association: str) -> NoisyMoments:
        """Add the plan's noise, and project if asked."""
        d, m = self.association.shape
        noise = [np.random.default_rng((*self.seed, 1 + block)) for block in range(3)]
        covariance = np.diag(self.values) + _symmetric(noise[0], d, plan.covariance_sigma)
        drawn = noise[1].standard_normal((m, d)).T * plan.association_sigma
        outcome = self.outcome_moments
        if plan.full_outcome_moments:
            outcome = outcome + _symmetric(noise[2], m, plan.outcome_sigma)
        else:
            outcome = np.diag(outcome) if outcome.ndim == 2 else outcome
            outcome = outcome + noise[2].standard_normal(m) * plan.outcome_sigma
        projected = self._projected(plan, association, drawn)
        return NoisyMoments(
            n=plan.n,
            covariance=covariance,
            association=projected.association,
            outcome_moments=outcome,
            covariance_sigma=plan.covariance_sigma,
            association_sigma=plan.association_sigma * projected.noise_left,
            outcome_sigma=plan.outcome_sigma,
        )

    def _projected(self, plan: Plan, association: str, noise: Floats) -> Projected:
        m = noise.shape[1]
        noisy = self.association + noise
        if association == "gauss":
            return Projected(association=noisy, noise_left=1.0)
        if plan.protection is Protection.OUTCOMES:
            radius = math.sqrt(plan.n * m / plan.l) * plan.outcomes.norm
            kept = _shares_kept(self.values, np.einsum("ij,ij->i", noisy, noisy), radius)
            return Projected(
                association=kept[:, None] * noisy, noise_left=float(np.sqrt(np.mean(kept**2)))
            )
        radius = math.sqrt(plan.n) * plan.features.norm
        if m == plan.l:
            turned = project_onto_features(noisy.T, self.outcome_moments, radius=radius)
            return Projected(association=turned.association.T, noise_left=turned.noise_left)
        kept, left = self._kept_of_many(plan, radius)
        return Projected(
            association=kept[:, None] * self.association + left * noise, noise_left=left
        )

    def _kept_of_many(self, plan: Plan, radius: float) -> tuple[Floats, float]:
        """GaussProj_Y for more outcomes than are simulated: factors of signal (d,) and of noise.

        With many outcomes YᵀY has one strong direction for each direction of the features (the rows
        of A^(1/2)W are nearly orthogonal), and beyond these the spectrum of a Wishart matrix, from
        which a smaller one of the same shape is drawn. Where n < l, most directions are empty: there
        the projection removes all noise.
        """
        d, l = len(self.values), plan.l
        per_outcome = self.values * self.signal_variance + self.residual_variance
        free = max(plan.n - int(np.count_nonzero(self.values)), 1)
        strong = l * per_outcome + free * self.residual_variance
        small, large = sorted((free, max(l - d, 1)))
        size = min(small, BULK)
        rng = np.random.default_rng((*self.seed, 9))
        bulk = np.linalg.eigvalsh(_wishart(rng, size, large * size / small))
        bulk *= self.residual_variance * small / size
        noise_energy = d * plan.association_sigma**2
        copies = np.append(np.ones(d), np.full(size, small / size))
        energy = np.append(
            self.values * l * per_outcome + noise_energy, np.full(size, noise_energy)
        )
        kept = _shares_kept(np.append(strong, bulk), copies * energy, radius)
        return kept[:d], float(np.sqrt(copies @ kept**2 / l))


def _scales(plan: Plan, signal: Signal) -> tuple[Floats, float, float]:
    """Return the eigenvalues of XᵀX, τ² and s² that the assumption implies under a plan."""
    n, d = plan.n, plan.d
    values = signal.spectrum(d)
    values = np.where(np.arange(d) < d - n, 0.0, values)  # at most n directions
    values *= n * signal.feature_spread * plan.features.norm**2 / values.sum()
    variance = signal.outcome_share(plan.l) * plan.outcomes.norm**2 / plan.l
    return values, signal.r2 * variance * n / values.sum(), (1 - signal.r2) * variance


def expected_ols(plan: Plan, signal: Signal, m: int, *, seed: int) -> float:
    """Return the expected R² of least squares for m outcomes, from many draws of its law."""
    values, tau2, residual = _scales(plan, signal)
    rng = np.random.default_rng(seed)
    draws = max(8, 4000 // m)
    scale = np.sqrt(values * tau2 + residual * (values > 0))[:, None]
    scaled = _correlate(scale * rng.standard_normal((draws, plan.d, m)), signal)
    explained = np.einsum("kij,kij->k", scaled, scaled)
    left = residual * m * max(plan.n - int(np.count_nonzero(values)), 0)
    return float(np.mean(explained / (explained + left)))


def draw(plan: Plan, signal: Signal, m: int, *, seed: tuple[int, int]) -> Cohort:
    """Draw the moments of m of the plan's outcomes under the assumption."""
    n, d = plan.n, plan.d
    values, tau2, residual = _scales(plan, signal)
    rng = np.random.default_rng((*seed, 0))
    # Drawn outcome by outcome, so that fewer outcomes are a part of more.
    drawn = rng.standard_normal((m, 2, d))
    true, sampling = _correlate(drawn[:, 0].T, signal), _correlate(drawn[:, 1].T, signal)
    root = np.sqrt(values)[:, None]
    scaled = root * math.sqrt(tau2) * true + math.sqrt(residual) * sampling  # A^(1/2)W_ols
    scaled *= values[:, None] > 0
    free = max(n - int(np.count_nonzero(values)), 0)
    left = np.random.default_rng((*seed, 8))
    whole = plan.full_outcome_moments or (not plan.protection.outcomes_private and m == plan.l)
    if whole or signal.outcome_correlation > 0:
        factor = _wishart_factor(left, m, free)
        rest = _correlate(factor.T, signal)
        moments = scaled.T @ scaled + residual * (rest.T @ rest)
        moments = moments if whole else np.diag(moments).copy()
    else:
        rest = left.chisquare(free, size=m) if free else np.zeros(m)
        moments = np.einsum("ij,ij->j", scaled, scaled) + residual * rest
    return Cohort(
        values=values,
        association=root * scaled,
        outcome_moments=moments,
        signal_variance=tau2,
        residual_variance=residual,
        seed=seed,
    )


def _correlate(rows: Floats, signal: Signal) -> Floats:
    """Give independent outcomes (in columns) the assumed correlation."""
    rho, m = signal.outcome_correlation, rows.shape[-1]
    if rho == 0 or m == 1:
        return rows
    own = math.sqrt(1 - rho)
    common = math.sqrt(1 - rho + m * rho) - own
    return np.asarray(own * rows + common * rows.mean(axis=-1, keepdims=True))


def _wishart_factor(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    """Return F, (size, k), such that FFᵀ is Wishart: Bartlett's triangle, or plain normals."""
    if degrees < size:
        return rng.standard_normal((size, int(degrees)))
    factor = np.tril(rng.standard_normal((size, size)), -1)
    factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    return factor


def _wishart(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    factor = _wishart_factor(rng, size, degrees)
    return np.asarray(factor @ factor.T)


def _symmetric(rng: np.random.Generator, d: int, sigma: float) -> Floats:
    """Noise of variance σ² on the diagonal and σ²/2 off it."""
    if sigma == 0:
        return np.zeros((d, d))
    square = rng.standard_normal((d, d))
    return np.asarray((square + square.T) * (sigma / 2))


def _shares_kept(values: Floats, energies: Floats, radius: float) -> Floats:
    """Return the share that a projection keeps of each direction, 0 of those without data."""
    kept = np.zeros_like(values)
    seen = values > rank_cutoff(values, len(values))
    kept[seen] = shares_kept(values[seen], energies[seen], radius)
    return kept
