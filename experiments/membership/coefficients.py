"""Attacks on published coefficients: what l regressions on the same people say about one of them.

Both statistics are log-likelihood ratios of "was a member" against "was not" under the Gaussian model
y = θ·x + e. The attacker has the coefficients, the number of members and a public panel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from experiments.membership.people import People

__all__ = ["CoefficientAttack", "least_squares"]

Matrix = NDArray[np.float64]

#: The leverage of a person is estimated from the panel, and cannot truly reach 1.
_LARGEST_LEVERAGE = 0.95


def least_squares(people: People) -> Matrix:
    """Return exact coefficients (d + 1, l) of all outcomes, the intercept last."""
    found = np.linalg.lstsq(_design(people.features), people.outcomes, rcond=None)[0]
    return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class CoefficientAttack:
    """What an attacker makes of coefficients (d + 1, l), intercept last, of `n` people."""

    coefficients: Matrix
    n: int
    panel: People

    def knowing_outcomes(self, candidates: People) -> Matrix:
        """Score people whose genotypes and outcomes are known: residuals of members are smaller.

        A person with leverage h pulls all regressions toward themselves. Their residuals have
        variance s²(1 - h) if they are a member and s²(1 + h) if not, independently over outcomes
        once these are whitened. So the log-likelihood ratio is
        ½l·log((1 + h)/(1 - h)) - h/(1 - h²)·‖r‖²/s², and it grows with l like h·√(2l) deviations.
        """
        h = np.minimum(self._leverage(candidates), _LARGEST_LEVERAGE)
        squares = (self._whiten(self._residuals(candidates)) ** 2).sum(axis=1)
        l = self.coefficients.shape[1]
        score: Matrix = 0.5 * l * np.log((1 + h) / (1 - h)) - h / (1 - h**2) * squares
        return score

    def knowing_genotypes(self, candidates: People) -> Matrix:
        r"""Score people of whom only the genotypes are known: W varies less along a member's direction.

        Given X, a column of W is θ plus noise of covariance s²(XᵀX)⁻¹. Over many outcomes WWᵀ
        reveals XᵀX, and a member's xxᵀ is part of it. In the eigenbasis of the panel's
        covariance, with noise shares g = s²/(τ²a + s²), the whitened WWᵀ/l is I - √(gg′)·D + noise;
        D = (x̃x̃ᵀ - I)/n is the member's part, and the noise per entry is that of l outcomes, of n
        - 1 other members and of the panel.
        This is Homer et al. (2008) for second moments, carried to many outcomes (Im et al. 2012).
        """
        rows = len(self.panel)
        centre = self.panel.features.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov(self.panel.features, rowvar=False))
        slopes = self._whiten(vectors.T @ self.coefficients[:-1])
        d, l = slopes.shape
        signal = max(0.0, float((slopes**2).sum() / l - (1 / (self.n * values)).sum()) / d)
        share = 1 / (signal * self.n * values + 1)
        spread = signal + 1 / (self.n * values)
        seen = np.eye(d) - slopes @ slopes.T / l / np.sqrt(np.outer(spread, spread))
        both = np.outer(share, share)
        noise = 2 * (1 / l + both * (1 / self.n + 1 / rows))
        x = (candidates.features - centre) @ vectors / np.sqrt(values)
        linear = np.sqrt(both) * seen / noise / self.n
        shift = both / noise / self.n**2
        moved = np.einsum("ij,ij->i", x @ linear, x)
        power = np.einsum("ij,ij->i", x**2 @ shift, x**2) - 2 * x**2 @ np.diag(shift)
        return np.asarray(moved - 0.5 * power)

    def _leverage(self, people: People) -> Matrix:
        """Estimate xᵀ(XᵀX)⁻¹x from the panel; the factor takes off what inverting it adds."""
        panel = _design(self.panel.features)
        rows, width = panel.shape
        root = cholesky(panel.T @ panel / rows, lower=True)
        x = solve_triangular(root, _design(people.features).T, lower=True)
        leverage: Matrix = (x**2).sum(axis=0) * ((1 - (width + 1) / rows) / self.n)
        return leverage

    def _residuals(self, people: People) -> Matrix:
        residuals: Matrix = people.outcomes - _design(people.features) @ self.coefficients
        return residuals

    def _whiten(self, rows: Matrix) -> Matrix:
        """Divide by the residual noise (rows, l): its covariance, or its scale if l is large."""
        if self._noise.ndim == 1:
            return rows / self._noise
        whitened: Matrix = solve_triangular(self._noise, rows.T, lower=True).T
        return whitened

    @cached_property
    def _noise(self) -> Matrix:
        """Residual noise as the panel, who are no members, shows it: a root of s² or its diagonal."""
        residuals = self._residuals(self.panel)
        residuals /= np.sqrt(1 + self._leverage(self.panel))[:, None]
        rows, l = residuals.shape
        if 4 * l > rows:
            return np.asarray(np.sqrt((residuals**2).mean(axis=0)))
        # The factor takes off what inverting an estimated covariance adds.
        estimate = residuals.T @ residuals / (rows - l - 1)
        root: Matrix = cholesky(estimate, lower=True)
        return root


def _design(features: Matrix) -> Matrix:
    return np.column_stack([features, np.ones(len(features))])
