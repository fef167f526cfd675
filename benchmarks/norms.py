"""Norms found privately against norms that are stated, and against the best fixed ones with hindsight.

Every cell fits rows of shared or simulated data in five ways:

- stated: with the stated bounds;
- lengths: with norms found from noisy histograms of row lengths;
- centred: the same about a centre that a noisy mean tells;
- columns: the same about centres and scales that noisy histograms of each column's values tell;
- hindsight: with each pair of fixed norms about the stated centre. The pair with the best mean over all
  draws is kept, which nobody can know beforehand.

Held-out R², means over draws. Bounds that are wrong by a factor are stated in units that much larger;
norms scale with them. Stages and release are emulated with float Gaussian noise of the exact scales.

    python -m benchmarks.norms [--quick] [--draws 10] [--only soy] [--set tuned|judged]

Cells marked "tuned" were looked at while the rule was chosen; "judged" ones were not.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
import zlib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import primo
from benchmarks.norms_cells import CELLS, Draw
from benchmarks.norms_stages import signed_grid
from benchmarks.norms_stages.centres import centring_pays, found_centre, norm_for_means
from benchmarks.norms_stages.columns import columns_speak, find_columns
from benchmarks.stress.problem import Problem
from benchmarks.stress.real import use_folder
from experiments.figures.features import MissingData
from primo.errors import WeakGuaranteeWarning
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy import lengths
from primo.privacy.bounds import Clip
from primo.privacy.grid import joint_grid
from primo.privacy.norm_search import speaks
from primo.released.estimate.spectrum import symmetric_noise
from primo.released.norms import LengthHistogram, choose_norms
from primo.released.release import Release

__all__ = ["main"]

Matrix = NDArray[np.float64]

EPSILONS = (0.5, 1.0, 5.0)
MULTIPLES = (0.5, 0.7, 0.9, 1.15, 1.5, 2.0)  # of typical lengths, for hindsight
FACTORS = (1.0, 30.0, 1000.0, 0.001)
LENGTHS, CENTRED, COLUMNS = 0.05, (0.02, 0.04, 0.03), (0.05, 0.03)  # shares of mu²
SEED = 17


@dataclass(frozen=True, kw_only=True, eq=False)
class Rows:
    """Rows in scaled units, cut to their ranges but not shortened, and the plan of their release."""

    plan: Plan
    features: Matrix
    outcomes: Matrix

    def moved(self, x: tuple[Matrix, Matrix], y: tuple[Matrix, Matrix]) -> Rows:
        """Return the rows about other centres and in other scales, given in scaled units."""
        return Rows(
            plan=replace(
                self.plan,
                features=_moved(self.plan.features, *x),
                outcomes=_moved(self.plan.outcomes, *y),
            ),
            features=(self.features - x[0]) / x[1],
            outcomes=(self.outcomes - y[0]) / y[1],
        )

    def with_share(self, share: float) -> Rows:
        """Return the rows with a release at this share of mu²."""
        mu = self.plan.mu * math.sqrt(share)
        grid = joint_grid(mu=mu, split=self.plan.split, n=self.plan.n)
        return replace(self, plan=replace(self.plan, mu=mu, grid=grid))

    def with_norms(self, x: float, y: float) -> Rows:
        """Return the rows with these norms."""
        features, outcomes = self.plan.features, self.plan.outcomes
        plan = replace(
            self.plan,
            features=replace(features, norm=float(x)),
            outcomes=replace(outcomes, norm=float(y)),
        )
        return replace(self, plan=plan)


def _moved(clip: Clip, centre: Matrix, scale: Matrix) -> Clip:
    return replace(
        clip, centre=clip.centre + clip.scale * centre, scale=clip.scale * scale, box=False
    )


def _scaled(clip: Clip, values: Matrix) -> Matrix:
    z = (values - clip.centre) / clip.scale
    return np.clip(z, -1.0, 1.0) if clip.box else z


def _shortened(z: Matrix, norm: float) -> Matrix:
    length = np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-300)
    return np.asarray(z * np.minimum(1.0, norm / length))


def rows_of(problem: Problem, epsilon: float, factor: float) -> Rows:
    """Plan a release with bounds that are `factor` times too wide (ranges lose their ends)."""
    n, d, l = problem.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakGuaranteeWarning)
        settings = Settings(
            epsilon=epsilon,
            delta=1 / n**2,
            feature_bounds=problem.feature_bounds,
            outcome_bounds=problem.outcome_bounds,
        )
        plan = make_plan(settings, n=n, d=d, l=l)
    rows = Rows(
        plan=plan,
        features=_scaled(plan.features, problem.features),
        outcomes=_scaled(plan.outcomes, problem.outcomes),
    )
    if factor == 1:
        return rows
    x = np.zeros(d), np.full(d, factor)
    y = np.zeros(l), np.full(l, factor)
    return rows.moved(x, y)


def release(rows: Rows, rng: np.random.Generator) -> Release:
    """Release the moments of shortened rows with Gaussian noise of the plan's scales, in floats."""
    plan = rows.plan
    x, y = (
        _shortened(rows.features, plan.features.norm),
        _shortened(rows.outcomes, plan.outcomes.norm),
    )
    x = np.column_stack([x, np.full(len(x), plan.constant)])
    noise = rng.standard_normal((plan.width, plan.l))
    moments = symmetric_noise(rng, copies=1, d=plan.l, sigma=plan.outcome_sigma)[0]
    covariance = symmetric_noise(rng, copies=1, d=plan.width, sigma=plan.covariance_sigma)[0]
    return Release(
        plan=plan,
        feature_names=tuple(map(str, range(plan.d))),
        outcome_names=tuple(map(str, range(plan.l))),
        covariance=x.T @ x + covariance,
        association=x.T @ y + plan.association_sigma * noise,
        outcome_moments=y.T @ y + moments,
        reproducible=True,
        backend="float",
    )


def stated(rows: Rows, rng: np.random.Generator) -> Rows:
    """Leave the bounds as they are."""
    return rows


def by_lengths(rows: Rows, rng: np.random.Generator) -> Rows:
    """Find both norms from histograms of lengths. The one place to call `norm="auto"` instead."""
    return _norms_found(rows, LENGTHS, rows.with_share(1 - LENGTHS), rng, centred=False)


def by_centre(rows: Rows, rng: np.random.Generator) -> Rows:
    """Find lengths, then a mean of shortened rows, then norms from lengths about it."""
    first, mean, second = CENTRED
    plan = rows.plan
    sigma = 2 / math.sqrt(first) / plan.mu
    noise = 2 * math.sqrt(2) / math.sqrt(mean) / plan.mu
    if not centring_pays(n=plan.n, columns=max(plan.d, plan.l), sigma=noise):
        return by_lengths(rows, rng)
    found, norms = [], []
    for z, clip in ((rows.features, plan.features), (rows.outcomes, plan.outcomes)):
        counts = _counts(z, sigma, rng).counts
        norm = norm_for_means(counts, sigma=sigma, n=plan.n, stated=clip.norm)
        each = noise * norm / plan.n
        means = _shortened(z, norm).mean(axis=0) + each * rng.standard_normal(z.shape[1])
        found.append((found_centre(means, sigma=each), np.ones(z.shape[1])))
        norms.append(norm)
    # Where lengths about the found centre say nothing, the norms of the first stage are kept.
    moved = rows.moved(*found).with_norms(*norms)
    return _norms_found(moved, second, moved.with_share(1 - sum(CENTRED)), rng, centred=True)


def by_columns(rows: Rows, rng: np.random.Generator) -> Rows:
    """Find centre and scale of every column from histograms of values, then norms from lengths."""
    first, second = COLUMNS
    plan = rows.plan
    sigma = math.sqrt(2 * (plan.d + plan.l) / first) / plan.mu
    if not columns_speak(plan.n, sigma):
        return by_centre(rows, rng)
    found = []
    for z in (rows.features, rows.outcomes):
        bins = signed_grid.bin_of(z)
        exact = np.array([np.bincount(b, minlength=signed_grid.BINS) for b in bins.T])
        counts = exact + sigma * rng.standard_normal(exact.shape)
        columns = find_columns(counts, sigma=sigma, n=plan.n)
        found.append((columns.centre, columns.scale))
    moved = rows.moved(*found)
    return _norms_found(moved, second, moved.with_share(1 - sum(COLUMNS)), rng, centred=True)


METHODS = {"stated": stated, "lengths": by_lengths, "centred": by_centre, "columns": by_columns}
FOUND = tuple(METHODS)[1:]


def _counts(z: Matrix, sigma: float, rng: np.random.Generator) -> LengthHistogram:
    exact = np.bincount(lengths.bin_of_squared((z**2).sum(axis=1)), minlength=lengths.BINS)
    return LengthHistogram(counts=exact + sigma * rng.standard_normal(lengths.BINS), sigma=sigma)


def _norms_found(
    rows: Rows, share: float, main: Rows, rng: np.random.Generator, *, centred: bool
) -> Rows:
    sigma = 2 / math.sqrt(share) / rows.plan.mu
    if not speaks(rows.plan.n, sigma):
        return rows if not centred else main
    plan = main.plan
    bx, by = plan.features.norm, plan.outcomes.norm
    chosen = choose_norms(
        features=_counts(rows.features, sigma, rng),
        outcomes=_counts(rows.outcomes, sigma, rng),
        feature_norm=bx,
        outcome_norm=by,
        n=plan.n,
        d=plan.d,
        l=plan.l,
        covariance_scale=plan.covariance_sigma / bx**2,
        association_scale=plan.association_sigma / (bx * by),
        outcome_scale=plan.outcome_sigma / by**2,
        intercept=plan.intercept,
        centred=("features", "outcomes") if centred else (),
    )
    return main.with_norms(chosen.features.norm, chosen.outcomes.norm)


def score(rows: Rows, problem: Problem, rng: np.random.Generator) -> float:
    """Return the held-out R² of the default estimator, mean over outcomes."""
    fitted = primo.coefficients(release(rows, rng))
    y = problem.held_outcomes
    error = np.mean((y - fitted.predict(problem.held_features)) ** 2, axis=0)
    return float(np.mean(1 - error / np.var(y, axis=0)))


def measure(name: str, draw_problem: Draw, draws: int, quick: bool) -> Iterator[tuple[str, ...]]:
    """Yield one line of the table for each epsilon."""
    found: dict[tuple[float, str], list[float]] = defaultdict(list)
    fixed: dict[float, list[Matrix]] = defaultdict(list)
    factors = FACTORS[:1] if quick else FACTORS
    shape = (0, 0, 0)
    for draw in range(draws):
        rng = np.random.default_rng((SEED, zlib.crc32(name.encode()), draw))
        problem = draw_problem(rng)
        shape = problem.shape
        for epsilon in EPSILONS:
            seed = int(rng.integers(2**31))
            for factor in factors:
                rows = rows_of(problem, epsilon, factor)
                for method, find in METHODS.items():
                    if factor != 1 and method == "stated":
                        continue  # noise grows with the factor, and nothing is left
                    noise = np.random.default_rng(seed)
                    key = method if factor == 1 else f"{method} ×{factor:g}"
                    found[epsilon, key].append(score(find(rows, noise), problem, noise))
            if not quick:
                fixed[epsilon].append(_hindsight(problem, epsilon, seed))
    for epsilon in EPSILONS:
        best = float(np.mean(fixed[epsilon], axis=0).max()) if fixed[epsilon] else math.nan
        means = {key: float(np.mean(v)) for (e, key), v in found.items() if e == epsilon}
        yield (
            f"{name}, {shape[0]}×{shape[1]}×{shape[2]}",
            f"{epsilon:g}",
            f"{best:.3f}",
            *(f"{means[method]:.3f}" for method in METHODS),
            *(
                " / ".join(f"{means[f'{method} ×{f:g}']:.3f}" for f in factors[1:])
                for method in FOUND
                if not quick
            ),
        )


def _hindsight(problem: Problem, epsilon: float, seed: int) -> Matrix:
    """Score every pair of fixed norms at the whole budget."""
    rows = rows_of(problem, epsilon, 1.0)
    typical = []
    for z in (rows.features, rows.outcomes):
        squares = (z**2).sum(axis=1)
        typical.append(math.sqrt(float(np.minimum(squares, 25 * np.median(squares)).mean())))
    scores = [
        [
            score(
                rows.with_norms(a * typical[0], b * typical[1]),
                problem,
                np.random.default_rng(seed),
            )
            for b in MULTIPLES
        ]
        for a in MULTIPLES
    ]
    return np.array(scores)


def main() -> None:
    """Measure every cell and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.norms", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="three draws, no hindsight, right bounds"
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--set", choices=("tuned", "judged"), default=None)
    parser.add_argument("--data", type=Path, default=None, help="folder of the shared data")
    options = parser.parse_args()
    if options.data is not None:
        use_folder(options.data)
    heads = ["cell, n×d×l", "ε", "hindsight", *METHODS]
    if not options.quick:
        heads += [f"{method} ×30 / 1000 / 0.001" for method in FOUND]
    console = Console(width=200)
    table = Table(*heads)
    for name, (kind, draw_problem) in CELLS.items():
        if options.only not in name or options.set not in (None, kind):
            continue
        start = time.monotonic()
        try:
            lines = list(
                measure(name, draw_problem, 3 if options.quick else options.draws, options.quick)
            )
        except MissingData as error:
            console.print(f"{name}: {error}")
            continue
        for line in lines:
            table.add_row(f"{kind}: {line[0]}", *line[1:])
            print(kind, " | ".join(line), flush=True)
        print(f"  {time.monotonic() - start:.0f} s", flush=True)
    console.print(table)


if __name__ == "__main__":
    main()
