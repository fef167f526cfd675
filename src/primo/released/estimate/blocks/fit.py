"""The estimator for blocks: decompose once, fit one prior per outcome, mix by what predicts best.

Whether most features have no effect is not known. Two estimates are made, under a normal and under a
sparse prior, and mixed by what each would explain on new rows. That is known without new rows: with ĝ of
covariance Ω beside the signal and ξ ~ N(0, Ω) drawn here,

    ĝ₁ = ĝ + hξ      and      ĝ₂ = ĝ − ξ/h

are independent, both about Aw (data thinning). Estimates are made from ĝ₁, with noise that is larger by
1 + h², and E[ŵ₁ᵀĝ₂] = E[ŵ₁ᵀAw]. ŵᵀξ/h, of the estimate from ĝ itself, is 0 in the mean and taken off,
since it has most of the chance in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.normal import NormalFit, fit_normal
from primo.released.estimate.blocks.problem import BlockMoments
from primo.released.estimate.blocks.sparse import SparseFit, fit_sparse
from primo.released.estimate.blocks.spectra import Directions, decompose

__all__ = ["MIXTURES", "BlockFit", "fit_blocks", "fit_priors"]

Floats = NDArray[np.float64]

MIXTURES = np.linspace(0, 1, 9)  # candidate shares of the sparse estimate
STEP = 0.33  # h
#: Features that all thinned fits have together, and how many fits there are at most.
TRIED, MOST_FITS = 32_000, 4
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
        problem = _Outcome(moments=moments, directions=directions, outcome=j)
        normal = problem.normal(rotated[:, j])
        found[:, j] = directions.restore(normal.along[:, None])[:, 0]
        share[j] = normal.share
        if prior == "normal" or normal.share <= 0:
            continue
        tried = problem.sparse(rotated[:, j], normal)
        sparse[j] = 1.0
        if prior == "auto":
            sparse[j] = _mixture(problem, rotated[:, j], normal, tried)
        if sparse[j] > 0:
            found[:, j] += sparse[j] * (tried.coefficients - found[:, j])
            with_effect[j] = tried.share_with_effect
    return BlockFit(coefficients=found, sparse=sparse, share=share, with_effect=with_effect)


def fit_priors(moments: BlockMoments, outcome: int = 0) -> tuple[Floats, Floats]:
    """Return the coefficients of an outcome under the normal and under the sparse prior, (d,) each.

    Cost: as `fit_blocks` without the choice between the two.
    """
    directions = decompose(moments)
    rotated = directions.rotate(moments.association)[:, outcome]
    problem = _Outcome(moments=moments, directions=directions, outcome=outcome)
    normal = problem.normal(rotated)
    found = directions.restore(normal.along[:, None])[:, 0]
    return found, problem.sparse(rotated, normal).coefficients if normal.share > 0 else found


@dataclass(frozen=True, kw_only=True, eq=False)
class _Outcome:
    """One outcome of the moments, and its two estimates from any association."""

    moments: BlockMoments
    directions: Directions
    outcome: int

    def normal(self, rotated: Floats, more: float = 0.0) -> NormalFit:
        """Fit the normal prior to an association with `more` times the variance beside the signal."""
        moments, j = self.moments, self.outcome
        variation = float(moments.variation[j])
        return fit_normal(
            self.directions,
            rotated,
            variation=variation,
            rows=moments.n,
            noise=(1 + more) * float(moments.noise_variance[j]),
            row_noise=(1 + more) * moments.row_noise + more * variation / moments.n,
        )

    def sparse(self, rotated: Floats, normal: NormalFit) -> SparseFit:
        """Fit the sparse prior, from the estimate under the normal one."""
        return fit_sparse(
            self.directions,
            rotated,
            beside=_beside(self.directions, normal),
            strength=normal.strength,
            begin=self.directions.restore(normal.along[:, None])[:, 0],
        )


def _mixture(problem: _Outcome, rotated: Floats, normal: NormalFit, tried: SparseFit) -> float:
    """Return the share of the sparse estimate in the mixture that is expected to explain most."""
    directions = problem.directions
    rng = np.random.default_rng(SEED)
    root = np.sqrt(_beside(directions, normal))
    weights = np.stack([1 - MIXTURES, MIXTURES])
    whole = normal.along, directions.rotate(tried.coefficients[:, None])[:, 0]
    explained = np.zeros(len(MIXTURES))
    for _ in range(min(MOST_FITS, -(-TRIED // len(rotated)))):
        chance = root * rng.standard_normal(len(rotated))
        first = rotated + STEP * chance
        again = problem.normal(first, STEP**2)
        thinned = [again.along, again.along]
        if again.share > 0:
            found = problem.sparse(first, again).coefficients
            thinned[1] = directions.rotate(found[:, None])[:, 0]
        gains = np.array(
            [t @ rotated - (t - w) @ chance / STEP for t, w in zip(thinned, whole, strict=True)]
        )
        inner = np.array([[directions.values @ (x * y) for y in thinned] for x in thinned])
        explained += 2 * gains @ weights - ((inner @ weights) * weights).sum(axis=0)
    return float(MIXTURES[int(np.argmax(explained))])


def _beside(directions: Directions, normal: NormalFit) -> Floats:
    """Variance beside the signal, with that of signal seen along eigenvectors that noise turned."""
    turned = np.maximum(directions.squares - directions.values**2, 0.0)
    return np.asarray(normal.beside + normal.strength * turned)
