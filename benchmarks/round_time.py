"""Time of rounds, as ratios measured in one run (docs/evidence/speed.md).

A round against one pass of a fit with one round, and three rounds and those of the default against joint
DP-SGD with its tuned settings (Opacus), on the same simulated rows in memory, by the time that passes
and by processor time, which other work on the machine changes less:

    python -m benchmarks.round_time
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

TARGET_ROUND = 1.2  # times a fit with one round
TARGET_DPSGD = 0.1  # of joint DP-SGD, all rounds
SHAPES = ((5008, 25, 1001), (50_000, 200, 200))
ROUNDS = 3

Matrix = NDArray[np.float64]


def rows(n: int, d: int, l: int) -> tuple[Matrix, Matrix]:
    """Draw rows of which the features explain half."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    y = x @ rng.standard_normal((d, l)) / np.sqrt(d) + rng.standard_normal((n, l))
    return x, y


def fit_of(x: Matrix, y: Matrix, rounds: int | str) -> Callable[[], object]:
    """Return a fit by the library, on one thread."""
    import primo

    model = primo.PrimoRegressor(
        5,
        1 / len(x) ** 2,
        feature_bounds=1.2 * x.shape[1] ** 0.5,
        outcome_bounds=1.7 * y.shape[1] ** 0.5 + 1,
        fit_intercept=False,
        rounds=rounds,
        random_state=0,
        n_jobs=1,
    )
    return lambda: model.fit(x, y)


def dpsgd(x: Matrix, y: Matrix) -> Callable[[], object]:
    """Return joint DP-SGD with the settings that were tuned for this shape."""
    from baselines.dpsgd import DPSGDJoint
    from experiments.tuning import tuned

    d, l = x.shape[1], y.shape[1]
    settings: dict[str, Any] = tuned("joint", d=d, l=l).parameters()
    model = DPSGDJoint(
        5,
        1 / len(x) ** 2,
        feature_bounds=1.2 * d**0.5,
        outcome_bounds=1.7 * l**0.5 + 1,
        random_state=0,
        **settings,
    )
    return lambda: model.fit(x, y)


def verdict(ratio: float, target: float) -> str:
    """Say whether a ratio is at most its target."""
    return f"{ratio:.3f} (target at most {target:g}: {'met' if ratio <= target else 'missed'})"


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--without-dpsgd", action="store_true", help="for want of PyTorch, or time")
    given = parser.parse_args()
    # Before BLAS and PyTorch start their threads: one each.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    from benchmarks.timing import in_turn_by

    warnings.simplefilter("ignore")
    for number, (n, d, l) in enumerate(SHAPES):
        x, y = rows(n, d, l)
        jobs = {
            "one": fit_of(x, y, 1),
            "several": fit_of(x, y, ROUNDS),
            "default": fit_of(x, y, "auto"),
        }
        against = number == 0 and not given.without_dpsgd
        if against:
            import torch

            torch.set_num_threads(1)
            jobs["dpsgd"] = dpsgd(x, y)
        clocks = (time.perf_counter, time.process_time)
        found = in_turn_by(*clocks, jobs=jobs, repeats=given.repeats)
        print(f"n = {n}, d = {d}, l = {l}; {ROUNDS} rounds; medians of {given.repeats}, one thread")
        for clock, times in zip(("time that passed", "processor time"), found, strict=True):
            whole = times["several"] / ROUNDS / times["one"]
            further = (times["several"] - times["one"]) / (ROUNDS - 1) / times["one"]
            print(f"  by {clock}:")
            print(f"    a round over a fit with one round: {verdict(whole, TARGET_ROUND)}")
            print(f"    a round after the first, the step before it included: {further:.3f}")
            if against:
                ratio = times["several"] / times["dpsgd"]
                print(f"    {ROUNDS} rounds over joint DP-SGD: {verdict(ratio, TARGET_DPSGD)}")
                ratio = times["default"] / times["dpsgd"]
                print(f"    default rounds over joint DP-SGD: {verdict(ratio, TARGET_DPSGD)}")
            ratio = times["default"] / times["one"]
            print(f"    default rounds over a fit with one round: {ratio:.1f}")


if __name__ == "__main__":
    main()
