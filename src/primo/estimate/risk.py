"""The error of a filter, computed without ever seeing data, and the filter that makes it least.

A filter is W = V diag(g) VᵀĜ with Â = V diag(a) Vᵀ. Write A for the true covariance, E[wwᵀ] = S for
the prior of an outcome's least-squares coefficients and σ₂ for the noise of Ĝ = Aw + noise (exact:
Xᵀy = Aw). Then the expected excess ‖X(ŵ − w)‖² is quadratic in g,

    tr(AS) − 2·bᵀg + gᵀ(P∘B + σ₂² diag P)g,     P = VᵀAV,   B = VᵀASAV,   b = diag B,

so the best g of all solves a linear system; ridge and the closed-form filters are points of the
same space. V depends on the noise of Â alone: the expectation over it is an average over a few
simulated replicas of the release, built from the denoised spectrum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.estimate.spectrum import denoised_spectrum, symmetric_noise

__all__ = ["FilterRisk", "Replicas", "simulate"]

Floats = NDArray[np.float64]

SEED = 20_240_607
KNOTS = 32
DRAWN_DIRECTIONS = 400  # replicas × d to aim for: large matrices average over themselves
MOST_REPLICAS = 8


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Simulated noisy eigenbases of a covariance whose true eigenvalues are `truth`."""

    truth: Floats  # (d,) ascending, not negative; the true eigenbasis is the coordinate basis
    bases: (
        Floats | None
    )  # (copies, d, d) noisy eigenvectors in columns; None: the covariance is exact

    def overlap(self) -> Floats | None:
        """Mean squared cosines between true (rows) and noisy (columns) eigenvectors, (d, d)."""
        return None if self.bases is None else np.asarray(np.mean(self.bases**2, axis=0))


@dataclass(frozen=True, kw_only=True)
class FilterRisk:
    """Expected excess of a filter as a quadratic form, for a prior of unit strength."""

    constant: float  # tr(AS)
    linear: Floats  # (d,) b
    signal: Floats  # (d, d) P∘B; (d,) if the covariance is exact and the matrix diagonal
    noise: Floats  # (d,) diag P
    noise_variance: float

    @classmethod
    def build(cls, replicas: Replicas, shape: Floats, noise_variance: float) -> FilterRisk:
        """Average the quadratic form over the replicas, for prior variances `shape`."""
        truth, bases = replicas.truth, replicas.bases
        constant = float(truth @ shape)
        if bases is None:
            return cls(
                constant=constant,
                linear=truth**2 * shape,
                signal=truth**3 * shape,
                noise=truth,
                noise_variance=noise_variance,
            )
        d = len(truth)
        linear, signal, noise = np.zeros(d), np.zeros((d, d)), np.zeros(d)
        for basis in bases:
            p = basis.T @ (truth[:, None] * basis)
            b = basis.T @ ((truth**2 * shape)[:, None] * basis)
            linear += np.diag(b)
            noise += np.diag(p)
            signal += np.multiply(p, b, out=p)
        return cls(
            constant=constant,
            linear=linear / len(bases),
            signal=signal / len(bases),
            noise=noise / len(bases),
            noise_variance=noise_variance,
        )

    def excess(self, g: Floats, strength: Floats) -> Floats:
        """Return the expected excess of filters (d, groups), for one outcome of each group."""
        curved = self.signal[:, None] * g if self.signal.ndim == 1 else self.signal @ g
        quadratic = strength * curved + self.noise_variance * self.noise[:, None] * g
        linear = strength * (self.constant - 2 * self.linear @ g)
        return np.asarray(linear + (g * quadratic).sum(axis=0))

    def best_filter(self, strength: Floats) -> Floats:
        """Return the filters (d, groups) of least expected excess for priors of given strengths.

        Where the covariance is noisy and d is large, g is sought as a smooth multiple of the filter
        that ignores off-diagonal terms: d free numbers would fit the noise of a few replicas.
        """
        if self.signal.ndim == 1:
            return self._diagonal_filter(strength)
        typical = np.array([strength @ strength / strength.sum()])
        basis = self._diagonal_filter(typical) * _hats(len(self.linear), KNOTS)
        signal = basis.T @ self.signal @ basis
        noise = basis.T @ (self.noise[:, None] * basis)
        system = strength[:, None, None] * signal + self.noise_variance * noise
        # A relative ridge of 1e-12 for knots in directions that carry nothing at all.
        trace = np.trace(system, axis1=1, axis2=2)
        system += 1e-12 * trace[:, None, None] * np.eye(len(signal))
        right = strength[:, None] * (basis.T @ self.linear)
        return basis @ np.linalg.solve(system, right[:, :, None])[:, :, 0].T

    def _diagonal_filter(self, strength: Floats) -> Floats:
        diagonal = self.signal if self.signal.ndim == 1 else np.diag(self.signal)
        curvature = np.outer(diagonal, strength) + self.noise_variance * self.noise[:, None]
        gain = np.outer(self.linear, strength)
        return np.divide(gain, curvature, out=np.zeros_like(gain), where=curvature > 0)


def simulate(values: Floats, sigma: float) -> Replicas:
    """Draw replicas of a noisy eigenbasis from released eigenvalues and the scale of their noise.

    The generator has a fixed seed on purpose. This is post-processing of public numbers, so the
    draws protect nobody; the seed makes coefficients a deterministic function of the release.
    """
    d = len(values)
    if sigma == 0:
        return Replicas(truth=denoised_spectrum(values, np.empty((0, d, d)), 0.0), bases=None)
    copies = int(np.clip(-(-DRAWN_DIRECTIONS // d), 1, MOST_REPLICAS))
    noise = symmetric_noise(np.random.default_rng(SEED), copies=copies, d=d, sigma=sigma)
    truth = denoised_spectrum(values, noise, sigma)
    return Replicas(truth=truth, bases=np.linalg.eigh(noise + np.diag(truth)).eigenvectors)


def _hats(d: int, knots: int) -> Floats:
    """Return ≤ `knots` piecewise linear functions of rank that add up to 1, finest at the top."""
    if d <= knots:
        return np.eye(d)
    at = np.unique(np.round(np.linspace(0, np.sqrt(d - 1), knots) ** 2))
    rank_from_top = np.arange(d - 1, -1, -1.0)
    return np.stack([np.interp(rank_from_top, at, unit) for unit in np.eye(len(at))], axis=1)
