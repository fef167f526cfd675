"""What a missing feature counts as in a prediction: the mean that is public."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import CovarianceOrigin
from primo.released.estimate.means import shrunk_means
from primo.released.moments import ReleasedMoments

__all__ = ["public_means"]


def public_means(release: ReleasedMoments) -> NDArray[np.float64]:
    """Return the mean of every feature, in its own units, as far as the release tells it, (d,).

    A fit with an intercept releases noisy means. They are shrunk to the public centre where noise
    hides them, and kept inside a range. Without an intercept, and where public features outnumber
    the rows, the public centre takes their place.

    Guarantee: post-processing of released numbers; costs no privacy. Cost: O(d).
    """
    plan = release.plan
    clip = plan.features
    if not plan.intercept or plan.covariance_origin is CovarianceOrigin.ROW_SPACE:
        return np.array(clip.centre)
    if release.blocks is not None:
        means, noise = release.blocks.sums / plan.n, release.blocks.sums_sigma / plan.n
    else:
        mass = plan.n * plan.constant
        noise = release.covariance_sigma * math.sqrt(2 - plan.triangle_bits) / math.sqrt(2) / mass
        means = release.covariance[: plan.d, -1] / mass
    scaled, _ = shrunk_means(means, noise)
    if clip.box:
        scaled = np.clip(scaled, -1.0, 1.0)
    return np.asarray(clip.centre + clip.scale * scaled)
