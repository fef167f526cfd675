"""Time of a fit with a sub-sampled covariance against a whole one (SubSampReuseCov)."""

from __future__ import annotations

import time

import numpy as np

import primo

N, D, L = 60_000, 400, 1
SHARES = (1.0, 0.5, 0.25, 0.1)


def sampling_ratios() -> dict[float, float]:
    """Return the time for each share s/n over the time for s = n, medians of one run."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, D))
    y = x[:, :L] + rng.normal(size=(N, L))
    times: dict[float, list[float]] = {share: [] for share in SHARES}
    for _ in range(4):
        for share, taken in times.items():
            model = primo.PrimoRegressor(
                5,
                1e-9,
                feature_bounds=1.2 * D**0.5,
                outcome_bounds=4.0,
                covariance_rows=round(share * N),
                estimator="ridge",  # so that reading dominates, not estimating
                split=None if share == 1 else 2.0,
            )
            start = time.perf_counter()
            model.fit(x, y)
            taken.append(time.perf_counter() - start)
    whole = float(np.median(times[1.0][1:]))
    return {share: float(np.median(taken[1:])) / whole for share, taken in times.items()}


def main() -> None:
    for share, ratio in sampling_ratios().items():
        if share < 1:
            print(
                f"sub-sampled covariance: n={N} d={D}, s/n={share:g}: {ratio:.2f} x the time of "
                "the whole one"
            )


if __name__ == "__main__":
    main()
