"""Sums of shortened rows, counted exactly: what the centre of a block is found from.

A row becomes integers as in `rows.quantise`, with the norm that the plan has at this stage as the radius
of the ball: a function of that row alone, of length at most `RADIUS`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.centre_search import RADIUS
from primo.privacy.clip import Clip
from primo.rows.block_sums import BlockSums
from primo.rows.public_block import PublicRows
from primo.rows.quantise import Kernel, Quantiser, kernels_for
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["RowSums", "fold_sums"]

Integers = NDArray[np.int64]

_BLOCK_ROWS = 2**12  # read at a time


class RowSums(BlockSums):
    """Private sums of integer rows in units of norm/RADIUS, (d,) and (l,); (0,) if not summed."""


def fold_sums(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> RowSums:
    """Read every row once and sum the rows, shortened to the norms of the plan, in integers.

    The arguments are those of `primo.rows.moments.fold`; all rows are summed, whatever the sample.

    Cost: one pass, O(n·(d + l)). The result does not depend on `threads`.
    """
    kernels = kernels_for(source.n * (plan.d + plan.l))
    kernel = None if kernels is None else kernels.fused
    accumulators = [_Accumulator(plan, kernel) for _ in range(thread_number(threads))]
    return walk(
        source,
        accumulators,
        block_rows=_BLOCK_ROWS,
        sample=sample,
        progress=progress,
        collect=collect,
    )


class _Accumulator:
    """One worker's buffers and sums.

    Guarantee: a row adds integers of length at most `RADIUS` to either sum, whatever it holds; or
    InputError, which names no value, if it is not finite and `missing` is "error".
    """

    def __init__(self, plan: Plan, kernel: Kernel | None) -> None:
        self._plan = plan
        self._done = 0
        search = plan.centre_search
        self._parts = {
            name: (
                _quantiser(clip, name, plan.missing, kernel),
                np.empty((_BLOCK_ROWS, clip.width)),
                np.zeros(clip.width, dtype=np.int64),
            )
            for clip, name in ((plan.features, "features"), (plan.outcomes, "outcomes"))
            if search is not None and getattr(search, name)
        }

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        m, plan = len(block.features), self._plan
        fits = block.features.shape == (m, plan.d) and block.outcomes.shape == (m, plan.l)
        if m > _BLOCK_ROWS or not fits:
            raise InputError("a source gave a block of the wrong size")
        for name, (quantise, buffer, total) in self._parts.items():
            quantise(getattr(block, name), buffer[:m])
            # 2**12 integers of at most 2**20 add exactly in float64, in any order.
            total += buffer[:m].sum(axis=0).astype(np.int64)
        self._done += m
        return m

    def total(self) -> RowSums:
        totals = {name: total for name, (_, _, total) in self._parts.items()}
        none = np.zeros(0, dtype=np.int64)
        return RowSums(
            rows=self._done,
            features=totals.get("features", none),
            outcomes=totals.get("outcomes", none),
        )


def _quantiser(clip: Clip, block: str, missing: str, kernel: Kernel | None) -> Quantiser:
    return Quantiser(
        clip=clip,
        step=clip.norm / RADIUS,
        radius_squared=RADIUS**2,
        constant=None,
        missing=missing,
        block=block,
        kernel=kernel,
    )
