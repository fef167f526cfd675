"""Tune DP-SGD on simulated data and write what was chosen."""

from __future__ import annotations

import argparse
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from experiments.figures.problem import Problem
from experiments.tuning import __doc__ as description
from experiments.tuning.hyperparameters import FOLDER, VARIANTS, Hyperparameters
from experiments.tuning.search import Effort, Score, best_of, evaluate, search
from experiments.tuning.simulated import genotypes, images

_QUICK = {"random": 3, "refine": 1, "draws": 1, "finalists": 1, "fresh": 1}


@dataclass(frozen=True, kw_only=True)
class Tuned:
    """What came out of one cell."""

    variant: str
    d: int
    l: int
    best: Hyperparameters
    r_squared: float  # of the best on fresh draws
    least_squares: float  # R² of ordinary least squares on the same draws
    runs: int
    cost_in_runs: float  # time of the whole search, in runs of the best
    cost_in_least_squares: float  # the same, in ordinary least-squares fits of the same rows

    def table(self) -> dict[str, Any]:
        """Return it as a table of `tuned.toml`."""
        return {
            "variant": self.variant,
            "d": self.d,
            "l": self.l,
            **self.best.parameters(),
            "r_squared": round(self.r_squared, 4),
            "least_squares_r_squared": round(self.least_squares, 4),
            "tuning_runs": self.runs,
            "tuning_time_in_runs": round(self.cost_in_runs, 1),
            "tuning_time_in_least_squares_fits": round(self.cost_in_least_squares, 1),
        }


class _Draws:
    """Data sets of one shape by number: drawn once, the same for every point and both variants."""

    def __init__(self, draw: Callable[[int, np.random.Generator], Problem], l: int, seed: int):
        self._draw, self._l, self._seed = draw, l, seed
        self._kept: dict[int, Problem] = {}

    def __getitem__(self, number: int) -> Problem:
        if number not in self._kept:
            rng = np.random.default_rng([self._seed, self._l, number])
            self._kept[number] = self._draw(self._l, rng)
        return self._kept[number]


def tune(
    variant: str,
    draws: _Draws,
    grid: Mapping[str, Any],
    effort: Effort,
    d: int,
    l: int,
    known: Iterable[Hyperparameters] = (),
) -> tuple[Tuned, list[Score]]:
    """Search one cell."""
    seed = int(grid["seed"])

    def run(hyperparameters: Hyperparameters, phase: str, draw: int) -> Score:
        r_squared, seconds = evaluate(
            draws[draw],
            variant,
            hyperparameters,
            epsilon=grid["epsilon"],
            fitted=effort.fitted,
            seed=seed + 1000 * draw,
        )
        return Score(
            variant=variant,
            d=d,
            l=l,
            phase=phase,
            draw=draw,
            hyperparameters=hyperparameters,
            r_squared=r_squared,
            seconds=seconds,
        )

    rng = np.random.default_rng([seed, d, l, VARIANTS.index(variant)])
    scores = list(search(grid["values"], effort, run, rng, known))
    best, r_squared = best_of(scores)
    # The first run of a point also calibrates its noise, so the median is that of a plain run.
    one = float(np.median([s.seconds for s in scores if s.hyperparameters == best]))
    total = sum(score.seconds for score in scores)
    fresh = range(effort.draws, effort.draws + effort.fresh)
    exact = [_least_squares(draws[draw]) for draw in fresh]
    found = Tuned(
        variant=variant,
        d=d,
        l=l,
        best=best,
        r_squared=r_squared,
        least_squares=float(np.mean([score for score, _ in exact])),
        runs=len(scores),
        cost_in_runs=total / one,
        cost_in_least_squares=total / float(np.median([seconds for _, seconds in exact])),
    )
    return found, scores


def _least_squares(problem: Problem) -> tuple[float, float]:
    """Return R² of ordinary least squares from the rows, and the time it took."""
    assert problem.rows is not None
    features, outcomes = problem.rows
    started = time.perf_counter()
    slopes = np.linalg.lstsq(features.T @ features, features.T @ outcomes, rcond=None)[0]
    seconds = time.perf_counter() - started
    return problem.truth.r_squared(np.asarray(slopes, dtype=np.float64)), seconds


def tune_all(grid: Mapping[str, Any], *, quick: bool) -> Iterator[tuple[Tuned, list[Score]]]:
    """Search every cell of the grid; deterministic but for the times.

    What was best in the cells before, of either variant, is tried in those after it with the same d.
    """
    n, seed = grid["n"], grid["seed"]
    kinds = {25: genotypes, 784: images}
    sources: dict[int, Callable[[int, np.random.Generator], Problem]] = {}
    known: dict[int, list[Hyperparameters]] = {}
    for cell in grid["cells"]:
        d, l = cell["d"], cell["l"]
        if d not in sources:
            sources[d] = kinds[d](n, d, seed)
        draws = _Draws(sources[d], l, seed)
        for variant in VARIANTS:
            effort = Effort(**cell[variant])
            effort = replace(effort, **_QUICK) if quick else effort
            found, scores = tune(variant, draws, grid, effort, d, l, tuple(known.get(d, ())))
            known.setdefault(d, []).append(found.best)
            yield found, scores


def write(found: list[Tuned], scores: list[Score], folder: Path) -> None:
    """Write `tuned.toml` and `scores.parquet`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    head = "# Written by python -m experiments.tuning; do not edit.\n\n"
    tables = tomli_w.dumps({"cells": [cell.table() for cell in found]})
    (folder / "tuned.toml").write_text(head + tables)
    pq.write_table(pa.Table.from_pylist([s.row() for s in scores]), folder / "scores.parquet")


def main() -> None:
    """Read the options and tune."""
    parser = argparse.ArgumentParser(prog="experiments.tuning", description=description)
    parser.add_argument("--quick", action="store_true", help="few points on few rows; a trial only")
    parser.add_argument("--folder", type=Path, help="where to write (this package's own folder)")
    options = parser.parse_args()
    if options.quick and options.folder is None:
        parser.error("a quick trial must not replace what was tuned: give it a --folder")
    grid = tomllib.loads((FOLDER / "grid.toml").read_text())
    if options.quick:
        grid |= {"n": 500, "cells": [cell for cell in grid["cells"] if cell["l"] <= 11]}
    import_module("opacus")  # a second or two that are not part of any run
    found: list[Tuned] = []
    scores: list[Score] = []
    for cell, tried in tune_all(grid, quick=options.quick):
        found.append(cell)
        scores += tried
        print(
            f"{cell.variant} d={cell.d} l={cell.l}: R² {cell.r_squared:.3f} "
            f"(least squares {cell.least_squares:.3f}) after {cell.runs} runs, "
            f"as long as {cell.cost_in_runs:.0f} of them or {cell.cost_in_least_squares:.0f} "
            f"least-squares fits; {cell.best}",
            flush=True,
        )
    write(found, scores, FOLDER if options.folder is None else options.folder)


if __name__ == "__main__":
    main()
