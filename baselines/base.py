"""What every baseline has in common: the interface of `PrimoRegressor`, and a statement of true cost.

Rows are shortened to public norms and predictions pass through the origin: features and outcomes are
centred by public numbers before they get here, as in the paper. Noise comes from a seeded
floating-point generator: baselines are for experiments, not for private data.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from primo.errors import InputError

__all__ = ["Baseline", "ExactMoments", "Guarantee", "MomentBaseline", "shortened"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Guarantee:
    """What a fit truly gives under replace-one, whatever was asked for."""

    epsilon: float
    delta: float
    protection: str = "both"
    how: str = ""  # one line: the argument


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactMoments:
    """Sums over rows without any noise."""

    n: int
    covariance: Matrix  # (d, d) XᵀX
    association: Matrix  # (d, l) XᵀY
    outcome: Matrix  # (l, l) YᵀY, or (l,) its diagonal

    @property
    def squares(self) -> Matrix:
        """Return the diagonal of YᵀY, (l,)."""
        return self.outcome if self.outcome.ndim == 1 else np.diagonal(self.outcome)

    @classmethod
    def of(cls, features: Matrix, outcomes: Matrix, *, full: bool = False) -> Self:
        """Sum over rows; all of YᵀY if `full`, else its diagonal."""
        outcome = outcomes.T @ outcomes if full else np.einsum("ij,ij->j", outcomes, outcomes)
        return cls(
            n=len(features),
            covariance=features.T @ features,
            association=features.T @ outcomes,
            outcome=outcome,
        )


class Baseline(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Linear regression of many outcomes, through the origin.

    Parameters
    ----------
    epsilon, delta : float
        The budget that is asked for, for all outcomes together.
    feature_bounds, outcome_bounds : float
        Public norms; longer rows of features and of outcomes are shortened to them.
    random_state : int or numpy.random.Generator, optional
        Seed of the noise.

    Attributes
    ----------
    coef_ : ndarray (l, d), or (d,) for one-dimensional outcomes
    intercept_ : ndarray (l,) of zeros, or 0.0
    guarantee_ : Guarantee or None
        What the fit truly costs; None if it protects nobody.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.feature_bounds = feature_bounds
        self.outcome_bounds = outcome_bounds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit all outcomes on the shortened rows."""
        self._check_bounds()
        features = check_array(X, dtype=np.float64, input_name="X")
        outcomes = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        if len(features) != len(outcomes):
            raise InputError(
                f"{len(features)} rows of features but {len(outcomes)} rows of outcomes"
            )
        single = outcomes.ndim == 1
        outcomes = outcomes.reshape(len(outcomes), -1)
        slopes, guarantee = self._fit(
            shortened(features, self.feature_bounds), shortened(outcomes, self.outcome_bounds)
        )
        return self._keep(slopes, guarantee, single=single)

    def predict(self, X: Any) -> Matrix:
        """Return predicted outcomes."""
        check_is_fitted(self)
        features = check_array(X, dtype=np.float64)
        if features.shape[1] != self.n_features_in_:
            raise InputError(f"{features.shape[1]} features, but the fit had {self.n_features_in_}")
        return np.asarray(features @ self.coef_.T)

    @abstractmethod
    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        """Return coefficients (d, l) from rows within the bounds, and what they cost."""

    def _check_bounds(self) -> None:
        """Refuse bounds that are not positive numbers; only a method without privacy may have none."""
        given = self.get_params()
        largest = np.finfo(np.float64).max if "epsilon" in given else np.inf
        for name in ("feature_bounds", "outcome_bounds", "feature_limit", "outcome_limit"):
            value = given.get(name)
            if value is not None and not 0 < value <= largest:
                raise InputError(f"{name}={value!r} must be a positive number")

    def _keep(self, slopes: Matrix, guarantee: Guarantee | None, *, single: bool = False) -> Self:
        self.coef_ = slopes[:, 0] if single else slopes.T
        self.intercept_ = 0.0 if single else np.zeros(slopes.shape[1])
        self.n_features_in_ = len(slopes)
        self.guarantee_ = guarantee
        return self

    def _rng(self) -> np.random.Generator:
        return np.random.default_rng(self.random_state)


class MomentBaseline(Baseline):
    """A baseline that needs nothing but the moments of the rows."""

    def fit_moments(self, moments: ExactMoments) -> Self:
        """Fit from moments of rows that are known to be within the bounds."""
        self._check_bounds()
        return self._keep(*self._from_moments(moments))

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        return self._from_moments(ExactMoments.of(features, outcomes))

    @abstractmethod
    def _from_moments(self, moments: ExactMoments) -> tuple[Matrix, Guarantee | None]:
        """Return coefficients (d, l) and what they cost."""


def shortened(rows: Matrix, norm: float) -> Matrix:
    """Shorten the rows that are longer than the norm to it."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (lengths > norm).any():
        return rows
    return np.asarray(rows * np.minimum(1.0, norm / np.maximum(lengths, 1e-300)))
