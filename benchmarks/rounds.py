"""What several rounds buy, on the cells of docs/reproduction.md.

Run by ``python -m benchmarks.rounds --write``.

One round and rounds="auto" are run on the same draws as the stored results of joint DP-SGD, through the
library itself. Every cell that is not reached is listed with its margin.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

DOCS = Path(__file__).resolve().parents[1] / "docs"
RIVAL = "dpsgd-joint"
LARGEST = 100_000  # rows; beyond, one release is least squares already
SLACK = 0.002  # that rounds may lie below one round

INTRODUCTION = """\
# Rounds

Written by `python -m benchmarks.rounds --write`. Nobody edits it by hand. Mean R² on the rows
of the fit, as in [the paper, reproduced](reproduction.md): one round, `rounds="auto"` and joint
DP-SGD (stored results, the same data). How rounds work: [the mathematics](mathematics.md#13-rounds).

**Tuned on what judges it.** The rule (pooling, clips, equal budgets, outcome moments of the first
round) was chosen among a dozen while looking at the first three repeats of 1kg-real (l = 1 to 101),
Gaussian linear (l = 11), drugs, personality, crime and soynam; the constants of the small steps
(`released/estimate/rounds/gradual.py`) while looking at one repeat of MNIST. The number of rounds is
3 because 5, which did slightly better here, fell off a cliff in one cell of the stress suite (the
cause was then mended). The other cells (1kg, dbgap, Gaussian mlp, Gaussian l = 1 and 101, 1kg-real
l = 1001) were not looked at before.
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One cell: mean R² over the same repeats."""

    name: str
    repeats: int
    least_squares: float
    one_round: float
    rounds: float
    rival: float


def lines(repeats: int, only: str) -> Iterator[Line]:
    """Run the cells whose name contains `only`."""
    from experiments.figures.features import Data
    from experiments.figures.grid import read_studies
    from experiments.figures.methods import METHODS
    from experiments.figures.outcomes import draw
    from experiments.figures.results import read
    from experiments.figures.runner import _seed

    for study in read_studies():
        stored = {
            (s.features, s.outcomes, s.l, s.repeat): s
            for s in read(DOCS / "results" / f"{study.name}.parquet")
            if s.method == RIVAL and not s.skipped and s.n < LARGEST
        }
        found: dict[str, list[tuple[float, ...]]] = {}
        for unit in study.units():
            cell = unit.cell
            rival = stored.get((cell.features, cell.outcomes, cell.l, unit.repeat))
            if rival is None or unit.repeat >= repeats or only not in str(cell):
                continue
            seed = _seed(str(cell), unit.repeat)
            problem = draw(cell, data=Data(), rng=np.random.default_rng(seed))
            scores = [
                problem.truth.r_squared(
                    METHODS[name].fit(problem, cell.epsilon, cell.delta, _seed(name, seed)).slopes
                )
                for name in ("ols", "primo", "primo-rounds")
            ]
            found.setdefault(str(cell), []).append((*scores, rival.r2))
        for name, rows in found.items():
            means = [statistics.fmean(column) for column in zip(*rows, strict=True)]
            yield Line(
                name=name,
                repeats=len(rows),
                least_squares=means[0],
                one_round=means[1],
                rounds=means[2],
                rival=means[3],
            )


def page(found: list[Line]) -> str:
    """Return the page as Markdown."""
    missed = [line for line in found if line.rounds < line.rival]
    below = [line for line in found if line.rounds < line.one_round - SLACK]
    text = [
        INTRODUCTION,
        f"At or above DP-SGD (joint) in {len(found) - len(missed)} of {len(found)} cells;"
        f" more than {SLACK} below one round in {len(below)}.",
        "",
        "| cell | repeats | least squares | one round | rounds | DP-SGD (joint) | margin |",
        "|---|---|---|---|---|---|---|",
    ]
    text += [
        f"| {x.name} | {x.repeats} | {x.least_squares:.4f} | {x.one_round:.4f} | {x.rounds:.4f} |"
        f" {x.rival:.4f} | {x.rounds - x.rival:+.4f} |"
        for x in found
    ]
    text += ["", "Not reached:", ""]
    text += [f"- {x.name}: {x.rounds - x.rival:+.4f} against DP-SGD (joint)" for x in missed]
    text += [f"- {x.name}: {x.rounds - x.one_round:+.4f} against one round" for x in below]
    if not missed and not below:
        text.append("- nothing")
    return "\n".join(text) + "\n"


def main() -> None:
    """Print the page, or write it to docs/rounds.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/rounds.md")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="", help="cells whose name contains this")
    given = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    found = []
    for line in lines(given.repeats, given.only):
        print(f"{line.name}: {line.one_round:.4f} {line.rounds:.4f} {line.rival:.4f}", flush=True)
        found.append(line)
    if given.write:
        (DOCS / "rounds.md").write_text(page(found))
    else:
        print(page(found))


if __name__ == "__main__":
    main()
