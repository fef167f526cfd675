"""Moments whose covariance is that inside blocks of features: exact integers, at a cost linear in d.

As in `rows.moments`, products are summed by BLAS in float64 over so few rows that none is rounded, and
blocks of rows are added in int64: the same bits for every block size, order and number of threads.
Nothing of size d × d is ever made. The constant of an intercept is one more outcome.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.rows.block_clip import block_runs
from primo.rows.public_block import PublicRows
from primo.rows.quantise import feature_quantiser, kernels_for, outcome_quantiser
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["BlockMoments", "fold_blocks"]

Integers = NDArray[np.int64]

#: Bytes of quantised rows in flight per thread.
_BLOCK_BYTES = 2**26

#: Bytes of all threads' totals: with larger ones there are fewer threads.
_TOTAL_BYTES = 2**30

#: Columns that are multiplied by the outcomes at a time.
_COLUMNS = 2**13

_FEW_ROWS = 2**9  # are not worth being shared out


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockMoments:
    """Private integer sums over rows, in grid units; add two of them to merge two sets of rows."""

    rows: int
    blocks: Integers  # (Σ w²,) x_B x_Bᵀ of one block after the other, row by row
    association: Integers  # (d, l) XᵀY
    feature_sums: Integers  # (d,) the constant times Σx; (0,) without an intercept
    outcome: Integers  # (l, l) YᵀY, or (l,) its diagonal
    outcome_sums: Integers  # (l,) the constant times Σy; (0,) without an intercept

    def __add__(self, other: BlockMoments) -> BlockMoments:
        """Merge; exact and in any order."""
        return BlockMoments(
            rows=self.rows + other.rows,
            blocks=self.blocks + other.blocks,
            association=self.association + other.association,
            feature_sums=self.feature_sums + other.feature_sums,
            outcome=self.outcome + other.outcome,
            outcome_sums=self.outcome_sums + other.outcome_sums,
        )

    def __repr__(self) -> str:
        """Show the shape and no number."""
        d, l = self.association.shape
        return f"<BlockMoments d={d} l={l} (private)>"


def fold_blocks(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    block_rows: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> BlockMoments:
    """Read every row once and return the integer moments of the quantised rows.

    The arguments are those of `primo.rows.moments.fold`; no plan of blocks samples rows.

    Cost: one pass, O(n·(Σ w² + d·l)); memory of some rows, 64 MB per thread, and of the moments. The
    result does not depend on `threads` or `block_rows`.
    """
    if plan.blocks is None or sample is not None:
        raise InputError("this plan has no blocks of features, or a sample that it does not draw")
    inside = int((plan.blocks.widths**2).sum())
    bytes_each = 8 * (inside + plan.d * (plan.l + 1))
    threads = max(1, min(thread_number(threads), _TOTAL_BYTES // bytes_each))
    rows = block_rows or _block_rows(source.n, plan, threads)
    rows = min(rows, plan.grid.exact_rows)
    kernels = kernels_for(source.n * (plan.width + plan.l))
    return walk(
        source,
        [_Accumulator(plan, rows, kernels) for _ in range(threads)],
        block_rows=rows,
        progress=progress,
        collect=collect,
    )


def _block_rows(n: int, plan: Plan, threads: int) -> int:
    """Return how many rows to read at once, for memory and speed alone."""
    fitting = max(1, _BLOCK_BYTES // (8 * (plan.width + plan.l)))
    share = max(-(-n // (2 * threads)), _FEW_ROWS)
    return min(fitting, share, max(1, n))


class _Accumulator:
    """One worker's buffers, and int64 totals of many blocks of rows.

    Guarantee: a row adds the products of integers that are a function of that row alone, within the
    norms of the row, of each of its blocks and of the outcomes; or InputError, which names no value.
    """

    def __init__(self, plan: Plan, rows: int, kernels: ModuleType | None) -> None:
        if plan.blocks is None:
            raise InputError("this plan has no blocks of features")
        kernel = None if kernels is None else kernels.fused
        self._plan, self._rows, self._done = plan, rows, 0
        self._features = feature_quantiser(plan, kernel=kernel)
        self._outcomes = outcome_quantiser(plan, kernel=kernel)
        self._runs = block_runs(plan.blocks)
        width = plan.l + plan.intercept
        self._x, self._y = np.empty((rows, plan.d)), np.empty((rows, width))
        self._blocks = np.zeros(self._runs[-1].products.stop, dtype=np.int64)
        self._association = np.zeros((plan.d, width), dtype=np.int64)
        self._full = plan.full_outcome_moments
        self._outcome = np.zeros((width, width) if self._full else (2, width), dtype=np.int64)
        self._inside = np.empty(max(run.products.stop - run.offset for run in self._runs))
        self._product = np.empty((min(plan.d, _COLUMNS), width))

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        m, shapes = len(block.features), (block.features.shape, block.outcomes.shape)
        if m > self._rows or shapes != ((m, self._plan.d), (m, self._plan.l)):
            raise InputError("a source gave a block of the wrong size")
        x, y = self._x[:m], self._y[:m]
        self._features(block.features, x)
        self._outcomes(block.outcomes, y)
        for run in self._runs:
            part, total = x[:, run.columns], self._blocks[run.products]
            product = self._inside[: len(total)]
            if run.single:
                np.einsum("ij,ij->j", part, part, out=product)
            else:
                square = product.reshape(part.shape[1], -1)
                np.matmul(part.T, part, out=square)
            _add(total, product)
        for start in range(0, self._plan.d, _COLUMNS):
            total = self._association[start : start + _COLUMNS]
            product = self._product[: len(total)]
            np.matmul(x[:, start : start + _COLUMNS].T, y, out=product)
            _add(total, product)
        if self._full:
            _add(self._outcome, y.T @ y)
        else:
            _add(self._outcome[0], np.einsum("ij,ij->j", y, y))
            _add(self._outcome[1], y[:, -1] @ y)
        self._done += m
        return m

    def total(self) -> BlockMoments:
        l, intercept = self._plan.l, self._plan.intercept
        none = np.zeros(0, dtype=np.int64)
        last = self._outcome[-1]  # the products with the constant, if there is one
        return BlockMoments(
            rows=self._done,
            blocks=self._blocks,
            association=np.ascontiguousarray(self._association[:, :l]),
            feature_sums=self._association[:, -1].copy() if intercept else none,
            outcome=(self._outcome[:l, :l] if self._full else self._outcome[0, :l]).copy(),
            outcome_sums=last[:l].copy() if intercept else none,
        )


def _add(total: Integers, product: NDArray[np.float64]) -> None:
    # Every number is an integer below 2**53 already; the cast changes none.
    np.add(total, product, out=total, dtype=np.int64, casting="unsafe")
