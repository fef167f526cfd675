"""The coefficients of a round on a grid: public integers, so that residuals are exact integers too.

In round t the integer row x of features is multiplied by integers V, and y is truncated to the same unit
u = h_r/2^m, with h_r the step of the round's residuals. Everything is exact in float64, in any order of
summation, if

- ‖V_j‖·‖x‖ < 2^52 for every outcome j: by Cauchy's inequality no partial sum of Σ|x_i V_ij| is larger;
- no value of y is larger than 2^51 units.

The first is a condition on m and, if need be, on the length of V_j; the second on m alone, because
values of y are cut to a public range: that of the bounds, or 256 times the outcomes' norm if that is
less.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip

__all__ = ["ResidualGrid", "cut_clip", "residual_grid"]

Matrix = NDArray[np.float64]

#: Values of outcomes are cut to so many times the outcomes' norm.
_REACH = 256.0

#: Predictions and outcomes stay below this in units, each.
_LARGEST = 2.0**51

#: Finer than a step by so many bits at most.
_MOST_BITS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class ResidualGrid:
    """What a round takes residuals of: public integers, and the unit they are in."""

    integers: Matrix  # (width, l) V, whole numbers; a residual is y − Vᵀx in units
    bits: int  # m: a step of the residuals is 2**m units
    clip: float  # bound on a residual in scaled units
    cut: Clip  # of the outcomes before a residual is taken; scaled units of the clip are `reach` long
    reach: float  # values of outcomes are cut to ± this, in scaled units

    def coefficients(self, plan: Plan) -> Matrix:
        """Return W in scaled units, (width, l); `plan` is that of the round."""
        return self.integers * (self.unit(plan) / plan.feature_step)

    def unit(self, plan: Plan) -> float:
        """Return u in scaled units."""
        return plan.outcome_step * 2.0**-self.bits


def cut_clip(clip: Clip) -> tuple[Clip, float]:
    """Return the range that values of outcomes are cut to as a clip, and its half-width."""
    reach = _REACH * clip.norm
    if clip.box:
        reach = min(1.0, reach)
    cut = dataclasses.replace(clip, scale=clip.scale * reach, box=True, norm=math.sqrt(clip.width))
    return cut, reach


def residual_grid(plan: Plan, coefficients: Matrix, *, outcomes: Clip) -> ResidualGrid:
    """Round coefficients to the finest grid on which residuals are exact.

    Parameters
    ----------
    plan
        That of the round (`planning.rounds.round_plan`).
    coefficients
        (width, l) in scaled units. Columns that are too long are shortened.
    outcomes
        The outcomes' own clip, before residuals.
    """
    if coefficients.shape != (plan.width, plan.l) or not np.isfinite(coefficients).all():
        raise InputError("the coefficients of a round do not fit its plan")
    cut, reach = cut_clip(outcomes)
    longest = _LARGEST / math.sqrt(plan.grid.feature_radius_squared)
    steps = coefficients * (plan.feature_step / plan.outcome_step)
    lengths = np.sqrt(np.einsum("ij,ij->j", steps, steps))
    most = float(lengths.max())
    finest = plan.outcome_step * _LARGEST / (math.sqrt(plan.l) * reach)
    bits = math.floor(min(math.log2(finest), math.log2(longest / max(most, 1e-300)), _MOST_BITS))
    if math.log2(finest) < 0:
        raise InputError("the clip of a round is too small for residuals that are exact")
    bits = max(bits, 0)
    steps *= np.minimum(1.0, longest / np.maximum(lengths, 1e-300))
    integers = np.trunc(steps * 2.0**bits)
    return ResidualGrid(integers=integers, bits=bits, clip=plan.outcomes.norm, cut=cut, reach=reach)
