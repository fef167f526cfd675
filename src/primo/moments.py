"""XᵀX, XᵀY and YᵀY as exact integers, folded block by block.

Integer rows have squared norm at most 2**40, so any product summed over 2**13 rows stays below 2**53
and float64 BLAS adds it *exactly*, whatever its order of operations. Longer sums are kept in int64.
The result is therefore the same bits for every block size, row order and number of threads, and
merging is addition.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.plans import CovarianceOrigin, Plan
from primo.sources.base import Block, Source
from primo.threads import blas_threads

__all__ = ["Moments", "fold"]

Integers = NDArray[np.int64]

#: Bytes of quantised rows in flight per thread: in the cache, and few enough calls not to count.
_BLOCK_BYTES = 2**23

Progress = Callable[[int], None]  # called with the number of rows done since the last call


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """Private integer sums over rows, in grid units; add two of them to merge two sets of rows."""

    rows: int
    covariance: Integers  # (width, width) XᵀX, or (0, 0) if it comes from elsewhere
    association: Integers  # (width, l) XᵀY
    outcome: Integers  # (l, l) YᵀY, or (l,) its diagonal

    def __add__(self, other: Moments) -> Moments:
        """Merge; exact and in any order."""
        return Moments(
            rows=self.rows + other.rows,
            covariance=self.covariance + other.covariance,
            association=self.association + other.association,
            outcome=self.outcome + other.outcome,
        )

    def __repr__(self) -> str:
        """Show the shape and no number."""
        width, l = self.association.shape
        return f"<Moments width={width} l={l} (private)>"


def fold(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    workers: int | None = None,
    block_rows: int | None = None,
    progress: Progress | None = None,
) -> Moments:
    """Read every row once and return the integer moments of the quantised rows.

    `sample` marks the rows that make the covariance, if the plan sub-samples it; it is as private as
    the rows. Where the plan takes the covariance from elsewhere, none is summed. The source may hold
    a part of the plan's rows only: moments of parts add up to those of the whole.

    Cost: one pass, O(n·d² + n·d·l) (plus n·l² for full outcome moments); memory of a few blocks and
    one set of moments per worker. The result does not depend on `workers` or `block_rows`.
    """
    if (sample is not None) != plan.draws_sample:
        raise InputError("a sub-sampled plan needs its sample, and only that one")
    workers = workers or min(4, os.cpu_count() or 1)
    width = plan.width + plan.l
    rows = block_rows or max(_BLOCK_BYTES // (8 * width), plan.width, 8)
    rows = min(rows, plan.grid.exact_rows, max(1, plan.n))
    accumulators: SimpleQueue[_Accumulator] = SimpleQueue()
    for _ in range(workers):
        accumulators.put(_Accumulator(plan, rows))

    def work(placed: tuple[int, Block]) -> int:
        start, block = placed
        chosen = None if sample is None else sample[start : start + len(block.features)]
        accumulator = accumulators.get()
        try:
            return accumulator.add(block, chosen)
        finally:
            accumulators.put(accumulator)

    def placed() -> Iterator[tuple[int, Block]]:
        start = 0
        for block in source.blocks(rows):
            yield start, block
            start += len(block.features)

    done = 0
    # One BLAS thread per worker: blocks are the unit of parallel work.
    with blas_threads(1 if workers > 1 else None):
        for count in _in_order(work, placed(), workers):
            done += count
            if progress is not None:
                progress(count)
    if done != source.n:
        raise InputError(
            f"the source announced {source.n} rows but gave another number; "
            "n is public and must be right before the release"
        )
    parts = [accumulators.get().total() for _ in range(workers)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _in_order(
    work: Callable[[tuple[int, Block]], int], blocks: Iterator[tuple[int, Block]], workers: int
) -> Iterator[int]:
    """Run `work` over `blocks` with at most two blocks per worker in flight."""
    if workers == 1:
        yield from map(work, blocks)
        return
    with ThreadPoolExecutor(workers) as pool:
        pending = [pool.submit(work, block) for block in islice(blocks, 2 * workers)]
        while pending:
            yield pending.pop(0).result()
            pending.extend(pool.submit(work, block) for block in islice(blocks, 1))


@dataclass(repr=False)
class _Accumulator:
    """One worker's buffers: exact float64 sums, flushed to int64 before they could round."""

    plan: Plan
    rows: int
    summed: int = 0  # rows in the float64 sums since the last flush
    done: int = 0
    _buffer: NDArray[np.float64] = field(init=False)
    _sums: list[NDArray[np.float64]] = field(init=False)
    _totals: list[Integers] = field(init=False)

    def __post_init__(self) -> None:
        plan = self.plan
        self._features, self._outcomes = plan.feature_quantiser(), plan.outcome_quantiser()
        width = plan.width + plan.l
        self._buffer = np.empty((self.rows, width))
        self._summed = plan.covariance_origin is CovarianceOrigin.ROWS
        # One Gram matrix of [X Y] holds all three blocks where all are wanted of the same rows.
        self._gram = plan.full_outcome_moments and self._summed and not plan.draws_sample
        shapes: list[tuple[int, ...]]
        if self._gram:
            shapes = [(width, width)]
        else:
            outcome = (plan.l, plan.l) if plan.full_outcome_moments else (plan.l,)
            covariance = (plan.width, plan.width) if self._summed else (0, 0)
            shapes = [covariance, (plan.width, plan.l), outcome]
        self._sums = [np.zeros(shape) for shape in shapes]
        self._products = [np.empty(shape) for shape in shapes]
        self._totals = [np.zeros(shape, dtype=np.int64) for shape in shapes]

    def add(self, block: Block, chosen: NDArray[np.bool_] | None) -> int:
        m = len(block.features)
        if m > self.rows or len(block.outcomes) != m:
            raise InputError("a source gave a block of the wrong size")
        if self.summed + m > self.plan.grid.exact_rows:
            self._flush()
        x, y = self._quantised(block, m)
        if self._gram:
            both = self._buffer[:m]
            np.matmul(both.T, both, out=self._products[0])
        else:
            covariance, association, outcome = self._products
            if self._summed:
                some = x if chosen is None else x[chosen]
                np.matmul(some.T, some, out=covariance)
            np.matmul(x.T, y, out=association)
            if self.plan.full_outcome_moments:
                np.matmul(y.T, y, out=outcome)
            else:
                np.einsum("ij,ij->j", y, y, out=outcome)
        for total, product in zip(self._sums, self._products, strict=True):
            total += product
        self.summed += m
        self.done += m
        return m

    def _quantised(self, block: Block, m: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Integer rows; one shared buffer for [X Y], or two so that each is contiguous."""
        width = self.plan.width
        if self._gram:
            x, y = self._buffer[:m, :width], self._buffer[:m, width:]
        else:
            flat = self._buffer.reshape(-1)
            x = flat[: m * width].reshape(m, width)
            y = flat[self.rows * width :][: m * self.plan.l].reshape(m, self.plan.l)
        self._features(block.features, x)
        self._outcomes(block.outcomes, y)
        return x, y

    def _flush(self) -> None:
        for total, part in zip(self._totals, self._sums, strict=True):
            total += part.astype(np.int64)
            part.fill(0.0)
        self.summed = 0

    def total(self) -> Moments:
        self._flush()
        width = self.plan.width
        if self._gram:
            gram = self._totals[0]
            covariance, association = gram[:width, :width], gram[:width, width:]
            outcome = gram[width:, width:]
        else:
            covariance, association, outcome = self._totals
        return Moments(
            rows=self.done, covariance=covariance, association=association, outcome=outcome
        )
