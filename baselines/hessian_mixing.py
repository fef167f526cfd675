r"""Iterative Hessian Mixing (Lev et al. 2026, arXiv 2601.07545), calibrated under replace-one.

T rounds, each with a fresh Gaussian sketch of X in the place of the Hessian and a noisy gradient,

    W ← W + k·(ZᵀZ)⁻¹ (Xᵀ clip(Y − XW) + noise),     Z = SX + η·N   (k rows; S and N standard normal).

**What a sketch costs.** The rows of Z are k draws of N(0, Σ) with Σ = XᵀX + η²I. Replacing a row x by x′
turns Σ = M + xxᵀ into M + x′x′ᵀ. If M ⪰ γb_x²·I, then ratios of the two lie between 1/(1 + u) and 1 + u
with u = 1/γ, and at most one eigenvalue lies on either side of 1. The Rényi divergence of normal laws
adds up over eigenvalues and grows with their distance from 1, so that of k rows is at most k times that
of the variances (1 + u, 1/(1 + u)) from (1, 1). η² = max(0, (γ + 1)b_x² − λ̃) makes M that large, with
λ̃ a private lower bound on the smallest eigenvalue of XᵀX: sensitivity b_x² (`adassp`), a tenth of δ for
its failure.

Gradients have the sensitivity 2·b_x·c. A sixth of the budget buys λ̃, the rest is for sketches and
gradients half and half (in α·k·u²/2 and α·μ²/2, which is what they cost at small u). All of it is added
up in Rényi divergence, and converted by Canonne, Kamath and Steinke (2020).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from baselines.base import Baseline, Guarantee, Matrix, shortened
from baselines.gaussian import ASSOCIATION, FAILURE
from primo.errors import InputError
from primo.privacy.budget import Budget

__all__ = ["HessianMixing", "Mixing", "calibrated", "sketch_divergence", "spent_epsilon"]

ORDERS = np.concatenate([1 + np.geomspace(1e-2, 10, 150), np.geomspace(11.5, 2000, 150)])
LOWEST_SHARE = 1 / 6  # of the squared cost, for the smallest eigenvalue
LOWEST_FAILURE = 0.1  # of δ: the probability that it is overestimated


@dataclass(frozen=True, kw_only=True)
class Mixing:
    """Noise of one run."""

    lowest: float  # σ₀/b_x²
    gamma: float  # least eigenvalue over b_x² without the row
    gradient: float  # σ₂/(b_x·c)
    rows: int  # k
    rounds: int  # T

    def divergence(self, order: float) -> float:
        """Return a bound on the Rényi divergence of this order between neighbours, in all."""
        gaussian = self.lowest**-2 + self.rounds * (ASSOCIATION / self.gradient) ** 2
        sketches = self.rounds * self.rows * sketch_divergence(order, 1 / self.gamma)
        return order * gaussian / 2 + sketches


class HessianMixing(Baseline):
    """Newton steps with sketched Hessians and noisy gradients of clipped residuals.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every baseline.
    rounds : int, default 3
        T.
    clip : float, default 1.0
        Residuals are shortened to this many `outcome_bounds`.
    failure : float, default 0.05
        ϱ of the sketch's size k = 6·max(d, log(4T/ϱ)).

    Notes
    -----
    Guarantee: `guarantee_`, at most (epsilon, delta). Cost: O(T·k·n·d).
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        rounds: int = 3,
        clip: float = 1.0,
        failure: float = FAILURE,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.rounds = rounds
        self.clip = clip
        self.failure = failure

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        if self.rounds < 1 or not self.clip > 0 or not 0 < self.failure < 1:
            raise InputError("rounds and clip must be positive, failure between 0 and 1")
        d, l = features.shape[1], outcomes.shape[1]
        rows = math.ceil(6 * max(d, math.log(4 * self.rounds / self.failure)))
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        mixing = calibrated(budget, rows=rows, rounds=self.rounds)
        b_x, c, rng = self.feature_bounds, self.clip * self.outcome_bounds, self._rng()
        covariance = features.T @ features
        sigma_0 = mixing.lowest * b_x**2
        lowest = float(np.linalg.eigvalsh(covariance)[0]) + rng.normal(scale=sigma_0)
        lowest -= sigma_0 * float(norm.isf(LOWEST_FAILURE * self.delta))
        self.ridge_ = max(0.0, (mixing.gamma + 1) * b_x**2 - max(0.0, lowest))
        # ZᵀZ is Wishart with k degrees of freedom: the law of the sketch, without its k·n numbers.
        root = np.linalg.cholesky(
            covariance + (self.ridge_ + 1e-12 * np.trace(covariance)) * np.eye(d)
        )
        slopes = np.zeros((d, l))
        for _ in range(self.rounds):
            sketch = rng.standard_normal((rows, d)) @ root.T
            left = shortened(outcomes - features @ slopes, c)
            noise = rng.normal(scale=mixing.gradient * b_x * c, size=(d, l))
            slopes += np.linalg.solve(sketch.T @ sketch / rows, features.T @ left + noise)
        given = spent_epsilon(mixing, self.delta)
        how = f"{self.rounds} sketches and gradients, in Rényi divergence"
        return slopes, Guarantee(epsilon=given, delta=self.delta, how=how)


def sketch_divergence(order: float, u: float) -> float:
    """Return the Rényi divergence of a sketch's row, variances (1 + u, 1/(1 + u)) from (1, 1).

    Infinite where the integral does not converge. It is the same in the other direction.
    """
    total = 0.0
    for ratio in (1 + u, 1 / (1 + u)):
        mixed = order + (1 - order) * ratio
        if mixed <= 0:
            return math.inf
        total += -0.5 * math.log(ratio) - 0.5 * math.log(mixed) / (order - 1)
    return total


def spent_epsilon(mixing: Mixing, delta: float) -> float:
    """Return ε at δ of the whole run, with the part of δ for an overestimated eigenvalue taken off."""
    left = (1 - LOWEST_FAILURE) * delta
    best = math.inf
    for order in ORDERS:
        given = mixing.divergence(order) + math.log1p(-1 / order)
        given -= (math.log(left) + math.log(order)) / (order - 1)
        best = min(best, given)
    return max(best, 0.0)


def calibrated(budget: Budget, *, rows: int, rounds: int) -> Mixing:
    """Return the least noise within the budget, by bisection; never on the wrong side of it."""

    def mixing(mu: float) -> Mixing:
        part = mu * math.sqrt((1 - LOWEST_SHARE) / 2 / rounds)  # of each sketch and each gradient
        return Mixing(
            lowest=1 / (mu * math.sqrt(LOWEST_SHARE)),
            gamma=math.sqrt(rows) / part,
            gradient=ASSOCIATION / part,
            rows=rows,
            rounds=rounds,
        )

    low, high = 1e-9, 64.0
    for _ in range(100):
        middle = math.sqrt(low * high)
        if spent_epsilon(mixing(middle), budget.delta) <= budget.epsilon:
            low = middle
        else:
            high = middle
    return mixing(low)
