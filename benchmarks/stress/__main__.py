"""`python -m benchmarks.stress`: run cells and print what they show."""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one process per core; before NumPy loads

import numpy as np

from benchmarks.stress import real
from benchmarks.stress.cells import CELLS
from benchmarks.stress.score import METHODS, Score, score_draw

_BY_TITLE = {cell.title: cell for cell in CELLS}


def run(title: str, draw: int, data: str) -> dict[str, Score] | str:
    """Run one draw in a worker; a cell without its data says why."""
    if Path(data) != real._folder:
        real.use_folder(Path(data))
    try:
        return score_draw(_BY_TITLE[title], draw)
    except real.Absent as reason:
        return str(reason)


def main() -> int:
    """Run the chosen cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run only cells whose title contains this")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--data", type=Path, default=real._folder, help="folder of the real data")
    args = parser.parse_args()
    chosen = [c for c in CELLS if args.only in c.title and (c.quick or not args.quick)]
    results: dict[str, dict[int, dict[str, Score]]] = {c.title: {} for c in chosen}
    tasks = [(c.title, k) for c in chosen for k in range(args.draws)]
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting = {pool.submit(run, t, k, str(args.data)): (t, k) for t, k in tasks}
        for count, done in enumerate(as_completed(waiting), 1):
            title, draw = waiting[done]
            found = done.result()
            if isinstance(found, str):
                print(f"skipped {title}: {found}", file=sys.stderr)
            else:
                results[title][draw] = found
            print(f"\r{count}/{len(tasks)} {title:<60}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    heads = " ".join(f"{m:>21}" for m in METHODS)
    print("mean pooled / mean median / worst pooled")
    print(f"{'cell':<50} {heads}  behind")
    for cell in chosen:
        draws = results[cell.title].values()
        if not draws:
            continue
        parts, mean = [], {}
        for method in METHODS:
            pooled = [d[method].pooled for d in draws]
            median = [d[method].median for d in draws]
            mean[method] = np.mean(pooled)
            parts.append(f"{mean[method]:7.3f}{np.mean(median):7.3f}{min(pooled):7.2f}")
        behind = max(mean.values()) - mean["auto"]
        worst = min(d["auto"].median for d in draws)
        bad = "  BAD" if worst < -0.05 or min(d["auto"].pooled for d in draws) < -0.1 else ""
        late = "  BEHIND" if behind > 0.01 else ""
        print(f"{cell.title:<50} {' '.join(parts)}  {behind:.3f}{bad}{late}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
