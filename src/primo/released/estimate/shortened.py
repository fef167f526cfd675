"""Slopes of features whose rows were all shortened are too steep for new rows, which are not.

A row x longer than its norm counts as s·x with s < 1. Where all rows of features are, and those of the
outcomes are not, least squares of y on s·x has the slopes w/s, and predictions for new rows are 1/s
times too far from their mean: at s = ½ they are no better than the mean. The released covariance shows
that rows lie at their norm, for its trace is then n times the squared norm. It does not show s. Slopes
that are multiplied by f have the relative error (1 − f/s)², which is least on average for
f = E[1/s]/E[1/s²]: for s anywhere between ½ and 1, that is ln 2.

Rows that all have the length of their norm need not have been shortened: unit vectors, columns of ±1. So
nothing is done where bounds are a norm alone, nor where ranges allow no longer rows. A norm that was
found from the rows is never far too short, and left alone too.
"""

from __future__ import annotations

import math

import numpy as np

from primo.privacy.bounds import Clip
from primo.released.moments import ReleasedMoments

__all__ = ["share_of_slopes"]

#: Mean squared length of a row over its squared norm, from which rows of features are shortened. The
#: nearer it is to 1, the more they are: rows of 0.95 norms on average fill 0.98 of it.
SHORTENED, STEEP = 0.95, 3
#: The same for outcomes: some of their rows are shortened, all of them.
SOME, ALL = 0.8, 0.95
LEAST = math.log(2)  # of the slopes are kept where all rows of features are shortened
UNKNOWN = 0.1  # noise of such a mean beyond which it says nothing


def share_of_slopes(release: ReleasedMoments) -> float:
    """Return what slopes are multiplied by: 1, down to `LEAST` where all rows of features are shortened.

    1 after rounds, which are about residuals.

    Guarantee: post-processing; costs no privacy. Cost: O(d + l).
    """
    plan = release.plan
    if not plan.features_may_be_shortened or plan.rounds is not None:
        return 1.0
    if not release.covariance.size:
        return 1.0
    squares = float(np.trace(release.covariance[: plan.d, : plan.d]))
    noise = release.covariance_sigma * math.sqrt(plan.d)
    features = _filled(plan.features, plan.n, squares, noise)
    moments = release.outcome_moments
    squares = float(np.trace(moments) if moments.ndim == 2 else moments.sum())
    noise = release.outcome_sigma * math.sqrt(plan.l)
    outcomes = _filled(plan.outcomes, plan.n, squares, noise)
    too_steep = min(max((features - SHORTENED) / (1 - SHORTENED), 0.0), 1.0) ** STEEP
    alike = min(max((outcomes - SOME) / (ALL - SOME), 0.0), 1.0)
    return 1 - (1 - LEAST) * too_steep * (1 - alike)


def _filled(clip: Clip, n: int, squares: float, noise: float) -> float:
    """Return how much of their squared norm rows may fill on average, from their summed squares.

    0 where that is not known.
    """
    most = n * clip.norm**2
    return 0.0 if noise > UNKNOWN * most else (squares + noise) / most
