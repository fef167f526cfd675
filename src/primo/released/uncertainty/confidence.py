"""Confidence intervals and z-scores of unshrunk coefficients, and of any linear combination.

In the eigenbasis of Â (values a, h = VᵀĜ_j) a combination cᵀθ with loadings p = Vᵀc is estimated by
Σ p·h/a, with standard error (uᵀCov(Ĝ_j − Âθ)u)^½ at u = Â⁻¹c. Where the covariance's noise σ₁ is not
small compared with an eigenvalue, such a ratio has no finite moments. Two remedies:

*Well-determined* directions only (a > 5σ₁). The poorly determined ones enter with their posterior mean
and variance. This is used where they make at most a tenth of the variance, so that for practical
purposes the interval depends on the released numbers alone.

*Test inversion* elsewhere (Fieller; Anderson and Rubin): a t is kept if some θ with cᵀθ = t leaves
a residual that the noise *of that θ* explains. With κ the squared normal quantile, m = a² − 2κs²,

    centre  Σ p·a·h/m,     half-width²  κ·[(σ₂² + s²N)·Σp²/m + s²(Σ p·h/m)² + ς²·Σ p²a⁺/m],

N standing for ‖θ‖². For one feature this is Fieller's interval itself; for s = 0 or large a it is
estimate ± quantile × standard error. With m ≤ 0 in a direction that matters, its variation could be
all noise: the interval is the whole line. Such cells are not `trusted`: wide, not wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from primo.released.uncertainty.system import System

__all__ = ["Inference", "infer"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POORLY_DETERMINED_SHARE = (
    0.1  # of the variance, that such directions may make in a trusted estimate
)
LOADING = 1e-9  # squared share of a combination in a direction below which it does not load on it


@dataclass(frozen=True, kw_only=True, eq=False)
class Inference:
    """Unshrunk estimates of (combinations, outcomes) in scaled units, with their uncertainty."""

    estimate: Floats
    standard_error: Floats  # of the estimate (delta method)
    z: Floats  # score statistic of "the combination is 0", N(0, 1) if it is
    lower: Floats
    upper: Floats
    trusted: Flags


def infer(system: System, weights: Floats, *, level: float, target: str) -> Inference:
    """Estimate combinations weightsᵀθ_j of all outcomes of `system`; `weights` is (width, combinations).

    Guarantee: intervals cover at least nominally up to the errors of N and ς² (measured in
    benchmarks/coverage.py); unbounded where the released covariance cannot tell.
    Cost: O(width²·l), nothing of size width² per outcome.
    """
    loadings = system.loadings(weights)
    squares = loadings**2
    sampling = system.sampling(target) + system.row_variance  # both are noise of covariance ·A
    quantile = float(ndtri((1 + level) / 2))
    known = _Equations.of(system, loadings, squares, sampling, directions=system.well_determined)
    if system.well_determined.all():
        return _assemble(known, quantile, trusted=np.ones(known.shape, dtype=bool))
    mean, variance = system.poorly_determined(target)
    others = _run(~system.well_determined)
    p = loadings[others]
    prior = squares[others].T @ variance
    known = replace(
        known,
        shift=p.T @ mean,
        extra=prior,
        size=known.size + (mean**2 + variance).sum(axis=0) * (system.off_variance > 0),
    )
    error = known.standard_error
    exact_zero = system.off_variance == 0
    share = 1e-9 if exact_zero else POORLY_DETERMINED_SHARE
    trusted = np.asarray(prior <= share * error**2)
    if trusted.all():
        return _assemble(known, quantile, trusted=trusted)
    every = _Equations.of(
        system, loadings, squares, sampling, directions=np.asarray(system.spectrum[0] != 0)
    )
    robust = _assemble(every, quantile, trusted=trusted)
    plain = _assemble(known, quantile, trusted=trusted) if trusted.any() else robust
    limit = _most(system, squares)[:, None]
    return Inference(
        estimate=np.where(trusted, plain.estimate, robust.estimate),
        standard_error=np.where(trusted, plain.standard_error, robust.standard_error),
        z=np.where(trusted, plain.z, np.clip(robust.z, -limit, limit)),
        lower=np.where(trusted, plain.lower, robust.lower),
        upper=np.where(trusted, plain.upper, robust.upper),
        trusted=trusted,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Equations:
    """The normal equations along some eigenvectors of Â, for combinations with given loadings."""

    system: System
    values: Floats  # (used,)
    h: Floats  # (used, l)
    p: Floats  # (used, combinations)
    squares: Floats  # (used, combinations) of p
    sampling: Floats  # (l,) ς²
    size: Floats  # (l,) what other directions add to ‖θ‖²
    shift: Floats | float  # (combinations, l) what other directions add to the estimate
    extra: Floats | float  # (combinations, l) and to its variance
    loads_elsewhere: Flags  # (combinations,)

    @classmethod
    def of(
        cls,
        system: System,
        loadings: Floats,
        squares: Floats,
        sampling: Floats,
        *,
        directions: Flags,
    ) -> _Equations:
        outside = _sum(squares, ~directions) > LOADING * _sum(squares)
        used = _run(directions)
        return cls(
            system=system,
            values=system.spectrum[0][used],
            h=system.rotated[used],
            p=loadings[used],
            squares=squares[used],
            sampling=sampling,
            size=np.zeros(system.l),
            shift=0.0,
            extra=0.0,
            loads_elsewhere=outside,
        )

    # Products are taken as pᵀ(weights·h): h is narrow where p is as wide as the features.

    @property
    def shape(self) -> tuple[int, int]:
        return self.p.shape[1], self.h.shape[1]

    @cached_property
    def ratios(self) -> list[Floats]:
        """Σ p·h/aᵏ for k = 1, 2, 3, (combinations, l) each."""
        return self._products(*(self.values**-k for k in (1.0, 2.0, 3.0)))

    @cached_property
    def lengths(self) -> list[Floats]:
        """Σ p², Σ p²/aᵏ for k = 2, 3, 4, and Σ p²a⁺/a², (combinations,) each."""
        a = self.values
        weights = [np.ones_like(a), *(a**-k for k in (2.0, 3.0, 4.0)), np.maximum(a, 0.0) / a**2]
        return list(np.array(weights) @ self.squares)

    def _products(self, *weights: Floats) -> list[Floats]:
        """pᵀ(weights·h) for several weights (used,), as one product."""
        stacked = np.hstack([w[:, None] * self.h for w in weights])
        return np.split(self.p.T @ stacked, len(weights), axis=1)

    def estimate(self) -> Floats:
        return np.asarray(self.ratios[0] + self.shift)

    @cached_property
    def standard_error(self) -> Floats:
        """Of the estimate, (combinations, l)."""
        _, two, _ = self.ratios
        _, length, _, _, along = self.lengths
        return self._half(length, two, along, self.values**-2.0)

    def interval(self, kappa: float) -> tuple[Floats, Floats]:
        """Return centre and half-width per quantile."""
        m = self.values**2 - 2 * kappa * self.system.off_variance
        inverse = np.divide(1.0, m, out=np.zeros_like(m), where=m > 0)
        positive = np.maximum(self.values, 0.0) * inverse
        length, along, lost = np.array([inverse, positive, m <= 0]) @ self.squares
        centre, whole = self._products(self.values * inverse, inverse)
        half = self._half(length, whole, along, inverse)
        half[lost > LOADING * self.lengths[0]] = np.inf
        return centre + self.shift, half

    def _half(self, length: Floats, whole: Floats, along: Floats, inverse: Floats) -> Floats:
        """Half-width per quantile from Σp²/m (combinations,), Σp·h/m, Σp²a⁺/m and 1/m (used,)."""
        s2 = self.system.off_variance
        noise = np.outer(length, self.system.association_variance + s2 * self.norm(inverse))
        floor = 1e-6 * noise
        noise += s2 * whole**2
        noise += np.outer(along, self.sampling)
        return np.asarray(np.sqrt(np.maximum(noise - self.exact, floor) + self.extra))

    def score(self) -> Floats:
        """Test "the combination is 0", with the noise of the θ nearest to θ̂ for which it is.

        That θ₀ = θ̂ − (cᵀθ̂)Â⁻²c/(cᵀÂ⁻²c): a coefficient that is large by chance does not enlarge its
        own standard error, which keeps z normal where all coefficients are null.
        """
        s2 = self.system.off_variance
        one, two, three = self.ratios
        _, second, third, fourth, along = self.lengths
        q = np.maximum(second, 1e-300)[:, None]
        size = self.norm(self.values**-2.0) - 2 * one * three / q
        size += (one / q) ** 2 * fourth[:, None]
        own = two - one * third[:, None] / q
        sigma2 = self.system.association_variance
        variance = sigma2 * q + s2 * (np.maximum(size, 0.0) * q + own**2)
        variance += np.outer(along, self.sampling)
        variance = np.maximum(variance - self.exact, 1e-6 * sigma2 * q) + self.extra
        z = (one + self.shift) / np.sqrt(np.maximum(variance, 1e-300))
        return np.asarray(z)

    def norm(self, inverse: Floats) -> Floats:
        """Estimate ‖θ_j‖² by Σ h²/m less the noise of the well-determined directions in it, (l,).

        In a poorly determined direction the noise stays in: there the interval inverts a test, and
        what looks like noise may be the θ under test.
        """
        s2 = self.system.off_variance
        if s2 == 0:
            return np.zeros(self.h.shape[1])
        known = self.system.well_determined[np.searchsorted(self.system.spectrum[0], self.values)]
        debiased = np.where(known, inverse, 0.0)
        total = inverse @ self.h**2
        total -= self.system.association_variance * debiased.sum()
        total -= (self.values @ debiased) * self.sampling
        total /= 1 + s2 * debiased.sum()
        return np.asarray(np.maximum(total, 0.0) + self.size)

    @cached_property
    def exact(self) -> Floats | float:
        """Return the variance counted for entries without noise: the constant's square and sums."""
        system = self.system
        if not system.intercept:
            return 0.0
        at = np.searchsorted(system.spectrum[0], self.values)
        last = system.spectrum[1][-1, at] / self.values
        u = (last @ self.p)[:, None] ** 2
        saved = 2 * system.off_variance * u * (last @ self.h) ** 2
        return np.asarray(saved + (system.association_variance * u if system.sums_exact else 0.0))


def _assemble(equations: _Equations, quantile: float, *, trusted: Flags) -> Inference:
    error = equations.standard_error
    centre, unit = equations.interval(quantile**2)
    lost = ~np.isfinite(unit)
    if equations.system.off_variance == 0:  # a singular covariance that is exact
        lost = lost | (equations.loads_elsewhere[:, None] & ~trusted)
    unit = np.where(lost, 0.0, unit)
    return Inference(
        estimate=equations.estimate(),
        standard_error=np.where(lost & (equations.system.off_variance == 0), np.inf, error),
        z=equations.score(),
        lower=np.where(lost, -np.inf, centre - quantile * unit),
        upper=np.where(lost, np.inf, centre + quantile * unit),
        trusted=trusted,
    )


def _run(directions: Flags) -> slice | Flags:
    """Return a slice where the flags are one run (no copy is made then), else the flags."""
    where = np.flatnonzero(directions)
    if not len(where):
        return slice(0, 0)
    run = slice(int(where[0]), int(where[-1]) + 1)
    return run if directions[run].all() else directions


def _sum(squares: Floats, directions: Flags | None = None) -> Floats:
    """Add (directions, combinations) up over some directions, or over all; a product makes no copy."""
    flags = np.ones(len(squares), dtype=bool) if directions is None else directions
    return np.asarray(flags.astype(np.float64) @ squares)


def _most(system: System, squares: Floats) -> Floats:
    """Largest |z| of a combination by test inversion: beyond it its interval is the whole line."""
    sizes = np.abs(system.spectrum[0])
    order = np.argsort(sizes)
    used = (squares > LOADING * _sum(squares))[order]
    weakest = np.where(used.any(axis=0), sizes[order[used.argmax(axis=0)]], np.inf)
    return np.asarray(weakest / max(np.sqrt(2 * system.off_variance), 1e-300))
