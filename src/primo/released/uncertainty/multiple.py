"""Many tests at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["benjamini_hochberg", "cauchy_combination"]

Floats = NDArray[np.float64]


def benjamini_hochberg(p: Floats) -> Floats:
    """Return q-values of the same shape: rejecting q ≤ α keeps the false discovery rate at α.

    Over all entries together (Benjamini and Hochberg 1995); NaN stays NaN and does not count.
    Cost: one sort.
    """
    flat = np.asarray(p, dtype=np.float64).ravel()
    known = np.flatnonzero(~np.isnan(flat))
    q = np.full(flat.shape, np.nan)
    if len(known):
        order = known[np.argsort(flat[known], kind="stable")]
        raised = flat[order] * (len(order) / np.arange(1, len(order) + 1))
        q[order] = np.minimum(np.minimum.accumulate(raised[::-1])[::-1], 1.0)
    return q.reshape(np.shape(p))


def cauchy_combination(p: Floats) -> Floats:
    """Combine p-values along the last axis into one, whatever their dependence.

    The mean of tan((½ − p)π) is Cauchy in the tail for any correlation between the tests (Liu and Xie
    2020), so outcomes may share the noise of the covariance, or their residuals.
    """
    count = p.shape[-1]
    clipped = np.clip(p, 1e-300, 1 - 0.01 / count)
    small = clipped < 1e-12
    with np.errstate(over="ignore"):
        scores = np.where(small, 1 / (clipped * np.pi), np.tan((0.5 - clipped) * np.pi))
        mean = scores.mean(axis=-1)
    tail = np.arctan2(1.0, np.maximum(mean, 0.0)) / np.pi
    return np.asarray(np.where(mean > 0, tail, 0.5 - np.arctan(np.minimum(mean, 0.0)) / np.pi))
