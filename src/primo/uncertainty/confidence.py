"""Confidence intervals and z-scores of unshrunk coefficients, and of any linear combination.

In the eigenbasis of Â (values a, h = VᵀĜ_j) a combination cᵀθ with loadings p = Vᵀc is estimated by
Σ p·h/a. Its standard error is uᵀCov(Ĝ_j − Âθ)u at u = Â⁻¹c. Where noise of the covariance is not
small beside its eigenvalues this ratio has no finite moments, so intervals come from inverting the
test of "cᵀθ = t" instead (Fieller; Anderson and Rubin): a t is kept if some θ with cᵀθ = t leaves a
residual that the noise *of that θ* explains. With κ the squared normal quantile and m = a² − 2κs²,

    centre  Σ p·a·h/m,     half-width²  κ·[(σ₂² + s²N)·Σp²/m + s²(Σ p·h/m)² + ς²·Σ p²a⁺/m],

N being ‖θ‖² with the noise in it taken off. For one feature this is Fieller's interval itself; for
s = 0 or large a it is estimate ± quantile × standard error. If a direction that the combination
loads on has m ≤ 0, the noise could have made all of its variation: the interval is the whole line.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from primo.uncertainty.system import System

__all__ = ["FIRM", "Combination", "Inference", "infer", "weakest_direction"]

Floats = NDArray[np.float64]

FIRM = 5.0  # eigenvalues above this many σ₁ are known well enough to divide by
LOADING = 1e-9  # squared share of a combination in a direction below which it does not load on it


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """Unshrunk estimates of (combinations, outcomes) in scaled units, with their uncertainty."""

    estimate: Floats
    standard_error: Floats  # of the estimate (delta method)
    z: Floats  # score statistic of "the combination is 0", N(0, 1) if it is
    lower: Floats
    upper: Floats


@dataclass(frozen=True, kw_only=True, eq=False)
class Combination:
    """Loadings of linear combinations of θ on the eigenvectors of Â, one column each."""

    loadings: Floats  # (width, combinations) Vᵀc
    last: Floats  # (combinations,) the constant's entry of Â⁻¹c

    @classmethod
    def of(cls, system: System, weights: Floats) -> Combination:
        """Make them from weights of θ, (width, combinations)."""
        values, vectors = system.spectrum
        loadings = vectors.T @ weights
        return cls(loadings=loadings, last=vectors[-1] @ (_inverse(values)[:, None] * loadings))


def infer(system: System, weights: Floats, *, level: float, target: str) -> Inference:
    """Estimate combinations weightsᵀθ_j of all outcomes of `system`.

    Guarantee: intervals cover at least nominally up to the errors of N and ς² (measured in
    benchmarks/coverage.py); unbounded where the released covariance cannot tell.
    Cost: O(width²·l), nothing of size width² per outcome.
    """
    values, _ = system.spectrum
    combination = Combination.of(system, weights)
    h = system.rotated
    sampling = system.sampling(target)
    z = _score(system, combination, values, h, sampling)
    _, standard_error = _interval(system, combination, values, h, sampling, kappa=0.0)
    estimate = (combination.loadings * _inverse(values)[:, None]).T @ h
    quantile = float(ndtri((1 + level) / 2))
    middle, unit = _interval(system, combination, values, h, sampling, kappa=quantile**2)
    lost = ~np.isfinite(unit)
    lower, upper = middle - quantile * unit, middle + quantile * unit
    lower[lost], upper[lost] = -np.inf, np.inf
    return Inference(
        estimate=estimate, standard_error=standard_error, z=z, lower=lower, upper=upper
    )


def _interval(
    system: System,
    combination: Combination,
    values: Floats,
    h: Floats,
    sampling: Floats,
    *,
    kappa: float,
) -> tuple[Floats, Floats]:
    """Return centre and half-width per quantile; at κ = 0 estimate and standard error."""
    s2, p = system.off_variance, combination.loadings
    m = values**2 - 2 * kappa * s2
    inside = (m > 0) & (values != 0)
    inverse = np.divide(1.0, m, out=np.zeros_like(m), where=inside)
    lost = _lost(p, inside)
    size = _squared_norm(system, inverse, h, sampling)
    centre = (p * (values * inverse)[:, None]).T @ h
    own = (p * inverse[:, None]).T @ h
    noise = np.outer(inverse @ p**2, system.association_variance + s2 * size)
    noise += s2 * own**2
    noise += np.outer((np.maximum(values, 0.0) * inverse) @ p**2, sampling)
    noise -= _exact(system, combination, h, values)
    floor = 1e-6 * np.outer(inverse @ p**2, system.association_variance + s2 * size)
    half = np.sqrt(np.maximum(noise, floor))
    half[lost] = np.inf
    return centre, half


def _score(
    system: System, combination: Combination, values: Floats, h: Floats, sampling: Floats
) -> Floats:
    """z of "the combination is 0", with the noise of the θ nearest to θ̂ for which it is.

    That θ₀ = θ̂ − (cᵀθ̂)Â⁻²c/(cᵀÂ⁻²c): a coefficient that is large by chance does not enlarge its own
    standard error, which keeps z exactly normal where all coefficients are null.
    """
    s2, p = system.off_variance, combination.loadings
    inverse = _inverse(values)
    one, two, three = ((p * (inverse**k)[:, None]).T @ h for k in (1, 2, 3))
    moments = {k: (inverse**k) @ p**2 for k in (1, 2, 3, 4)}
    q = np.maximum(moments[2], 1e-300)[:, None]
    size = _squared_norm(system, inverse**2, h, sampling)
    size = size - 2 * one * three / q + one**2 * moments[4][:, None] / q**2
    own = two - one * moments[3][:, None] / q
    variance = system.association_variance * q + s2 * (np.maximum(size, 0.0) * q + own**2)
    variance += np.outer((np.maximum(values, 0.0) * inverse**2) @ p**2, sampling)
    variance -= _exact(system, combination, h, values)
    variance = np.maximum(variance, 1e-6 * system.association_variance * q)
    z = np.divide(one, np.sqrt(variance), out=np.zeros_like(one), where=variance > 0)
    z[_lost(p, values != 0)] = 0.0
    limit = _most(system, p)[:, None]
    return np.clip(z, -limit, limit)


def _most(system: System, loadings: Floats) -> Floats:
    """Largest |z| that a combination can have: beyond it an interval would be the whole line.

    Only binding where a direction that it loads on is not firm.
    """
    sigma = np.sqrt(2 * system.off_variance)
    weakest = weakest_direction(system, loadings)
    return np.where(weakest >= FIRM * sigma, np.inf, weakest / max(sigma, 1e-300))


def weakest_direction(system: System, loadings: Floats) -> Floats:
    """Smallest |eigenvalue| of Â among the directions that each combination loads on."""
    squares = loadings**2
    used = squares > LOADING * squares.sum(axis=0)
    values = np.abs(system.spectrum[0])[:, None]
    return np.asarray(np.where(used, values, np.inf).min(axis=0))


def _squared_norm(system: System, inverse: Floats, h: Floats, sampling: Floats) -> Floats:
    """Estimate ‖θ_j‖² by Σ h²/m less the noise of the firm directions in it, (l,); not negative.

    In a direction that is not firm the noise stays in: there the interval inverts a test, and what
    looks like noise may be the very θ under test.
    """
    if system.off_variance == 0:
        return np.zeros(h.shape[1])
    values = system.spectrum[0]
    debiased = np.where(values > FIRM * np.sqrt(2 * system.off_variance), inverse, 0.0)
    total = inverse @ h**2
    total -= system.association_variance * debiased.sum() + (values @ debiased) * sampling
    total /= 1 + system.off_variance * debiased.sum()
    return np.maximum(total, 0.0)


def _exact(system: System, combination: Combination, h: Floats, values: Floats) -> Floats | float:
    """Variance counted above for entries that carry no noise: the constant's square and sums."""
    if not system.intercept:
        return 0.0
    u = combination.last[:, None] ** 2
    _, vectors = system.spectrum
    constant = (vectors[-1] * _inverse(values)) @ h
    saved = 2 * system.off_variance * u * constant**2
    return saved + (system.association_variance * u if system.sums_exact else 0.0)


def _lost(loadings: Floats, inside: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which combinations load on directions that the release does not determine."""
    if inside.all():
        return np.zeros(loadings.shape[1], dtype=bool)
    squares = loadings**2
    return np.asarray(squares[~inside].sum(axis=0) > LOADING * squares.sum(axis=0))


def _inverse(values: Floats) -> Floats:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values != 0)
