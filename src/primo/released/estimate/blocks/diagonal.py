"""Variances of features under noise, all of them together: empirical Bayes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["shrunk_variances"]

Floats = NDArray[np.float64]

LEAST_SPREAD = 1e-3  # of what is expected: features never count as exactly as expected
LEAST = 0.05  # of what is expected: a feature that nothing is known of varies nearly as others do


def shrunk_variances(
    raw: Floats, noise: Floats, expected: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return posterior means of the features' sums of squares, and variances of their errors.

    Parameters
    ----------
    raw
        Released sums of squares about the means, (d,).
    noise
        Variances of their noise, (d,).
    expected
        What they are expected to be up to a common factor, (d,), such as 2f(1 − f) of genotypes; None
        if all are alike. How far they are from that, all together, says how much each is shrunk.
    """
    if not noise.any():
        return np.maximum(raw, 0.0), noise
    shape = np.ones_like(raw) if expected is None else np.maximum(expected, 1e-12)
    ratio, error = raw / shape, noise / shape**2
    weights = 1 / np.maximum(error, 1e-300)
    sure = float(1 / weights.sum())
    mean = max(float(weights @ ratio) * sure, float(np.sqrt(sure)))
    # Squared weights: the spread of well-known ratios says more than that of noisy ones.
    precise = weights**2
    spread = float(precise @ ((ratio - mean) ** 2 - error) / precise.sum())
    # Few features do not tell how alike they are: one standard error of the spread is added.
    spread = max(spread, 0.0) + float(np.sqrt(2 * (precise**2 @ error**2))) / precise.sum()
    spread = max(spread, (LEAST_SPREAD * mean) ** 2)
    kept = spread / (spread + error)
    posterior = np.maximum(mean + kept * (ratio - mean), LEAST * mean)
    return posterior * shape, kept * noise + ((1 - kept) * shape) ** 2 * sure
