"""Data of `../shared/data` whose features and outcomes are both real.

Columns are centred and scaled by their own means and standard deviations, which are taken to be public.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.data import SHARED, soybean_lines
from experiments.figures.features import MissingData, choose
from primo.errors import InputError

__all__ = ["REAL", "draw_real", "real_shape"]

Matrix = NDArray[np.float64]
Table = tuple[NDArray[Any], Matrix]  # features may be whole numbers

#: Counts of people and crimes have a few enormous values; further out than this is set to this.
_LIMIT = 3.0  # standard deviations


def draw_real(
    name: str, *, n: int | None, d: int | None, l: int | None, rng: np.random.Generator
) -> tuple[Matrix, Matrix]:
    """Draw n rows, d features and l outcomes of real data at random; None takes all.

    Returns
    -------
    features (n, d), outcomes (n, l)
        Centred; a missing value is 0, the centre.

    Raises
    ------
    MissingData
        If the data are not here.
    """
    features, outcomes = _table(name)
    rows = _some(len(features), n, rng, "rows")
    left = features[rows][:, _some(features.shape[1], d, rng, "features")].astype(np.float64)
    right = outcomes[rows][:, _some(outcomes.shape[1], l, rng, "outcomes")]
    left -= left.mean(axis=0)
    return left, right - right.mean(axis=0)


def real_shape(name: str) -> tuple[int, int, int]:
    """Return how many rows, features and outcomes a real data set has."""
    features, outcomes = _table(name)
    return len(features), features.shape[1], outcomes.shape[1]


def _some(
    available: int, wanted: int | None, rng: np.random.Generator, what: str
) -> NDArray[np.int64]:
    return choose(available, available if wanted is None else wanted, rng, what)


@functools.lru_cache(maxsize=4)
def _table(name: str) -> Table:
    if name not in REAL:
        raise InputError(f"real data {name!r} are unknown; known are {', '.join(REAL)}")
    folder, read = REAL[name]
    path = SHARED / folder
    if not path.exists():
        raise MissingData(f"real data {name!r} are not at {path}")
    return read(path)


def _soybeans(path: Path) -> Table:
    """5055 lines × 4240 SNPs × 69 traits in one environment each."""
    genotypes, outcomes = soybean_lines()
    return genotypes, np.nan_to_num(outcomes)


def _crime(path: Path) -> Table:
    """Communities and Crime: 2215 communities × 124 numbers of the census × 18 of the police."""
    names, columns = _read_csv(path)
    numbers = columns[names.index("population") :]  # before it: names and codes
    return _standardised(_floats(numbers[:-18])), _standardised(_floats(numbers[-18:]))


def _personality(path: Path) -> Table:
    """SAPA personality inventory: 4000 people × 135 items × 10 criteria (health, education, …)."""
    names, columns = _read_csv(path)
    items = [column for name, column in zip(names, columns, strict=True) if name.startswith("q_")]
    others = [c for name, c in zip(names, columns, strict=True) if not name.startswith("q_")]
    return _standardised(_floats(items)), _standardised(_floats(others))


_DRUGS = {
    "Age": ("18-24", "25-34", "35-44", "45-54", "55-64", "65+"),
    "Gender": ("Female", "Male"),
    "Education": (
        "Left school before 16 years",
        "Left school at 16 years",
        "Left school at 17 years",
        "Left school at 18 years",
        "Some college or university, no certificate or degree",
        "Professional certificate/diploma",
        "University degree",
        "Masters degree",
        "Doctorate degree",
    ),
}
_USE = (
    "Never Used",
    "Used over a Decade Ago",
    "Used in Last Decade",
    "Used in Last Year",
    "Used in Last Month",
    "Used in Last Week",
    "Used in Last Day",
)


def _drugs(path: Path) -> Table:
    """Drug use: 1885 people × 12 features (country and origin by indicators) × 19 drugs."""
    names, columns = _read_csv(path)
    features: list[Matrix] = []
    for name, column in zip(names[:12], columns[:12], strict=True):
        if name in _DRUGS:
            features.append(_ranks(column, _DRUGS[name]))
        elif name in ("Country", "Race"):
            # One level is left out: all of them add up to a constant.
            levels = sorted(set(column), key=column.count)[:-1]
            features += [np.array([float(x == level) for x in column]) for level in levels]
        else:
            features.append(_floats([column])[:, 0])
    outcomes = np.column_stack([_ranks(column, _USE) for column in columns[12:]])
    return _standardised(np.column_stack(features)), _standardised(outcomes)


def _ranks(column: list[str], levels: tuple[str, ...]) -> Matrix:
    return np.array([levels.index(value) for value in column], dtype=np.float64)


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    from pyarrow import csv

    every_text = csv.ConvertOptions(strings_can_be_null=False, check_utf8=True)
    names = csv.read_csv(path).column_names
    every_text.column_types = dict.fromkeys(names, "string")
    table = csv.read_csv(path, convert_options=every_text)
    return names, [column.to_pylist() for column in table.columns]


def _floats(columns: list[list[str]]) -> Matrix:
    """Return the columns side by side; what is empty, '?' or 'NA' is missing."""
    missing = ("", "?", "NA")
    return np.array([[np.nan if x in missing else float(x) for x in c] for c in columns]).T


def _standardised(columns: Matrix) -> Matrix:
    """Centre and scale, clip values that are far out, and replace missing ones by the centre."""
    scaled = (columns - np.nanmean(columns, axis=0)) / np.nanstd(columns, axis=0)
    return np.asarray(np.nan_to_num(np.clip(scaled, -_LIMIT, _LIMIT)))


_SOCIAL = "social_multioutcome"
#: Where each data set lies in `../shared/data`, and its reader.
REAL: dict[str, tuple[str, Callable[[Path], Table]]] = {
    "soynam": ("soynam", _soybeans),
    "crime": (f"{_SOCIAL}/CommViolPredUnnormalizedData.csv.gz", _crime),
    "drugs": (f"{_SOCIAL}/drug.consumption.csv.gz", _drugs),
    "personality": (f"{_SOCIAL}/spi.csv.gz", _personality),
}
