"""Draw docs/figures/readme.svg, the figure of the README: `python -m experiments.site.figure`.

Simulated people, as in `make demo`: what was predicted before a row was read, and what the release says.
The noise is seeded, so that the figure is the same in every run.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

import primo

TARGET = Path(__file__).parents[2] / "docs" / "figures" / "readme.svg"
N, D, L, EPSILON = 20_000, 25, 200, 3.0


def main() -> None:
    """Simulate, fit, draw."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    mpl.rcParams["svg.hashsalt"] = "primo"
    rng = np.random.default_rng(2025)
    frequency = rng.uniform(0.1, 0.5, D)
    X = rng.binomial(2, frequency, size=(N, D)).astype(np.float64)
    signal = (X - 2 * frequency) @ rng.normal(size=(D, L))
    signal *= np.sqrt(rng.beta(1.2, 2.5, size=L)) / signal.std(axis=0)
    Y = signal + rng.normal(size=(N, L)) * np.sqrt(1 - signal.var(axis=0))
    model = primo.PrimoRegressor(
        EPSILON,
        1 / N**2,
        feature_bounds=primo.Bounds.from_frequencies(frequency),
        outcome_bounds=primo.Bounds(lower=-6, upper=6, norm="auto"),
        random_state=1,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        release = model.fit(X, Y).release_
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    shown = primo.Signal(r2=0.32, outcome_sd=1.0)
    primo.plots.accuracy_against_epsilon(release, signal=shown, ax=axes[0])
    primo.plots.r_squared(release, most=L, ax=axes[1])
    axes[0].set_title("before a row is read: what an ε is worth", fontsize=11)
    axes[1].set_title(f"after: R² of {L} outcomes, from released numbers", fontsize=11)
    figure.savefig(TARGET, metadata={"Date": None})


if __name__ == "__main__":
    main()
