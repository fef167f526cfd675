"""Centre and scale of every column from noisy histograms of its values: post-processing.

For columns of which nothing is known but that they are numbers: units differ by orders of magnitude,
and one length for all would be that of the column with the largest. A histogram per column over the
signed logarithmic grid (`primo.privacy.values`) finds both numbers for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.privacy import values
from primo.privacy.clip import Clip
from primo.privacy.lengths import edges
from primo.released.length_law import lit_bins, nearest_shares
from primo.released.moments import ReleasedColumns

__all__ = ["FoundColumns", "find_columns", "plan_with_columns"]

Floats = NDArray[np.float64]

CERTAIN = 6.0  # standard deviations of a window's noise: there are many columns, none may go wrong
CERTAIN_BESIDE = 3.5  # the same near values that are certain: a few octaves of the whole grid
CERTAIN_ZERO = 2.0  # the same for zeros, which are a single bin: a rare 0 of a 0/1 column
OVER = 3.0  # standard deviations by which certain bins must hold less than all rows, for that
BESIDE = (2.0**-2, 2.0**5)  # of the largest certain value: between these sizes
USUAL = (0.68, 0.9, 0.97)  # share of the rows within one standard deviation of a usual column
FAR = 6.0  # such distances: values beyond count as if they lay there
WINDOWS = (1, 2, 4, 8, 16)  # bins
MOST = 0.75  # share of the rows that lit bins must hold to tell a column alone
LEAST_SPREAD = 0.25  # of the largest value: less cannot be told from noise where few bins are lit
SMALLEST = 0.02  # share of the rows that a window must hold to be believed
GRID_BITS = 8  # centres are multiples of the scale's power of two over 2**GRID_BITS


@dataclass(frozen=True, kw_only=True, eq=False)
class FoundColumns:
    """Centre and scale of each column, in the units in which its values were counted."""

    centre: Floats  # (columns,) 0 where nothing was found
    scale: Floats  # (columns,) positive; the median of the others where nothing was found
    found: NDArray[np.bool_]  # (columns,)


def plan_with_columns(plan: Plan, counts: ReleasedColumns) -> Plan:
    """Return the plan about the centres and in the scales that released counts tell.

    Guarantee: a function of the plan and of released numbers; costs no privacy. Both numbers lie on
    public grids, so that the last digits of the machine do not show.
    """
    search = plan.column_search
    if search is None:
        raise ValueError("the plan counts no columns")
    clips = {}
    for block in ("features", "outcomes"):
        clip: Clip = getattr(plan, block)
        if getattr(search, block):
            found = find_columns(getattr(counts, block), sigma=search.sigma, n=plan.n)
            grid = edges()
            above = np.searchsorted(grid, found.scale / 2 ** (1 / 16)).clip(0, len(grid) - 1)
            scale = grid[above]
            step = np.exp2(np.floor(np.log2(scale)) - GRID_BITS)
            clip = clip.about(np.round(found.centre / step) * step, scale)
        clips[block] = clip
    return replace(plan, features=clips["features"], outcomes=clips["outcomes"])


def find_columns(counts: Floats, *, sigma: float, n: int) -> FoundColumns:
    """Return centre and scale of each column from noisy counts (columns, bins of the signed grid).

    Guarantee: post-processing; costs no privacy. Cost: under a millisecond for each column.
    """
    centre, scale = np.zeros(len(counts)), np.ones(len(counts))
    found = np.zeros(len(counts), dtype=bool)
    for j, column in enumerate(counts):
        # Zeros tell nothing of a column's unit, and would light the smallest bins beside them.
        sizes = np.where(np.arange(values.BINS) == values.ZERO, 0.0, column)
        lit = lit_bins(sizes, sigma=sigma, windows=WINDOWS, least=SMALLEST * n, certain=CERTAIN)
        if lit.any():
            found[j] = True
            lit[values.ZERO] = column[values.ZERO] > CERTAIN_ZERO * sigma
            lit = _with_rare_values(column, lit, sigma=sigma, n=n)
            most = float(column[lit].sum()) > MOST * n
            centre[j], scale[j] = (_from_shares if most else _from_sums)(column / n, lit)
    if found.any():
        scale[~found] = float(np.median(scale[found]))
    return FoundColumns(centre=centre, scale=scale, found=found)


def _with_rare_values(
    counts: Floats, lit: NDArray[np.bool_], *, sigma: float, n: int
) -> NDArray[np.bool_]:
    """Light bins of rarer values about and above the certain ones, if those leave rows over.

    A code that one row in ten has is a large part of a column's variance; a scale without it would make
    these rows ten times as long as the others. What noise lights is drawn in with other far values.
    """
    over = n - float(counts[lit].sum())
    if over < max(OVER * sigma * math.sqrt(lit.sum()), SMALLEST * n):
        return lit
    size = np.abs(values.centres())
    low, high = BESIDE[0] * size[lit].max(), BESIDE[1] * size[lit].max()
    beside = np.where((low <= size) & (size <= high), counts, 0.0)
    return lit_bins(
        beside,
        sigma=sigma,
        windows=WINDOWS,
        least=SMALLEST * n,
        certain=CERTAIN_BESIDE,
        lit=lit,
    )


def _from_shares(shares: Floats, lit: NDArray[np.bool_]) -> tuple[float, float]:
    """Mean and standard deviation over lit bins, far values drawn in: where they hold most rows."""
    at = values.centres()[lit]
    held = nearest_shares(shares[lit])
    median = float(at[int(np.searchsorted(np.cumsum(held), 0.5 * (1 - 1e-9)))])
    away = np.abs(at - median)
    order = np.argsort(away)
    within = np.cumsum(held[order])
    usual = 0.0
    for share in USUAL:  # more rows where those are all in one bin
        usual = usual or float(away[order][int(np.searchsorted(within, share * (1 - 1e-9)))])
    if usual > 0:
        at = np.clip(at, median - FAR * usual, median + FAR * usual)
    mean = float(held @ at)
    spread = math.sqrt(float(held @ (at - mean) ** 2))
    width = float(values.widths()[lit][int(np.argmax(held))])
    return mean, max(spread, width / math.sqrt(12))


def _from_sums(shares: Floats, lit: NDArray[np.bool_]) -> tuple[float, float]:
    """Mean and standard deviation over all values up to the largest lit one, of either sign.

    Noise that is left in has mean 0. Values about 0 spread over many small bins that are not lit, on
    both sides: sums over lit bins alone would miss a side.
    """
    at = values.centres()
    size = np.abs(at)
    largest = float(size[lit].max())
    held = np.where(size <= largest, shares, 0.0)
    mean = float(held @ at)
    square = float(held @ at**2) - mean**2
    return mean, max(math.sqrt(max(square, 0.0)), LEAST_SPREAD * largest)
