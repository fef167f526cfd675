"""The public grid over which the values of a column are counted: logarithmic, with both signs.

Bin `ZERO` holds 0 and everything smaller than the first edge. Above it every octave has
`BINS_PER_OCTAVE` bins of positive values, below it as many of negative ones; the outermost bins hold
whatever lies beyond, infinities included. No number here comes from data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "BINS_PER_OCTAVE", "ZERO", "bin_of", "centres", "widths"]

Floats = NDArray[np.float64]

LOWEST_OCTAVE, HIGHEST_OCTAVE = -40, 40
BINS_PER_OCTAVE = 4

#: Bins of either sign.
_SIDE = (HIGHEST_OCTAVE - LOWEST_OCTAVE) * BINS_PER_OCTAVE
ZERO = _SIDE
BINS = 2 * _SIDE + 1


def _edges() -> Floats:
    """Lower edges of the positive bins, (_SIDE,)."""
    steps = np.arange(LOWEST_OCTAVE * BINS_PER_OCTAVE, HIGHEST_OCTAVE * BINS_PER_OCTAVE)
    return np.asarray(np.exp2(steps / BINS_PER_OCTAVE))


def bin_of(values: Floats) -> NDArray[np.intp]:
    """Return the bin of each value; what is not a number counts as 0."""
    size = np.searchsorted(_edges(), np.abs(values), side="right")
    found = ZERO + np.where(np.signbit(values), -size, size)
    return np.asarray(np.where(np.isnan(values), ZERO, found))


def centres() -> Floats:
    """Return a typical value for each bin, (BINS,), ascending: the geometric middle, and 0."""
    positive = _edges() * 2 ** (0.5 / BINS_PER_OCTAVE)
    return np.concatenate([-positive[::-1], [0.0], positive])


def widths() -> Floats:
    """Return the width of each bin, (BINS,)."""
    positive = _edges() * (2 ** (1 / BINS_PER_OCTAVE) - 1)
    return np.concatenate([positive[::-1], [2 * float(_edges()[0])], positive])
