"""What several rounds buy where outcomes are public, on the cells of docs/reproduction.md.

Run by ``python -m benchmarks.rounds_features``. Prints mean R² on the rows of the fit: least squares,
the paper's Proj_Y (calibrated), primo with one round and with rounds="auto", both with
association="auto".
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator

import numpy as np

COMPARED = ("ols", "proj-y", "primo-features-one-round", "primo-features")


def lines(repeats: int, only: str, absent: dict[str, str]) -> Iterator[tuple[str, list[float]]]:
    """Run the cells whose name contains `only`; say in `absent` why a cell cannot be run."""
    from experiments.figures.features import Data, MissingData
    from experiments.figures.grid import read_studies
    from experiments.figures.methods import METHODS
    from experiments.figures.outcomes import draw
    from experiments.figures.runner import _seed

    found: dict[str, dict[int, list[float]]] = {}
    for study in read_studies():
        for unit in study.units():
            cell, of_cell = unit.cell, found.setdefault(str(unit.cell), {})
            wanted = "primo-features" in unit.methods and only in str(cell)
            if not wanted or unit.repeat >= repeats or unit.repeat in of_cell:
                continue
            seed = _seed(str(cell), unit.repeat)
            try:
                problem = draw(cell, data=Data(), rng=np.random.default_rng(seed))
            except (MissingData, ImportError) as reason:
                absent[str(cell)] = str(reason)
                continue
            of_cell[unit.repeat] = [
                problem.truth.r_squared(
                    METHODS[name].fit(problem, cell.epsilon, cell.delta, _seed(name, seed)).slopes
                )
                for name in COMPARED
            ]
            if len(of_cell) == repeats:
                columns = zip(*of_cell.values(), strict=True)
                yield str(cell), [statistics.fmean(column) for column in columns]


def main() -> None:
    """Print a line for each cell, and in how many rounds are at least as accurate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    absent: dict[str, str] = {}
    found = []
    print("| cell | least squares | Proj_Y | one round | rounds |\n|---|---|---|---|---|")
    for name, means in lines(given.repeats, given.only, absent):
        print(f"| {name} | {' | '.join(f'{mean:.4f}' for mean in means)} |", flush=True)
        found.append(means)
    for against, at in (("Proj_Y", 1), ("one round", 2)):
        reached = sum(means[3] >= means[at] for means in found)
        print(f"at least as accurate as {against} in {reached} of {len(found)} cells")
    for name, reason in absent.items():
        print(f"not run: {name}: {reason}")


if __name__ == "__main__":
    main()
