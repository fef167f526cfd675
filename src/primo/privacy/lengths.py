"""The public grid over which lengths of rows are counted: logarithmic, the same for every data set.

Bin 0 holds rows of length 0 and everything shorter than the first edge; the last bin holds everything
that is not shorter than the last edge, infinities included. Between them every octave has
`BINS_PER_OCTAVE` bins. No number here comes from data, so the grid can be stated before a row is read.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BINS",
    "BINS_PER_OCTAVE",
    "HIGHEST_OCTAVE",
    "LOWEST_OCTAVE",
    "bin_of_squared",
    "centres",
    "edges",
    "squared_edges",
]

Floats = NDArray[np.float64]

LOWEST_OCTAVE, HIGHEST_OCTAVE = -40, 40
BINS_PER_OCTAVE = 8  # as many as `_EIGHTHS`

#: Bins of a histogram, the one below the grid and the one above it included.
BINS = (HIGHEST_OCTAVE - LOWEST_OCTAVE) * BINS_PER_OCTAVE + 2


def edges() -> Floats:
    """Return the lengths between neighbouring bins, (BINS - 1,), ascending.

    Bin k holds lengths from ``edges()[k - 1]`` (included) to ``edges()[k]`` (excluded).
    """
    return _powers(1)


def squared_edges() -> Floats:
    """Return the squares of `edges`, each rounded once: what squared lengths are compared with."""
    return _powers(2)


def centres() -> Floats:
    """Return a typical length for each bin, (BINS,): the geometric middle; 0 below the grid.

    The last bin has no middle; its lower edge stands for it.
    """
    between = edges()[:-1] * math.exp2(0.5 / BINS_PER_OCTAVE)
    return np.concatenate([[0.0], between, [math.exp2(HIGHEST_OCTAVE)]])


def bin_of_squared(squared: Floats) -> NDArray[np.intp]:
    """Return the bin of each squared length; a length that is not a number goes to the last bin."""
    found = np.searchsorted(squared_edges(), squared, side="right")
    return np.asarray(np.where(np.isnan(squared), BINS - 1, found))


#: Eighth parts of an octave, 2^(k/8), written out: exp2 differs between machines in its last bit.
_EIGHTHS = (
    1.0,
    1.0905077326652577,
    1.189207115002721,
    1.2968395546510096,
    1.4142135623730951,
    1.5422108254079407,
    1.681792830507429,
    1.8340080864093424,
)


def _powers(eighths: int) -> Floats:
    """Return 2^(k·eighths/8) for every edge k of the grid; whole octaves are exact."""
    steps = eighths * np.arange(
        LOWEST_OCTAVE * BINS_PER_OCTAVE, HIGHEST_OCTAVE * BINS_PER_OCTAVE + 1
    )
    octaves, parts = np.divmod(steps, len(_EIGHTHS))
    return np.asarray(np.ldexp(np.asarray(_EIGHTHS)[parts], octaves))
