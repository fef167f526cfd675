"""How much more one must believe that there is nothing to predict, where outcomes are lost in noise.

An error counts in units of an outcome's own variance. Where the released Σy² cannot be told from noise,
that variance may be anything from the noise down to a millionth of it, as with bounds a thousand times
too wide, and noise that is published in place of a mean or of slopes may be a thousand standard
deviations large. Expected loss in units of the variance is ruled by the smallest variance that is
possible, and says: publish nothing but the public centre, unless there is more than a little evidence.
Where Σy² is well above its noise nothing changes.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.released.moments import ReleasedMoments

__all__ = ["nothing_to_see"]

Floats = NDArray[np.float64]

#: Odds of nothing against something, times those that hold otherwise, where Σy² is all noise.
LOST, LOST_AS_STATED = 30.0, 1.0
MOST_OF_ONE = 6.0  # times σ₃: what one outcome with a far-off mean may say of all


def nothing_to_see(release: ReleasedMoments) -> tuple[Floats, float]:
    """Return what the odds of nothing are multiplied by, less 1: for each mean (l,), and for slopes.

    Guarantee: post-processing; costs no privacy. Cost: O(l).
    """
    moments, sigma = release.outcome_moments, release.outcome_sigma
    diagonal = np.diagonal(moments) if moments.ndim == 2 else moments
    if sigma == 0:
        return np.zeros(len(diagonal)), 0.0
    own = np.maximum(diagonal, 0.0) / sigma
    sum_of_all = float(np.minimum(diagonal / sigma, MOST_OF_ONE).sum())
    all_alike = max(sum_of_all, 0.0) / math.sqrt(len(diagonal))
    lost = LOST_AS_STATED if release.plan.outcome_scale_fits else LOST
    means = lost * np.exp(-(np.maximum(own, all_alike) ** 2) / 2)
    return np.asarray(means), lost * math.exp(-(all_alike**2) / 2)
