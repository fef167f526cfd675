"""The coefficients of a round on a grid: public integers, so that residuals are exact.

In round t the integer row x of features is multiplied by integers V, in units of 2^-m steps of the
residuals. If ‖V_j‖·‖x‖ < 2^52 for every outcome j then, by Cauchy's inequality, no partial sum of
Σ|x_i V_ij| is larger, and float64 computes Vᵀx exactly, in any order of summation. That fixes m and, if
need be, shortens V_j. What is left of a residual (the outcome in steps, minus the prediction) is
computed value by value, so that a residual is a function of its row alone.

The row inside a residual is not shortened to the features' norm, as the one in the moments is, but to
`wide_factor` times that: with shortened rows in both places, rounds would approach the regression on
shortened rows. For the sensitivity it does not matter, because the residual is clipped afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan

__all__ = ["ResidualGrid", "residual_grid", "wide_factor"]

Matrix = NDArray[np.float64]

#: Predictions stay below this in units, with room for rounding.
_LARGEST = 2.0**51

#: Finer than a step by so many bits at most.
_MOST_BITS = 16

#: Rows inside residuals are shortened to so many times the features' norm: their squared length, at
#: most 2^40 times 2^12 in steps, is below 2^53 and so exact.
_WIDEST = 64.0


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualGrid:
    """What a round takes residuals of: public integers, and the unit they are in."""

    integers: Matrix  # (width, l) V, whole numbers: a row x is predicted to have Vᵀx units
    bits: int  # m: a step of the residuals is 2**m units
    clip: float  # bound on a residual in scaled units

    @property
    def of_features(self) -> bool:
        """Whether residuals depend on the features; otherwise they are the outcomes themselves."""
        return bool(self.integers.any())

    @property
    def in_steps(self) -> Matrix:
        """V/2^m, (width, l): predictions in steps of the residuals; exact."""
        return self.integers * 2.0**-self.bits

    def coefficients(self, plan: Plan) -> Matrix:
        """Return W in scaled units, (width, l); `plan` is that of the round."""
        return self.in_steps * (plan.outcome_step / plan.feature_step)


def wide_factor(plan: Plan) -> float:
    """Return how much longer than the features' norm a row inside a residual may be."""
    return min(max(1.0, plan.features.longest / plan.features.norm), _WIDEST)


def residual_grid(plan: Plan, coefficients: Matrix) -> ResidualGrid:
    """Round coefficients to the finest grid on which predictions are exact.

    Parameters
    ----------
    plan
        That of the round (`planning.rounds.round_plan`).
    coefficients
        (width, l) in scaled units. Columns that are too long are shortened.
    """
    if coefficients.shape != (plan.width, plan.l) or not np.isfinite(coefficients).all():
        raise InputError("the coefficients of a round do not fit its plan")
    longest = _LARGEST / (wide_factor(plan) * math.sqrt(plan.grid.feature_radius_squared))
    with np.errstate(over="ignore"):
        steps = coefficients * (plan.feature_step / plan.outcome_step)
    steps = np.clip(steps, -longest, longest)
    lengths = np.sqrt(np.einsum("ij,ij->j", steps, steps))
    room = math.log2(longest) - math.log2(max(float(lengths.max()), 1e-300))
    bits = max(0, min(math.floor(room), _MOST_BITS))
    steps *= longest / np.maximum(lengths, longest)
    integers = np.rint(steps * 2.0**bits)
    return ResidualGrid(integers=integers, bits=bits, clip=plan.outcomes.norm)
