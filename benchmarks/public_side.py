"""What follows a release, and forecasts, as ratios measured in one run (`make bench`).

The yardstick of the public side is one decomposition of the released covariance (`numpy.linalg.eigh`):
everything that is computed after a release needs it at least once.

    python -m benchmarks.public_side --n 20000 --d 2000 --l 100      # issue 21's size
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path

import numpy as np

import primo
from benchmarks.timing import in_turn
from primo.forecast import compare_plans
from primo.released.bundle import tables, write_bundle
from primo.released.coefficients import estimate_coefficients
from primo.released.estimation import Estimation
from primo.released.release import Release
from primo.report.page import report_html

TARGET = 3.0  # times one decomposition, without the writing of files
TARGET_REPORT, TARGET_PLAN = 5.0, 3.0  # seconds of CPU
REPORTS = ((300, 100), (1000, 1000))  # features, outcomes
PLANS = ((20_000, 100, 50), (20_000, 1000, 50), (20_000, 20_000, 50), (10**6, 2000, 100_000))


KINDS = ("one release", "three rounds", "norms found")


def make_release(n: int, d: int, l: int, kind: str = KINDS[0]) -> Release:
    """Fit a simulated cohort with noise from a seed."""
    found = primo.Bounds(norm="auto") if kind == "norms found" else None
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d), dtype=np.float32)
    y = x @ rng.standard_normal((d, l), dtype=np.float32) / np.float32(np.sqrt(d))
    y += rng.standard_normal((n, l), dtype=np.float32)
    model = primo.PrimoRegressor(
        5,
        1e-8,
        feature_bounds=found or 1.2 * d**0.5,
        outcome_bounds=found or 1.8 * l**0.5 + 1,
        rounds=3 if kind == "three rounds" else 1,
        random_state=1,
    )
    return model.fit(x, y).release_


def compute(release: Release) -> None:
    """Compute all that a bundle holds, and write nothing."""
    fresh = dataclasses.replace(release)  # without what was made before
    estimation = Estimation()
    fitted = estimate_coefficients(fresh, estimation)
    for _ in tables.coefficient_blocks(
        fresh, fitted, variants=None, level=0.95, slope_intervals=True
    ):
        pass
    tables.outcome_columns(fresh, fitted, estimation=estimation, level=0.95)


def write(release: Release, folder: Path) -> None:
    """Compute and write."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        write_bundle(dataclasses.replace(release), Path(place) / "bundle")


def after_release(n: int, d: int, l: int, repeats: int, kind: str) -> None:
    """Compare the public side of a fit with one decomposition."""
    release = make_release(n, d, l, kind)
    with tempfile.TemporaryDirectory() as folder:
        times = in_turn(
            {
                "eigh": lambda: np.linalg.eigh(release.covariance),
                "computed": lambda: compute(release),
                "written": lambda: write(release, Path(folder)),
            },
            repeats=repeats,
        )
    unit = times["eigh"]
    print(
        f"after the release ({kind}): n={n} d={d} l={l}:"
        f" all results take {times['computed'] / unit:.2f} x one"
        f" eigh of the covariance (target {TARGET:g}); with files {times['written'] / unit:.2f} x"
    )


def cpu(job: object) -> float:
    """Return the seconds of CPU of a call, libraries loaded."""
    assert callable(job)
    start = time.process_time()
    job()
    return time.process_time() - start


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--d", type=int, default=2000)
    parser.add_argument("--l", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args(arguments)
    for kind in KINDS:
        after_release(given.n, given.d, given.l, given.repeats, kind)
    compare_plans(n=1000, d=5, l=5, epsilon=5)  # loads libraries
    first = 0.0
    for n, d, l in PLANS:
        taken = cpu(lambda n=n, d=d, l=l: compare_plans(n=n, d=d, l=l, epsilon=5))
        first = first or taken
        print(
            f"plan: n={n} d={d} l={l}: {taken / first:.2f} x the CPU of d={PLANS[0][1]}, and"
            f" {taken / TARGET_PLAN:.2f} x the target of {TARGET_PLAN:g} s"
        )
    for d, l in REPORTS:
        release = make_release(5000, d, l)
        taken = cpu(lambda release=release: report_html(dataclasses.replace(release)))
        print(
            f"report: d={d} l={l}: {taken / TARGET_REPORT:.2f} x the target of {TARGET_REPORT:g} s CPU"
        )


if __name__ == "__main__":
    main()
