"""Recovery by linear programming: genotypes that lie in 0 to 2 and agree with what is published."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from experiments.recovery.summaries import Equations

__all__ = ["feasible", "likeliest", "nearest"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: If the printed digits contradict each other (the sum of squares is known roughly), they are widened.
_WIDER = (1.0, 2.0, 4.0, 8.0)


def feasible(known: Equations) -> Vector:
    """Return some x in [0, 2]ⁿ that satisfies the equations: the attack in its simplest form.

    It is the right one where no other exists. For outcomes in general position that begins near
    l/n = (1 + h)/2, with h the share of heterozygous people: these lie inside the box, the others at
    its ends, where only half of the directions are open (Amelunxen et al. 2014).
    Cost: one linear program of n variables and l + 1 equations.
    """
    n = known.rows.shape[1]
    return _solve(known, known.rows, cost=np.zeros(n), upper=2.0)


def likeliest(known: Equations) -> Vector:
    """Return the solution of the equations that is likeliest under Hardy–Weinberg frequencies.

    With allele frequency p the three genotypes cost -log(q²), -log(2pq) and -log(p²): a convex function
    with a kink at 1, so that heterozygous people lie at a corner too. It is c·x + log 4·max(x - 1, 0),
    and Σx is published: what remains is to minimise Σ max(x - 1, 0), whatever p is.
    Cost: one linear program of 2n variables and l + 1 equations (x = u + v, u and v in [0, 1]).
    """
    n = known.rows.shape[1]
    cost = np.repeat([0.0, 1.0], n)
    both = _solve(known, np.hstack([known.rows, known.rows]), cost=cost, upper=1.0)
    return np.asarray(both[:n] + both[n:])


def nearest(rows: Matrix, values: Vector) -> Vector:
    """Return the x in [0, 2]ⁿ with the least Σ|rows·x - values|: the program for noisy numbers.

    Rows and values are in units of their noise.
    """
    count, n = rows.shape
    unit = np.eye(count)
    found = linprog(
        np.repeat([0.0, 1.0], [n, 2 * count]),
        A_eq=np.hstack([rows, unit, -unit]),
        b_eq=values,
        bounds=[(0.0, 2.0)] * n + [(0.0, None)] * (2 * count),
        method="highs",
    )
    return _checked(found)[:n]


def _solve(known: Equations, rows: Matrix, *, cost: Vector, upper: float) -> Vector:
    """Minimise the cost over 0 ≤ z ≤ upper and |rows·z - values| ≤ slack; what is left over is e."""
    width, loose = rows.shape[1], known.slack > 0
    coefficients = np.hstack([rows, np.eye(len(rows))[:, loose]])
    for wider in _WIDER:
        found = linprog(
            np.pad(cost, (0, loose.sum())),
            A_eq=coefficients,
            b_eq=known.values,
            bounds=[(0.0, upper)] * width + [(-e, e) for e in wider * known.slack[loose]],
            method="highs",
        )
        if found.x is not None or not loose.any():
            break
    return _checked(found)[:width]


def _checked(found: Any) -> Vector:
    if found.x is None:
        raise ArithmeticError(f"the linear program was not solved: {found.message}")
    return np.asarray(found.x)
