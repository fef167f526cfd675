"""One normal prior for the coefficients of all blocks, its strength by the evidence of all of them.

Along a direction v of a block, with p = vᵀAv, b = vᵀA²v and coefficients of variance τ²,

    vᵀĝ ~ N(0, τ²b + ς²p + σ₂²),      posterior mean of vᵀw:  τ²p/(τ²b + ς²p + σ₂²) · vᵀĝ.

ς² is the residual variance of a row beside the block: the whole variation less what this block
explains, so nearly all of it where there are many blocks, and noise that was added to the outcomes
themselves. The share of the variation that all blocks explain has the prior of `estimate.signal`, under
which nothing at all is a possibility; coefficients are averaged over its posterior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.spectra import Directions
from primo.released.estimate.signal import EXPLAINED, SHARE_PRIOR

__all__ = ["NormalFit", "fit_normal"]

Floats = NDArray[np.float64]

COUNTED = 1e-4  # posterior weight below which a share is left out of the average
NUMERICAL = 1e-12  # of the mean squared association: stands in for no noise at all


@dataclass(frozen=True, kw_only=True, eq=False)
class NormalFit:
    """The normal prior fitted to one outcome."""

    along: Floats  # (d,) posterior means of the coefficients along the directions
    evidence: float  # log-evidence, less that of no signal at all
    share: float  # posterior mean of the share of the variation that is explained
    strength: float  # τ² at that share
    kept: float  # part of the variation that is expected to be explained on new rows
    beside: Floats  # (d,) variance of the association along each direction beside the signal


def fit_normal(
    directions: Directions,
    rotated: Floats,
    *,
    variation: float,
    rows: int,
    noise: float,
    row_noise: float = 0.0,
) -> NormalFit:
    """Fit the prior to the association of one outcome along all directions, (d,).

    Cost: O(d) for each of some 50 shares.
    """
    p, b = directions.values, directions.squares
    total = max(float(p.sum()), 1e-300)
    noise = max(noise, NUMERICAL * float(np.mean(rotated**2)), 1e-300)

    def variances(share: float) -> tuple[Floats, Floats]:
        residual = variation * (1 - share * directions.block_share) / rows + row_noise
        return share * variation / total * b, residual * p + noise

    energy = rotated**2
    scores = np.empty(len(EXPLAINED))
    for k, share in enumerate(EXPLAINED):
        signal, beside = variances(float(share))
        whole = signal + beside
        scores[k] = -0.5 * float((energy / whole + np.log(whole)).sum())
    weighted = scores + SHARE_PRIOR
    top = float(weighted.max())
    weights = np.exp(weighted - top)
    normal = float(np.exp(SHARE_PRIOR).sum())
    evidence = top + float(np.log(weights.sum() / normal)) - float(scores[0])
    weights /= weights.sum()
    along, kept = np.zeros_like(rotated), 0.0
    for weight, share in zip(weights, EXPLAINED, strict=True):
        if weight < COUNTED or share == 0:
            continue
        tau = float(share) * variation / total
        signal, beside = variances(float(share))
        factor = tau * p / (signal + beside)
        along += weight * factor * rotated
        kept += weight * tau / variation * float((factor * p * p).sum())
    share = float(weights @ EXPLAINED)
    return NormalFit(
        along=along,
        evidence=evidence,
        share=share,
        strength=share * variation / total,
        kept=kept,
        beside=variances(share)[1],
    )
