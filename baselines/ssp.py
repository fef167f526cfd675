r"""Single-outcome regression by noisy moments, run once for every outcome: the paper's naive baseline.

Sufficient statistics perturbation (Vu & Slavković 2009; Foulds et al. 2016; Wang 2018) solves (XᵀX +
E₁)w_j = Xᵀy_j + e₂ for one outcome. Section 3 of the paper composes l runs, each with its own fresh
covariance noise, which is what its own algorithms save. With replace-one sensitivities √2·b_x² and
2·b_x·b_j, |y_ij| ≤ b_j, three ways to share (ε, δ) among the outcomes:

``"printed"``
    ε′ = ε/√l, δ′ = δ/l for each outcome (the "≈" of Section 3), halved between the two releases, with
    the paper's noise multiplier c (Lemma 1). This is *not* what the composition theorem gives: it
    lacks the factor √(2·log(1/δ″)) and the second term. It is private all the same for usual budgets,
    because Gaussian noise composes better than the theorem knows; `guarantee_` has the truth, which
    may exceed a large ε.
``"advanced"``
    The theorem (Dwork & Roth 2014, theorem 3.20) inverted: l mechanisms, each (ε′, δ′)-DP, are
    together (ε′√(2l·log(1/δ″)) + l·ε′(e^ε′ - 1), l·δ′ + δ″)-DP. With δ″ = δ/2 and δ′ = δ/(2l), the
    largest ε′ whose total is at most ε; or basic composition, ε′ = ε/l and δ′ = δ/l, where that needs
    less noise (few outcomes). The often quoted ε′ = ε/√(2l·log(2/δ)) leaves out the second term and
    exceeds ε; dividing it by 2 (corollary 3.21) is proven for ε < 1 only. Halving and c as above.
``"gdp"``
    Exact: the budget is mu-GDP for one mu, every outcome gets mu/√l, half of its mu² goes to each
    release. Noise off the diagonal of XᵀX is smaller by √2, which is free.

**The true cost.** All 2l releases are Gaussian, so their exact cost is known: mu² = l·f(p, q) with the
f of mathematics.md section 2, as one row with x′ and y′ = -y can be worst for all outcomes at once. It
is below the sum of separate charges, since no pair of rows is worst for both releases. ``joint=True``
calibrates "gdp" to it, a courtesy that plain SSP does not know. Only |y_ij| ≤ b_j is counted: a bound
on the whole row of outcomes is nothing that l separate regressions could use.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from baselines.base import ExactMoments, Guarantee, Matrix, MomentBaseline
from baselines.gaussian import (
    ASSOCIATION,
    COVARIANCE,
    ROUNDING,
    Scales,
    guarantee_of,
    noise_penalty,
    symmetric_noise,
)
from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.privacy.paper import noise_multiplier

__all__ = ["COMPOSITIONS", "ComposedSSP", "advanced_total", "share_of", "ssp_scales"]

COMPOSITIONS = ("printed", "advanced", "gdp")

_CHUNK = 2**22  # numbers in one stack of covariances (32 MB)


class ComposedSSP(MomentBaseline):
    """SSP for every outcome by itself, composed over outcomes.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every baseline.
    composition : {"gdp", "advanced", "printed"}
        How the budget is shared among the outcomes; see the module.
    joint : bool, default False
        Calibrate "gdp" to the exact cost of both releases together.
    outcome_limit : float, optional
        b_j: entries of outcomes are clipped to ± this. Default: `outcome_bounds`, which no entry of a
        row within it exceeds.
    ridge : {"noise", "none"} or float, default "noise"
        "none" solves as printed, however far the solution of an indefinite system runs away. Otherwise
        negative eigenvalues of the noisy covariance are set to 0 and λ is added to all: a number in
        units of XᵀX, or "noise", √(d·log(2d²/ρ))·σ₁ with ρ = 0.05, AdaSSP's penalty for a covariance
        that is all noise.

    Notes
    -----
    Guarantee: `guarantee_`; its epsilon is at most `epsilon` for "advanced" and "gdp".
    Cost: O(l·d³) in stacks of bounded size.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        composition: str = "gdp",
        joint: bool = False,
        outcome_limit: float | None = None,
        ridge: float | str = "noise",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.composition = composition
        self.joint = joint
        self.outcome_limit = outcome_limit
        self.ridge = ridge

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        return super()._fit(features, np.clip(outcomes, -self._limit, self._limit))

    @property
    def _limit(self) -> float:
        return self.outcome_bounds if self.outcome_limit is None else self.outcome_limit

    def _from_moments(self, moments: ExactMoments) -> tuple[Matrix, Guarantee | None]:
        # Moments cannot be clipped entry by entry: the caller must make sure that entries keep the
        # limit, or rows the norm √l·limit, which costs no more in all (the cost depends on Σ_j b_j²).
        d, l = moments.association.shape
        budget = Budget(epsilon=self.epsilon, delta=self.delta)
        scales = ssp_scales(budget, l, composition=self.composition, joint=self.joint)
        sigma_1 = scales.covariance * self.feature_bounds**2
        sigma_2 = scales.association * self.feature_bounds * self._limit
        rng, svec = self._rng(), self.composition == "gdp"
        slopes = np.empty((d, l))
        step = max(1, _CHUNK // d**2)
        for start in range(0, l, step):
            part = moments.association[:, start : start + step]
            width = part.shape[1]
            noise = symmetric_noise(rng, d, sigma_1, count=width, svec=svec)
            blurred = part.T + rng.normal(scale=sigma_2, size=(width, d))
            solved = self._solve(moments.covariance + noise, blurred, sigma_1)
            slopes[:, start : start + step] = solved.T
        how = f"{2 * l} Gaussian releases, exact; shared by {self.composition} composition"
        return slopes, guarantee_of(l * scales.joint, self.delta, how)

    def _solve(self, covariances: Matrix, right: Matrix, sigma_1: float) -> Matrix:
        """Solve each (d, d) of a stack for its own right-hand side, (count, d)."""
        if self.ridge == "none":
            return np.asarray(np.linalg.solve(covariances, right[..., None])[..., 0])
        if self.ridge == "noise":
            penalty = noise_penalty(right.shape[1], sigma_1)
        elif isinstance(self.ridge, str) or not 0 < self.ridge < math.inf:
            raise InputError(f"ridge={self.ridge!r} must be 'noise', 'none' or a number above 0")
        else:
            penalty = self.ridge
        values, vectors = np.linalg.eigh(covariances)
        rotated = np.einsum("cij,ci->cj", vectors, right)
        return np.asarray(
            np.einsum("cij,cj->ci", vectors, rotated / (np.maximum(values, 0.0) + penalty))
        )


def ssp_scales(budget: Budget, l: int, *, composition: str, joint: bool = False) -> Scales:
    """Return the noise of one outcome when l outcomes share the budget."""
    if composition not in COMPOSITIONS:
        raise InputError(f"composition={composition!r} must be one of {', '.join(COMPOSITIONS)}")
    if composition == "gdp":
        mu = mu_of(budget)
        half = mu / math.sqrt(2 * l)
        scales = Scales(covariance=COVARIANCE / half, association=ASSOCIATION / half)
        counted = l * (scales.joint if joint else scales.separate)
        return scales.times(ROUNDING * math.sqrt(counted) / mu)
    if joint:
        raise InputError(f"joint=True belongs to composition='gdp', not to {composition!r}")
    if composition == "printed":
        shares = [(budget.epsilon / math.sqrt(l), budget.delta / l)]
    else:
        shares = [share_of(budget, l), (budget.epsilon / l, budget.delta / l)]
    multiplier = min(noise_multiplier(epsilon / 2, delta / 2) for epsilon, delta in shares)
    return Scales(covariance=multiplier * COVARIANCE, association=multiplier * ASSOCIATION)


def advanced_total(epsilon: float, l: int, slack: float) -> float:
    """Return the epsilon of l mechanisms of `epsilon` each, with δ″ = slack (theorem 3.20)."""
    return epsilon * math.sqrt(2 * l * math.log(1 / slack)) + l * epsilon * math.expm1(epsilon)


def share_of(budget: Budget, l: int) -> tuple[float, float]:
    """Return the largest (ε′, δ′) of each of l mechanisms by advanced composition."""
    low, high = 0.0, budget.epsilon
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low, budget.delta / (2 * l)
        fits = advanced_total(middle, l, budget.delta / 2) <= budget.epsilon
        low, high = (middle, high) if fits else (low, middle)
