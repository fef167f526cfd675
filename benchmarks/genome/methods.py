"""Scores that are compared: block by block, from marginals, from a panel, and clumped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.genome.linkage import Linkage
from primo.forecast.blocks import (
    BlockScales,
    Trait,
    draw_moments,
    draw_trait,
    forecast_blocks,
    score,
)
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.released.estimate.blocks import BlockMoments, fit_blocks
from primo.released.estimate.blocks.marginal import scaled_down

__all__ = ["Cell", "Measured", "forecast", "measure", "scales_of"]

Matrix = NDArray[np.float64]

ROW = 1.25  # longest row of features over √d: the default of Bounds.from_frequencies
BLOCK = 1.5  # longest row of a block over its share of that: the default of covariance="blocks"
RANGE = 3.0  # outcomes of variance 1 are cut to this
CONSTANT = 0.25  # squared constant over the squared norm of the outcomes
CLUMP = 0.1  # r² above which the weaker of two variants is dropped
LARGEST_P = (5e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.2, 1.0)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of a table."""

    n: int
    epsilon: float
    protection: str  # "both", "outcomes", or "outcomes, noise on y"
    trait: Trait


@dataclass(frozen=True, kw_only=True)
class Measured:
    """R² on new people, or squared correlations where a method does not know its own scale."""

    without_noise: float
    blocks: float
    panel: float | None  # None where the features are public
    none: float
    none_correlation: float
    clumped_correlation: float


def scales_of(cell: Cell, widths: Matrix) -> BlockScales:
    """Noise of a release with δ = 1/n²; `widths` are those of the blocks, (m,)."""
    mu = mu_of(Budget(epsilon=cell.epsilon, delta=1 / cell.n**2))
    if cell.protection == "outcomes, noise on y":
        return BlockScales(association=0.0, outcome=2 * RANGE / mu)
    row = ROW * math.sqrt(float(widths.sum()))
    outcome = RANGE * math.sqrt(1 + CONSTANT)
    association = 2 * row * outcome / mu
    if cell.protection == "outcomes":
        return BlockScales(association=association)
    norms = np.maximum(BLOCK, 1 + 2 / np.sqrt(widths)) * ROW * np.sqrt(widths)
    return BlockScales(association=association, blocks=2 * norms * association / outcome)


@lru_cache(maxsize=4)
def _trait(linkage: Linkage, n: int, trait: Trait, seed: int) -> tuple[list[Matrix], float]:
    """Draw a trait; return its effects and R² of the score of n people without noise."""
    rng = np.random.default_rng(seed)
    effects = draw_trait(rng, linkage.population, trait)
    clean = draw_moments(rng, linkage.population, effects, n=n, scales=BlockScales(association=0.0))
    found = fit_blocks(clean).coefficients[:, 0]
    return effects, score(found, effects, linkage.population)[0]


def measure(linkage: Linkage, cell: Cell, seed: int) -> Measured:
    """Draw the released moments of a trait, and score all methods on new people."""
    rng = np.random.default_rng(seed + 1)
    population = linkage.population
    effects, without_noise = _trait(linkage, cell.n, cell.trait, seed)
    widths = np.array([float(len(matrix)) for matrix in population])
    scales = scales_of(cell, widths)
    noisy = draw_moments(rng, population, effects, n=cell.n, scales=scales)

    def r2(moments: BlockMoments) -> tuple[float, float]:
        return score(fit_blocks(moments).coefficients[:, 0], effects, population)

    private = cell.protection == "both"
    diagonal = _diagonal(noisy, scales_of(cell, np.ones(linkage.d)) if private else None, rng)
    marginal = scaled_down(diagonal, fit_blocks(diagonal).coefficients)
    alone, correlation = score(marginal[:, 0], effects, population)
    return Measured(
        without_noise=without_noise,
        blocks=r2(noisy)[0],
        panel=r2(_with_panel(noisy, linkage.panel))[0] if private else None,
        none=alone,
        none_correlation=correlation,
        clumped_correlation=_clumped(noisy, linkage.panel, effects, population),
    )


def forecast(linkage: Linkage, cell: Cell) -> float:
    """Predict R² of the block estimator from the panel and stated numbers."""
    widths = np.array([float(len(matrix)) for matrix in linkage.panel])
    scales = scales_of(cell, widths)
    return forecast_blocks(linkage.panel, n=cell.n, scales=scales, trait=cell.trait)


def _diagonal(
    moments: BlockMoments, scales: BlockScales | None, rng: np.random.Generator
) -> BlockMoments:
    """Keep the diagonal alone, with noise of its own where there is any."""
    d = len(moments.association)
    sigma = np.zeros(d)
    if scales is not None:
        sigma = np.broadcast_to(np.asarray(scales.blocks), (d,)).copy()
    diagonal = moments.n + sigma * rng.standard_normal(d)
    return replace(
        moments,
        starts=np.arange(d + 1),
        covariance=tuple(diagonal[:, None, None]),
        sigma=sigma,
    )


def _with_panel(moments: BlockMoments, panel: Sequence[Matrix]) -> BlockMoments:
    """Take the panel's correlations; the diagonal of standardised variants is known well."""
    return replace(
        moments,
        covariance=tuple(moments.n * matrix for matrix in panel),
        sigma=np.zeros(len(panel)),
    )


def _clumped(
    moments: BlockMoments,
    panel: Sequence[Matrix],
    effects: Sequence[Matrix],
    population: Sequence[Matrix],
) -> float:
    """Clumping and thresholding; of all thresholds the best, which nobody would know."""
    association = moments.association[:, 0]
    per_row = float(moments.variation[0]) / moments.n + moments.row_noise
    z = association / math.sqrt(moments.n * per_row + float(moments.noise_variance[0]))
    kept = np.zeros(len(z), dtype=np.bool_)
    for matrix, start in zip(panel, moments.starts[:-1], strict=True):
        free = np.ones(len(matrix), dtype=np.bool_)
        for j in np.argsort(-np.abs(z[start : start + len(matrix)])):
            if free[j]:
                kept[start + j] = True
                free &= matrix[j] ** 2 <= CLUMP
    found = 0.0
    for p in LARGEST_P:
        passed = kept & (np.abs(z) >= -ndtri(p / 2))
        guess = np.where(passed, association / moments.n, 0.0)
        found = max(found, score(guess, effects, population)[1])
    return found
