"""All variants side by side over l = 1 ... 100 000 for every protection (part of `make accuracy`).

The real pipeline on simulated haplotypes (n = 5008, d = 25, ε = 5, δ = 1/n², the paper's outcomes, no
intercept), same bounds everywhere. "as printed" uses the paper's noise scales, which do not keep the
budget (docs/paper-constants.md); "ridge" is the paper's estimator at the true budget.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import primo
from benchmarks.results import Results, write_section
from experiments.cohort import Cohort, draw_cohort, simulate_haplotypes

COUNTS = (1, 11, 101, 1001, 10_000, 100_000)
Options = dict[str, Any]
#: protection, name of the variant, parameters of PrimoRegressor
VARIANTS: tuple[tuple[str, str, Options], ...] = (
    ("both", "gauss, ridge, as printed", {"estimator": "ridge", "calibration": "paper"}),
    ("both", "gauss, ridge", {"estimator": "ridge"}),
    ("both", "gauss, auto", {}),
    (
        "outcomes",
        "projection, ridge, as printed",
        {"estimator": "ridge", "association": "projection", "calibration": "paper"},
    ),
    ("outcomes", "gauss, ridge", {"estimator": "ridge"}),
    ("outcomes", "projection, ridge", {"estimator": "ridge", "association": "projection"}),
    ("outcomes", "gauss, auto", {}),
    ("outcomes", "projection, auto", {"association": "projection"}),
    ("features", "gauss, ridge", {"estimator": "ridge"}),
    ("features", "projection, ridge", {"estimator": "ridge", "association": "projection"}),
    ("features", "gauss, auto", {}),
    ("features", "projection, auto", {"association": "projection"}),
)


def r_squared(cohort: Cohort, model: primo.PrimoRegressor) -> float:
    """Pooled R² on the simulated rows, in blocks so that l = 100 000 fits."""
    y = cohort.outcomes
    error = spread = 0.0
    means = y.mean(axis=0, dtype=np.float64)
    for start in range(0, len(y), 256):
        rows = slice(start, start + 256)
        error += float(((y[rows] - model.predict(cohort.features[rows])) ** 2).sum())
        spread += float(((y[rows] - means) ** 2).sum())
    return 1 - error / spread


def fit(cohort: Cohort, protection: str, options: Options) -> primo.PrimoRegressor:
    n = len(cohort.features)
    settings: Options = {
        "protection": protection,
        "feature_bounds": cohort.feature_bounds,
        "outcome_bounds": cohort.outcome_bounds,
        "fit_intercept": False,
        **options,
    }
    return primo.PrimoRegressor(5, 1 / n**2, rounds=1, **settings).fit(
        cohort.features, cohort.outcomes
    )


def main() -> None:
    """Fit every variant at every l and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="draws per l (fewer from 10 000 on)")
    parser.add_argument("--most", type=int, default=COUNTS[-1], help="largest l")
    parser.add_argument("--write", action="store_true", help="rewrite docs/accuracy.md")
    arguments = parser.parse_args()
    counts = [l for l in COUNTS if l <= arguments.most]
    haplotypes = simulate_haplotypes()
    console = Console(width=140)
    values = Results()
    stated: dict[tuple[str, str], float] = {}
    for l in counts:
        rng = np.random.default_rng(11)
        runs = {10_000: 2, 100_000: 1}.get(l, arguments.runs * (10 if l == 1 else 1))
        for run in range(runs):
            cohort = draw_cohort(haplotypes, d=25, l=l, rng=rng)
            for protection, name, options in VARIANTS:
                model = fit(cohort, protection, options)
                stated[protection, name] = model.release_.plan.epsilon
                values.add((protection, name, l), r_squared(cohort, model))
            console.print(f"l={l}: {run + 1} of {runs} draws", highlight=False)
    header = ["protected", "variant", "stated ε", *(f"l={l}" for l in counts)]
    rows = [
        [
            protection,
            name,
            f"{stated[protection, name]:.3g}",
            *(f"{values.mean((protection, name, l)):.3f}" for l in counts),
        ]
        for protection, name, _ in VARIANTS
    ]
    table = Table(*header)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    if arguments.write:
        note = "n = 5008, d = 25, ε = 5, δ = 1/n², the paper's outcomes on simulated haplotypes."
        write_section("protections", "python -m benchmarks.protections", note, header, rows)


if __name__ == "__main__":
    main()
