"""Moments whose covariance is that inside blocks of features: exact integers, at a cost linear in d.

As in `rows.moments`, products are summed by BLAS in float64 over so few rows that none is rounded, and
blocks of rows are added in int64: the same bits for every block size, order and number of threads.
Nothing of size d × d is ever made. The constant of an intercept is one more outcome. Copies of alleles
are counted instead (`rows.block_copies`).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.jit import load
from primo.errors import InputError
from primo.planning.plan import Plan
from primo.rows.block_clip import block_runs
from primo.rows.block_copies import Copies
from primo.rows.public_block import PublicRows
from primo.rows.quantise import feature_quantiser, kernels_for, outcome_quantiser
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["BlockMoments", "fold_blocks"]

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]

#: Bytes of quantised rows per thread.
_BLOCK_BYTES = 2**26

#: Values of rows that are read at a time where copies of alleles may be counted, of all threads; these
#: rows are not quantised all at once.
_BLOCK_VALUES = 2**26
_MOST_ROWS = 2**10  # of them; more are no faster

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

    Cost: one pass, O(n·(Σ w² + d·l)); memory of the moments of each thread, of 64 MB of quantised rows
    per thread, and of rows that are read, some 200 million values at most. The result does not depend on
    `threads` or `block_rows`.
    """
    if plan.blocks is None or sample is not None:
        raise InputError("this plan has no blocks of features, or a sample that it does not draw")
    inside = int((plan.blocks.widths**2).sum())
    bytes_each = 8 * (inside + plan.d * (plan.l + 1))
    threads = max(1, min(thread_number(threads), _TOTAL_BYTES // bytes_each))
    kernels = kernels_for(source.n * (plan.width + plan.l))
    rows = block_rows or _block_rows(source.n, plan, threads, counted=kernels is not None)
    rows = min(rows, plan.grid.exact_rows)
    return walk(
        source,
        [_Accumulator(plan, rows, kernels) for _ in range(threads)],
        block_rows=rows,
        progress=progress,
        collect=collect,
    )


def _block_rows(n: int, plan: Plan, threads: int, *, counted: bool) -> int:
    """Return how many rows to read at once, for memory and speed alone."""
    fitting = _quantised_rows(plan)
    if counted:
        most = min(_BLOCK_VALUES // (threads * plan.d), _MOST_ROWS)
        fitting = max(fitting, most - most % 64)  # 64 rows are counted at a time
    share = max(-(-n // (2 * threads)), _FEW_ROWS)
    return min(fitting, share, max(1, n))


def _quantised_rows(plan: Plan) -> int:
    """Return how many rows to quantise at once."""
    return max(1, _BLOCK_BYTES // (8 * (plan.width + plan.l)))


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
        self._step = min(rows, _quantised_rows(plan))
        self._x, self._y = np.empty((self._step, plan.d)), np.empty((rows, width))
        self._blocks = np.zeros(self._runs[-1].products.stop, dtype=np.int64)
        self._association = np.zeros((plan.d, width), dtype=np.int64)
        self._full = plan.full_outcome_moments
        self._outcome = np.zeros((width, width) if self._full else (2, width), dtype=np.int64)
        self._inside = np.empty(max(run.products.stop - run.offset for run in self._runs))
        self._product = np.empty((min(plan.d, _COLUMNS), width))
        counting = None if kernels is None else load("primo.rows.copy_kernels")
        self._copies = None if counting is None else Copies(self._features, rows, width, counting)
        self._left: list[tuple[NDArray[Any], Matrix]] = []  # rows to be quantised together

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        m, shapes = len(block.features), (block.features.shape, block.outcomes.shape)
        if m > self._rows or shapes != ((m, self._plan.d), (m, self._plan.l)):
            raise InputError("a source gave a block of the wrong size")
        y = self._y[:m]
        self._outcomes(block.outcomes, y)
        if self._full:
            _add(self._outcome, y.T @ y)
        else:
            _add(self._outcome[0], np.einsum("ij,ij->j", y, y))
            _add(self._outcome[1], y[:, -1] @ y)
        left = None
        if self._copies is not None:
            left = self._copies.add(block.features, y, self._blocks, self._association)
        if left is None:
            self._quantise(block.features, y)
        elif len(left):
            self._left.append((block.features[left], y[left]))
            if sum(len(rows) for rows, _ in self._left) >= self._step:
                self._quantise_left()
        self._done += m
        return m

    def _quantise_left(self) -> None:
        """Add the rows that no count could add; so few at a time would take too long."""
        if self._left:
            rows, y = zip(*self._left, strict=True)
            self._left = []
            self._quantise(np.concatenate(rows), np.concatenate(y))

    def _quantise(self, features: NDArray[Any], outcomes: Matrix) -> None:
        """Quantise rows and add the products of their features."""
        for start in range(0, len(features), self._step):
            part = slice(start, start + self._step)
            y = outcomes[part]
            x = self._x[: len(y)]
            self._features(features[part], x)
            self._multiply(x, y)

    def _multiply(self, x: Matrix, y: Matrix) -> None:
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

    def total(self) -> BlockMoments:
        self._quantise_left()
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


def _add(total: Integers, product: Matrix) -> None:
    # Every number is an integer below 2**53 already; the cast changes none.
    np.add(total, product, out=total, dtype=np.int64, casting="unsafe")
