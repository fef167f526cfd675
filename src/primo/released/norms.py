"""Norms chosen from noisy histograms of row lengths: post-processing, costs no privacy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["BlockChoice", "ChosenNorms", "LengthHistogram", "NormOption", "choose_norms", "speaks"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class LengthHistogram:
    """Noisy counts of row lengths over the grid of `primo.privacy.lengths`, in scaled units."""

    counts: Floats  # (BINS,)
    sigma: float  # standard deviation of the noise on each count


@dataclass(frozen=True, kw_only=True)
class BlockChoice:
    """The norm of one block, and what it does to the rows."""

    norm: float
    found: bool  # whether the histogram chose it; otherwise it is the stated one
    shortened: float  # estimated share of rows that are shortened; 0 where nothing is known
    factor: float  # what the moments of this block multiply slopes by, about; 1 where unknown


@dataclass(frozen=True, kw_only=True)
class NormOption:
    """A pair of norms that could have been chosen, and the error that is predicted with it."""

    feature_norm: float
    outcome_norm: float
    feature_shortened: float
    outcome_shortened: float
    lost: float  # predicted share of the outcomes' variance lost to noise and shortening


@dataclass(frozen=True, kw_only=True)
class ChosenNorms:
    """What `choose_norms` found."""

    features: BlockChoice
    outcomes: BlockChoice
    options: tuple[NormOption, ...]  # tighter to looser; one of them is the chosen pair

    @property
    def slope_factor(self) -> float:
        """What shortening multiplies slopes by, for rows without a preferred direction."""
        return self.features.factor * self.outcomes.factor


def speaks(n: int, sigma: float) -> bool:
    """Whether a histogram of n rows with this noise says anything; public numbers only."""
    raise NotImplementedError


def choose_norms(
    *,
    features: LengthHistogram | None,
    outcomes: LengthHistogram | None,
    feature_norm: float,
    outcome_norm: float,
    n: int,
    d: int,
    l: int,
    covariance_scale: float,
    association_scale: float,
    outcome_scale: float,
    intercept: bool,
) -> ChosenNorms:
    """Choose the norms of least predicted error.

    Parameters
    ----------
    features, outcomes
        Noisy histograms; None for a block that is public or has a stated norm.
    feature_norm, outcome_norm
        The stated norm: kept where there is no histogram, and where it says nothing. A histogram's
        choice is not limited by it.
    n, d, l
        Rows, features, outcomes.
    covariance_scale, association_scale, outcome_scale
        Noise of the main release for norms of 1: σ₁ = c₁·b_x², σ₂ = c₂·b_x·b_y, σ₃ = c₃·b_y².
    intercept
        Whether the release has a constant feature.
    """
    raise NotImplementedError
