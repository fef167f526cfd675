"""Histograms of the values of every column, counted exactly: what centres and scales are found from.

The bin of a value is a function of that value alone: scaled as for lengths, and compared with public
edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.values import BINS, bin_of
from primo.rows.block_sums import BlockSums
from primo.rows.lengths import scaled
from primo.rows.public_block import PublicRows
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["ColumnCounts", "fold_values"]

Integers = NDArray[np.int64]

_BLOCK_ROWS = 2**12  # read at a time


class ColumnCounts(BlockSums):
    """Private counts of rows by the value of each column, (d, BINS) and (l, BINS); (0, BINS) if not."""


def fold_values(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> ColumnCounts:
    """Read every row once and count rows by the value of each column that the plan asks for.

    The arguments are those of `primo.rows.moments.fold`; all rows are counted, whatever the sample.

    Cost: one pass, O(n·(d + l)). The result does not depend on `threads`.
    """
    accumulators = [ValueAccumulator(plan) for _ in range(thread_number(threads))]
    return walk(
        source,
        accumulators,
        block_rows=_BLOCK_ROWS,
        sample=sample,
        progress=progress,
        collect=collect,
    )


class ValueAccumulator:
    """One worker's counts.

    Guarantee: replacing a row changes at most two counts of each column, by one each, whatever the row
    holds; or InputError, which names no value, if it is not finite and `missing` is "error".
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._done = 0
        search = plan.column_search
        widths = [
            width if search is not None and getattr(search, block) else 0
            for block, width in (("features", plan.d), ("outcomes", plan.l))
        ]
        self._features, self._outcomes = (
            np.zeros((width, BINS), dtype=np.int64) for width in widths
        )

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        """Count the rows of a block, whether they are chosen or not, and say how many."""
        m, plan = len(block.features), self._plan
        if block.features.shape != (m, plan.d) or block.outcomes.shape != (m, plan.l):
            raise InputError("a source gave a block of the wrong size")
        for rows, clip, name, counts in (
            (block.features, plan.features, "features", self._features),
            (block.outcomes, plan.outcomes, "outcomes", self._outcomes),
        ):
            # Also where a block is not counted: rows that cannot be released fail before any noise.
            z = scaled(rows, clip, missing=plan.missing, block=name)
            if not len(counts):
                continue
            bins = bin_of(z)
            for j, column in enumerate(bins.T):
                counts[j] += np.bincount(column, minlength=BINS)
        self._done += m
        return m

    def total(self) -> ColumnCounts:
        """Return the counts so far."""
        return ColumnCounts(rows=self._done, features=self._features, outcomes=self._outcomes)
