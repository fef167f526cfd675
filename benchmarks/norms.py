"""Bounds found privately against stated ones, and against the best fixed norms with hindsight.

Every cell fits rows of shared or simulated data in three ways:

- stated: with the stated bounds;
- auto: with norm="auto", by the real program: norms, centres and scales as its plan decides;
- hindsight: with fixed norms about the stated centre, at the whole budget. Sixteen pairs are tried on
  the first draws, the three best of them on all, and the one with the best mean is kept, which nobody
  can know beforehand.

All of them are releases of the real program with its default number of rounds.

Held-out R², means over outcomes and draws. Bounds that are wrong by a factor of 30 or 1000 are ranges or
scales that much wider; wrong by 0.001 they are scales that much smaller (a range would cut all rows).
Where nothing is stated of the columns, rows are in other units instead. Where rows are too few to find
a norm and there is no range, primo refuses norm="auto", and the stated bounds stand in the table.

    python -m benchmarks.norms [--quick] [--draws 10] [--only soy] [--set tuned|judged] [--write]

Cells marked "tuned" were looked at while the rule that chooses norms was made; "judged" ones were not.
"""

from __future__ import annotations

import argparse
import math
import os
import warnings
import zlib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import primo
from benchmarks.norms_cells import CELLS, Draw
from benchmarks.results import write_section
from benchmarks.stress.problem import Problem
from benchmarks.stress.real import use_folder
from experiments.data import SHARED
from experiments.figures.features import MissingData
from primo.errors import BoundsError, WeakGuaranteeWarning
from primo.planning.plan import Plan
from primo.planning.rounds import AUTO_ROUNDS
from primo.planning.settings import Settings
from primo.privacy.bounds import AUTO, Bounds
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, release_rows

__all__ = ["main"]

Matrix = NDArray[np.float64]
Unit = tuple[float, float]  # of features and outcomes

EPSILONS = (0.5, 1.0, 5.0)
MULTIPLES = (0.65, 0.9, 1.25, 1.75)  # of typical lengths, for hindsight
SCREENED, KEPT = 3, 3  # draws on which all pairs are tried, and pairs that are kept for the others
FACTORS = (1.0, 30.0, 1000.0, 0.001)
ENOUGH, NEAR, SAFE, WRONG = 5000, 0.01, 0.005, 0.02
SEED = 17


def released(
    problem: Problem,
    epsilon: float,
    features: Bounds,
    outcomes: Bounds,
    seed: int,
    unit: Unit = (1.0, 1.0),
) -> tuple[float, Plan]:
    """Release rows in a unit with the default settings; return R² and the plan."""
    n, d, l = problem.shape
    of_features, of_outcomes = unit
    source = ArraySource(
        features=problem.features / of_features,
        outcomes=problem.outcomes / of_outcomes,
        feature_names=tuple(f"x{i}" for i in range(d)),
        outcome_names=tuple(f"y{j}" for j in range(l)),
    )
    settings = Settings(
        epsilon=epsilon,
        delta=1 / n**2,
        feature_bounds=features,
        outcome_bounds=outcomes,
        rounds=AUTO_ROUNDS,
    )
    ready = prepare(source, settings)
    made = release_rows(source, ready, bits=RandomBits.seeded(seed), engine=Engine(threads=1))
    predicted = of_outcomes * primo.coefficients(made).predict(problem.held_features / of_features)
    return _r2(predicted, problem), made.plan


def automatic(
    problem: Problem, epsilon: float, factor: float, seed: int
) -> tuple[float, Plan] | None:
    """Release with norm="auto" and bounds that are wrong by a factor; return R² and the plan.

    None where primo refuses: too few rows, and no range.
    """
    (bx, ux), (by, uy) = (
        _wrong(bounds, width, factor)
        for bounds, width in (
            (problem.feature_bounds, problem.shape[1]),
            (problem.outcome_bounds, problem.shape[2]),
        )
    )
    try:
        return released(problem, epsilon, bx, by, seed, (ux, uy))
    except BoundsError:
        return None


def _wrong(bounds: Bounds, width: int, factor: float) -> tuple[Bounds, float]:
    """Return bounds that are wrong by a factor, without their norm, and the unit of the rows."""
    clip = bounds.clip(width, "columns")
    if clip.box and factor >= 1:
        lower, upper = clip.centre - factor * clip.scale, clip.centre + factor * clip.scale
        return Bounds(lower=lower, upper=upper, norm=AUTO), 1.0
    if clip.is_plain and not clip.box:
        return Bounds(norm=AUTO), factor
    return Bounds(centre=clip.centre, scale=factor * clip.scale, norm=AUTO), 1.0


def fixed(problem: Problem, epsilon: float, multiples: tuple[float, float], seed: int) -> float:
    """Return the R² of a release with norms that are multiples of typical lengths."""
    blocks = (problem.feature_bounds, problem.features), (problem.outcome_bounds, problem.outcomes)
    features, outcomes = (
        replace(bounds, norm=multiple * _typical(bounds, rows))
        for (bounds, rows), multiple in zip(blocks, multiples, strict=True)
    )
    return released(problem, epsilon, features, outcomes, seed)[0]


def _r2(predicted: Matrix, problem: Problem) -> float:
    y = problem.held_outcomes
    return float(np.mean(1 - np.mean((y - predicted) ** 2, axis=0) / np.var(y, axis=0)))


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of the table: means over draws."""

    name: str
    kind: str
    shape: tuple[int, int, int]
    epsilon: float
    stages: str
    hindsight: float
    stated: float
    auto: tuple[float, ...]  # by factor

    @property
    def cells(self) -> list[str]:
        """The line in words."""
        n, d, l = self.shape
        numbers = [self.hindsight, self.stated, *self.auto]
        return [
            f"{self.name} ({self.kind})",
            f"{n}×{d}×{l}",
            f"{self.epsilon:g}",
            self.stages,
            *(f"{number:.3f}" for number in numbers),
        ]


def measure(name: str, kind: str, draw_problem: Draw, draws: int, quick: bool) -> list[Line]:
    """Measure a cell at every epsilon."""
    factors = FACTORS[:1] if quick else FACTORS
    lines = []
    for epsilon in EPSILONS:
        scored: dict[tuple[float, float], list[float]] = defaultdict(list)
        auto: list[list[float]] = []
        known: list[float] = []
        stages, shape = "", (0, 0, 0)
        pairs = list(product(MULTIPLES, MULTIPLES))
        for draw in range(draws):
            rng = np.random.default_rng((SEED, zlib.crc32(name.encode()), draw))
            problem = draw_problem(rng)
            shape, seed = problem.shape, int(rng.integers(2**31))
            found = [automatic(problem, epsilon, factor, seed + 1) for factor in factors]
            stated = (problem.feature_bounds, problem.outcome_bounds)
            known.append(released(problem, epsilon, *stated, seed)[0])
            auto.append([known[-1] if each is None else each[0] for each in found])
            stages = "declined" if found[0] is None else _stages(found[0][1])
            if quick:
                continue
            if draw == SCREENED:
                pairs = sorted(pairs, key=lambda pair: -float(np.mean(scored[pair])))[:KEPT]
            for pair in pairs:
                scored[pair].append(fixed(problem, epsilon, pair, seed))
        lines.append(
            Line(
                name=name,
                kind=kind,
                shape=shape,
                epsilon=epsilon,
                stages=stages,
                hindsight=max((float(np.mean(scored[pair])) for pair in pairs), default=math.nan)
                if not quick
                else math.nan,
                stated=float(np.mean(known)),
                auto=tuple(float(mean) for mean in np.mean(auto, axis=0)),
            )
        )
    return lines


def _stages(plan: Plan) -> str:
    """Say what the plan looked for."""
    if not plan.counted:
        return "declined"
    words = ["norms"]
    if plan.centre_search is not None:
        words.append("centres")
    if plan.column_search is not None:
        words.append("scales")
    return ", ".join(words)


def _typical(bounds: Bounds, rows: Matrix) -> float:
    """Root mean squared length in scaled units, of rows no longer than five times the median."""
    clip = bounds.clip(rows.shape[1], "columns")
    z = (rows - clip.centre) / clip.scale
    if clip.box:
        z = np.clip(z, -1.0, 1.0)
    squares = (z**2).sum(axis=1)
    return math.sqrt(float(np.minimum(squares, 25 * np.median(squares)).mean()))


def verdicts(lines: list[Line]) -> list[str]:
    """Say in numbers what the lines show."""
    rich = [line for line in lines if line.shape[0] * line.epsilon >= ENOUGH]
    near = [line for line in rich if line.auto[0] >= line.hindsight - NEAR]
    safe = [line for line in lines if line.auto[0] >= line.stated - SAFE]
    wrong = [line for line in rich if min(line.auto) >= line.auto[0] - WRONG]
    return [
        f"With n·ε at least {ENOUGH}, auto is within {NEAR:g} of hindsight, or above it, in {len(near)} "
        f"of {len(rich)} lines.",
        f"Auto is not below the stated bounds by more than {SAFE:g} in {len(safe)} of {len(lines)} "
        "lines.",
        f"With n·ε at least {ENOUGH}, bounds wrong by 30, 1000 or 0.001 cost at most {WRONG:g} in "
        f"{len(wrong)} of {len(rich)} lines.",
    ]


def _cell(name: str, *, draws: int, quick: bool) -> list[Line] | str:
    """Measure a cell in a worker; one whose data are absent says so."""
    warnings.simplefilter("ignore", WeakGuaranteeWarning)
    kind, draw_problem = CELLS[name]
    try:
        return measure(name, kind, draw_problem, draws, quick)
    except MissingData as error:
        return f"{name}: {error}"


def main() -> None:
    """Measure every cell and print the table."""
    parser = argparse.ArgumentParser(prog="benchmarks.norms", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="three draws, no hindsight, right bounds"
    )
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    parser.add_argument("--set", choices=("tuned", "judged"), default=None)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of the shared data")
    parser.add_argument("--write", action="store_true", help="rewrite its part of docs/accuracy.md")
    options = parser.parse_args()
    heads = ["data", "n×d×l", "ε", "found", "hindsight", "stated", "auto"]
    if not options.quick:
        heads += [f"bounds ×{factor:g}" for factor in FACTORS[1:]]
    console = Console(width=200)
    table = Table(*heads)
    lines: list[Line] = []
    draws = 3 if options.quick else options.draws
    chosen = [
        name
        for name, (kind, _) in CELLS.items()
        if options.only in name and options.set in (None, kind)
    ]
    # One thread of BLAS per process: a process has a core. Workers read this when they start.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with ProcessPoolExecutor(
        mp_context=get_context("spawn"), initializer=use_folder, initargs=(options.data,)
    ) as pool:
        for found in pool.map(partial(_cell, draws=draws, quick=options.quick), chosen):
            if isinstance(found, str):
                console.print(found)
                continue
            for line in found:
                table.add_row(*line.cells)
                print(" | ".join(line.cells), flush=True)
            lines += found
    console.print(table)
    said = [] if options.quick else verdicts(lines)
    for words in said:
        console.print(words)
    if options.write and not options.only and not options.quick and options.set is None:
        write_section(
            "bounds",
            "python -m benchmarks.norms",
            f"Means of {draws} draws. " + " ".join(said),
            heads,
            [line.cells for line in lines],
        )


if __name__ == "__main__":
    main()
