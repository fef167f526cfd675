"""The simulated cells, by family.

Means that lie far off are placed so that their released mean is known to a fraction of a standard
deviation: otherwise no estimator could meet the target.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.stress.designs import (
    at_level,
    blocks,
    collinear,
    duplicates,
    genotypes,
    indicators,
    lognormal,
    low_rank,
    powers,
    rare,
    student,
    vital_signs,
)
from benchmarks.stress.problem import Cell
from benchmarks.stress.rules import centred, frequencies, plain, ranged, without_offset
from benchmarks.stress.simulated import Simulated, mixed, shared, sparse, weak

__all__ = ["simulated_cells"]

_EXPRESSION = at_level(8.0, 1.0)  # logarithms of gene expression, range 0–12
_TWO_FAR = (16.0, 23.5)  # means of two yeast traits, in standard deviations


def _cell(
    family: str,
    name: str,
    epsilon: float,
    *,
    protection: str = "both",
    intercept: bool = True,
    quick: bool = False,
    **how: Any,
) -> Cell:
    return Cell(
        family=family,
        name=name,
        epsilon=epsilon,
        protection=protection,
        intercept=intercept,
        quick=quick,
        problem=Simulated(**how),
    )


def simulated_cells() -> Iterator[Cell]:
    """Yield all families."""
    yield from _off_centre()
    yield from _collinear()
    yield from _heavy()
    yield from _means()
    yield from _nothing()
    yield from _sizes()
    yield from _protections()


def _off_centre() -> Iterator[Cell]:
    cell = partial(_cell, "off-centre ranges")
    snps: dict[str, Any] = {"n": 1500, "d": 300, "l": 5, "design": genotypes()}
    yield cell("genotypes 0–2", 3, **snps, features=ranged(0, 2), quick=True)
    yield cell("genotypes, frequencies", 3, **snps, features=frequencies(), quick=True)
    yield cell("genotypes 0–2, no intercept", 3, **snps, features=ranged(0, 2), intercept=False)
    few: dict[str, Any] = {"features": ranged(0, 2), "r2": 0.3}
    yield cell("frequency 10 %", 1, n=20_000, d=50, l=5, design=genotypes(0.1), **few)
    yield cell("small budget", 0.3, n=20_000, d=25, design=genotypes(), **few)
    levels: dict[str, Any] = {"design": _EXPRESSION}
    yield cell(
        "expression 0–12", 5, n=2000, d=100, l=5, **levels, features=ranged(0, 12, 1.2), quick=True
    )
    yield cell(
        "expression, norm without offset",
        5,
        n=500,
        d=50,
        l=20,
        **levels,
        features=without_offset(0, 12),
        quick=True,
    )
    yield cell(
        "expression, many rows", 10, n=20_000, d=50, r2=0.6, **levels, features=ranged(0, 12, 1.1)
    )
    year = at_level(2010.0, 5.0)
    yield cell(
        "a year", 1, n=2000, d=1, r2=0.9, design=year, features=ranged(1900, 2100), quick=True
    )
    edge = at_level(900.0, 10.0)
    yield cell("at the edge", 1, n=20_000, d=1, r2=0.8, design=edge, features=ranged(0, 1000))
    yield cell("powers of an age", 3, n=5000, d=6, design=powers, features=ranged(0, 1), quick=True)
    yield cell(
        "vital signs",
        1,
        n=3000,
        d=5,
        r2=0.5,
        design=vital_signs,
        features=ranged([0, 10, 50, 1, 0], [120, 70, 250, 15, 1]),
        quick=True,
    )
    yield cell("two deviations off", 10, n=5000, d=50, l=50, features=centred(off=2), r2=0.3)
    yield cell("range ±20", 3, n=5000, d=20, l=5, features=ranged(-20, 20), outcomes=ranged(-6, 6))


def _collinear() -> Iterator[Cell]:
    cell = partial(_cell, "collinear features")
    for condition, n, d, l, epsilon, r2 in (
        (1e3, 155, 5, 1, 3, 0.7),
        (1e4, 5000, 33, 1, 3, 0.5),
        (1e5, 15_000, 33, 1, 1, 0.7),
        (1e6, 614, 9, 1, 10, 0.95),
        (1e7, 1000, 12, 1, 10, 0.9),
        (1e7, 2000, 20, 5, 3, 0.6),
        (1e6, 4000, 30, 50, 5, 0.4),
    ):
        name = f"condition {condition:.0e}".replace("e+0", "e")
        yield cell(
            f"{name}, l={l}",
            epsilon,
            n=n,
            d=d,
            l=l,
            r2=r2,
            design=collinear(condition),
            quick=n in (155, 614),
        )
    yield cell(
        "condition 1e5, off centre",
        5,
        n=2000,
        d=10,
        r2=0.7,
        design=at_level(7.0, 0.5, collinear(1e5)),
        features=ranged(0, 10, 1.1),
    )
    yield cell("near copies", 5, n=3000, d=20, r2=0.6, design=duplicates(1e-3))
    yield cell("signal in the weak part", 5, n=3000, d=20, design=collinear(1e4), effects=weak)
    yield cell("three factors", 3, n=3000, d=60, l=50, design=low_rank(3, 0.01), r2=0.5)
    yield cell(
        "a category's indicators", 1, n=3000, d=12, l=5, design=indicators, features=ranged(0, 1, 1)
    )


def _heavy() -> Iterator[Cell]:
    cell = partial(_cell, "heavy tails")
    yield cell("Student 2.5", 3, n=2000, d=20, l=5, design=student(2.5))
    yield cell(
        "Student 2.1, short norm", 5, n=4000, d=10, design=student(2.1), features=centred(0.5)
    )
    yield cell(
        "lognormal 0–50", 3, n=4000, d=8, r2=0.6, design=lognormal(1.2), features=ranged(0, 50)
    )
    yield cell("lognormal, panel", 3, n=3000, d=30, l=5, design=lognormal(1.0), quick=True)
    yield cell(
        "rare indicators", 3, n=5000, d=30, l=5, design=rare(0.02), features=ranged(0, 1, 1.5)
    )
    yield cell("heavy residuals", 1, n=5000, d=10, l=5, tails=2.5)
    yield cell("both, one outcome", 1, n=10_000, d=20, tails=2.5, design=student(3), r2=0.5)


def _means() -> Iterator[Cell]:
    cell = partial(_cell, "far-off outcome means")
    yeast: dict[str, Any] = {"l": 45, "r2": 0.2, "far": _TWO_FAR, "outcomes": plain()}
    yield cell("45 outcomes, two far", 1, n=6000, d=100, **yeast, quick=True)
    yield cell("45 outcomes, two far, wide", 2, n=10_000, d=1000, **yeast, design=low_rank(30))
    yield cell("45 outcomes, two far, large budget", 10, n=1000, d=50, **yeast, quick=True)
    yield cell("one at 10", 1, n=8000, d=10, far=(10.0,), outcomes=plain())
    yield cell("five at 5", 3, n=5000, d=20, l=5, means=(5.0,), outcomes=plain())
    spread = (-3.0, 0.0, 0.0, 1.0, 0.3)
    yield cell("from −3 to 1", 3, n=5000, d=50, l=50, means=spread, outcomes=plain())
    many: dict[str, Any] = {"l": 1000, "far": (8.0,) * 20, "outcomes": plain()}
    yield cell("1000 outcomes, 20 far", 5, n=10_000, d=10, **many, effects=shared)
    yield cell(
        "features off too",
        3,
        n=5000,
        d=20,
        l=5,
        means=(4.0,),
        design=_EXPRESSION,
        features=ranged(0, 12, 1.2),
        outcomes=plain(),
        quick=True,
    )
    small: dict[str, Any] = {"means": (0.2, 0.0), "outcomes": plain()}
    yield cell("nearly centred, small budget", 0.3, n=2000, d=20, l=50, **small)


def _nothing() -> Iterator[Cell]:
    cell = partial(_cell, "no signal")
    yield cell("50 outcomes", 1, n=1000, d=100, l=50, r2=0.0, quick=True)
    yield cell("few rows, off centre", 10, n=150, d=20, r2=0.0, features=centred(off=2))
    snps: dict[str, Any] = {"design": genotypes(), "features": ranged(0, 2)}
    yield cell("genotypes 0–2", 3, n=1500, d=300, l=5, r2=0.0, **snps)
    yield cell("collinear", 10, n=614, d=9, r2=0.0, design=collinear(1e6))
    yield cell("1000 outcomes", 0.3, n=2000, d=10, l=1000, r2=0.0)


def _sizes() -> Iterator[Cell]:
    cell = partial(_cell, "sizes, signals, bounds")
    yield cell("few rows", 1, n=150, d=3, r2=0.6, quick=True)
    yield cell("few rows, one feature", 10, n=150, d=1)
    yield cell("few rows, many features", 10, n=150, d=50, r2=0.8)
    yield cell("small budget, one feature", 0.3, n=20_000, d=1, r2=0.3)
    yield cell("many rows", 1, n=20_000, d=200, l=5, design=blocks(0.7))
    yield cell("1000 outcomes", 3, n=3000, d=10, l=1000, effects=shared)
    yield cell("1000 outcomes, large budget", 10, n=5000, d=100, l=1000, design=blocks(0.5))
    yield cell("1000 features", 3, n=3000, d=1000, r2=0.6, design=low_rank(20))
    yield cell("1000 features, 50 outcomes", 5, n=5000, d=1000, l=50, design=blocks(0.9, 50))
    yield cell("sparse effects", 3, n=5000, d=100, l=5, design=blocks(0.9), effects=sparse)
    yield cell("a tenth has signal", 5, n=4000, d=30, l=50, effects=mixed)
    yield cell("no intercept", 3, n=3000, d=30, l=50, effects=shared, intercept=False)
    wide: dict[str, Any] = {"n": 20_000, "d": 20, "l": 5}
    yield cell("bounds 5 times too wide", 3, **wide, features=centred(5), outcomes=centred(5))
    yield cell("norms a third", 3, n=5000, d=20, l=5, features=centred(0.3), outcomes=centred(0.3))


def _protections() -> Iterator[Cell]:
    levels: dict[str, Any] = {"design": _EXPRESSION, "features": ranged(0, 12, 1.2)}
    snps: dict[str, Any] = {"design": genotypes(), "features": ranged(0, 2)}
    cell = partial(_cell, "other protections", protection="features")
    yield cell("features: expression", 3, n=2000, d=50, l=50, **levels, quick=True)
    yield cell("features: genotypes 0–2", 3, n=1500, d=100, l=5, **snps, quick=True)
    yield cell("features: collinear", 5, n=614, d=9, r2=0.9, design=collinear(1e6))
    yield cell("features: 1000 outcomes", 3, n=2000, d=20, l=1000, effects=shared)
    yield cell("features: no intercept", 1, n=5000, d=20, l=5, intercept=False)
    cell = partial(_cell, "other protections", protection="outcomes")
    far: dict[str, Any] = {"far": (6.0,), "outcomes": plain()}
    yield cell("outcomes: expression, one mean at 6", 3, n=8000, d=20, l=5, **levels, **far)
    yield cell("outcomes: genotypes 0–2", 3, n=1500, d=300, l=5, **snps, quick=True)
    yield cell("outcomes: collinear", 3, n=614, d=9, r2=0.9, design=collinear(1e6))
    yield cell("outcomes: more features than rows", 5, n=400, d=1000, l=5, design=low_rank(10))
    yield cell("outcomes: 1000 outcomes", 3, n=2000, d=20, l=1000, effects=shared)
    yield cell("outcomes: no signal", 1, n=500, d=50, l=5, r2=0.0, design=blocks(0.9))
