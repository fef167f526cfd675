"""Noise against signal: how large the released sums are, and how large the noise on them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.released.estimate.blocks.released import centred_blocks
from primo.released.estimate.centring import centred
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.system import WELL_DETERMINED
from primo.released.uncertainty.variation import variation_of

__all__ = ["Block", "Directions", "blocks_of", "directions_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Block:
    """A released block: root mean squares of its entries about the means, in scaled units."""

    name: str
    meaning: str
    signal: float  # with the noise taken out; nan where the release was loaded without it
    noise: float  # 0 where the block is public

    @property
    def ratio(self) -> float:
        """Signal over noise; infinite where the block is exact."""
        return self.signal / self.noise if self.noise else math.inf


@dataclass(frozen=True, kw_only=True)
class Directions:
    """Eigenvalues of the released covariance, largest first, and what they are measured against."""

    values: Floats  # (width,)
    sigma: float  # σ₁
    limit: float  # eigenvalues above it are well determined

    @property
    def lost(self) -> int:
        """How many directions of the features lie below the limit."""
        return int(np.sum(self.values <= self.limit))


def blocks_of(release: ReleasedMoments) -> tuple[Block, ...]:
    """Compare signal and noise of covariance, association and outcome moments.

    Guarantee: post-processing. The noise's known share is taken off the mean square of the entries,
    so a block of pure noise shows a signal of about 0. Where the covariance is inside blocks of
    features, its entries are those inside them.
    """
    if release.blocks is not None:
        return _inside_blocks(release)
    if release.feature_squares is not None:
        return _noisy_outcomes(release)
    try:
        moments = centred(release).moments
    except InputError:  # public features that outnumber the rows, not attached
        return (
            _block("covariance", math.nan, release.covariance_sigma),
            _block("association", math.nan, release.association_sigma),
            _block("outcome moments", math.nan, release.outcome_sigma),
        )
    d, _ = moments.shape
    # svec noise: full on the diagonal, half of the variance off it.
    covariance_noise = moments.covariance_sigma * math.sqrt((d + 1) / (2 * d))
    outcome = moments.outcome_moments
    diagonal = np.diagonal(outcome) if outcome.ndim == 2 else outcome
    return (
        _block("covariance", _size(moments.covariance, covariance_noise), covariance_noise),
        _block(
            "association",
            _size(moments.association, math.sqrt(moments.typical_noise)),
            math.sqrt(moments.typical_noise),
        ),
        _block("outcome moments", _size(diagonal, moments.outcome_sigma), moments.outcome_sigma),
    )


def _inside_blocks(release: ReleasedMoments) -> tuple[Block, ...]:
    """Compare signal and noise where the covariance is held inside blocks of features only."""
    moments = centred_blocks(release).moments
    entries = np.concatenate([part.ravel() for part in moments.covariance])
    widths = np.diff(moments.starts)
    # σ² on the diagonal and half of it off it, so w(w + 1)/2 times σ² in a block of width w.
    own = float(np.sum(moments.sigma**2 * widths * (widths + 1) / 2)) / len(entries)
    noise = float(moments.noise_variance.mean())
    return (
        _block("covariance", _size(entries, math.sqrt(own)), math.sqrt(own)),
        _block("association", _size(moments.association, math.sqrt(noise)), math.sqrt(noise)),
        _block(
            "outcome moments",
            _size(moments.variation, release.outcome_sigma),
            release.outcome_sigma,
        ),
    )


def _noisy_outcomes(release: ReleasedMoments) -> tuple[Block, ...]:
    """Compare signal and noise where it is on the outcomes and the features are never multiplied.

    The association of a feature x has noise of variance σ²‖x‖². Squares and sums of the features are
    part of the release; how they vary together is public, and not needed here.
    """
    plan, squares, sums = release.plan, release.feature_squares, release.feature_sums
    assert squares is not None
    association = release.association[: plan.d]
    left = squares[: plan.d]
    if plan.intercept and sums is not None:
        means = sums[: plan.d] / (plan.n * plan.constant)
        association = association - np.outer(means, release.association[-1] / plan.constant)
        left = left - plan.n * means**2
    noise = math.sqrt(max(release.row_variance * float(left.mean()), 0.0))
    sigma = release.outcome_sigma
    return (
        _block("covariance", math.nan, release.covariance_sigma),
        _block("association", _size(association, noise), noise),
        _block("outcome moments", _size(variation_of(release)[0], sigma), sigma),
    )


def directions_of(release: ReleasedMoments) -> Directions | None:
    """Return the spectrum of the released covariance, or None where it carries no noise."""
    plan = release.plan
    sigma = release.covariance_sigma * math.sqrt(2 - plan.triangle_bits)
    if sigma == 0 or not len(release.covariance):
        return None
    values = np.asarray(np.linalg.eigvalsh(release.covariance)[::-1], np.float64)
    return Directions(values=values, sigma=sigma, limit=WELL_DETERMINED * sigma)


_MEANINGS = {
    "covariance": "how the features vary together, XᵀX",
    "association": "how features and outcomes vary together, XᵀY",
    "outcome moments": "how much each outcome varies, diagonal of YᵀY",
}


def _block(name: str, signal: float, noise: float) -> Block:
    return Block(name=name, meaning=_MEANINGS[name], signal=signal, noise=noise)


def _size(entries: Floats, noise: float) -> float:
    return math.sqrt(max(0.0, float(np.mean(entries**2)) - noise**2))
