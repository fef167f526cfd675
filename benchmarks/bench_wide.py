"""More public features than rows: d = 20 000 SNPs, n = 5008, 100 outcomes under `outcomes`."""

from __future__ import annotations

import numpy as np

import primo
from benchmarks.timing import peak_memory

N, D, L = 5008, 20_000, 100


def main() -> None:
    rng = np.random.default_rng(0)
    # Ten ancestries shape the allele frequencies, so that features are correlated as real ones are.
    ancestry = rng.normal(size=(N, 10)).astype(np.float32)
    odds = ancestry @ rng.normal(scale=0.3, size=(10, D)).astype(np.float32)
    odds += rng.normal(size=D).astype(np.float32)
    x = (rng.logistic(size=(N, D)) < odds).astype(np.int8)
    del odds
    direction = rng.normal(size=(D, L)).astype(np.float32)
    signal = x @ direction
    signal /= signal.std(axis=0)
    y = (signal - signal.mean(axis=0)).astype(np.float64) + rng.normal(size=(N, L))
    model = primo.PrimoRegressor(
        5, 1 / N**2, protection="outcomes", outcome_bounds=primo.Bounds(norm=1.7 * L**0.5 + 1)
    ).fit(x, y)
    fitted = 1 - float(((y - model.predict(x)) ** 2).sum() / ((y - y.mean(axis=0)) ** 2).sum())
    peak = peak_memory() / 2**30
    print(
        f"row space: n={N} d={D} l={L}: peak {peak:.1f} GB with the data (target 6 GB), "
        f"R² on the fitted (simulated) rows {fitted:.3f}"
    )


if __name__ == "__main__":
    main()
