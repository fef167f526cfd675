"""Speed and memory, printed as ratios measured in one run (`make bench`)."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import primo
from benchmarks import bench_files, bench_noise, bench_projection, bench_sampling, bench_wide
from benchmarks.timing import in_turn, peak_memory

CASES = {"wide": (5008, 25, 10_000), "tall": (100_000, 500, 100)}
TARGETS = {
    ("wide", "Ridge"): 1.0,
    ("wide", "bare products"): 3.0,
    ("tall", "Ridge"): 1.5,
}


def arrays(case: str) -> tuple[np.ndarray, np.ndarray]:
    n, d, l = CASES[case]
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(n, d)), np.empty((n, l))
    np.matmul(x, rng.normal(size=(d, l)) / np.sqrt(d), out=y)  # no copy that would hide a peak
    for row in y:
        row += rng.normal(size=l)
    return x, y


def model(case: str) -> primo.PrimoRegressor:
    _, d, l = CASES[case]
    return primo.PrimoRegressor(
        5, 1e-8, feature_bounds=1.2 * d**0.5, outcome_bounds=1.8 * l**0.5 + 1, rounds=1
    )


def speed(case: str, repeats: int) -> None:
    from sklearn.linear_model import Ridge

    x, y = arrays(case)
    times = in_turn(
        {
            "primo": lambda: model(case).fit(x, y),
            "bare products": lambda: (x.T @ x, x.T @ y),
            "Ridge": lambda: Ridge().fit(x, y),
        },
        repeats=repeats,
        first=3,
    )
    n, d, l = CASES[case]
    for peer in ("Ridge", "bare products"):
        target = TARGETS.get((case, peer))
        print(
            f"fit: n={n} d={d} l={l}: primo takes {times['primo'] / times[peer]:.2f} x {peer}"
            + (f" (target {target:g})" if target else "")
        )


def memory(case: str) -> None:
    """Print the peak beyond inputs and outputs; run in a process of its own."""
    x, y = arrays(case)
    model(case).fit(x[:64], y[:64])  # libraries, tables and BLAS buffers
    before = peak_memory()
    fitted = model(case).fit(x, y)
    after = peak_memory()
    release = fitted.release_
    outputs = (fitted.coef_, release.covariance, release.association, release.outcome_moments)
    extra = after - before - sum(array.nbytes for array in outputs)
    n, d, l = CASES[case]
    print(
        f"memory: n={n} d={d} l={l}: {max(0, extra) / 2**20:.0f} MB beyond inputs and outputs "
        "(target 300 MB)"
    )


def main() -> None:
    if sys.argv[1:2] == ["--memory"]:
        memory(sys.argv[2])
        return
    bench_noise.main()
    for case, repeats in (("wide", 9), ("tall", 3)):
        speed(case, repeats)
    for case in CASES:
        subprocess.run([sys.executable, "-m", "benchmarks.speed", "--memory", case], check=True)
    bench_files.main([])
    bench_projection.main()
    bench_sampling.main()
    bench_wide.main()


if __name__ == "__main__":
    main()
