"""Residuals of a row as integers: a function of that row alone, exact whatever the block.

A round takes the residual of every row, y − Vᵀx in units u, with the integer row x that enters the
moments and public integers V. `planning.residuals` chooses V and u such that float64 computes it without
rounding, in any order of summation. It is truncated to whole steps and shortened to the round's norm by
the same integer code as outcomes are. So a residual has the properties that the sensitivity rests on:
whole numbers, a squared norm at most the radius, and no dependence on any other row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.planning.residuals import ResidualGrid
from primo.rows.quantise import Kernel, Quantiser, shorten_rows

__all__ = ["ResidualQuantiser"]

Matrix = NDArray[np.float64]

_STRIPE_BYTES = 2**18  # of residuals at a time: they stay in the cache


class ResidualQuantiser:
    """Rows of outcomes and integer rows of features to integer rows of residuals.

    Guarantee: every row of `out` holds integers and has squared norm at most that of the plan's grid,
    whatever the rows hold. A missing outcome (with missing="centre") has the residual 0.
    Cost: one product of x with V, and some passes over the outcomes.
    """

    def __init__(self, plan: Plan, grid: ResidualGrid, *, kernel: Kernel | None = None) -> None:
        self._outcomes = Quantiser(
            clip=grid.cut,
            step=grid.unit(plan) / grid.reach,
            radius_squared=2**106,  # beyond all that the range allows: nothing is shortened here
            constant=None,
            missing=plan.missing,
            block="outcomes",
            kernel=kernel,
        )
        self._integers = np.ascontiguousarray(grid.integers)
        self._step = 2.0**-grid.bits
        self._limit = plan.grid.outcome_radius_squared
        self._fill = plan.missing == "centre"
        self._rows = max(1, _STRIPE_BYTES // (8 * plan.l))
        self._predicted = np.empty((self._rows, plan.l))

    def __call__(self, x: Matrix, outcomes: NDArray[Any], out: Matrix) -> None:
        """Write the residuals of `outcomes` (m, l), given integer rows `x`, into `out` (m, l)."""
        for start in range(0, len(x), self._rows):
            part = slice(start, start + self._rows)
            self._stripe(x[part], outcomes[part], out[part])

    def _stripe(self, x: Matrix, outcomes: NDArray[Any], out: Matrix) -> None:
        self._outcomes(outcomes, out)
        predicted = self._predicted[: len(x)]
        np.matmul(x, self._integers, out=predicted)
        np.subtract(out, predicted, out=out)
        np.multiply(out, self._step, out=out)  # a power of two: exact
        np.trunc(out, out=out)
        if self._fill:
            out[~np.isfinite(outcomes)] = 0.0
        shorten_rows(out, self._limit)
