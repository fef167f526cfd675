"""Shorten integer rows block by block: each block of a row to the norm of that block."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.privacy.blocks import BlockGrid

__all__ = ["Run", "block_runs"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Run:
    """Neighbouring columns that are treated at once: one block, or several blocks of one column each."""

    start: int
    stop: int
    single: bool  # every column is a block of its own
    limit: int  # squared norm of the block; of the smallest one if there are several
    ends: NDArray[np.float64] | None  # (width,) largest value of each column, where they are single
    offset: int  # of the first product in the vector of all of them, (Σ w²,)

    @property
    def columns(self) -> slice:
        """Return the columns."""
        return slice(self.start, self.stop)

    @property
    def products(self) -> slice:
        """Return the places of their products: w of single columns, w² of one block."""
        width = self.stop - self.start
        return slice(self.offset, self.offset + (width if self.single else width**2))


#: Single columns that are treated at once: few enough to stay in the cache.
_MOST = 2**12


def block_runs(blocks: BlockGrid) -> tuple[Run, ...]:
    """Cut the columns into runs, from left to right."""
    runs: list[Run] = []
    widths = blocks.widths.tolist()
    starts, limits = blocks.starts.tolist(), blocks.radius_squared.tolist()
    k, offset = 0, 0
    while k < len(widths):
        end = k + 1
        single = widths[k] == 1
        while single and end < len(widths) and widths[end] == 1 and end - k < _MOST:
            end += 1
        ends = np.array([float(math.isqrt(limit)) for limit in limits[k:end]]) if single else None
        run = Run(
            start=starts[k],
            stop=starts[end],
            single=single,
            limit=min(limits[k:end]),
            ends=ends,
            offset=offset,
        )
        runs.append(run)
        offset = run.products.stop
        k = end
    return tuple(runs)
