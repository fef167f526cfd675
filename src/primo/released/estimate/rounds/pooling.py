"""All rounds as one release of the outcomes' own moments (mathematics.md section 12).

Round t released G_t = A(w − W_t) + e_t, with A = XᵀX and noise e_t of scale σ_t, and a noisy A. With Â
the mean of the noisy covariances by precision, and weights ω_t ∝ 1/σ_t² that add up to 1,

    Ĝ = Σ ω_t (G_t + Â W_t) = Â w + Σ ω_t e_t − E(w − W̄),   E = Â − A,   W̄ = Σ ω_t W_t:

the noise of the association is that of one release with the budget of all rounds at their clips, and the
noise of the covariance multiplies only what is left, w − W̄.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.released.rounds import Pooled, ReleasedRound, Scales

__all__ = ["pool"]

Matrix = NDArray[np.float64]


def pool(plan: Plan, rounds: Sequence[ReleasedRound]) -> Pooled:
    """Return the moments of all rounds together; a deterministic function of released numbers."""
    shares, sigma1 = _weights([r.covariance_sigma for r in rounds])
    covariance = _mean(shares, [r.covariance for r in rounds])
    shares, sigma2 = _weights([r.association_sigma for r in rounds])
    offset = _mean(shares, [r.coefficients for r in rounds])
    association = _mean(shares, [r.association for r in rounds]) + covariance @ offset
    shares, sigma3 = _weights([r.outcome_sigma for r in rounds])
    moments = _mean(shares, [_outcome_moments(r, covariance) for r in rounds])
    return Pooled(
        covariance=covariance,
        association=association,
        outcome_moments=moments,
        scales=Scales(covariance=sigma1, association=sigma2, outcome=sigma3),
        offset=offset,
    )


def _weights(sigmas: list[float]) -> tuple[Matrix, float]:
    """Weights by precision, and the noise scale of the weighted mean; the last one if it is exact."""
    scales = np.array(sigmas)
    if not scales.all():
        return np.eye(len(scales))[-1], 0.0
    precisions = (scales / scales.min()) ** -2.0
    return precisions / precisions.sum(), float(scales.min() / np.sqrt(precisions.sum()))


def _mean(shares: Matrix, values: list[Matrix]) -> Matrix:
    return np.asarray(sum(share * value for share, value in zip(shares, values, strict=True)))


def _outcome_moments(released: ReleasedRound, covariance: Matrix) -> Matrix:
    """YᵀY of Y = R + XW, or its diagonal, from what a round released."""
    w, both = released.coefficients, released.association
    if released.outcome_moments.ndim == 1:
        cross = 2 * both + covariance @ w
        return np.asarray(released.outcome_moments + np.einsum("ij,ij->j", w, cross))
    cross = w.T @ both
    return np.asarray(released.outcome_moments + cross + cross.T + w.T @ covariance @ w)
