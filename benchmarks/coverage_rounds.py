"""Do 95 % intervals cover 95 % after several rounds? Real fits of simulated rows.

Run `python -m benchmarks.coverage_rounds` (a minute or two), with --draws for more than 20 fits a cell.
The exit status is 1 if trusted intervals of slopes or of R² cover less than they claim, by more than
chance explains. Wider than claimed is allowed: intervals after rounds are on the safe side, because they
charge the noise of the covariance to the whole of the coefficients.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy import stats

import primo
from primo.errors import ReproducibleNoiseWarning
from primo.released import uncertainty
from primo.released.release import Release

LEVEL = 0.95
LEAST = 0.93
CHANCE = 1e-3  # that a cell which covers 93 % is called bad


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the table."""

    n: int
    d: int
    l: int
    epsilon: float
    signal: float  # standard deviation of what is explained, over that of the rest
    norm: float  # of the bounds, in typical lengths of a row
    rounds: int = 3
    protection: str = "both"


CELLS = (
    Cell(n=5000, d=5, l=20, epsilon=3, signal=0.7, norm=1.4),
    Cell(n=5000, d=5, l=1, epsilon=3, signal=0.7, norm=1.6),
    Cell(n=3000, d=20, l=5, epsilon=5, signal=1.5, norm=1.3),
    Cell(n=3000, d=20, l=5, epsilon=5, signal=1.5, norm=1.3, rounds=5),
    Cell(n=5000, d=10, l=5, epsilon=5, signal=1.5, norm=2.2),
    Cell(n=2000, d=10, l=3, epsilon=1, signal=0.5, norm=1.5),
    Cell(n=8000, d=3, l=50, epsilon=1, signal=0.0, norm=1.2),
    Cell(n=5000, d=5, l=20, epsilon=3, signal=0.7, norm=1.4, protection="features"),
    Cell(n=5000, d=10, l=5, epsilon=5, signal=1.5, norm=2.2, protection="features"),
    Cell(n=2000, d=10, l=3, epsilon=1, signal=0.5, norm=1.5, protection="features"),
)


@dataclass
class Count:
    """Trusted intervals, how many of them cover, and all that were looked at."""

    covered: int = 0
    trusted: int = 0
    all: int = 0

    def add(self, inside: np.ndarray, trusted: np.ndarray) -> None:
        self.covered += int((inside & trusted).sum())
        self.trusted += int(trusted.sum())
        self.all += inside.size

    @property
    def words(self) -> str:
        if not self.trusted:
            return f"none of {self.all} trusted"
        return f"{self.covered / self.trusted:.1%} of {self.trusted}"

    @property
    def enough(self) -> bool:
        """Whether so few covered intervals are not too surprising, if 93 % is the truth."""
        return stats.binom.cdf(self.covered, self.trusted, LEAST) > CHANCE or not self.trusted


def fit(cell: Cell, seed: int) -> tuple[Release, np.ndarray, np.ndarray]:
    """Return a release, the true slopes (d, l) and the R² (l,) of least squares on the rows."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(cell.n, cell.d))
    slopes = rng.normal(size=(cell.d, cell.l)) * cell.signal / np.sqrt(cell.d)
    outcomes = features @ slopes + rng.normal(size=(cell.n, cell.l))
    length = np.sqrt(cell.l * (1 + cell.signal**2))
    model = primo.PrimoRegressor(
        epsilon=cell.epsilon,
        delta=1 / cell.n**2,
        protection=cell.protection,
        feature_bounds=primo.Bounds(norm=cell.norm * np.sqrt(cell.d)),
        outcome_bounds=primo.Bounds(norm=cell.norm * length),
        rounds=cell.rounds,
        random_state=seed,
    )
    release = model.fit(features, outcomes).release_
    about, rows = outcomes - outcomes.mean(axis=0), features - features.mean(axis=0)
    left = about - rows @ np.linalg.lstsq(rows, about, rcond=None)[0]
    return release, slopes, 1 - (left**2).sum(axis=0) / (about**2).sum(axis=0)


def measure(cell: Cell, draws: int) -> tuple[Count, Count]:
    """Count the intervals of slopes and of R² over several fits."""
    slopes, fits = Count(), Count()
    for seed in range(draws):
        release, truth, explained = fit(cell, seed)
        table = uncertainty.tidy(release)
        place = {name: i for i, name in enumerate(release.feature_names)}
        column = {name: j for j, name in enumerate(release.outcome_names)}
        chosen = np.array([name in place for name in table["feature"]])
        true = np.array(
            [
                truth[place[name], column[outcome]] if name in place else 0.0
                for name, outcome in zip(table["feature"], table["outcome"], strict=True)
            ]
        )
        lower, upper = np.asarray(table["lower"]), np.asarray(table["upper"])
        trusted = np.asarray(table["trusted"], dtype=bool)
        slopes.add(((lower <= true) & (true <= upper))[chosen], trusted[chosen])
        found = release.goodness_of_fit(level=LEVEL)
        inside = (found.lower <= explained) & (explained <= found.upper)
        fits.add(inside, found.trusted)
    return slopes, fits


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20, help="fits per cell (20 by default)")
    draws = parser.parse_args().draws
    warnings.simplefilter("ignore", ReproducibleNoiseWarning)
    table = Table(title=f"Trusted 95 % intervals that cover, {draws} fits per cell")
    for name in ("n", "d", "l", "ε", "signal", "norm", "rounds", "protected", "slopes", "R²"):
        table.add_column(name)
    good = True
    for cell in CELLS:
        slopes, fits = measure(cell, draws)
        good = good and slopes.enough and fits.enough
        *numbers, protection = vars(cell).values()
        table.add_row(*(f"{x:g}" for x in numbers), protection, slopes.words, fits.words)
    Console(width=120).print(table)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
