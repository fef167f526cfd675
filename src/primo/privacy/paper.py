r"""The paper's noise scales exactly as printed, and the privacy that they truly give.

The paper releases averages; primo releases sums, so every printed scale is multiplied by n (by s for
the sub-sampled covariance, the average of s rows). Scales are relative to the bounds: b_x on a row of
features (the paper's ‖X‖) and b_y on a row of outcomes (its √l·|Y|, or sup‖y^i‖).

Where the paper contradicts itself the algorithm box is followed; the alternatives are noted with each
function. docs/paper-constants.md lists every difference from what replace-one neighbours need.

**An iid triangle costs what svec noise costs.** The paper draws d(d+1)/2 equal Gaussians for the upper
triangle of the covariance. Two rows then differ, in units of the noise, by Σ_i D_ii² + Σ_{i<j} D_ij²
with D = xxᵀ - x′x′ᵀ: never more than ‖D‖²_F, and equal to it where D is diagonal. For
x = b_x(cos θ, sin θ, 0, ...) and x′ = b_x(sin θ, cos θ, 0, ...), D = b_x²·diag(cos 2θ, -cos 2θ, 0, ...)
and cos(x, x′) = sin 2θ, so 0 ≤ θ ≤ π/4 reaches every cosine a in [0, 1] with ‖D‖²_F = 2b_x⁴(1 - a²),
and y′ = -y (or -x′ for x′ if y is fixed) the association's 2q(1 + a). Hence the maximum of
`joint_distance` is reached with diagonal D, for every ratio of the scales, if d ≥ 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from primo.errors import Argument, InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_of
from primo.privacy.protection import Protection
from primo.privacy.sensitivity import joint_distance
from primo.privacy.subsampling import SampledScales
from primo.privacy.subsampling import true_epsilon as sampled_epsilon

__all__ = [
    "PaperAlgorithm",
    "PaperScales",
    "noise_multiplier",
    "paper_scales",
    "true_epsilon",
    "true_mu",
]


class PaperAlgorithm(StrEnum):
    """The algorithms of the paper that draw noise, by the names they have there."""

    REUSE_COV_GAUSS = "ReuseCovGauss"  # Algorithm 1 with GaussMech; full DP
    REUSE_COV_PROJ_Y = "ReuseCovProj_Y"  # Algorithm 1 with Algorithm 2; feature DP
    REUSE_COV_PROJ_X = "ReuseCovProj_X"  # section 5.2; label DP
    LAMBDA_REUSE_COV = "lambda-ReuseCov"  # Algorithm 3; feature DP
    SUB_SAMP_REUSE_COV = "SubSampReuseCov"  # Algorithm 4; full DP

    @property
    def protection(self) -> Protection:
        """The protection that the paper claims for it."""
        return {
            PaperAlgorithm.REUSE_COV_GAUSS: Protection.BOTH,
            PaperAlgorithm.REUSE_COV_PROJ_Y: Protection.FEATURES,
            PaperAlgorithm.REUSE_COV_PROJ_X: Protection.OUTCOMES,
            PaperAlgorithm.LAMBDA_REUSE_COV: Protection.FEATURES,
            PaperAlgorithm.SUB_SAMP_REUSE_COV: Protection.BOTH,
        }[self]


@dataclass(frozen=True, kw_only=True)
class PaperScales:
    """Printed noise scales in units of sums, relative to the bounds."""

    algorithm: PaperAlgorithm
    covariance: float  # σ₁/b_x² on each entry of the upper triangle; 0 where it is exact
    association: float  # σ₂/(b_x·b_y)
    rows: int  # n
    sampled: int  # rows in the covariance: s for SubSampReuseCov, n otherwise
    covariance_source: str  # where the paper prints it
    association_source: str


def noise_multiplier(epsilon: float, delta: float) -> float:
    """Return c(ε, δ) = √(2(1/ε + log(1/δ)/ε²)) of Lemma 1: valid for all ε > 0, and loose."""
    return math.sqrt(2 * (1 / epsilon + math.log(1 / delta) / epsilon**2))


def paper_scales(
    algorithm: PaperAlgorithm | str, budget: Budget, *, rows: int, sampled: int | None = None
) -> PaperScales:
    """Return the noise scales that the paper prints for an algorithm and a claimed budget.

    Parameters
    ----------
    algorithm
        One of `PaperAlgorithm`, or its name.
    budget
        The (ε, δ) that the paper would claim. `true_epsilon` says what is given.
    rows, sampled
        n, and s for SubSampReuseCov.
    """
    try:
        algorithm = PaperAlgorithm(algorithm)
    except ValueError:
        choices = ", ".join(repr(str(member)) for member in PaperAlgorithm)
        raise InputError(
            Argument("algorithm", algorithm), " is unknown", remedy=f"choose one of {choices}"
        ) from None
    sub_sampled = algorithm is PaperAlgorithm.SUB_SAMP_REUSE_COV
    if sub_sampled != (sampled is not None):
        raise InputError(
            Argument("sampled", sampled), ": it belongs to SubSampReuseCov, and only to it"
        )
    drawn = rows if sampled is None else sampled
    if not 1 <= drawn <= rows:
        raise InputError(
            Argument("sampled", sampled), f" must lie between 1 and the number of rows, {rows}"
        )
    covariance, covariance_source = _covariance(algorithm, budget, drawn / rows)
    # Everywhere GaussMech(ε/2, δ/2, Δ = √l·‖X‖·|Y|/n). The proof of Theorem 1 finds Δ = 2√l·‖X‖·|Y|,
    # writes c(ε, δ) for c(ε/2, δ/2) and divides by ε once more.
    return PaperScales(
        algorithm=algorithm,
        covariance=covariance,
        association=noise_multiplier(budget.epsilon / 2, budget.delta / 2),
        rows=rows,
        sampled=drawn,
        covariance_source=covariance_source,
        association_source=_ASSOCIATION_SOURCES[algorithm],
    )


def true_mu(scales: PaperScales, protection: Protection) -> float:
    """Return the smallest mu such that the printed scales are mu-GDP under replace-one.

    Exact for d ≥ 2 (an upper bound for d = 1). For SubSampReuseCov it is the mu that would hold if
    the draw were public; `true_epsilon` counts its secrecy.
    """
    q = scales.association**-2
    if not protection.features_private:
        return math.sqrt(joint_distance(0.0, q, 0.0))
    if scales.covariance == 0:
        return math.inf  # a private covariance, released exactly
    return math.sqrt(joint_distance(scales.covariance**-2, q, 0.0))


def true_epsilon(scales: PaperScales, protection: Protection, delta: float) -> float:
    """Return the epsilon, rounded up, that the printed scales give at this delta.

    Exact for all but SubSampReuseCov, where `subsampling.true_epsilon` bounds it.
    """
    mu = true_mu(scales, protection)
    if math.isinf(mu):
        return math.inf
    if scales.sampled < scales.rows and protection.features_private:
        return sampled_epsilon(
            SampledScales(
                rows=scales.rows,
                sampled=scales.sampled,
                covariance=scales.covariance,
                association=scales.association,
            ),
            delta,
        )
    return epsilon_of(mu, delta)


def _covariance(algorithm: PaperAlgorithm, budget: Budget, rate: float) -> tuple[float, str]:
    """Return σ₁/b_x² and where it is printed."""
    if algorithm is PaperAlgorithm.REUSE_COV_PROJ_X:
        return 0.0, "Section 5.2 and Theorem 4, E₁ = 0"
    # √(2 log(1.25/δ′)) at δ′ = δ/2, the classical multiplier without its division by ε.
    classical = math.sqrt(2 * math.log(2.5 / budget.delta))
    if algorithm is PaperAlgorithm.LAMBDA_REUSE_COV:
        # At (ε/2, δ/2), as Alg. 1 should have been.
        return 2 * classical / budget.epsilon, "Algorithm 3 line 1"
    if algorithm is PaperAlgorithm.SUB_SAMP_REUSE_COV:
        # Printed on (1/s)X_SᵀX_S, hence times s: (s/n)·2√(2 log(2.5/δ))/ε₁ with ε₁ = (n/s)·ε/2, which
        # already has the half that the factor 2 stands for.
        epsilon_1 = budget.epsilon / 2 / rate
        return rate * 2 * classical / epsilon_1, "Algorithm 4 lines 2 and 3"
    # The box uses the whole budget; the proof of Theorem 1 prints c(ε, δ)‖X‖²/ε and calls that
    # (ε/2, δ/2)-DP.
    return noise_multiplier(budget.epsilon, budget.delta), "Algorithm 1 line 1"


_ASSOCIATION_SOURCES = {
    PaperAlgorithm.REUSE_COV_GAUSS: "Algorithm 1 line 3 and Theorem 1",
    PaperAlgorithm.REUSE_COV_PROJ_Y: "Algorithm 1 line 3, Algorithm 2 line 1 and Theorem 3",
    # Theorem 4 keeps the half although the covariance needs none of the budget.
    PaperAlgorithm.REUSE_COV_PROJ_X: "Algorithm 2 line 1 with X and Y exchanged, and Theorem 4",
    PaperAlgorithm.LAMBDA_REUSE_COV: "Algorithm 3 line 4",
    PaperAlgorithm.SUB_SAMP_REUSE_COV: "Algorithm 4 line 5",
}
