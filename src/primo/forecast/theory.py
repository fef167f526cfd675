"""The paper's error bounds and its Table 1, as functions of public numbers.

Rates without their constants and logarithms (the paper's Õ): they say how error grows, not how large
it is. `forecast` predicts the size. Error is excess mean squared error, an average over rows and
outcomes; `feature_norm` bounds a row of features, `outcome_bound` one outcome of one row (b∞; the paper
writes ‖Y‖), `coefficient_norm` is the root mean squared norm of the coefficients of an outcome (‖ŵ‖).

Powers of 1/ε, which Õ hides, are kept: an error of the Gaussian mechanism is proportional to 1/ε, one
after projection to 1/√ε, because Theorem 2 bounds its *square* by c(ε, δ) ∝ 1/ε.

Where the paper contradicts itself, or its own derivation:

- Theorem 4 (GaussProj_X) has n where Table 1, row 5, has √n. The association's error of Section 5.2
  put into λ‖w‖² + ‖e‖²/λ gives √n, the table's form, and so does the symmetry with Theorem 3.
  `outcome_projection_bound` has √n.
- "Proj_X is better than Gauss when l > n^(2/3)" compares d√l/n, from which the factor ‖Yˡ‖² = l·b∞²
  has been taken out, with d·l²/n², from which it has not, and which lacks a factor d. With both put
  right the condition is √l > n/d, which is also what exchanging d and l in Theorem 3's √d·l > n
  gives. `Regime` reports the corrected threshold; the printed one is `printed_threshold`.
- The text after Theorem 3 says the cost is n/d^(1/4); Table 1 has √n/d^(1/4), which is the ratio.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from primo.errors import Argument, InputError
from primo.planning.settings import check_association
from primo.privacy.budget import is_number
from primo.privacy.protection import Protection

__all__ = [
    "Regime",
    "feature_projection_bound",
    "gauss_bound",
    "lower_bound",
    "outcome_projection_bound",
    "regime",
]

#: Rows 2, 4 and 5 of Table 1 are reached by the association's error, rows 1 and 3 by the covariance's.
_COSTS = {1: "1", 2: "sqrt(l)", 3: "1", 4: "sqrt(n)/d^(1/4)", 5: "l^(1/4)*sqrt(n)"}


@dataclass(frozen=True, kw_only=True)
class Regime:
    """The row of Table 1 that a problem belongs to."""

    row: int  # of Table 1, counted from 1
    condition: str  # why this row, with the numbers put in
    rate: float  # the upper bound of the row's theorem, as excess mean squared error
    outcome_bound: float  # the bound on one outcome, in whose square errors are measured
    lower_bound: float  # what no private method can beat, for one outcome (Bassily et al. 2014)
    cost: float  # rate / lower_bound, at least 1: what the other l − 1 outcomes cost
    printed_cost: str  # the formula in Table 1's column cost(l)
    free: bool  # the paper's "PRIMO for Free": as good as one outcome alone
    trivial: bool  # the rate exceeds the variance: theory promises nothing beyond a constant fit
    threshold: float | None  # number of outcomes beyond which the projection's bound is the better
    printed_threshold: float | None  # the same as printed in the paper

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return asdict(self)


def lower_bound(
    *,
    n: int,
    d: int,
    epsilon: float,
    feature_norm: float,
    outcome_bound: float,
    coefficient_norm: float,
) -> float:
    """Return the least error of any private method for one outcome (equation 3; full DP only)."""
    product = feature_norm * coefficient_norm
    bound = math.sqrt(d) * (product**2 + product * outcome_bound) / (n * epsilon)
    return min(outcome_bound**2, bound)


def gauss_bound(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    feature_norm: float,
    outcome_bound: float,
    coefficient_norm: float,
    covariance_private: bool = True,
) -> float:
    """Return the error of ReuseCovGauss (Theorem 1); without its first term if XᵀX is public."""
    product = feature_norm * coefficient_norm
    covariance = d * product**2 if covariance_private else 0.0
    association = l * d * outcome_bound**2
    return product * math.sqrt(covariance + association) / (n * epsilon)


def feature_projection_bound(
    *,
    n: int,
    d: int,
    epsilon: float,
    feature_norm: float,
    outcome_bound: float,
    coefficient_norm: float,
) -> float:
    """Return the error of ReuseCovProj_Y, features private (Theorem 3). It does not depend on l."""
    product = feature_norm * coefficient_norm
    covariance = d * product**2 / (n * epsilon) ** 2
    association = math.sqrt(d) * outcome_bound**2 / (n * epsilon)
    return product * math.sqrt(covariance + association)


def outcome_projection_bound(
    *,
    n: int,
    l: int,
    epsilon: float,
    feature_norm: float,
    outcome_bound: float,
    coefficient_norm: float,
) -> float:
    """Return the error of ReuseCovProj_X, outcomes private: Table 1's row 5 (Theorem 4 corrected).

    The paper's |X|·√d is the norm of a row and its ‖Yˡ‖ is √l·b∞, so that l^(−1/4) becomes l^(1/4).
    """
    product = feature_norm * coefficient_norm
    return product * outcome_bound * math.sqrt(math.sqrt(l)) / math.sqrt(n * epsilon)


def regime(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    protection: Protection | str = Protection.BOTH,
    association: str = "gauss",
    feature_norm: float = 1.0,
    outcome_bound: float = 1.0,
    coefficient_norm: float = 1.0,
) -> Regime:
    """Find the row of Table 1 that a problem falls into, and what it promises.

    Parameters
    ----------
    n, d, l
        Rows, features, outcomes.
    epsilon
        Of the whole release.
    protection, association
        What is private, and the mechanism for XᵀY.
    feature_norm, outcome_bound, coefficient_norm
        Bounds of a row of features and of one outcome, and ‖ŵ‖; see the module.

    Notes
    -----
    Theorem 1 holds for every l, so Gauss keeps rows 1 and 2 beyond l = n/√d, where the table uses the
    projection: under `both` there is no projection.
    """
    protection = Protection.parse(protection)
    _check(n=n, d=d, l=l, epsilon=epsilon)
    _check(
        feature_norm=feature_norm, outcome_bound=outcome_bound, coefficient_norm=coefficient_norm
    )
    check_association(association, protection)
    one: dict[str, Any] = {
        "n": n,
        "epsilon": epsilon,
        "feature_norm": feature_norm,
        "outcome_bound": outcome_bound,
        "coefficient_norm": coefficient_norm,
    }
    ratio = (feature_norm * coefficient_norm / outcome_bound) ** 2
    threshold: float | None = None
    printed: float | None = None
    if association == "gauss":
        rate = gauss_bound(d=d, l=l, covariance_private=protection.features_private, **one)
        # With a public covariance only the association's term is left, which is row 2's rate.
        row = 1 if l < ratio and protection.features_private else 2
        condition = (
            "the covariance is public, so only the association's error is left"
            if not protection.features_private
            else f"l = {l} is {_side(l, ratio)} b_x²‖w‖²/b_y² = {ratio:.3g}"
        )
    elif protection is Protection.FEATURES:
        rate = feature_projection_bound(d=d, **one)
        row = 3 if n < math.sqrt(d) * ratio else 4
        threshold = printed = n / math.sqrt(d)
        condition = f"n = {n} is {_side(n, math.sqrt(d) * ratio)} √d·b_x²‖w‖²/b_y² = " + (
            f"{math.sqrt(d) * ratio:.3g}"
        )
    else:
        rate = outcome_projection_bound(l=l, **one)
        row, threshold, printed = 5, (n / d) ** 2, n ** (2 / 3)
        condition = "the outcomes are private and the features public"
    if threshold is not None:
        condition += (
            f"; by its bound the projection beats Gauss beyond l = {threshold:.3g}, and l = {l} is "
            f"{_side(l, threshold)} that"
        )
    least = lower_bound(d=d, **one)
    return Regime(
        row=row,
        condition=condition,
        rate=rate,
        outcome_bound=outcome_bound,
        lower_bound=least,
        cost=max(1.0, rate / least),
        printed_cost=_COSTS[row],
        free=row in (1, 3),
        trivial=rate >= outcome_bound**2,
        threshold=threshold,
        printed_threshold=printed,
    )


def _side(value: float, limit: float) -> str:
    return "below" if value < limit else "not below"


def _check(**values: float) -> None:
    for name, value in values.items():
        if not is_number(value) or not math.isfinite(value) or value <= 0:
            raise InputError(Argument(name, value), " must be a positive, finite number")
