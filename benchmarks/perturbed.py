"""Noise on the outcomes themselves: against noise on XᵀY, and with a prior for every person.

Run `python -m benchmarks.perturbed` (some minutes), with --quick for fewer draws. Two tables:

1. `association="perturbed"` against `"gauss"`, real releases of simulated rows with d from below to
   above n: R² of the coefficients on new rows, and the noise of one feature's association, root mean
   square over features, in units of its sampling error.
2. What a prior per person adds (after GOPHER: Nandi, Cho, Neel, arXiv 2512.04225, whose mechanisms are
   others). Stage one spends a share of μ² on a private regression of the outcome on a few public
   features (leading principal components, covariates). Stage two perturbs what its predictions leave,
   with a smaller clip and the rest of μ². The clip is the best of a grid in every cell, plain ones too,
   which nobody can know beforehand. Printed is the correlation, over all features, of single effects
   with those of the rows without noise; "plain" has no stage one.

Soybean lines (../shared/data) are left out where the file is not there.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import primo
from experiments.data import SHARED, soybean_lines
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_of, mu_of
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare, release_rows

__all__ = ["CLIPS", "SHARES", "Person", "crossing", "effects_kept", "people"]

Matrix = NDArray[np.float64]

SHARES = (0.05, 0.1, 0.25, 0.5)  # of mu², for stage one
CLIPS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # standard deviations of what is perturbed
BOUND = 3.0  # standard deviations of an outcome: the public bound that stage one is fitted with
COMPONENTS = 20
EPSILONS = (1.0, 5.0)
LINES = 3  # outcomes of the soybean lines, those measured most often
SIZES = ((300, 75), (300, 280), (300, 320), (300, 1200))  # n, d of the first table


@dataclass(frozen=True, kw_only=True, eq=False)
class Person:
    """One cohort: the features whose effects are wanted, those that predict, and an outcome."""

    name: str
    features: Matrix  # (n, d) standardised
    predictors: Matrix  # (n, k) public as well
    outcome: Matrix  # (n,) standardised


def people(*, seed: int = 0) -> Iterator[Person]:
    """Yield cohorts: simulated without and with strong covariates, and real soybean lines."""
    rng = np.random.default_rng(seed)
    n, d = 5000, 500
    x = _standard(_genotypes(rng, n, d))
    slopes = rng.normal(size=d) / math.sqrt(d)
    genetic = x @ slopes
    genetic *= math.sqrt(0.5) / genetic.std()
    noise = rng.normal(size=n)
    plain = genetic + math.sqrt(0.5) * noise
    yield Person(
        name="simulated, h² = 0.5",
        features=x,
        predictors=_components(x),
        outcome=_standard(plain[:, None])[:, 0],
    )
    covariates = rng.normal(size=(n, 3))
    for share in (0.3, 0.8):
        own = covariates @ np.ones(3) / math.sqrt(3) * math.sqrt(share)
        y = own + math.sqrt(1 - share) * _standard(plain[:, None])[:, 0]
        yield Person(
            name=f"the same, covariates explain {share:.0%}",
            features=x,
            predictors=covariates,
            outcome=_standard(y[:, None])[:, 0],
        )
    if not (SHARED / "soynam" / "soynam_multi.npz").exists():
        return
    genotypes, outcomes = soybean_lines()
    best_known = np.argsort(-np.isfinite(outcomes).sum(axis=0), kind="stable")
    for j in best_known[:LINES]:
        seen = np.isfinite(outcomes[:, j])
        features = _standard(genotypes[seen].astype(np.float64))
        yield Person(
            name=f"soybean lines, outcome {j + 1}",
            features=features,
            predictors=_components(features),
            outcome=_standard(outcomes[seen, j][:, None])[:, 0],
        )


def effects_kept(
    person: Person, *, epsilon: float, share: float, draws: int, seed: int = 0
) -> tuple[float, float]:
    """Return how single effects correlate with those without noise, and R² of the private predictor.

    `share` of mu² is for the predictor; 0: none, plain noise. The clip is the best of `CLIPS`.
    """
    n = len(person.outcome)
    budget = Budget(epsilon=epsilon, delta=1 / n**2)
    mu = mu_of(budget)
    rng = np.random.default_rng(seed)  # the same noise whatever the share
    exact = person.features.T @ person.outcome
    kept, explained = np.zeros(len(CLIPS)), 0.0
    for draw in range(draws):
        predicted = np.zeros(n)
        if share > 0:
            first = epsilon_of(math.sqrt(share) * mu, budget.delta)
            predicted = _predicted(person, epsilon=first, delta=budget.delta, seed=seed + draw)
        left = person.outcome - predicted
        explained += (1 - float(np.mean(left**2))) / draws
        size = float(left.std())
        unit = rng.standard_normal(n)
        for k, clip in enumerate(np.array(CLIPS) * size):
            scale = 2 * clip / (math.sqrt(1 - share) * mu)
            noisy = predicted + np.clip(left, -clip, clip) + scale * unit
            kept[k] += float(np.corrcoef(person.features.T @ noisy, exact)[0, 1]) / draws
    return float(kept.max()), explained


def crossing(n: int, d: int, *, epsilon: float, draws: int) -> dict[str, tuple[float, float]]:
    """Return R² on new rows, and the noise of single associations over their sampling error."""
    found = {}
    for association in ("gauss", "perturbed"):
        scores, noise = [], []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            x, new = (rng.normal(size=(rows, d)) for rows in (n, 2000))
            slopes = rng.normal(size=(d, 1)) * math.sqrt(0.5 / d)
            y, new_y = (
                part @ slopes + math.sqrt(0.5) * rng.normal(size=(len(part), 1))
                for part in (x, new)
            )
            source = ArraySource(
                features=x,
                outcomes=y,
                feature_names=tuple(f"x{i}" for i in range(d)),
                outcome_names=("y",),
            )
            settings = Settings(
                epsilon=epsilon,
                delta=1 / n**2,
                protection="outcomes",
                association=association,
                outcome_bounds=Bounds(norm=BOUND),
            )
            bits = RandomBits.seeded(seed + 1)
            release = release_rows(source, prepare(source, settings), bits=bits)
            fitted = release.coefficients().predict(new)
            scores.append(1 - float(np.mean((new_y - fitted) ** 2) / new_y.var()))
            plan = release.plan
            scaled = (x - plan.features.centre) / plan.features.scale
            own = np.linalg.norm(scaled, axis=0)
            exact = plan.row_sigma * own if plan.row_sigma else np.full(d, plan.association_sigma)
            noise.append(math.sqrt(float(np.mean((exact / own) ** 2))) / float(y.std()))
        found[association] = float(np.mean(scores)), float(np.mean(noise))
    return found


def _predicted(person: Person, *, epsilon: float, delta: float, seed: int) -> Matrix:
    model = primo.PrimoRegressor(
        epsilon=epsilon,
        delta=delta,
        protection="outcomes",
        outcome_bounds=Bounds(norm=BOUND),
        rounds=1,
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        fitted = model.fit(person.predictors, person.outcome)
    return np.asarray(fitted.predict(person.predictors)).reshape(-1)


def _genotypes(rng: np.random.Generator, n: int, d: int) -> Matrix:
    """Return genotypes in blocks of linkage, with a little population structure."""
    ancestry = rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) * 0.3
    shared = np.repeat(rng.normal(size=(n, d // 10)), 10, axis=1)
    dosage = 0.6 * shared + 0.8 * rng.normal(size=(n, d)) + ancestry
    return np.asarray((dosage > 0.3).astype(np.float64) + (dosage > 1.2))


def _components(x: Matrix) -> Matrix:
    """Return leading principal components of public features, (n, COMPONENTS)."""
    wide = x.shape[1] > len(x)
    gram = x @ x.T if wide else x.T @ x
    _, vectors = np.linalg.eigh(gram)
    leading = vectors[:, -COMPONENTS:]
    return _standard(leading if wide else x @ leading)


def _standard(x: Matrix) -> Matrix:
    spread = x.std(axis=0)
    kept = x[:, spread > 0] if x.shape[1] > 1 else x
    return np.asarray((kept - kept.mean(axis=0)) / kept.std(axis=0))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer draws")
    quick = parser.parse_args().quick
    console = Console()
    table = Table(
        title="Noise on the outcomes against noise on XᵀY (ε = 20, one outcome, h² = 0.5)"
    )
    for head in ("n", "d", "R², gauss", "R², perturbed", "noise, gauss", "noise, perturbed"):
        table.add_column(head, justify="right")
    for n, d in SIZES:
        found = crossing(n, d, epsilon=20.0, draws=4 if quick else 12)
        (score, noise), (own_score, own_noise) = found["gauss"], found["perturbed"]
        numbers = (f"{score:.3f}", f"{own_score:.3f}", f"{noise:.2f}", f"{own_noise:.2f}")
        table.add_row(str(n), str(d), *numbers)
    console.print(table)
    table = Table(
        title="Correlation of single effects with exact ones; in brackets R² of stage one"
    )
    for head in ("rows", "ε", "plain", *(f"{share:.0%} for a prior" for share in SHARES)):
        table.add_column(head, justify="left" if head == "rows" else "right")
    for person in people():
        for epsilon in EPSILONS:
            draws = 3 if quick else 6
            plain, _ = effects_kept(person, epsilon=epsilon, share=0.0, draws=draws)
            cells = [f"{plain:.2f}"]
            for share in SHARES:
                kept, r2 = effects_kept(person, epsilon=epsilon, share=share, draws=draws)
                cells.append(f"{kept:.2f} ({r2:.2f})")
            table.add_row(person.name, f"{epsilon:g}", *cells)
    console.print(table)


if __name__ == "__main__":
    main()
