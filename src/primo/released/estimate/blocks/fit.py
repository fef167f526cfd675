"""The estimator for blocks: decompose once, fit one prior per outcome, choose by evidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.normal import NormalFit, fit_normal
from primo.released.estimate.blocks.problem import BlockMoments
from primo.released.estimate.blocks.sparse import fit_sparse
from primo.released.estimate.blocks.spectra import Directions, decompose

__all__ = ["BlockFit", "fit_blocks"]

Floats = NDArray[np.float64]

#: Nats by which the bound of the sparse prior must be above the evidence of the normal one: it has two
#: numbers more that were fitted, each worth half a logarithm of some thousands.
MUST_GAIN = 8.0
PRIORS = ("auto", "normal", "sparse")


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockFit:
    """Coefficients of all features, and the prior that each outcome was found to have."""

    coefficients: Floats  # (d, l) in scaled units
    sparse: NDArray[np.bool_]  # (l,) whether most features were found to have no effect
    share: Floats  # (l,) of the variation that the normal prior found the features to explain
    with_effect: Floats  # (l,) share of features with an effect; 1 under the normal prior


def fit_blocks(moments: BlockMoments, *, prior: str = "auto") -> BlockFit:
    """Estimate the coefficients of all outcomes, block by block with one prior.

    Parameters
    ----------
    moments
        Centred moments with a covariance inside blocks.
    prior
        "normal", "sparse", or "auto" for the one that has more evidence, outcome by outcome.

    Notes
    -----
    Guarantee: post-processing of released numbers; costs no privacy.
    Cost: O(Σ w³) for the blocks' decompositions and O(Σ w²) for each outcome: linear in the number of
    features where the width of blocks is bounded.
    """
    directions = decompose(moments)
    d, l = moments.shape
    rotated = directions.rotate(moments.association)
    found, sparse = np.empty((d, l)), np.zeros(l, dtype=np.bool_)
    share, with_effect = np.empty(l), np.ones(l)
    for j in range(l):
        normal = fit_normal(
            directions,
            rotated[:, j],
            variation=float(moments.variation[j]),
            rows=moments.n,
            noise=float(moments.noise_variance[j]),
        )
        found[:, j] = directions.restore(normal.along[:, None])[:, 0]
        share[j] = normal.share
        if prior == "normal" or normal.share <= 0:
            continue
        tried = fit_sparse(
            directions,
            rotated[:, j],
            beside=_beside(directions, normal),
            strength=normal.strength,
            begin=found[:, j],
        )
        if prior == "sparse" or tried.evidence > normal.evidence + MUST_GAIN:
            found[:, j], sparse[j] = tried.coefficients, True
            with_effect[j] = tried.share_with_effect
    return BlockFit(coefficients=found, sparse=sparse, share=share, with_effect=with_effect)


def _beside(directions: Directions, normal: NormalFit) -> Floats:
    """Variance beside the signal, with that of signal seen along eigenvectors that noise turned."""
    turned = np.maximum(directions.squares - directions.values**2, 0.0)
    return np.asarray(normal.beside + normal.strength * turned)
