"""The cells on real rows; bounds come from scales, code books or a panel of other rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.stress.problem import Cell
from benchmarks.stress.real import Real
from benchmarks.stress.rules import centred, fixed, frequencies, from_zero, ranged
from primo.privacy.bounds import Bounds

__all__ = ["real_cells"]

#: Five indicators of which one is 1.
LABELS = fixed(Bounds(centre=0.2, scale=0.4, norm=5**0.5))

#: Tops of the ranges of the census' codes, in the order of the columns; all start at 0.
INCOME_RANGE = (100, 8, 24, 5, 18, 99, 1, 9)
EMPLOYMENT_RANGE = (100, 24, 5, 18, 1, 8, 5, 2, 4, 4, 1, 1, 1, 1, 1, 9)
MOBILITY_RANGE = (16, 24, 5, 1, 1, 5, 4, 4, 1, 1, 1, 1, 1, 9, 2, 9, 6, 200)
HOUSING_RANGE = ((-125, 32, 0, 0, 0, 0, 0, 0), (-114, 42, 60, 40_000, 8000, 40_000, 8000, 16))
CRIMES_RANGE = (100, 1000, 2000, 5000, 10_000, 3000)  # per 100 000 people and year


def _cell(
    family: str,
    name: str,
    epsilon: float,
    *,
    protection: str = "both",
    intercept: bool = True,
    delta: float | None = None,
    quick: bool = False,
    **how: Any,
) -> Cell:
    return Cell(
        family=family,
        name=name,
        epsilon=epsilon,
        protection=protection,
        intercept=intercept,
        delta=delta,
        quick=quick,
        problem=Real(**how),
    )


def real_cells() -> Iterator[Cell]:
    """Yield all families."""
    yield from _genomes()
    yield from _soybeans()
    yield from _people()


def _genomes() -> Iterator[Cell]:
    how: dict[str, Any] = {"table": "genomes", "n": 1500, "d": 300, "outcomes": LABELS}
    how["delta"] = 4e-7
    cell = partial(_cell, "real: 1000 Genomes")
    whole: dict[str, Any] = {**how, "features": ranged(0, 2)}
    known: dict[str, Any] = {**how, "features": frequencies()}
    for epsilon in (1, 3, 5):
        yield cell(f"0–2, ε={epsilon}", epsilon, **whole, quick=epsilon == 3)
        yield cell(f"frequencies, ε={epsilon}", epsilon, **known, quick=epsilon == 3)
    yield cell("0–2, no intercept", 3, **whole, intercept=False)
    yield cell("0–2, one label", 3, **whole, l=1, quick=True)
    yield cell("0–2, features protected", 3, **whole, protection="features")
    yield cell("0–2, outcomes protected", 3, **whole, protection="outcomes")


def _soybeans() -> Iterator[Cell]:
    cell = partial(_cell, "real: soybeans", table="soybeans", n=3500)
    yield cell("0–2", 5, d=100, features=ranged(0, 2))
    yield cell("frequencies", 5, d=400, features=frequencies())
    yield cell("0–2, small budget", 1, d=100, features=ranged(0, 2))
    yield cell("five traits from 0", 10, d=10, l=5, features=ranged(0, 2), outcomes=from_zero())


def _people() -> Iterator[Cell]:
    cell = partial(_cell, "real: people and places")
    rates = ranged(0, CRIMES_RANGE, 1.2)
    yield cell("crime 0–100", 3, table="crime", n=1500, features=ranged(0, 100), outcomes=rates)
    yield cell("crime, panel", 3, table="crime", n=1500, quick=True)
    yield cell("crime, panel, small budget", 0.5, table="crime", n=1500)
    items: dict[str, Any] = {"table": "personality", "n": 1500}
    yield cell("personality 1–6", 5, **items, features=ranged(1, 6, 1.2))
    yield cell("personality, features protected", 5, **items, protection="features")
    yield cell("drugs", 3, table="drugs", n=1200)
    yield cell("drugs, small budget", 1, table="drugs", n=1200, intercept=False)
    income: dict[str, Any] = {"table": "income", "features": ranged(0, INCOME_RANGE)}
    yield cell("income", 1, **income, n=20_000, outcomes=ranged(0, 20))
    yield cell("income, few rows", 1, **income, n=1000, outcomes=ranged(0, 20))
    codes = ranged(0, EMPLOYMENT_RANGE)
    yield cell("employment", 1, table="employment", n=10_000, features=codes, outcomes=ranged(0, 1))
    yield cell(
        "mobility",
        3,
        table="mobility",
        n=10_000,
        features=ranged(0, MOBILITY_RANGE),
        outcomes=ranged(0, (99, 10, 1)),
    )
    value = ranged(0, 500_001)
    homes: dict[str, Any] = {"table": "housing", "outcomes": value}
    for epsilon in (1, 0.3):
        ranges = ranged(*HOUSING_RANGE)
        yield cell(f"housing, ranges, ε={epsilon:g}", epsilon, n=10_000, features=ranges, **homes)
    yield cell("housing, panel", 1, n=2000, features=centred(), **homes)
