"""Look for cells where the default is much worse than the simplest estimator (`make stress`).

Runs the cells, and prints the results and whether they meet the targets; the exit status is 1 if not.
With --quick only some cells are run, with 5 draws each, and only targets that make sense for few draws
count. With --rounds auto the releases have several rounds, and AdaSSP, Iterative Hessian Mixing and the
default with one round are run on the same rows (protections of one block are compared with methods that
protect both).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.stress.cells import CELLS
from benchmarks.stress.page import page, report
from benchmarks.stress.runner import run
from benchmarks.stress.verdicts import judge
from experiments.data import SHARED

PAGE = Path(__file__).resolve().parents[2] / "docs" / "stress.md"
DRAWS, QUICK_DRAWS = 20, 5


def main() -> int:
    """Run the chosen cells; return 0 if all targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="some cells, 5 draws (a minute or two)"
    )
    parser.add_argument("--only", default="", help="run only cells whose title contains this")
    parser.add_argument("--draws", type=int, help=f"draws per cell ({DRAWS} by default)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--data", type=Path, default=SHARED, help="folder of the real data")
    parser.add_argument("--keep", type=Path, help="keep draws in this file, and use those in it")
    parser.add_argument(
        "--rounds", choices=("1", "auto"), default="auto", help="of each release (auto by default)"
    )
    parser.add_argument("--write", action="store_true", help="rewrite docs/stress.md")
    arguments = parser.parse_args()
    quick, only = arguments.quick, arguments.only
    chosen = [cell for cell in CELLS if only in cell.title and (cell.quick or not quick)]
    if not chosen:
        parser.error(f"no cell contains {only!r}")
    if arguments.write and (quick or only or arguments.rounds != "auto"):
        parser.error("--write needs the whole suite, without --quick, --only and --rounds")
    draws = arguments.draws or (QUICK_DRAWS if quick else DRAWS)
    results = run(
        chosen,
        draws=draws,
        jobs=arguments.jobs,
        data=arguments.data,
        keep=arguments.keep,
        rounds="auto" if arguments.rounds == "auto" else 1,
    )
    verdicts = judge(results)
    print(report(results, verdicts))
    if arguments.write:
        PAGE.write_text(page(results, verdicts, draws))
    return int(any(not v.met for v in verdicts if v.every_run or not quick))


if __name__ == "__main__":
    raise SystemExit(main())
