"""What the rounds of a release showed, and what follows from it: values, all of them public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pooled", "ReleasedRound", "Scales", "Step"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Scales:
    """Noise scales of three released blocks in scaled units; 0 where a block is exact.

    The noise of the covariance acts on the coefficients less what rounds after the first started from.
    """

    covariance: float
    association: float
    outcome: float
    carried: float = 0.0  # share of the association's weight on rounds after the first


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedRound:
    """One round: noisy moments of the features and of residuals, in scaled units.

    A residual is r = y − Wᵀx, shortened to `clip`, with the row x of features before it is shortened to
    the features' norm; the moments are made of the shortened one.
    """

    coefficients: Matrix  # (width, l) W as it was used, on its grid; zeros in the first round
    clip: float  # bound on ‖r‖; that of the outcomes in the first round
    covariance: Matrix  # (width, width) XᵀX; in a release, the mean of all rounds
    association: Matrix  # (width, l) XᵀR
    outcome_moments: Matrix  # (l, l) RᵀR, or (l,) its diagonal
    covariance_sigma: float
    association_sigma: float
    outcome_sigma: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Step:
    """What the next round looks at: residuals of these coefficients, shortened to this clip."""

    coefficients: Matrix  # (width, l) before they are rounded to the grid
    clip: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """The moments of all rounds as one: of the outcomes, not of residuals."""

    covariance: Matrix  # (width, width)
    association: Matrix  # (width, l)
    outcome_moments: Matrix  # (l, l) or (l,)
    scales: Scales
    offset: Matrix  # (width, l) W̄: the covariance's noise multiplies w − W̄ only
