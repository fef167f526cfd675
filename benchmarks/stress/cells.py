"""The cells, by family."""

from __future__ import annotations

from benchmarks.stress import designs as d_
from benchmarks.stress.problem import Cell
from benchmarks.stress.real import Real
from benchmarks.stress.rules import centred, fixed, frequencies, plain, ranged, without_offset
from benchmarks.stress.simulated import Simulated, mixed, shared, sparse, weak
from primo.bounds import Bounds

__all__ = ["CELLS"]

_LABELS = fixed(Bounds(centre=0.2, scale=0.4, norm=5**0.5))
_EXPRESSION = d_.at_level(8.0, 1.0)

_OFF_CENTRE = (
    (
        "genotypes 0–2, d=300",
        3.0,
        Simulated(n=1500, d=300, l=5, design=d_.genotypes(), features=ranged(0, 2)),
    ),
    (
        "genotypes by frequencies, d=300",
        3.0,
        Simulated(n=1500, d=300, l=5, design=d_.genotypes(), features=frequencies()),
    ),
    (
        "expression 0–12, norm by rule",
        3.0,
        Simulated(n=800, d=100, l=5, design=_EXPRESSION, features=ranged(0, 12, 1.2)),
    ),
    (
        "expression 0–12, norm without offset",
        5.0,
        Simulated(n=500, d=50, l=20, design=_EXPRESSION, features=without_offset(0, 12)),
    ),
    (
        "a year, d=1",
        1.0,
        Simulated(n=2000, d=1, r2=0.9, design=d_.at_level(2010, 5), features=ranged(1900, 2100)),
    ),
    ("powers of an age", 3.0, Simulated(n=5000, d=6, design=d_.powers, features=ranged(0, 1))),
)
CELLS = tuple(Cell(family="off centre", name=n, epsilon=e, problem=p, quick=True) for n, e, p in _OFF_CENTRE) + (
    Cell(family="off centre", name="genotypes 0–2, no intercept", epsilon=3.0, intercept=False, problem=_OFF_CENTRE[0][2]),
    Cell(family="collinear", name="condition 1e6, n=614, d=9", epsilon=10.0, problem=Simulated(n=614, d=9, r2=0.95, design=d_.collinear(1e6))),
    Cell(family="collinear", name="condition 1e3, n=155, d=5", epsilon=3.0, problem=Simulated(n=155, d=5, r2=0.7, design=d_.collinear(1e3))),
    Cell(family="collinear", name="condition 1e5, n=15000, d=33", epsilon=1.0, problem=Simulated(n=15000, d=33, r2=0.7, design=d_.collinear(1e5))),
    Cell(family="collinear", name="condition 1e7, n=2000, d=20", epsilon=3.0, problem=Simulated(n=2000, d=20, l=5, r2=0.6, design=d_.collinear(1e7))),
    Cell(family="collinear", name="copies, d=20", epsilon=5.0, problem=Simulated(n=3000, d=20, l=1, r2=0.6, design=d_.duplicates(1e-3))),
    Cell(family="collinear", name="signal in weak directions", epsilon=5.0, problem=Simulated(n=3000, d=20, l=1, r2=0.6, design=d_.collinear(1e4), effects=weak)),
    Cell(family="heavy tails", name="t2.5, d=20", epsilon=3.0, problem=Simulated(n=2000, d=20, l=5, design=d_.student(2.5))),
    Cell(family="heavy tails", name="lognormal 0–50", epsilon=3.0, problem=Simulated(n=4000, d=8, l=1, r2=0.6, design=d_.lognormal(1.2), features=ranged(0, 50))),
    Cell(family="means", name="45 outcomes, two at 16 and 23.5", epsilon=1.0, problem=Simulated(n=1000, d=200, l=45, r2=0.2, far=(16, 23.5), outcomes=plain())),
    Cell(family="means", name="one outcome at 10, d=10", epsilon=1.0, problem=Simulated(n=1000, d=10, far=(10.,), outcomes=plain())),
    Cell(family="null", name="no signal, d=100, l=50", epsilon=1.0, problem=Simulated(n=1000, d=100, l=50, r2=0.0)),
    Cell(family="null", name="no signal, n=150, d=20, off centre", epsilon=10.0, problem=Simulated(n=150, d=20, l=1, r2=0.0, features=centred(off=2))),
    Cell(family="sizes", name="n=150, d=3", epsilon=1.0, problem=Simulated(n=150, d=3, r2=0.6)),
    Cell(family="sizes", name="l=1000, d=10", epsilon=3.0, problem=Simulated(n=3000, d=10, l=1000, effects=shared)),
    Cell(family="sizes", name="d=1000, l=1", epsilon=3.0, problem=Simulated(n=3000, d=1000, design=d_.low_rank(20), r2=0.6)),
    Cell(family="sizes", name="sparse, blocks, d=100", epsilon=3.0, problem=Simulated(n=5000, d=100, l=5, design=d_.blocks(0.9), effects=sparse)),
    Cell(family="sizes", name="loose bounds ×5", epsilon=3.0, problem=Simulated(n=5000, d=20, l=5, features=centred(5), outcomes=centred(5), effects=mixed)),
    Cell(family="protections", name="features, expression", epsilon=3.0, protection="features", problem=Simulated(n=800, d=50, l=50, design=_EXPRESSION, features=ranged(0, 12, 1.2))),
    Cell(family="protections", name="outcomes, expression", epsilon=3.0, protection="outcomes", problem=Simulated(n=800, d=50, l=5, far=(10.,), design=_EXPRESSION, features=ranged(0, 12, 1.2), outcomes=plain())),
    Cell(family="real", name="1000 Genomes 0–2, ε=3", epsilon=3.0, delta=4e-7, problem=Real(table="genomes", n=1500, d=300, features=ranged(0, 2), outcomes=_LABELS)),
    Cell(family="real", name="1000 Genomes frequencies, ε=3", epsilon=3.0, delta=4e-7, problem=Real(table="genomes", n=1500, d=300, features=frequencies(), outcomes=_LABELS)),
    Cell(family="real", name="crime", epsilon=3.0, problem=Real(table="crime", n=1500, features=ranged(0, 100, 1.2))),
    Cell(family="real", name="personality 1–6", epsilon=5.0, problem=Real(table="personality", n=1500, features=ranged(1, 6, 1.2))),
    Cell(family="real", name="drugs", epsilon=3.0, problem=Real(table="drugs", n=1200)),
    Cell(family="real", name="soybeans 0–2, d=100", epsilon=5.0, problem=Real(table="soybeans", n=3500, d=100, features=ranged(0, 2))),
    Cell(family="real", name="income", epsilon=1.0, problem=Real(table="income", n=20000, features=ranged(0, [100, 10, 24, 5, 20, 100, 1, 9]), outcomes=ranged(0, 20))),
    Cell(family="real", name="housing", epsilon=1.0, problem=Real(table="housing", n=10000, features=ranged([-125, 32, 0, 0, 0, 0, 0, 0], [-114, 42, 60, 40000, 8000, 40000, 8000, 16]), outcomes=ranged(0, 500001))),
)  # fmt: skip
