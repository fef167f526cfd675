"""One regression problem of an experiment: rows or exact moments, public bounds, and the score.

Column means and the longest row are taken to be public, as in the paper's own experiments; on private
data they would have to come from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from baselines.base import ExactMoments

__all__ = ["Problem", "Truth"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """Exact sums over the rows as they are (not clipped): they score any coefficients."""

    n: int
    covariance: Matrix  # (d, d)
    association: Matrix  # (d, l)
    squares: Matrix  # (l,) Σ y²
    spread: Matrix  # (l,) Σ (y - mean)²

    def squared_error(self, slopes: Matrix) -> float:
        """Return Σ (y - x·w)² over rows and outcomes."""
        fitted = 2 * np.sum(slopes * self.association) - np.sum(slopes * (self.covariance @ slopes))
        return float(self.squares.sum() - fitted)

    def r_squared(self, slopes: Matrix) -> float:
        """Return the paper's R², pooled over outcomes: 1 - MSE/(SS_tot/(n·l))."""
        return 1 - self.squared_error(slopes) / float(self.spread.sum())

    def of_outcomes(self, chosen: NDArray[np.int64]) -> Truth:
        """Return the sums of some outcomes only."""
        return replace(
            self,
            association=self.association[:, chosen],
            squares=self.squares[chosen],
            spread=self.spread[chosen],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """n rows, d features, l outcomes, public bounds, no intercept.

    Norms and clips are as tight as a user would choose them; reach and limits hold for every row.
    """

    n: int
    d: int
    l: int
    feature_norm: float  # longer rows of features are shortened to it
    feature_reach: float  # no row of features is longer
    feature_limit: float  # largest |x_ij|
    outcome_norm: float  # longer rows of outcomes are shortened to it
    outcome_clip: float  # the same for a method that takes the outcomes one by one
    outcome_reach: float  # no row of outcomes is longer
    outcome_limit: float  # no |y_ij| is larger
    outcome_largest: float  # the largest |y_ij| of these rows, which the paper calls |Y|
    truth: Truth
    moments: ExactMoments  # of the shortened rows: what a mechanism sees
    rows: tuple[Matrix, Matrix] | None  # (n, d), (n, l); None where only moments were drawn

    @property
    def whole_moments(self) -> ExactMoments:
        """Moments of the rows as they are, with the diagonal of YᵀY."""
        truth = self.truth
        return ExactMoments(
            n=self.n,
            covariance=truth.covariance,
            association=truth.association,
            outcome=truth.squares,
        )
