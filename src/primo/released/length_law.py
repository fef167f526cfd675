"""The law of row lengths behind a noisy histogram: which bins hold rows, and how many.

Nearly all of the 642 bins are empty, and each has noise. Sums over all of them say nothing, so bins are
*lit* first: a window of bins whose noisy sum is above what noise reaches anywhere on the grid holds
rows. Narrow windows are tried first, and wider ones only beside what is lit already, so that a window
does not light empty neighbours of full bins. All other bins are empty; the counts of lit bins become
the nearest ones that are not negative and add up to n, which is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.privacy.lengths import BINS, BINS_PER_OCTAVE, centres

__all__ = ["LengthLaw", "denoised", "lit_bins", "nearest_shares"]

Floats = NDArray[np.float64]

WINDOWS = (1, 2, 4, 8, 16, 32)  # bins
CERTAIN = 4.5  # standard deviations of a window's noise; all windows together reach it once in 150
SMALLEST = 0.01  # share of the rows that a window must hold to be lit, besides
FAR = 6.0  # times the median: longer rows count as if they were so long


@dataclass(frozen=True, kw_only=True, eq=False)
class LengthLaw:
    """Lengths and the shares of rows that have them; rows of length 0 included."""

    lengths: Floats  # (points,) ascending
    shares: Floats  # (points,) positive, adding up to 1

    @property
    def longest(self) -> float:
        """Longest length that some rows are known to have."""
        return float(self.lengths[-1])

    def quantile(self, share: float) -> float:
        """Return the length that this share of the rows does not exceed."""
        at = int(np.searchsorted(np.cumsum(self.shares), share * (1 - 1e-12)))
        return float(self.lengths[min(at, len(self.lengths) - 1)])

    def norm_above(self, share: float) -> float:
        """Return a norm that shortens at most the other rows: the upper edge of their bin."""
        return self.quantile(share) * 2 ** (0.5 / BINS_PER_OCTAVE)

    def mean(self, values: Floats) -> Floats:
        """Average values (..., points) over the rows."""
        return np.asarray(values @ self.shares)


def denoised(counts: Floats, *, sigma: float, n: int) -> LengthLaw | None:
    """Return the law of the lengths, or None where the counts say nothing.

    Rows longer than `FAR` times the median count as that long: few rows, or a bin that noise lit, must
    not decide.
    """
    least = SMALLEST * n
    zeros = counts[0] > max(CERTAIN * sigma, least)  # no neighbours of short rows
    lit = np.append(zeros, lit_bins(counts[1:], sigma=sigma, windows=WINDOWS, least=least))
    if not lit[1:].any():
        return None  # nothing but zeros, or nothing at all
    kept = np.zeros(BINS)
    kept[lit] = nearest_shares(counts[lit] / n)
    at = np.flatnonzero(kept)
    if not len(at) or at[-1] == 0:
        return None
    lengths, shares = centres()[at], kept[at]
    law = LengthLaw(lengths=lengths, shares=shares)
    positive = lengths > 0
    rows = LengthLaw(lengths=lengths[positive], shares=shares[positive] / shares[positive].sum())
    return LengthLaw(lengths=np.minimum(law.lengths, FAR * rows.quantile(0.5)), shares=shares)


def lit_bins(
    counts: Floats,
    *,
    sigma: float,
    windows: tuple[int, ...],
    least: float,
    certain: float = CERTAIN,
) -> NDArray[np.bool_]:
    """Return which bins hold rows: those of windows whose sums noise does not reach, (bins,).

    A window has dark bins only, so that rows on one side of the lit ones do not light the other. It
    must hold more than `least` rows, too.
    """
    lit = np.zeros(len(counts), dtype=bool)
    for width in windows:
        window = np.ones(width)
        enough = max(certain * sigma * math.sqrt(width), least)
        total = np.convolve(counts, window, mode="valid")
        while True:
            dark = np.convolve(lit.astype(float), window, mode="valid") < 0.5
            best = int(np.argmax(np.where(dark, total, -np.inf)))
            if not (dark[best] and total[best] > enough):
                break
            lit[best : best + width] = True
    return lit


def nearest_shares(shares: Floats) -> Floats:
    """Return the nearest numbers that are not negative and add up to 1."""
    descending = np.sort(shares)[::-1]
    over = (np.cumsum(descending) - 1) / np.arange(1, len(shares) + 1)
    last = int(np.flatnonzero(descending > over)[-1])
    return np.asarray(np.maximum(shares - over[last], 0.0))
