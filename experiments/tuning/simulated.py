"""Data to tune on: of the kind of the studies, shared with none of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from baselines.base import ExactMoments, shortened
from experiments.cohort import simulate_haplotypes
from experiments.figures.problem import Problem, Truth

__all__ = ["genotypes", "images", "problem_of"]

Matrix = NDArray[np.float64]
Draw = Callable[[int, np.random.Generator], Problem]

#: Chance that any row of outcomes is beyond its bound.
_BEYOND = 1e-9
_SIDE = 28


def genotypes(n: int, d: int, seed: int) -> Draw:
    """Haplotypes of another, shorter region than any study's, with the paper's outcomes."""
    pool = simulate_haplotypes(n=n, panel=100, megabases=0.6, seed=seed).cohort

    def draw(l: int, rng: np.random.Generator) -> Problem:
        snps = rng.choice(pool.shape[1], size=d, replace=False)
        features = pool[:, snps].astype(np.float64)
        features -= features.mean(axis=0)
        outcomes = features @ (rng.normal(size=(d, l)) / d**0.25) + rng.normal(size=(n, l))
        longest = float(np.linalg.norm(features, axis=1).max())
        return problem_of(features, outcomes, largest_variance=1 + longest**2 / math.sqrt(d))

    return draw


def images(n: int, d: int, seed: int) -> Draw:
    """Blurred blots on a 28×28 grid, not MNIST: dark, correlated, with a power-law spectrum.

    Each image is the positive part of a smooth random field around one of ten random means, inside a
    soft round frame. Outcomes are a noisy linear model: coefficients of unit norm, noise of 0.3 standard
    deviations of the signal.
    """
    assert d == _SIDE**2
    rng = np.random.default_rng(seed)
    means = 1.2 * _fields(10, rng)
    pixels = means[rng.integers(10, size=n)] + _fields(n, rng)
    across = np.linspace(-1, 1, _SIDE)
    frame = np.exp(-(((across[:, None] ** 2 + across[None, :] ** 2) / 0.7) ** 2))
    pixels = np.clip(frame * (pixels - 0.7), 0, 1).reshape(n, d)
    features = pixels - pixels.mean(axis=0)

    def draw(l: int, rng: np.random.Generator) -> Problem:
        theta = rng.normal(size=(d, l))
        theta /= np.linalg.norm(theta, axis=0)
        signal = features @ theta
        outcomes = signal + rng.normal(size=(n, l)) * 0.3 * signal.std(axis=0)
        longest = np.linalg.norm(features, axis=1).max()
        noise = 0.3**2 * features.var(axis=0).sum() / d
        return problem_of(features, outcomes, largest_variance=longest**2 / d + noise)

    return draw


def _fields(count: int, rng: np.random.Generator) -> Matrix:
    """Return Gaussian fields (count, 28, 28) of unit variance with a spectrum that falls as k⁻⁴."""
    frequency = np.fft.fftfreq(_SIDE)
    square = frequency[:, None] ** 2 + frequency[None, :] ** 2
    filtered = np.fft.fft2(rng.normal(size=(count, _SIDE, _SIDE))) / (square + 0.08**2)
    fields = np.fft.ifft2(filtered).real
    return np.asarray(fields / fields.std())


def problem_of(features: Matrix, outcomes: Matrix, *, largest_variance: float) -> Problem:
    """Make a problem whose bounds hardly any row exceeds, in the convention of all experiments."""
    n, l = outcomes.shape
    feature_norm = float(np.linalg.norm(features, axis=1).max())
    outcome_norm = math.sqrt(largest_variance * chi2.isf(_BEYOND / n, l))
    outcome_limit = math.sqrt(largest_variance) * float(norm.isf(_BEYOND / (2 * n * l)))
    moments = ExactMoments.of(features, outcomes)
    truth = Truth(
        n=n,
        covariance=moments.covariance,
        association=moments.association,
        squares=moments.squares,
        spread=moments.squares - outcomes.sum(axis=0) ** 2 / n,
    )
    return Problem(
        n=n,
        d=features.shape[1],
        l=l,
        feature_norm=feature_norm,
        feature_reach=feature_norm,
        feature_limit=float(np.abs(features).max()),
        outcome_norm=outcome_norm,
        outcome_clip=outcome_limit,
        outcome_reach=outcome_norm,
        outcome_limit=outcome_limit,
        outcome_largest=float(np.abs(outcomes).max()),
        truth=truth,
        moments=ExactMoments.of(features, shortened(outcomes, outcome_norm)),
        rows=(features, outcomes),
    )
