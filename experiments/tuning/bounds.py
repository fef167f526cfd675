"""Which public norms serve primo best? On the data that DP-SGD is tuned on, not on those of the studies.

DP-SGD chooses its clip on separate simulated data; primo may do the same with its bounds. A row of
features is shortened to `features` times its root mean square length, a row of outcomes to
(`slope`·√l + `offset`) standard deviations of one outcome. Prints the mean R² over all cells for every
choice; the best is what `experiments.figures.outcomes` uses for every method that needs bounds.

    python -m experiments.tuning.bounds
"""

from __future__ import annotations

import argparse
import itertools
import warnings

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import primo
from experiments.figures.problem import Problem
from experiments.tuning.simulated import genotypes, images
from primo.errors import ReproducibleNoiseWarning

__all__ = ["main"]

EPSILON, N, SEED, REPEATS = 5.0, 5000, 20241, 2
FEATURES = (0.85, 1.0, 1.2)
OUTCOMES = ((0.85, 1.2), (0.85, 0.6), (1.0, 0.6), (1.0, 1.2), (1.15, 1.0))
CELLS = (("genotypes", 25, (1, 11, 101, 1001)), ("images", 784, (1, 101)))


def score(problem: Problem, features: float, slope: float, offset: float, seed: int) -> float:
    """Return the R² of primo's default with these norms."""
    assert problem.rows is not None
    x, y = problem.rows
    spread = np.sqrt(np.mean(y**2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReproducibleNoiseWarning)
        model = primo.PrimoRegressor(
            EPSILON,
            1 / problem.n**2,
            feature_bounds=features * float(np.sqrt(np.mean(np.sum(x**2, axis=1)))),
            outcome_bounds=float((slope * problem.l**0.5 + offset) * spread),
            fit_intercept=False,
            rounds=1,
            random_state=seed,
        ).fit(x, y)
    return problem.truth.r_squared(model.coef_.T)


def main() -> None:
    """Score every choice on every cell and print the means."""
    argparse.ArgumentParser(
        prog="experiments.tuning.bounds",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    ).parse_args()
    choices = [(f, *o) for f, o in itertools.product(FEATURES, OUTCOMES)]
    found: dict[str, NDArray[np.float64]] = {}
    for kind, d, counts in CELLS:
        draw = (genotypes if kind == "genotypes" else images)(N, d, SEED)
        for l in counts:
            rng = np.random.default_rng([SEED, l])
            problems = [draw(l, rng) for _ in range(REPEATS)]
            scores = [[score(p, *c, seed) for seed, p in enumerate(problems)] for c in choices]
            found[f"{kind} d={d} l={l}"] = np.mean(scores, axis=1)
    table = Table("features", "outcomes", *found, "mean")
    for i, (features, slope, offset) in enumerate(choices):
        cells = [values[i] for values in found.values()]
        norm = f"{slope:g}·√l + {offset:g}"
        table.add_row(f"{features:g}", norm, *(f"{c:.3f}" for c in cells), f"{np.mean(cells):.4f}")
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
