"""All rounds as one release of the outcomes' own moments (docs/mathematics.md, "Rounds").

Round t released G_t = κ_t·A(w − W_t) + e_t, with A = XᵀX, noise e_t of scale σ_t and κ_t the mean slope
of its clip (`lengths`), and a noisy A. With Â the mean of the noisy covariances by precision, Ã what A
is expected to be given Â, and weights ω_t ∝ κ_t²/σ_t² that add up to 1,

    Ĝ = Σ ω_t (G_t/κ_t + Ã W_t) = Ã w + Σ ω_t e_t/κ_t + (A − Ã)(w − W̄),   W̄ = Σ ω_t W_t:

the noise of the association is that of one release with the budget of all rounds at their clips, and
what is not known of the covariance multiplies only what is left, w − W̄. W_1 = 0, so the share of the
later rounds' weights says how much of w that can be. Â in the place of Ã would bring its noise times W̄
into Ĝ, which looks like the association of a signal W̄: each round would confirm the errors of the last.

The outcome moments are those of the first round, which saw the outcomes themselves, made as long as
the outcomes were before they were clipped (`lengths`). Adding those of later rounds back up,
RᵀR + WᵀG + GᵀW + WᵀÂW, would bring the noise of G into them: the directions of outcomes that look
strong would then be those of the noise, and the two-sided filter would let it pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.released.estimate.centring import constant_part, reflect
from primo.released.estimate.rounds.lengths import residual_lengths
from primo.released.estimate.spectrum import possible_spectrum
from primo.released.rounds import Pooled, ReleasedRound, Scales

__all__ = ["expected_product", "pool"]

Matrix = NDArray[np.float64]


def pool(plan: Plan, rounds: Sequence[ReleasedRound]) -> Pooled:
    """Return the moments of all rounds together; a deterministic function of released numbers.

    Cost: O(width²·l) for the product ÂW̄, and sums over the rounds.
    """
    first = rounds[0]
    shares, sigma1 = _weights(np.array([r.covariance_sigma for r in rounds]))
    covariance = _mean(shares, [r.covariance for r in rounds])
    found = residual_lengths(plan, rounds)
    kappa = found.slopes
    whole = _unshortened(first, found.lengths[0], plan.n)
    shares, sigma2 = _weights(np.array([r.association_sigma for r in rounds]) / kappa)
    offset = _mean(shares, [r.coefficients for r in rounds])
    association = _mean(shares / kappa, [r.association for r in rounds]) + expected_product(
        plan, covariance, sigma1, offset
    )
    return Pooled(
        covariance=covariance,
        association=association,
        outcome_moments=whole * first.outcome_moments,
        scales=Scales(
            covariance=sigma1,
            association=sigma2,
            outcome=whole * first.outcome_sigma,
            carried=float(shares[1:].sum()),
        ),
        offset=offset,
    )


def expected_product(plan: Plan, covariance: Matrix, sigma: float, coefficients: Matrix) -> Matrix:
    """Return ÃW, (width, l), with Ã what the true covariance is expected to be, given Â.

    With an intercept, W is a constant prediction and the rest, whose predictions have mean 0. The
    constant is multiplied by Â: the estimator takes the same product off again (`centring`).
    """
    if sigma == 0:
        return np.asarray(covariance @ coefficients)
    sigma *= math.sqrt(2 - plan.triangle_bits)  # as for the estimator
    if not plan.intercept:
        values, vectors = np.linalg.eigh(covariance)
        return _filtered(values, vectors, sigma, coefficients)
    found = constant_part(plan, covariance, sigma)
    slopes, means = found.slopes(coefficients)
    product = _filtered(found.values, found.vectors, sigma, slopes)
    rest = np.vstack([product, np.zeros_like(means)])
    # Along the axis it is such that the rest has a sum of 0 over the rows.
    rest[-1] = -reflect(found.axis, rest)[-1] / found.axis[-1]
    constant = np.outer(covariance @ found.start, means)
    return np.asarray(constant + reflect(found.axis, rest))


def _filtered(values: Matrix, vectors: Matrix, sigma: float, coefficients: Matrix) -> Matrix:
    expected = possible_spectrum(values, sigma)
    return np.asarray(vectors @ (expected[:, None] * (vectors.T @ coefficients)))


def _unshortened(first: ReleasedRound, length: float, n: int) -> float:
    """Return what outcome moments are multiplied by to be those of the outcomes before their clip.

    The association is that of whole outcomes once it is divided by κ; R² is a ratio of the two.
    """
    moments = first.outcome_moments
    total = float(np.trace(moments) if moments.ndim == 2 else moments.sum())
    return max(n * length**2 / total, 1.0) if total > 0 else 1.0


def _weights(scales: Matrix) -> tuple[Matrix, float]:
    """Weights by precision, and the noise scale of the weighted mean; the last one if it is exact."""
    if not scales.all():
        return np.eye(len(scales))[-1], 0.0
    precisions = (scales / scales.min()) ** -2.0
    return precisions / precisions.sum(), float(scales.min() / np.sqrt(precisions.sum()))


def _mean(shares: Matrix, values: list[Matrix]) -> Matrix:
    return np.asarray(sum(share * value for share, value in zip(shares, values, strict=True)))
