"""The estimator for blocks: decompose once, fit one prior per outcome, mix by what predicts best.

Whether most features have no effect is not known. Two estimates are made, under a normal and under a
sparse prior, and mixed by what each would explain on new rows. That is known without new rows: with ĝ of
covariance Ω beside the signal and an estimate ŵ(ĝ),

    E[ŵᵀAw] = E[ŵᵀĝ − tr(Ω·∂ŵ/∂ĝ)],

the second term by one random direction (Stein 1981; Ramani, Blu and Unser 2008).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.normal import NormalFit, fit_normal
from primo.released.estimate.blocks.problem import BlockMoments
from primo.released.estimate.blocks.sparse import SparseFit, fit_sparse
from primo.released.estimate.blocks.spectra import Directions, decompose

__all__ = ["BlockFit", "fit_blocks"]

Floats = NDArray[np.float64]

#: Nats by which the bound of the sparse prior must be above the evidence of the normal one: it has two
#: numbers more that were fitted, each worth half a logarithm of some thousands.
MUST_GAIN = 8.0
MIXTURES = np.linspace(0, 1, 9)  # candidate shares of the sparse estimate
STEP = 0.33  # of the random direction, in standard deviations of the association
SEED = 20_261_117  # fixed, so that coefficients are a function of the release


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockFit:
    """Coefficients of all features, and the prior that each outcome was found to have."""

    coefficients: Floats  # (d, l) in scaled units
    sparse: Floats  # (l,) share that the estimate under the sparse prior has in them
    share: Floats  # (l,) of the variation that the normal prior found the features to explain
    with_effect: Floats  # (l,) share of features with an effect under the sparse prior; 1 if unused


def fit_blocks(moments: BlockMoments, *, prior: str = "auto") -> BlockFit:
    """Estimate the coefficients of all outcomes, block by block with one prior.

    Parameters
    ----------
    moments
        Centred moments with a covariance inside blocks.
    prior
        "normal", "sparse", or "auto" for the mixture of both that predicts best, outcome by outcome.

    Notes
    -----
    Guarantee: post-processing of released numbers; costs no privacy.
    Cost: O(Σ w³) for the blocks' decompositions and O(Σ w²) for each outcome: linear in the number of
    features where the width of blocks is bounded.
    """
    directions = decompose(moments)
    d, l = moments.shape
    rotated = directions.rotate(moments.association)
    found, sparse = np.empty((d, l)), np.zeros(l)
    share, with_effect = np.empty(l), np.ones(l)
    for j in range(l):
        normal = fit_normal(
            directions,
            rotated[:, j],
            variation=float(moments.variation[j]),
            rows=moments.n,
            noise=float(moments.noise_variance[j]),
            row_noise=moments.row_noise,
        )
        found[:, j] = directions.restore(normal.along[:, None])[:, 0]
        share[j] = normal.share
        if prior == "normal" or normal.share <= 0:
            continue
        beside = _beside(directions, normal)
        tried = fit_sparse(
            directions,
            rotated[:, j],
            beside=beside,
            strength=normal.strength,
            begin=found[:, j],
        )
        sparse[j] = 1.0
        if prior == "auto":
            sparse[j] = _mixture(directions, rotated[:, j], beside, normal, tried)
        if sparse[j] > 0:
            found[:, j] += sparse[j] * (tried.coefficients - found[:, j])
            with_effect[j] = tried.share_with_effect
    return BlockFit(coefficients=found, sparse=sparse, share=share, with_effect=with_effect)


def _mixture(
    directions: Directions, rotated: Floats, beside: Floats, normal: NormalFit, tried: SparseFit
) -> float:
    """Return the share of the sparse estimate in the mixture that is expected to explain most.

    Unless it gains more than chance could, the prior with more evidence is used alone.
    """
    rng = np.random.default_rng(SEED)
    direction = np.sqrt(beside) * rng.standard_normal(len(rotated))
    along = directions.rotate(tried.coefficients[:, None])[:, 0]
    factor = np.divide(normal.along, rotated, out=np.zeros_like(along), where=rotated != 0)
    # From the start again: which features are chosen is what moves most.
    other = rotated + STEP * direction
    begin = directions.restore((factor * other)[:, None])[:, 0]
    moved = fit_sparse(directions, other, beside=beside, strength=normal.strength, begin=begin)
    change = directions.rotate((moved.coefficients - tried.coefficients)[:, None])[:, 0] / STEP
    gains = np.array(
        [
            normal.along @ rotated - factor @ beside,
            along @ rotated - change @ direction,
        ]
    )
    p = directions.values
    inner = np.array([[p @ (x * y) for y in (normal.along, along)] for x in (normal.along, along)])
    weights = np.stack([1 - MIXTURES, MIXTURES])
    explained = 2 * gains @ weights - ((inner @ weights) * weights).sum(axis=0)
    single = -1 if tried.evidence > normal.evidence + MUST_GAIN else 0
    best = int(np.argmax(explained))
    apart = abs(MIXTURES[best] - MIXTURES[single])
    chance = 2 * apart * float(np.sqrt(beside @ (along - normal.along) ** 2))
    if explained[best] <= explained[single] + chance:
        best = single
    return float(MIXTURES[best])


def _beside(directions: Directions, normal: NormalFit) -> Floats:
    """Variance beside the signal, with that of signal seen along eigenvectors that noise turned."""
    turned = np.maximum(directions.squares - directions.values**2, 0.0)
    return np.asarray(normal.beside + normal.strength * turned)
