"""From a release with a covariance inside blocks to centred moments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.released.blocks import ReleasedBlocks
from primo.released.estimate.blocks.problem import Centring
from primo.released.moments import ReleasedMoments

__all__ = ["blocks_of", "centred_blocks", "outcome_sums", "variation_about"]

Floats = NDArray[np.float64]

LEAST_VARIATION = 0.05  # of the mean variation of all outcomes, below which none is taken to be


def blocks_of(release: ReleasedMoments) -> ReleasedBlocks:
    """Return the blocks of a release that has them, or those of its public features."""
    found = release.public_blocks if release.blocks is None else release.blocks
    if found is None:
        raise InputError("this release holds a whole covariance, not one inside blocks")
    return found


def outcome_sums(release: ReleasedMoments) -> tuple[Floats, float]:
    """Return Σ y in scaled units, (l,), and its noise scale; zeros without an intercept."""
    plan = release.plan
    if not plan.intercept:
        return np.zeros(plan.l), 0.0
    sums: Floats = release.association[-1] / plan.constant
    if release.row_variance:
        return sums, float(np.sqrt(plan.n * release.row_variance))
    return sums, plan.outcome_sum_sigma / plan.constant


def variation_about(release: ReleasedMoments) -> tuple[Floats, Floats]:
    """Σ(y − ȳ)² of every outcome from noisy moments, and the variance of its error, (l,) each.

    Not below a small part of the mean over outcomes, nor of the noise.
    """
    plan = release.plan
    moments = release.outcome_moments
    raw = np.array(np.diagonal(moments) if moments.ndim == 2 else moments, dtype=np.float64)
    error = np.full(plan.l, release.outcome_sigma**2)
    sums, sigma = outcome_sums(release)
    raw -= (sums**2 - sigma**2) / plan.n
    error += (4 * sums**2 + 2 * sigma**2) * sigma**2 / plan.n**2
    least = max(float(raw.mean()), float(np.sqrt(error.mean() / plan.l)), 1e-300)
    return np.maximum(raw, LEAST_VARIATION * least), error


def centred_blocks(release: ReleasedMoments) -> Centring:
    """Take the means out of the released moments.

    Guarantee: post-processing; costs no privacy. Cost: O(Σ w² + d·l).
    """
    plan = release.plan
    sums, sigma = outcome_sums(release)
    on_rows = release.row_variance > 0  # about the means, noise on rows is noise on rows
    return Centring.of(
        blocks_of(release),
        n=plan.n,
        association=release.association[: plan.d],
        association_sigma=0.0 if on_rows else release.association_sigma,
        outcome_sums=sums if plan.intercept else None,
        outcome_sums_sigma=0.0 if on_rows else sigma,
        variation=variation_about(release)[0],
        row_noise=release.row_variance,
    )
