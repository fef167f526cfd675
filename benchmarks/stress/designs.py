"""Features of the simulated cells: each design draws rows of one population, in units of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

__all__ = [
    "Design",
    "at_level",
    "blocks",
    "collinear",
    "duplicates",
    "gaussian",
    "genotypes",
    "indicators",
    "lognormal",
    "low_rank",
    "powers",
    "rare",
    "student",
    "vital_signs",
]

Matrix = NDArray[np.float64]
Design = Callable[[int, int, np.random.Generator], Matrix]  # rows, d


def gaussian(rows: int, d: int, rng: np.random.Generator) -> Matrix:
    """Draw independent standard normal features."""
    return rng.standard_normal((rows, d))


def at_level(level: float, spread: float, of: Design = gaussian) -> Design:
    """Move a design far from 0: gene expression, years, blood pressure."""
    return lambda rows, d, rng: level + spread * of(rows, d, rng)


def blocks(correlation: float, size: int = 10) -> Design:
    """Draw blocks of `size` features with one common correlation."""

    def draw(rows: int, d: int, rng: np.random.Generator) -> Matrix:
        common = np.repeat(rng.standard_normal((rows, -(-d // size))), size, axis=1)[:, :d]
        own = rng.standard_normal((rows, d))
        mixed: Matrix = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
        return mixed

    return draw


def low_rank(rank: int, noise: float = 0.1) -> Design:
    """Draw features that are mixtures of a few factors and a little noise of their own."""

    def draw(rows: int, d: int, rng: np.random.Generator) -> Matrix:
        loadings = rng.standard_normal((rank, d)) / np.sqrt(rank)
        mixed: Matrix = rng.standard_normal((rows, rank)) @ loadings
        return mixed + noise * rng.standard_normal((rows, d))

    return draw


def collinear(condition: float) -> Design:
    """Draw features whose covariance has this condition number, in a random basis."""

    def draw(rows: int, d: int, rng: np.random.Generator) -> Matrix:
        values = np.geomspace(1.0, 1 / condition, d)
        basis, _ = np.linalg.qr(rng.standard_normal((d, d)))
        values *= d / values.sum()
        mixed: Matrix = (rng.standard_normal((rows, d)) * np.sqrt(values)) @ basis.T
        return mixed

    return draw


def duplicates(difference: float) -> Design:
    """Draw every second feature as a copy of the one before it, but for a small difference."""

    def draw(rows: int, d: int, rng: np.random.Generator) -> Matrix:
        features = rng.standard_normal((rows, d))
        count = d // 2
        features[:, 1 : 2 * count : 2] *= difference
        features[:, 1 : 2 * count : 2] += features[:, 0 : 2 * count : 2]
        return features

    return draw


def powers(rows: int, d: int, rng: np.random.Generator) -> Matrix:
    """Draw an age in (0.2, 0.9) and its powers 1 … d."""
    age = rng.uniform(0.2, 0.9, size=(rows, 1))
    raised: Matrix = age ** np.arange(1, d + 1)
    return raised


def genotypes(frequency: float | None = None, linkage: float = 0.8, size: int = 10) -> Design:
    """Draw 0, 1 or 2 copies of an allele, linked in blocks; frequencies of 5 to 50 % if not given."""

    def draw(rows: int, d: int, rng: np.random.Generator) -> Matrix:
        common = rng.uniform(0.05, 0.5, size=d) if frequency is None else np.full(d, frequency)
        limit = ndtri(common)
        haplotypes = (blocks(linkage, size)(rows, d, rng) < limit for _ in range(2))
        counts: Matrix = sum(one.astype(np.float64) for one in haplotypes)
        return counts

    return draw


def student(freedom: float) -> Design:
    """Draw independent features of Student's t: heavy tails."""
    return lambda rows, d, rng: rng.standard_t(freedom, size=(rows, d))


def lognormal(sigma: float) -> Design:
    """Draw counts and concentrations: exp of a normal, all to one side."""
    return lambda rows, d, rng: np.exp(sigma * rng.standard_normal((rows, d)))


def rare(share: float) -> Design:
    """Draw 0/1 features that few rows have."""
    return lambda rows, d, rng: (rng.random((rows, d)) < share).astype(np.float64)


def indicators(rows: int, d: int, rng: np.random.Generator) -> Matrix:
    """Draw one category of d per row, as d indicators that add up to the constant."""
    shares = np.geomspace(1.0, 0.1, d)
    return np.eye(d)[rng.choice(d, size=rows, p=shares / shares.sum())]


#: Middle and spread of age, body mass index, systolic pressure and cholesterol.
_VITAL = ((50.0, 12.0), (27.0, 5.0), (130.0, 18.0), (5.2, 1.0))


def vital_signs(rows: int, d: int, rng: np.random.Generator) -> Matrix:
    """Draw measurements with units of their own, and smoking (0/1) last; d has to be 5."""
    middle, spread = np.array(_VITAL).T
    common = 0.6 * rng.standard_normal((rows, 1))
    measured = middle + spread * (common + 0.8 * rng.standard_normal((rows, len(_VITAL))))
    return np.column_stack([measured, rng.random(rows) < 0.2])
