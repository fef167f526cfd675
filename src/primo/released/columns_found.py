"""Centre and scale of every column from noisy histograms of its values: post-processing.

For columns of which nothing is known but that they are numbers: units differ by orders of magnitude,
and one length for all would be that of the column with the largest. A histogram per column over the
signed logarithmic grid finds both numbers for each. Replacing a row moves two counts of every column by
one: with k columns the histograms move by √(2k) together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.privacy import signed_grid
from primo.released.length_law import lit_bins, nearest_shares

__all__ = ["FoundColumns", "columns_speak", "find_columns"]

Floats = NDArray[np.float64]

ENOUGH = 40.0  # standard deviations of a count: rows with which most columns are found
USUAL = 0.68  # share of the rows that lie within one standard deviation of a usual column
FAR = 4.0  # such distances: values beyond count as if they lay there
WINDOWS = (1, 2, 4, 8, 16)  # bins
SMALLEST = 0.02  # share of the rows that a window must hold to be believed


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundColumns:
    """Centre and scale of each column, in the units in which its values were counted."""

    centre: Floats  # (columns,) 0 where nothing was found
    scale: Floats  # (columns,) positive; the median of the others where nothing was found
    found: NDArray[np.bool_]  # (columns,)


def columns_speak(n: int, sigma: float) -> bool:
    """Whether histograms of n rows with this noise on each count find most columns.

    From public numbers alone. For k columns at a share of the budget with mu_s, sigma is √(2k)/mu_s.
    """
    return n > ENOUGH * sigma


def find_columns(counts: Floats, *, sigma: float, n: int) -> FoundColumns:
    """Return centre and scale of each column from noisy counts (columns, bins of the signed grid).

    Guarantee: post-processing; costs no privacy. Cost: under a millisecond for each column.
    """
    centre, scale = np.zeros(len(counts)), np.ones(len(counts))
    found = np.zeros(len(counts), dtype=bool)
    for j, column in enumerate(counts):
        law = _shares(column, sigma=sigma, n=n)
        if law is not None:
            centre[j], scale[j] = _centre_and_scale(law)
            found[j] = True
    if found.any():
        scale[~found] = float(np.median(scale[found]))
    return FoundColumns(centre=centre, scale=scale, found=found)


def _shares(counts: Floats, *, sigma: float, n: int) -> Floats | None:
    """Return the share of rows in each bin, or None where the counts say nothing."""
    lit = lit_bins(counts, sigma=sigma, windows=WINDOWS, least=SMALLEST * n)
    if not lit.any():
        return None
    shares = np.zeros(len(counts))
    shares[lit] = nearest_shares(counts[lit] / n)
    return shares


def _centre_and_scale(shares: Floats) -> tuple[float, float]:
    """Mean and standard deviation with far values drawn in; a single bin has its own width."""
    at = signed_grid.centres()
    median = float(at[int(np.searchsorted(np.cumsum(shares), 0.5 * (1 - 1e-9)))])
    away = np.abs(at - median)
    order = np.argsort(away)
    within = np.cumsum(shares[order])
    usual = float(away[order][int(np.searchsorted(within, USUAL * (1 - 1e-9)))])
    if usual > 0:
        at = np.clip(at, median - FAR * usual, median + FAR * usual)
    mean = float(shares @ at)
    spread = math.sqrt(float(shares @ (at - mean) ** 2))
    width = float(signed_grid.widths()[int(np.argmax(shares))])
    return mean, max(spread, width / math.sqrt(12))
