"""Centres of rows from a noisy mean, so that lengths are not those of an offset: post-processing.

Where rows lie far off their public centre, nearly all of their length is the offset, and noise is
proportional to it. A mean of shortened rows costs little: for rows shortened to b it moves by at most
2b/n when a row is replaced, however many columns there are. Counting lengths about that mean instead
gives norms of the size of what varies.

The mean of shortened rows points where the mean of the rows does, and is shorter where many rows are
shortened. An imperfect centre is no error: it is public, and what is left of the offset stays in the
rows.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.released.length_law import denoised

__all__ = ["centring_pays", "found_centre", "norm_for_means"]

Floats = NDArray[np.float64]

TOLERABLE = 0.4  # length of the noise of the mean, in units of the norm, up to which it helps
MOST_ROWS = 0.9  # share of the rows that the norm of the mean's rows does not shorten


def centring_pays(*, n: int, columns: int, sigma: float) -> bool:
    """Whether a mean with this noise is worth its budget; from public numbers alone.

    `sigma` is the noise on each entry of the *sum* of rows that are shortened to length 1: 2/mu_s for
    one block, 2√2/mu_s for both at once.
    """
    return math.sqrt(columns) * sigma / n < TOLERABLE


def norm_for_means(counts: Floats, *, sigma: float, n: int, stated: float) -> float:
    """Return the norm to shorten rows to before they are averaged, from noisy counts of lengths."""
    law = denoised(counts, sigma=sigma, n=n)
    return stated if law is None else law.norm_above(MOST_ROWS)


def found_centre(mean: Floats, *, sigma: float) -> Floats:
    """Return the centre for the rows from their noisy mean (columns,) with noise sigma on each entry.

    A mean that is no longer than its noise is 0 (James and Stein): the public centre stays.
    """
    squared = float(mean @ mean)
    if squared <= 0:
        return np.zeros_like(mean)
    return np.asarray(mean * max(0.0, 1 - len(mean) * sigma**2 / squared))
