"""How often 95 % intervals of marginal effects cover the truth.

Run `python -m benchmarks.marginal`, with --quick for half a minute. The exit status is 1 if the
coverage of a cell lies outside 93–97 %.

A population of people is simulated: genotypes in linkage, two covariates that go along with some of
them, outcomes y = Xβ + Zγ + noise. Cohorts are drawn from it with replacement; a release is the cohort's
moments plus Gaussian noise of the plan's scales, the same law as a real one. The truth is the
population's own marginal slope, by least squares on all of it. Noisy and weak cells are among them: an ε
of 0.3, no signal at all, rare variants, bounds that shorten a tenth of the rows, a covariance inside
blocks only.
"""

from __future__ import annotations

import argparse
import math
import sys
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from benchmarks.coverage import GOOD, symmetric_noise
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.blocks import ReleasedBlocks
from primo.released.marginal import SummaryStatistics, summary_statistics
from primo.released.release import Release
from primo.variants import Variants

__all__ = ["CELLS", "Cell", "Coverage", "measure"]

Matrix = NDArray[np.float64]

PEOPLE = 50_000  # in the population
COVARIATES = 2


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table."""

    protection: str
    n: int
    d: int  # variants
    epsilon: float
    heritability: float  # share of an outcome's variance that the variants explain
    rarest: float = 0.1  # smallest frequency of the rarer allele
    covariates: bool = False
    frequencies: bool = False  # bounds by public frequencies, which shorten some rows
    width: int | None = None  # variants in a block, where the covariance is inside blocks only
    l: int = 3

    @property
    def name(self) -> str:
        beside = ", covariates" if self.covariates else ""
        beside += ", frequencies" if self.frequencies else ""
        beside += f", blocks of {self.width}" if self.width else ""
        return (
            f"{self.protection} n={self.n} d={self.d} ε={self.epsilon:g} h²={self.heritability:g} "
            f"maf≥{self.rarest:g}{beside}"
        )


CELLS = (
    Cell(protection="both", n=5_000, d=20, epsilon=5.0, heritability=0.5),
    Cell(protection="both", n=5_000, d=20, epsilon=1.0, heritability=0.5),
    Cell(protection="both", n=20_000, d=20, epsilon=0.3, heritability=0.0),
    Cell(protection="both", n=20_000, d=100, epsilon=2.0, heritability=0.05),
    Cell(protection="both", n=5_000, d=20, epsilon=5.0, heritability=0.5, rarest=0.02),
    Cell(protection="both", n=30_000, d=20, epsilon=3.0, heritability=0.3, covariates=True),
    Cell(protection="both", n=5_000, d=20, epsilon=5.0, heritability=0.5, frequencies=True),
    Cell(protection="both", n=50_000, d=100, epsilon=5.0, heritability=0.05, frequencies=True),
    Cell(protection="features", n=30_000, d=20, epsilon=2.0, heritability=0.3, covariates=True),
    Cell(protection="outcomes", n=1_000, d=50, epsilon=1.0, heritability=0.3),
    Cell(protection="outcomes", n=1_000, d=50, epsilon=0.3, heritability=0.0, covariates=True),
    Cell(protection="outcomes", n=500, d=20, epsilon=100.0, heritability=0.5),
    Cell(protection="both", n=20_000, d=100, epsilon=5.0, heritability=0.5, width=10),
    Cell(
        protection="both", n=20_000, d=100, epsilon=2.0, heritability=0.3, width=1, frequencies=True
    ),
    Cell(protection="both", n=20_000, d=20, epsilon=1.0, heritability=0.0, width=5, rarest=0.02),
    Cell(protection="outcomes", n=1_000, d=50, epsilon=1.0, heritability=0.3, width=10),
)


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What was measured in one cell."""

    covered: float  # share of 95 % intervals that hold the population's effect
    intervals: int
    determined: float  # share of variants with an effect
    wider: float  # median standard error over that without noise, where effective n is determined
    rejected: float  # share of effects with p < 0.05


def measure(cell: Cell, draws: int, seed: int) -> Coverage:
    """Draw cohorts and releases of one cell, and count."""
    rng = np.random.default_rng(seed)
    features, outcomes = _population(cell, rng)
    plan = _plan(cell, features)
    # What the range does to the outcomes is part of the population; shortened rows are not.
    outcomes = np.clip(outcomes, -_RANGE, _RANGE)
    truth = _slopes(features, outcomes, cell)
    hits, parts, wider, small = [], [], [], []
    for _ in range(draws):
        rows = rng.integers(PEOPLE, size=cell.n)
        release = _released(plan, features[rows], outcomes[rows], rng)
        if cell.width is not None:
            release = _in_blocks(release, features[rows], cell.width, rng)
        statistics = _statistics(cell, release)
        parts.append(statistics.determined.mean())
        for j in range(cell.l):
            found = statistics.outcome(j)
            low, high = found.interval()
            known = statistics.determined
            hits.append(((low <= truth[:, j]) & (truth[:, j] <= high))[known])
            wider.append(np.sqrt(cell.n / found.effective_n[known]))
            small.append((found.neg_log10_p > -np.log10(0.05))[known])
    covered = np.concatenate(hits)
    return Coverage(
        covered=float(covered.mean()),
        intervals=len(covered),
        determined=float(np.mean(parts)),
        wider=float(np.nanmedian(np.concatenate(wider))),
        rejected=float(np.concatenate(small).mean()),
    )


_RANGE = 4.0  # outcomes have variance 1


def _population(cell: Cell, rng: np.random.Generator) -> tuple[Matrix, Matrix]:
    """Simulate genotypes in linkage, covariates behind them, and outcomes of variance 1."""
    frequency = rng.uniform(cell.rarest, 0.5, size=cell.d)
    linked = np.zeros((2 * PEOPLE, cell.d))
    linked[:, 0] = rng.standard_normal(2 * PEOPLE)
    for j in range(1, cell.d):  # neighbours are correlated by 0.8
        linked[:, j] = 0.8 * linked[:, j - 1] + 0.6 * rng.standard_normal(2 * PEOPLE)
    cut = np.array([np.quantile(linked[:, j], 1 - f) for j, f in enumerate(frequency)])
    copies = (linked > cut).reshape(PEOPLE, 2, cell.d).sum(axis=1).astype(np.float64)
    score = copies @ rng.standard_normal((cell.d, cell.l))
    score = (score - score.mean(axis=0)) / score.std(axis=0)
    beside = np.empty((PEOPLE, 0))
    outcomes = np.sqrt(cell.heritability) * score
    if cell.covariates:
        beside = 0.5 * score[:, :1] + rng.standard_normal((PEOPLE, COVARIATES))
        beside = np.clip(beside, -3, 3)
        outcomes = outcomes + 0.3 * beside @ rng.choice([-1.0, 1.0], size=(COVARIATES, cell.l))
    left = max(1 - outcomes.var(axis=0).max(), 0.1)
    outcomes = outcomes + np.sqrt(left) * rng.standard_normal(outcomes.shape)
    return np.hstack([copies, beside]), outcomes


def _plan(cell: Cell, features: Matrix) -> Plan:
    count = COVARIATES * cell.covariates
    bounds = Bounds(
        lower=np.array([0.0] * cell.d + [-3.0] * count),
        upper=np.array([2.0] * cell.d + [3.0] * count),
    )
    if cell.frequencies:
        bounds = Bounds.from_frequencies(features[:, : cell.d].mean(axis=0) / 2)
    return make_plan(
        Settings(
            epsilon=cell.epsilon,
            delta=1 / cell.n**2,
            protection=cell.protection,
            feature_bounds=bounds,
            outcome_bounds=Bounds(lower=-_RANGE, upper=_RANGE),
        ),
        n=cell.n,
        d=cell.d + count,
        l=cell.l,
    )


def _released(plan: Plan, features: Matrix, outcomes: Matrix, rng: np.random.Generator) -> Release:
    """Return the moments of some rows with noise of the plan's law."""
    rows = (features - plan.features.centre) / plan.features.scale
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows * np.minimum(1.0, plan.features.norm / np.maximum(lengths, 1e-300))
    rows = np.column_stack([rows, np.full(len(rows), plan.constant)])
    scaled = (outcomes - plan.outcomes.centre) / plan.outcomes.scale
    error = symmetric_noise(rng, plan.width, plan.covariance_sigma)
    error[-1, -1] = 0.0
    added = plan.association_sigma * rng.standard_normal((plan.width, plan.l))
    if not plan.protection.outcomes_private:
        added[-1] = 0.0
    return Release(
        plan=plan,
        feature_names=tuple(f"x{i}" for i in range(plan.d)),
        outcome_names=tuple(f"y{i}" for i in range(plan.l)),
        covariance=rows.T @ rows + error,
        association=rows.T @ scaled + added,
        outcome_moments=scaled.T @ scaled + symmetric_noise(rng, plan.l, plan.outcome_sigma),
        reproducible=True,
        backend="numpy",
    )


def _in_blocks(release: Release, features: Matrix, width: int, rng: np.random.Generator) -> Release:
    """Replace the covariance by one inside blocks: noise 2·b_B·σ₂/b_y on the diagonal of each."""
    plan = release.plan
    rows = (features - plan.features.centre) / plan.features.scale
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows * np.minimum(1.0, plan.features.norm / np.maximum(lengths, 1e-300))
    starts = np.append(np.arange(0, plan.d, width), plan.d)
    covariance, sigma = [], []
    # The constant is as long as the outcomes, so half of the squared length is theirs.
    noise = plan.association_sigma if plan.protection.features_private else 0.0
    for a, b in pairwise(starts):
        part = rows[:, a:b]
        bound = float(np.linalg.norm(part, axis=1).max())
        sigma.append(2 * bound * noise / (math.sqrt(2) * plan.outcomes.norm))
        covariance.append(part.T @ part + symmetric_noise(rng, b - a, sigma[-1]))
    sums_sigma = noise / plan.outcomes.norm
    blocks = ReleasedBlocks(
        starts=starts,
        covariance=tuple(covariance),
        sigma=np.array(sigma),
        sums=rows.sum(axis=0) + sums_sigma * rng.standard_normal(plan.d),
        sums_sigma=sums_sigma,
    )
    return replace(release, covariance=np.empty((0, 0)), blocks=blocks)


def _statistics(cell: Cell, release: Release) -> SummaryStatistics:
    variants = Variants(
        names=release.feature_names[: cell.d],
        chromosome=("1",) * cell.d,
        position=np.arange(1, cell.d + 1),
        counted=("A",) * cell.d,
        other=("G",) * cell.d,
    )
    return summary_statistics(release, variants)


def _slopes(features: Matrix, outcomes: Matrix, cell: Cell) -> Matrix:
    """Least squares of each outcome on each variant beside constant and covariates, (d, l)."""
    beside = np.column_stack([np.ones(len(features)), features[:, cell.d :]])
    left = features[:, : cell.d] - beside @ np.linalg.lstsq(beside, features[:, : cell.d])[0]
    found: Matrix = (left.T @ outcomes) / (left**2).sum(axis=0)[:, None]
    return found


def main() -> int:
    """Print the table; return 1 if a cell's coverage is not that of 95 % intervals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the draws")
    parser.add_argument("--draws", type=int, help="cohorts per cell (default 200)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draws = options.draws or (20 if options.quick else 200)
    columns = ("cell", "covered", "intervals", "determined", "error / without noise", "p < 0.05")
    table, good = Table(*columns), True
    for cell in CELLS:
        found = measure(cell, draws, options.seed)
        good &= GOOD[0] <= found.covered <= GOOD[1]
        table.add_row(
            cell.name,
            f"{found.covered:.1%}",
            str(found.intervals),
            f"{found.determined:.0%}",
            f"{found.wider:.2f}",
            f"{found.rejected:.1%}",
        )
    Console(width=140).print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
