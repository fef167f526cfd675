"""Residuals of a row as integers: a function of that row alone, whatever the block.

A round takes the residual of every row: its outcomes in steps, cut to their ranges, minus the
prediction from the integer row x, before that is shortened to the norm with which it enters the
moments. `planning.residuals` chooses public coefficients with which float64 computes predictions
exactly, in any order of summation; everything else works on one number at a time. The difference is
truncated and shortened by the same code as outcomes are (`rows.quantise`). So a residual has the
properties that the sensitivity rests on: whole numbers, a squared norm at most the radius, and no
dependence on any other row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.planning.residuals import ResidualGrid
from primo.rows.quantise import Kernel, outcome_quantiser

__all__ = ["ResidualQuantiser"]

Matrix = NDArray[np.float64]

_STRIPE_BYTES = 2**20  # of residuals at a time: they stay in the cache


class ResidualQuantiser:
    """Rows of outcomes and integer rows of features to integer rows of residuals.

    Guarantee: every row of `out` holds integers and has squared norm at most that of the plan's grid,
    whatever the rows hold. A missing outcome (with missing="centre") has the residual 0.
    Cost: one product of x with the coefficients, and what `Quantiser` costs.
    """

    def __init__(self, plan: Plan, grid: ResidualGrid, *, kernel: Kernel | None = None) -> None:
        self._outcomes = outcome_quantiser(plan, kernel=kernel)
        self._coefficients = np.ascontiguousarray(grid.in_steps)
        self._rows = max(8, _STRIPE_BYTES // (8 * plan.l))
        self._predicted = np.empty((self._rows, plan.l))

    def __call__(self, x: Matrix, outcomes: NDArray[Any], out: Matrix) -> None:
        """Write the residuals of `outcomes` (m, l), given integer rows `x`, into `out` (m, l)."""
        for start in range(0, len(x), self._rows):
            part = slice(start, start + self._rows)
            predicted = self._predicted[: len(x[part])]
            np.matmul(x[part], self._coefficients, out=predicted)
            self._outcomes(outcomes[part], out[part], predicted)
