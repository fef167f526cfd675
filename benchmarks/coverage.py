"""Do 95 % intervals cover 95 %? Coverage, null p-values, false discoveries, widths.

Run `python -m benchmarks.coverage`, with --quick for one or two minutes. The exit status is 1 if a
claim fails in a cell that the software does not flag.

Features are simulated haplotypes and, where present, those of 1000 Genomes; outcomes are drawn from
y = θ·x + N(0, 1) with 70 % of all θ at zero. A release is its exact moments plus Gaussian noise of
the plan's scales: the same law as a real release, without the time to quantise rows. Given the features
XᵀY and YᵀY are drawn without ever holding Y; a cohort of other than 5008 rows has the same
covariance per row.

Coverage is reported for cells (coefficients, predictions, outcomes) that the software calls `trusted`,
next to their share; coverage of the rest shows whether they are wide or wrong.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy import stats

from experiments.cohort import simulate_haplotypes
from experiments.data import SHARED, kg_haplotypes
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released import uncertainty
from primo.released.release import Release

Matrix = NDArray[np.float64]

NULL_SHARE = 0.7
LEVEL = 0.95
GOOD = (0.93, 0.97)
FDR = 0.1
POINTS = 20  # rows that are predicted
FEWEST = 200  # with fewer cells a share says nothing
KS_ERROR = 0.01  # chance that some cell of the table is called not uniform by bad luck


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table."""

    data: str
    protection: str
    n: int
    d: int
    l: int
    epsilon: float
    draws: int

    @property
    def name(self) -> str:
        return f"{self.data} {self.protection[:4]} {self.n} {self.d} {self.l} {self.epsilon:g}"


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The true values that a release estimates."""

    population: Matrix  # (d, l) slopes
    rows: Matrix  # (d, l)
    intercept: Matrix  # (l,) of least squares on the rows
    r_squared: Matrix  # (l,) of the rows


@dataclass(frozen=True, kw_only=True)
class World:
    """Features of one data set, and releases of it."""

    plan: Plan
    features: Matrix  # (rows, d)
    covariance: Matrix  # (width, width) exact
    root: Matrix

    @classmethod
    def make(cls, cell: Cell, features: Matrix) -> World:
        """Plan a release with bounds that fit."""
        centre = features.mean(axis=0)
        norm = float(np.linalg.norm(features - centre, axis=1).max())
        variance = 1 + (1 - NULL_SHARE) * features.var(axis=0).sum() / np.sqrt(cell.d)
        plan = make_plan(
            Settings(
                epsilon=cell.epsilon,
                delta=1 / cell.n**2,
                protection=cell.protection,
                feature_bounds=Bounds(norm=norm, centre=centre),
                outcome_bounds=Bounds(norm=float((1.15 * cell.l**0.5 + 1) * np.sqrt(variance))),
            ),
            n=cell.n,
            d=cell.d,
            l=cell.l,
        )
        rows = np.column_stack([features - centre, np.full(len(features), plan.constant)])
        covariance = rows.T @ rows * (cell.n / len(rows))
        jitter = 1e-12 * np.trace(covariance) * np.eye(plan.width)
        return cls(
            plan=plan,
            features=features,
            covariance=covariance,
            root=np.linalg.cholesky(covariance + jitter),
        )

    def release(self, rng: np.random.Generator) -> tuple[Release, Truth]:
        plan, a = self.plan, self.covariance
        theta = rng.normal(size=(plan.width, plan.l)) / plan.d**0.25
        theta[:-1][rng.random((plan.d, plan.l)) < NULL_SHARE] = 0.0
        theta[-1] *= 0.2
        noise = self.root @ rng.standard_normal(theta.shape)  # Xᵀ(residuals)
        association = a @ theta + noise
        solved = np.linalg.solve(a, association)
        left, off = self._residuals(rng)
        explained = np.einsum("ij,ij->j", association, solved)
        mean = association[-1] ** 2 / a[-1, -1]
        truth = Truth(
            population=theta[:-1],
            rows=solved[:-1],
            intercept=solved[-1] * plan.constant - plan.features.centre @ solved[:-1],
            r_squared=(explained - mean) / (explained - mean + left),
        )
        moments = explained + left if off is None else association.T @ solved + off
        return self._noisy(association, moments, rng), truth

    def _residuals(self, rng: np.random.Generator) -> tuple[Matrix, Matrix | None]:
        """Residual squares of all outcomes; their products too if the plan releases all of YᵀY."""
        plan = self.plan
        freedom = plan.n - plan.width
        if not plan.full_outcome_moments:
            return rng.chisquare(freedom, size=plan.l), None
        factor = np.tril(rng.standard_normal((plan.l, plan.l)), -1)  # Bartlett
        factor += np.diag(np.sqrt(rng.chisquare(freedom - np.arange(plan.l))))
        products = factor @ factor.T
        return np.diag(products).copy(), products

    def _noisy(self, association: Matrix, moments: Matrix, rng: np.random.Generator) -> Release:
        plan = self.plan
        error = symmetric_noise(rng, plan.width, plan.covariance_sigma)
        error[-1, -1] = 0.0
        if plan.full_outcome_moments:
            moments = moments + symmetric_noise(rng, plan.l, plan.outcome_sigma)
        else:
            moments = moments + plan.outcome_sigma * rng.standard_normal(plan.l)
        added = plan.association_sigma * rng.standard_normal(association.shape)
        if not plan.protection.outcomes_private:
            added[-1] = 0.0
        association = association + added
        return Release(
            plan=plan,
            feature_names=tuple(f"x{i}" for i in range(plan.d)),
            outcome_names=tuple(f"y{i}" for i in range(plan.l)),
            covariance=self.covariance + error,
            association=association,
            outcome_moments=moments,
            reproducible=True,
            backend="numpy",
        )


def symmetric_noise(rng: np.random.Generator, size: int, sigma: float) -> Matrix:
    """Draw svec noise: variance σ² on the diagonal, σ²/2 off it."""
    square = rng.standard_normal((size, size))
    noise: Matrix = sigma * (square + square.T) / 2
    return noise


class Tally:
    """Counts of hits, by measure."""

    def __init__(self) -> None:
        self._parts: dict[str, list[Matrix]] = defaultdict(list)

    def add(self, measure: str, values: NDArray[np.bool_] | Matrix | float) -> None:
        self._parts[measure].append(np.ravel(np.asarray(values, dtype=np.float64)))

    def covered(
        self, measure: str, made: uncertainty.Intervals | uncertainty.GoodnessOfFit, truth: Matrix
    ) -> None:
        """Count which intervals cover, separately for cells that are trusted and cells that are not."""
        rows = slice(0, len(truth)) if truth.ndim == 2 else slice(None)
        hit = (made.lower[rows] <= truth) & (truth <= made.upper[rows])
        trusted = made.trusted[rows]
        self.add(measure, hit[trusted])
        self.add(f"{measure} else", hit[~trusted])
        self.add(f"{measure} trusted", trusted)

    def values(self, measure: str) -> Matrix:
        parts = self._parts.get(measure)
        return np.concatenate(parts) if parts else np.empty(0)

    def mean(self, measure: str) -> float:
        values = self.values(measure)
        return float(values.mean()) if len(values) else np.nan


def measure(cell: Cell, haplotypes: NDArray[np.int8], seed: int) -> Tally:
    """Draw releases of one cell and count."""
    rng = np.random.default_rng(seed)
    tally = Tally()
    sets = min(8, cell.draws)
    for draw in range(cell.draws):
        if draw * sets // cell.draws != (draw - 1) * sets // cell.draws:
            world = World.make(cell, _draw_features(haplotypes, cell.d, rng))
            ols = np.sqrt(np.diag(np.linalg.inv(world.covariance))[:-1])[:, None]
        release, truth = world.release(rng)
        made = uncertainty.coefficient_intervals(release, level=LEVEL)
        tally.covered("population", made, truth.population)
        tally.add("width", (made.standard_error[:-1] / ols)[made.trusted[:-1]])
        tally.covered("rows", uncertainty.coefficient_intervals(release, target="rows"), truth.rows)
        shrunk = uncertainty.coefficient_intervals(release, kind="posterior", target="rows")
        tally.covered("posterior", shrunk, truth.rows)
        tally.add("posterior width", shrunk.standard_error[:-1] / ols)
        points = world.features[rng.choice(len(world.features), POINTS)]
        predicted = points @ truth.rows + truth.intercept
        for kind in ("posterior", "confidence"):
            tally.covered(
                f"predict {kind}",
                uncertainty.prediction_intervals(release, points, kind=kind, target="rows"),
                predicted,
            )
        tally.covered("R²", uncertainty.goodness_of_fit(release), truth.r_squared)
        _tests(tally, release, truth, rng)
    return tally


def _draw_features(haplotypes: NDArray[np.int8], d: int, rng: np.random.Generator) -> Matrix:
    """Pick SNPs that are linearly independent, so that their coefficients are unique."""
    while True:
        snps = rng.choice(haplotypes.shape[1], size=d, replace=False)
        features = haplotypes[:, snps].astype(np.float64)
        values = np.linalg.eigvalsh(np.cov(features.T).reshape(d, d))
        if values[0] > 1e-4 * values[-1]:
            return features


def _tests(tally: Tally, release: Release, truth: Truth, rng: np.random.Generator) -> None:
    tested = uncertainty.tests(release)
    null = truth.population == 0
    usable = null & tested.trusted
    tally.add("null p", tested.p[usable])
    # One coefficient of each outcome: within an outcome p-values depend on each other.
    order = np.argsort(rng.random(usable.shape) + ~usable, axis=0)[0]
    columns = np.arange(usable.shape[1])
    tally.add("thinned p", tested.p[order, columns][usable[order, columns]][:50])
    found = tested.q <= FDR
    tally.add("fdp", float((found & null).sum() / max(found.sum(), 1)))
    tally.add("power", found[~null])


def cells(*, quick: bool, real: bool) -> Iterator[Cell]:
    """Yield the grid."""
    shapes = [
        (5008, 1, 1, 5.0, 800),
        (5008, 5, 1, 5.0, 400),
        (5008, 5, 20, 5.0, 100),
        (5008, 25, 1, 5.0, 200),
        (5008, 25, 10, 5.0, 100),
        (5008, 25, 100, 5.0, 40),
        (5008, 25, 1000, 5.0, 10),
        (5008, 10, 10, 1.0, 200),
        (5008, 25, 100, 1.0, 40),
        (50_000, 25, 10, 5.0, 100),
        (50_000, 25, 1000, 5.0, 10),
        (50_000, 10, 100, 1.0, 60),
        (50_000, 60, 100, 5.0, 20),
        (500_000, 25, 100, 1.0, 40),
    ]
    for data in ("sim", "1KG") if real else ("sim",):
        for protection in ("both", "features", "outcomes"):
            for n, d, l, epsilon, draws in shapes:
                if quick and data == "sim" and protection != "both":
                    continue
                yield Cell(
                    data=data,
                    protection=protection,
                    n=n,
                    d=d,
                    l=l,
                    epsilon=epsilon,
                    draws=draws // 2 if quick else draws,
                )


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Something that intervals are counted for, and why the software may not trust some of them."""

    column: str
    reason: str


_LOST = (
    "depend on directions of the features below 5 covariance noise scales; conservative by design"
)
_PRIOR = "rest on the fitted prior, which is not the truth here, or the prior on too few numbers"
MEASURES = {
    "population": Measure(column="coef (pop.)", reason=_LOST),
    "rows": Measure(column="coef (rows)", reason=_LOST),
    "posterior": Measure(column="shrunk", reason=_PRIOR),
    "predict posterior": Measure(column="pred. shrunk", reason=_PRIOR),
    "predict confidence": Measure(column="pred. conf.", reason=_LOST),
    "R²": Measure(
        column="R²",
        reason="variation of the outcome uncertain by over 20 %, or explained where noise reigns",
    ),
}


def failures(tally: Tally, cells: int) -> list[str]:
    """Return the claims that a cell breaks without being flagged; there should be none."""
    said = []
    for name in MEASURES:
        hits = tally.values(name)
        # Two standard errors, as if all cells were independent: too strict rather than too lenient.
        slack = 2 * np.sqrt(LEVEL * (1 - LEVEL) / max(len(hits), 1))
        if len(hits) >= FEWEST and not GOOD[0] - slack <= hits.mean() <= GOOD[1] + slack:
            said.append(f"{name}: covered {hits.mean():.3f} of {len(hits)}")
    uniform = ks(tally)
    if uniform < KS_ERROR / cells:
        said.append(f"null p-values: not uniform, Kolmogorov-Smirnov p = {uniform:.1g}")
    false = tally.values("fdp")
    if false.mean() > FDR + 3 * false.std() / np.sqrt(len(false)):
        said.append(f"false discovery rate {false.mean():.3f} at {FDR:g}")
    return said


def flagged(tally: Tally) -> Iterator[tuple[str, str]]:
    """Yield measures that the software flagged and that are in fact outside the range."""
    for name in MEASURES:
        rest = tally.values(f"{name} else")
        if len(rest) >= FEWEST and not GOOD[0] <= rest.mean() <= GOOD[1]:
            yield name, f"{rest.mean():.3f} of {len(rest)}"


def ks(tally: Tally) -> float:
    """Test whether p-values of null coefficients are uniform; nan if there are too few."""
    p = tally.values("thinned p")
    return float(stats.kstest(p, "uniform").pvalue) if len(p) >= 100 else np.nan


def columns(cell: Cell, tally: Tally) -> dict[str, str]:
    """Return one line of the table."""

    def covered(name: str) -> str:
        hits = tally.values(name)
        return f"{hits.mean():.3f}" if len(hits) >= FEWEST else "–"

    def number(value: float, digits: int) -> str:
        return "–" if np.isnan(value) else f"{value:.{digits}f}"

    width = tally.values("width")
    return {
        "data n d l ε": cell.name,
        **{measure.column: covered(name) for name, measure in MEASURES.items()},
        "coef trusted": number(tally.mean("population trusted"), 2),
        "coef flagged": covered("population else"),
        "shrunk trusted": number(tally.mean("posterior trusted"), 2),
        "R² trusted": number(tally.mean("R² trusted"), 2),
        "KS p": number(ks(tally), 2),
        "P(p<.05)": number(float(np.mean(tally.values("null p") < 0.05)), 3),
        f"FDR at {FDR:g}": number(tally.mean("fdp"), 3),
        "power": number(tally.mean("power"), 2),
        "width/OLS": number(float(np.median(width)) if len(width) else np.nan, 1),
        "shrunk/OLS": number(float(np.median(tally.values("posterior width"))), 1),
    }


def verdict(console: Console, broken: list[str], notes: dict[str, list[str]]) -> None:
    """List what failed and was flagged, with the reason, and what failed without being flagged."""
    console.print(f"\nOutside {GOOD[0]:.0%} to {GOOD[1]:.0%} and flagged at run time, by reason:")
    for name, lines in notes.items():
        console.print(f"  {name}: {MEASURES[name].reason}")
        for line in lines:
            console.print(f"      {line}", highlight=False)
    if broken:
        console.print("\nVERDICT: FAILED. Not flagged, and not as claimed:")
        for line in broken:
            console.print(f"  {line}", highlight=False)
    else:
        console.print(
            f"\nVERDICT: held. In every cell that is not flagged {LEVEL:.0%} intervals cover"
            f" {GOOD[0]:.0%} to {GOOD[1]:.0%}, null p-values are uniform, and false discoveries stay"
            f" within {FDR:.0%}."
        )


def main() -> int:
    """Print the table and the verdict; 1 if a cell that is not flagged fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer draws, one or two minutes")
    parser.add_argument("--only", default="", help='cells whose name has this in it: "feat 5008"')
    arguments = parser.parse_args()
    haplotypes = {"sim": simulate_haplotypes().cohort}
    real = (SHARED / "kg_haplotypes_5008").exists()
    if real:
        haplotypes["1KG"] = kg_haplotypes()
    grid = list(enumerate(cells(quick=arguments.quick, real=real)))
    grid = [(seed, cell) for seed, cell in grid if arguments.only in cell.name]
    table = Table(title=f"Coverage of {LEVEL:.0%} intervals, trusted cells; p-values; widths")
    broken: list[str] = []
    notes: dict[str, list[str]] = {name: [] for name in MEASURES}
    start = time.perf_counter()
    for seed, cell in grid:
        tally = measure(cell, haplotypes[cell.data], seed=seed)
        line = columns(cell, tally)
        if not table.columns:
            for name in line:
                table.add_column(name, justify="right", no_wrap=name == "data n d l ε")
            table.columns[0].justify = "left"
        table.add_row(*line.values())
        broken += [f"{cell.name}: {said}" for said in failures(tally, len(grid))]
        for name, said in flagged(tally):
            notes[name].append(f"{cell.name}: {said}")
    console = Console(width=210)
    console.print(table)
    verdict(console, broken, {name: lines for name, lines in notes.items() if lines})
    console.print(f"{time.perf_counter() - start:.0f} s")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
