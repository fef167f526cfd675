"""Scores from marginal associations alone: how large they may be where linkage is not known.

Without the covariance of linked features nobody knows how much a sum of marginal effects varies: what
one feature explains is counted again by each that is linked with it. Its covariance with the outcome is
known, though. If the score's squared correlation with the outcome is ρ, the best factor for it is

    k = ρ·Σ(y − ȳ)² / Σ wᵀĝ.

ρ is not known either. A guess that is too small costs little (half of ρ: a quarter of R²), one that is
too large makes R² negative, so a small one is taken; and no score is made larger.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.problem import BlockMoments

__all__ = ["GUESSED", "is_marginal", "scaled_down"]

Floats = NDArray[np.float64]

GUESSED = 0.1  # ρ
FEW = 100  # features, below which marginal effects are not taken to be those of linked ones


def is_marginal(moments: BlockMoments) -> bool:
    """Whether the covariance is a diagonal of many features, which may be linked."""
    d, _ = moments.shape
    return len(moments.covariance) == d >= FEW


def scaled_down(moments: BlockMoments, coefficients: Floats) -> Floats:
    """Return coefficients (d, l) that do not promise to explain more than `GUESSED` of an outcome."""
    promised = (coefficients * moments.association).sum(axis=0)
    most = GUESSED * moments.variation
    return np.asarray(coefficients * np.minimum(1.0, most / np.maximum(promised, 1e-300)))
