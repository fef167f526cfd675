"""The public grid over which the values of a column are counted: logarithmic, with both signs.

Bin `ZERO` holds 0 and everything smaller than the first edge. Above it every octave has
`BINS_PER_OCTAVE` bins of positive values, below it as many of negative ones; the outermost bins hold
whatever lies beyond. No number here comes from data.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.privacy.lengths import BINS_PER_OCTAVE as LENGTH_BINS_PER_OCTAVE
from primo.privacy.lengths import HIGHEST_OCTAVE, LOWEST_OCTAVE
from primo.privacy.lengths import edges as length_edges

__all__ = ["BINS", "BINS_PER_OCTAVE", "ZERO", "bin_of", "centres", "widths"]

Floats = NDArray[np.float64]

BINS_PER_OCTAVE = 4

#: Bins of either sign.
_SIDE = (HIGHEST_OCTAVE - LOWEST_OCTAVE) * BINS_PER_OCTAVE
ZERO = _SIDE
BINS = 2 * _SIDE + 1


def bin_of(values: Floats) -> NDArray[np.intp]:
    """Return the bin of each value; what is not a number counts as 0."""
    size = np.searchsorted(_edges(), np.abs(values), side="right")
    found = ZERO + np.where(np.signbit(values), -size, size)
    return np.asarray(np.where(np.isnan(values), ZERO, found))


def centres() -> Floats:
    """Return a typical value for each bin, (BINS,), ascending: the geometric middle, and 0."""
    positive = _edges() * math.exp2(0.5 / BINS_PER_OCTAVE)
    return np.concatenate([-positive[::-1], [0.0], positive])


def widths() -> Floats:
    """Return the width of each bin, (BINS,)."""
    positive = _edges() * (math.exp2(1 / BINS_PER_OCTAVE) - 1)
    return np.concatenate([positive[::-1], [2 * float(_edges()[0])], positive])


def _edges() -> Floats:
    """Lower edges of the positive bins, (_SIDE,): every second edge of the grid of lengths."""
    return length_edges()[: -1 : LENGTH_BINS_PER_OCTAVE // BINS_PER_OCTAVE]
