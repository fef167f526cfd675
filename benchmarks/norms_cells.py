"""The cells of `benchmarks.norms`: those its rule was tuned on, and those that judge it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.stress.designs import at_level, genotypes, lognormal, student, vital_signs
from benchmarks.stress.problem import Problem
from benchmarks.stress.real import Real
from benchmarks.stress.real_cells import (
    CRIMES_RANGE,
    EMPLOYMENT_RANGE,
    HOUSING_RANGE,
    INCOME_RANGE,
    LABELS,
    MOBILITY_RANGE,
)
from benchmarks.stress.rules import frequencies, from_zero, plain, ranged
from benchmarks.stress.simulated import Simulated

__all__ = ["CELLS", "Draw"]

Draw = Callable[[np.random.Generator], Problem]

CELLS: dict[str, tuple[str, Draw]] = {
    "genomes 0–2": (
        "tuned",
        Real(table="genomes", n=1500, d=100, features=ranged(0, 2), outcomes=LABELS),
    ),
    "crime 0–100": (
        "tuned",
        Real(table="crime", n=1500, features=ranged(0, 100), outcomes=ranged(0, CRIMES_RANGE)),
    ),
    "crime, panel": ("tuned", Real(table="crime", n=1500)),
    "housing, ranges": (
        "tuned",
        Real(
            table="housing",
            n=10_000,
            features=ranged(*HOUSING_RANGE),
            outcomes=ranged(0, 500_001),
        ),
    ),
    "normal d=10 l=1": ("tuned", Simulated(n=5000, d=10, l=1)),
    "normal d=25 l=11": ("tuned", Simulated(n=5000, d=25, l=11)),
    "student 3": ("tuned", Simulated(n=5000, d=10, l=3, design=student(3), tails=3)),
    "far off, d=10": (
        "tuned",
        Simulated(
            n=5000,
            d=10,
            design=at_level(6, 1),
            means=(2.0,),
            features=ranged(-10, 10),
            outcomes=ranged(-6, 6),
        ),
    ),
    "genomes, frequencies": (
        "tuned",
        Real(table="genomes", n=1500, d=100, features=frequencies(), outcomes=LABELS),
    ),
    "soybeans 0–2": ("judged", Real(table="soybeans", n=3500, d=100, features=ranged(0, 2))),
    "soybeans, five from 0": (
        "judged",
        Real(table="soybeans", n=3500, d=10, l=5, features=ranged(0, 2), outcomes=from_zero()),
    ),
    "personality 1–6": ("judged", Real(table="personality", n=1500, features=ranged(1, 6))),
    "drugs": ("judged", Real(table="drugs", n=1200)),
    "income": (
        "judged",
        Real(table="income", n=20_000, features=ranged(0, INCOME_RANGE), outcomes=ranged(0, 20)),
    ),
    "employment": (
        "tuned",
        Real(
            table="employment",
            n=10_000,
            features=ranged(0, EMPLOYMENT_RANGE),
            outcomes=ranged(0, 1),
        ),
    ),
    "mobility": (
        "judged",
        Real(
            table="mobility",
            n=10_000,
            features=ranged(0, MOBILITY_RANGE),
            outcomes=ranged(0, (99, 10, 1)),
        ),
    ),
    "student 2.1, l=11": (
        "judged",
        Simulated(n=5000, d=25, l=11, design=student(2.1), tails=2.5),
    ),
    "lognormal": (
        "judged",
        Simulated(n=5000, d=10, l=3, design=lognormal(1.0), features=ranged(0, 50)),
    ),
    "genotypes 0–2, l=11": (
        "judged",
        Simulated(n=5000, d=25, l=11, design=genotypes(), features=ranged(0, 2)),
    ),
    "vital signs, no range": (
        "judged",
        Simulated(n=5000, d=5, l=2, design=vital_signs, features=plain(), outcomes=plain()),
    ),
    "income, no range": (
        "judged",
        Real(table="income", n=20_000, features=plain(), outcomes=plain()),
    ),
}
