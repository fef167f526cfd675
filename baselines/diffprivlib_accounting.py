r"""The epsilon that diffprivlib's `LinearRegression` truly spends, under replace-one.

Facts of version 0.6.6, `models/linear_regression.py`, with `fit_intercept=False`:

- Line 114: the private numbers are Σ y_j² (l of them), XᵀY (d·l) and the upper triangle of XᵀX
  (d(d+1)/2). Lines 125-153 add independent Laplace noise of scale sensitivity/local_epsilon to each.
- Line 113: local_epsilon = epsilon/(1 + d·l + d(d+1)/2). It counts 1 for the l numbers Σ y_j². Basic
  composition of what is released is therefore epsilon·(l + d·l + d(d+1)/2)/(1 + d·l + d(d+1)/2), above
  epsilon for l > 1: `counted_epsilon`.
- Lines 118-120, 126, 144: for bounds ±B on features and ±C on outcomes the sensitivities are C² for Σ
  y², 2BC for XᵀY, B² on the diagonal of XᵀX and 2B² off it.
- Line 144 reads the lower bound twice: for features in (0, 1) the sensitivity is 0 and the diagonal of
  XᵀX is released exactly (an open issue of the library, number 105). Hence symmetric bounds only.
- Lines 83-88: rows are clipped only if `fit_intercept=True`. The caller has to clip.
- Lines 277-288: bounds that are not given are read off the data. Hence always given.
- Line 315 keeps the noisy numbers on the estimator, Σ y_j² among them, so they are counted, although
  the coefficients do not depend on those.

**The exact cost.** The numbers of one row are tied together: no pair of rows moves all of them by
their sensitivities. In units of B and C let |x_i|, |y_j| ≤ 1, ‖x‖² ≤ d·r², ‖y‖² ≤ l·t² (r and t, at
most 1, say how much of the boxes rows of bounded norm can fill). The privacy loss is at most
local_epsilon·S, S the largest over pairs of rows of

    Σ_j |y_j² - y′_j²| + ½Σ_ij |x_i y_j - x′_i y′_j|
        + Σ_i |x_i² - x′_i²| + ½Σ_{i<j} |x_i x_j - x′_i x′_j|.

*Outcomes.* With ‖x‖₁ ≤ d·r and a = d·r/2, the first two sums are at most Σ_j (u_j - v_j + a(√u_j +
√v_j)), where u_j ≥ v_j are y_j² and y′_j² in order. That is concave in (u_j, v_j), so by Jensen it is
at most l times its value at the means, u + v ≤ 2t², v ≤ u ≤ 1. For t = r = 1 the maximum is d from
d = 4 on, and (1 + d/4)² below.

*Features.* With m = |x - x′| and p = |x + x′| by entry, the last two sums are at most ¾·Σ m_i p_i +
¼·(Σ m_i)(Σ p_i). Box: m_i + p_i ≤ 2, so at most d(d + 3)/4, reached at x′ = 0. Ball: Σ (m_i² + p_i²) ≤
4d·r², so at most 2r² times that.

So for full boxes S ≤ l·d + d(d + 3)/4 for d ≥ 4, with (1 + d/4)² in place of d below; and S ≥ d·l at
x′ = x, y′ = -y. **For d ≥ 4 this is below the divisor of line 113: although it counts too few numbers,
the library keeps its pure epsilon with symmetric bounds.** For d ≤ 3 and many outcomes it does not:
x′ = -x, y′ = (d/4)·y costs up to 25/16, 9/8 and 49/48 times epsilon for d = 1, 2, 3. And with one-sided
bounds, (-B, 0) on features and (0, C) on outcomes, a row of zeros against one at the far corner moves
every number by its sensitivity, so that `counted_epsilon` is spent in full for every d. Such bounds
are never used here.

**With a delta.** Each Laplace release with loss at most e is (e²/2)-zCDP (Bun & Steinke 2016), so
together ρ = local_epsilon²·S₂/2, S₂ the largest sum of *squared* relative moves, at most S as none is
above 1. Also S₂ ≤ 2l·t²(k + √(k² + 1)) + d²r⁴/4 + ⅞·d·min(1, 2r²), k = d·r²/4: for M ≥ N the longer
and the shorter of y ± y′, M² + N² ≤ 4l·t², the association gives k·M² and the squares at most M·N,
together a quadratic form; the features give ⅛‖D‖²_F + ⅞Σ D_ii² with D = xxᵀ - x′x′ᵀ, ‖D‖²_F ≤ 2d²r⁴. ρ
becomes (ε, δ) by Canonne, Kamath & Steinke (2020, proposition 7), where every order α gives a valid ε.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from scipy.optimize import minimize_scalar

from primo.errors import InputError

__all__ = ["Shape", "counted_epsilon", "nominal_epsilon", "true_epsilon"]


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many numbers are released, and how far one row can move them."""

    d: int
    l: int
    feature_fill: float = 1.0  # r: b_x/(√d·B), at most 1
    outcome_fill: float = 1.0  # t: b_y/(√l·C), at most 1

    def __post_init__(self) -> None:
        """Refuse values that no rows can have."""
        if self.d < 1 or self.l < 1:
            raise InputError(f"d={self.d}, l={self.l}: both must be at least 1")
        for name in ("feature_fill", "outcome_fill"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(f"{name}={getattr(self, name)!r} must lie in (0, 1]")

    @property
    def divisor(self) -> float:
        """Return the number of equal parts that the library makes of epsilon (line 113)."""
        return 1 + self.d * self.l + self.d * (self.d + 1) / 2

    @property
    def released(self) -> float:
        """Return how many numbers are released."""
        return self.l + self.d * self.l + self.d * (self.d + 1) / 2

    @property
    def moves(self) -> float:
        """Return S: the largest sum of relative moves of the released numbers, or a little more."""
        features = min(1.0, 2 * self.feature_fill**2) * self.d * (self.d + 3) / 4
        return self.l * self._outcome_moves() + features

    @property
    def squared_moves(self) -> float:
        """Return S₂: the same for the sum of their squares."""
        r2, t2 = self.feature_fill**2, self.outcome_fill**2
        k = self.d * r2 / 4
        outcomes = 2 * self.l * t2 * (k + math.sqrt(k**2 + 1))
        features = (self.d * r2) ** 2 / 4 + 7 / 8 * self.d * min(1.0, 2 * r2)
        return min(self.moves, outcomes + features)

    def _outcome_moves(self) -> float:
        """Maximise u - v + a(√u + √v) over v ≤ u ≤ 1, u + v ≤ 2t²: concave, so by one search."""
        a, total = self.d * self.feature_fill / 2, 2 * self.outcome_fill**2

        def loss(u: float) -> float:
            v = min(u, max(total - u, 0.0), (a / 2) ** 2)
            return -(u - v + a * (math.sqrt(u) + math.sqrt(v)))

        ends = (total / 2, min(1.0, total))
        found: Any = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-12})
        best = -min(float(found.fun), loss(ends[0]), loss(ends[1]))
        return best * (1 + 1e-9)  # above what the search may have missed


def counted_epsilon(epsilon: float, shape: Shape) -> float:
    """Return the sum of what is charged for each number: epsilon by basic composition."""
    return epsilon * shape.released / shape.divisor


def true_epsilon(epsilon: float, shape: Shape, *, delta: float = 0.0) -> float:
    """Return an epsilon that holds at `delta` when the library is asked for `epsilon`.

    Guarantee: never below the truth. At delta = 0 it is within a few per cent of a loss that two rows
    reach, if boxes are full.
    """
    local = epsilon / shape.divisor
    pure = min(local * shape.moves, counted_epsilon(epsilon, shape))
    if delta == 0:
        return pure
    return min(pure, _zcdp_epsilon(local**2 * shape.squared_moves / 2, delta))


def nominal_epsilon(epsilon: float, shape: Shape, *, delta: float = 0.0) -> float:
    """Return the largest epsilon to ask the library for so that the true one is at most `epsilon`."""
    low, high = 0.0, epsilon
    while true_epsilon(high, shape, delta=delta) <= epsilon:
        low, high = high, 2 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        fits = true_epsilon(middle, shape, delta=delta) <= epsilon
        low, high = (middle, high) if fits else (low, middle)
    return low


def _zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the epsilon of ρ-zCDP at delta."""

    def epsilon(log_excess: float) -> float:
        excess = math.exp(log_excess)  # α - 1
        alpha = 1 + excess
        return rho * alpha + math.log1p(-1 / alpha) - math.log(delta * alpha) / excess

    # Every α is valid; near the best one α - 1 is √(log(1/δ)/ρ).
    centre = 0.5 * math.log(math.log(1 / delta) / rho)
    found: Any = minimize_scalar(epsilon, bounds=(centre - 6, centre + 6), method="bounded")
    return max(0.0, float(found.fun))
