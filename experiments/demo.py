"""The main job on simulated people: 1001 private regressions, compared with the truth.

Every R² that is printed is computed from simulated people, so it exposes nobody. On real data only the
release may be used.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import primo
from baselines.base import shortened
from baselines.paper import reuse_cov_gauss
from experiments.cohort import Cohort, draw_cohort, simulate_haplotypes

Matrix = NDArray[np.float64]

EPSILON, D, L = 5.0, 25, 1001


def r_squared(cohort: Cohort, predicted: Matrix) -> float:
    """Return the paper's pooled R²: 1 - squared error / squared distance from the outcome means."""
    outcomes = cohort.outcomes
    spread = ((outcomes - outcomes.mean(axis=0)) ** 2).sum()
    return float(1 - ((outcomes - predicted) ** 2).sum() / spread)


def least_squares(cohort: Cohort) -> Matrix:
    """Predict with ordinary least squares, without any privacy."""
    design = np.column_stack([cohort.features, np.ones(len(cohort.features))])
    solution = np.linalg.lstsq(design, cohort.outcomes, rcond=None)[0]
    return np.asarray(design @ solution, dtype=np.float64)


def paper(cohort: Cohort, delta: float, rng: np.random.Generator) -> Matrix:
    """Predict with the paper's ReuseCovGauss at the same true budget."""
    centred = np.asarray(cohort.features - np.asarray(cohort.feature_bounds.centre), np.float64)
    features = shortened(centred, float(cohort.feature_bounds.norm or 0))
    outcomes = shortened(cohort.outcomes, float(cohort.outcome_bounds.norm or 0))
    coefficients = reuse_cov_gauss(
        features.T @ features,
        features.T @ outcomes,
        feature_norm=float(cohort.feature_bounds.norm or 0),
        outcome_norm=float(cohort.outcome_bounds.norm or 0),
        epsilon=EPSILON,
        delta=delta,
        rng=rng,
    )
    return centred @ coefficients


def main() -> None:
    """Simulate, fit, compare, print."""
    console = Console(width=100)
    rng = np.random.default_rng(2025)
    with console.status("simulating 6008 haplotypes with a published human demography (msprime)"):
        haplotypes = simulate_haplotypes()
        cohort = draw_cohort(haplotypes, d=D, l=L, rng=rng)
    n = len(cohort.features)
    delta = 1 / n**2
    console.print(
        f"Simulated cohort: {n} haplotypes, {D} SNPs, {L} outcomes (the paper's model). Centres come "
        "from a public panel of 1000 further haplotypes, and so do the norms of the paper's method; "
        "primo finds its norms privately."
    )
    model = primo.PrimoRegressor(
        EPSILON,
        delta,
        protection="both",
        feature_bounds=replace(cohort.feature_bounds, norm="auto"),
        outcome_bounds=replace(cohort.outcome_bounds, norm="auto"),
        verbose=True,
    ).fit(cohort.features, cohort.outcomes)
    table = Table(title=f"R² over {L} outcomes; privacy at ε = {EPSILON:g}, δ = 1/n²")
    table.add_column("method")
    table.add_column("protected")
    table.add_column("R²", justify="right")
    rows = (
        ("ordinary least squares", "nothing", least_squares(cohort)),
        ("paper: ReuseCovGauss", "features and outcomes", paper(cohort, delta, rng)),
        (f"primo ({model.estimator_})", "features and outcomes", model.predict(cohort.features)),
    )
    for name, protected, predicted in rows:
        table.add_row(name, protected, f"{r_squared(cohort, predicted):.3f}")
    console.print(table)
    console.print(model.release_.statement(), highlight=False, markup=False)


if __name__ == "__main__":
    main()
