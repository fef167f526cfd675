"""Real problems of `../shared/data`: every draw picks new rows to fit and new rows to score."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.stress.problem import Problem
from benchmarks.stress.rules import Rule, centred
from experiments.data import SHARED
from experiments.figures.features import MissingData

__all__ = ["Real", "use_folder"]

Matrix = NDArray[np.float64]
Table = tuple[NDArray[np.float64] | NDArray[np.int8], Matrix]

_SOCIAL = "social_multioutcome"
_PANEL = centred()
_folder = SHARED


def use_folder(folder: Path) -> None:
    """Read real data from another folder than the one beside the checkout."""
    global _folder  # noqa: PLW0603  a worker sets it once, before it reads anything
    _folder = folder
    load.cache_clear()


@dataclass(frozen=True, kw_only=True)
class Real:
    """How to draw a problem from real rows; call it with a generator."""

    table: str
    n: int
    d: int | None = None  # features drawn at random; all if None
    l: int | None = None
    features: Rule = _PANEL
    outcomes: Rule = _PANEL
    held: int = 5000  # at most so many rows are scored

    def __call__(self, rng: np.random.Generator) -> Problem:
        """Draw rows and columns at random; complete rows only."""
        x, y = load(self.table)
        rows = rng.permutation(len(x))[: self.n + self.held]
        left = x[rows]
        if self.d is not None:
            left = left[:, rng.permutation(x.shape[1])[: self.d]]
        right = y[rows]
        if self.l is not None:
            right = right[:, rng.permutation(y.shape[1])[: self.l]]
        left = left.astype(np.float64)
        held = slice(self.n, None)
        return Problem(
            features=left[: self.n],
            outcomes=right[: self.n],
            held_features=left[held],
            held_outcomes=right[held],
            feature_bounds=self.features(left[held]),
            outcome_bounds=self.outcomes(right[held]),
        )


@lru_cache(maxsize=12)
def load(name: str) -> Table:
    """Read a data set once per process; raise `MissingData` if its files do not exist."""
    folder, read = TABLES[name]
    path = _folder / folder
    if not path.exists():
        raise MissingData(f"{folder} is not in {_folder}")
    return read(path)


def _genomes(path: Path) -> Table:
    """1000 Genomes: 2504 people × dosages of SNPs with frequency ≥ 5 % × 5 superpopulations."""
    with np.load(path) as found:
        packed = found["packed"][found["maf"] >= 0.05]
        population = found["superpop"]
    haplotypes = np.unpackbits(packed, axis=1)[:, :5008].T.astype(np.int8)
    labels = np.unique(population)
    return haplotypes[0::2] + haplotypes[1::2], (population[:, None] == labels).astype(np.float64)


def _soybeans(path: Path) -> Table:
    """SoyNAM: 4596 lines × 4240 SNPs × 69 traits in units of their own, complete lines."""
    with np.load(path) as found:
        genotypes = found["X"].astype(np.int8)
        traits = found["Y"][:, found["well_covered"]].astype(np.float64)
    whole = np.isfinite(traits).all(axis=1)
    return genotypes[whole], traits[whole]


def _numbers(path: Path, columns: Callable[[str], bool]) -> tuple[list[str], Matrix]:
    """Read numeric columns; what is empty, '?' or 'NA' is NaN."""
    from pyarrow import csv

    options = csv.ConvertOptions(null_values=["", "?", "NA"])
    table = csv.read_csv(path, convert_options=options)
    names = [name for name in table.column_names if columns(name)]
    return names, np.column_stack(
        [table[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in names]
    )


def _split(path: Path, features: Callable[[str], bool], outcomes: Callable[[str], bool]) -> Table:
    _, x = _numbers(path, features)
    _, y = _numbers(path, outcomes)
    whole = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    return x[whole], y[whole]


CRIMES = ("murdPerPop", "robbbPerPop", "assaultPerPop", "burglPerPop", "larcPerPop",
          "autoTheftPerPop")  # fmt: skip


def _crime(path: Path) -> Table:
    """Communities: percentages of the census × crimes per 100 000 people."""

    def percentage(name: str) -> bool:
        known = not name.startswith(("Lemas", "PctPolic"))
        return known and ("pct" in name.lower())

    return _split(path, percentage, lambda name: name in CRIMES)


def _personality(path: Path) -> Table:
    """Answers 1–6 to 135 items × 10 criteria (age, health, education, …)."""
    return _split(path, lambda name: name.startswith("q_"), lambda name: not name.startswith("q_"))


def _columns(outcomes: Sequence[str], left_out: Sequence[str] = ()) -> Callable[[Path], Table]:
    def read(path: Path) -> Table:
        return _split(
            path,
            lambda name: name not in outcomes and name not in left_out,
            lambda name: name in outcomes,
        )

    return read


def _drugs(path: Path) -> Table:
    """Drug use: 1885 people × 7 scores, age, sex and education × 19 drugs by rank of recency."""
    from experiments.figures.real import REAL

    features, outcomes = REAL["drugs"][1](path)
    return np.asarray(features, dtype=np.float64), outcomes


TABLES: dict[str, tuple[str, Callable[[Path], Table]]] = {
    "genomes": ("kg_haplotypes_5008/kg_hap5008.npz", _genomes),
    "soybeans": ("soynam/soynam_multi.npz", _soybeans),
    "crime": (f"{_SOCIAL}/CommViolPredUnnormalizedData.csv.gz", _crime),
    "personality": (f"{_SOCIAL}/spi.csv.gz", _personality),
    "drugs": (f"{_SOCIAL}/drug.consumption.csv.gz", _drugs),
    "income": (f"{_SOCIAL}/ACSincome-LIN_train.csv.gz", _columns(["PINCP"])),
    "employment": (f"{_SOCIAL}/ACSemployment_train.csv.gz", _columns(["ESR"])),
    "mobility": (f"{_SOCIAL}/ACSmobility_train.csv.gz", _columns(["MIG", "PINCP", "WKHP"])),
    "housing": (
        f"{_SOCIAL}/california_housing.csv.gz",
        _columns(["median_house_value"], ["ocean_proximity"]),
    ),
}
