"""XᵀX, XᵀY and YᵀY as exact integers, folded block by block.

Integer rows have squared norm at most 2**40, so any product summed over 2**13 rows stays below 2**53
and float64 BLAS adds it *exactly*, whatever its order of operations. No block is longer, and blocks are
added in int64.
The result is therefore the same bits for every block size, row order and number of threads, and
merging is addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.residuals import ResidualGrid, wide_factor
from primo.rows.genotype_products import Signs
from primo.rows.public_block import PublicRows
from primo.rows.quantise import (
    feature_quantiser,
    kernels_for,
    outcome_quantiser,
    shorten_rows,
)
from primo.rows.residuals import ResidualQuantiser
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["Moments", "fold"]

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]

#: Bytes of quantised rows in flight per thread: in the cache, and few enough calls not to count.
_BLOCK_BYTES = 2**23

#: Rows for each feature, if that is more: a block's product is then small beside the block, and so
#: is the time to add it up.
_ROWS_PER_FEATURE = 8
_ENOUGH_ROWS = 2**12  # at which it is small beside the time to multiply

_FEW_ROWS = 2**9  # are not worth being shared out

#: Features, from which it pays to look whether they are signs times a unit.
_WIDE = 64


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
    threads: int | None = None,
    block_rows: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
    residuals: ResidualGrid | None = None,
    covariance: bool = True,
) -> Moments:
    """Read every row once and return the integer moments of the quantised rows.

    `sample` marks the rows that make the covariance, if the plan sub-samples it; it is as private as
    the rows. Where the plan takes the covariance from elsewhere, none is summed. The source may hold
    a part of the plan's rows only: moments of parts add up to those of the whole. `collect` keeps the
    rows of a public block while they are read, so that nobody has to read them again. With `residuals`,
    the plan is that of a round, and residuals take the place of the outcomes (`rows.residuals`). Without
    `covariance` none is summed either: it is known from an earlier round.

    Cost: one pass, O(n·d² + n·d·l) (plus n·l² for full outcome moments); memory of a few blocks and
    one set of moments per worker. The result does not depend on `threads` or `block_rows`.
    """
    if (sample is not None) != plan.draws_sample:
        raise InputError("a sub-sampled plan needs its sample, and only that one")
    threads = thread_number(threads)
    rows = block_rows or _block_rows(source.n, plan, threads)
    rows = min(rows, plan.grid.exact_rows)
    kernels = kernels_for(source.n * (plan.width + plan.l))
    return walk(
        source,
        [_Accumulator(plan, rows, kernels, residuals, covariance) for _ in range(threads)],
        block_rows=rows,
        sample=sample,
        progress=progress,
        collect=collect,
    )


def _block_rows(n: int, plan: Plan, threads: int) -> int:
    """Return how many rows to read at once, for speed alone."""
    fitting = _BLOCK_BYTES // (8 * (plan.width + plan.l))
    reuse = min(_ROWS_PER_FEATURE * plan.width, _ENOUGH_ROWS)
    share = max(-(-n // (2 * threads)), _FEW_ROWS)  # so that no worker is left without
    return min(max(fitting, reuse), share, max(1, n))


@dataclass(repr=False)
class _Accumulator:
    """One worker's buffers: products of a block, exact in float64, and int64 totals of many."""

    plan: Plan
    rows: int
    kernels: ModuleType | None
    residuals: ResidualGrid | None = None
    covariance: bool = True
    done: int = 0

    def __post_init__(self) -> None:
        plan = self.plan
        kernel = None if self.kernels is None else self.kernels.fused
        self._features = feature_quantiser(plan, kernel=kernel)
        self._outcomes = outcome_quantiser(plan, kernel=kernel)
        self._residuals = None
        if self.residuals is not None:
            self._residuals = ResidualQuantiser(plan, self.residuals, kernel=kernel)
            self._wide = feature_quantiser(plan, kernel=kernel, wider=wide_factor(plan))
        self._summed = self.covariance and plan.covariance_origin is CovarianceOrigin.ROWS
        self._signs: Signs | None = None
        unit = self._features.box_end
        if self.kernels and unit and plan.d >= _WIDE:
            self._signs = Signs(self._features, unit, self.rows, plan.l, self.kernels)
        width, l = plan.width, plan.l
        shapes = (
            (width, width) if self._summed else (0, 0),
            (width, l),
            (l, l) if plan.full_outcome_moments else (l,),
        )
        self._totals = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        # All products of rows with themselves: made at once, by the fastest of all products.
        every = self._summed and plan.full_outcome_moments and not plan.draws_sample
        self._at_once = every and self._signs is None
        if self._at_once:
            self._rows = np.empty((self.rows, width + l))
            self._x, self._y = self._rows[:, :width], self._rows[:, width:]
            self._product = np.empty((width + l, width + l))
            upper, lower = self._product[:width], self._product[width:]
            self._products = [upper[:, :width], upper[:, width:], lower[:, width:]]
        else:  # takes no memory before it is written
            self._x, self._y = np.empty((self.rows, width)), np.empty((self.rows, l))
            self._products = [np.empty(shape) for shape in shapes]

    def add(self, block: Block, chosen: NDArray[np.bool_] | None) -> int:
        m, shapes = len(block.features), (block.features.shape, block.outcomes.shape)
        if m > self.rows or shapes != ((m, self.plan.d), (m, self.plan.l)):
            raise InputError("a source gave a block of the wrong size")
        signs = None if self._signs is None else self._signs.of(block.features)
        x, y = self._x[:m], self._y[:m]
        if self._residuals is None:
            if signs is None:
                self._features(block.features, x)
            self._outcomes(block.outcomes, y)
        else:
            self._add_residuals(self._residuals, block, signs, x, y)
        if self._at_once:
            np.matmul(self._rows[:m].T, self._rows[:m], out=self._product)
        else:
            self._multiply(x, y, signs, chosen)
        for total, product in zip(self._totals, self._products, strict=True):
            # Every number is an integer below 2**53 already; the cast changes none.
            np.add(total, product, out=total, dtype=np.int64, casting="unsafe")
        self.done += m
        return m

    def _add_residuals(
        self,
        residuals: ResidualQuantiser,
        block: Block,
        signs: NDArray[np.float32] | None,
        x: Matrix,
        y: Matrix,
    ) -> None:
        """Write residuals into `y`, and then the rows of features, shortened, into `x`."""
        if self._signs is not None and signs is not None:  # rows that need no shortening
            self._signs.integers(signs, x)
            residuals(x, block.outcomes, y)
            return
        lengths = self._wide(block.features, x)
        residuals(x, block.outcomes, y)
        limit = self._features.radius_squared - (self._features.constant or 0) ** 2
        shorten_rows(x[:, : self.plan.d], limit, lengths)

    def _multiply(
        self,
        x: Matrix,
        y: Matrix,
        signs: NDArray[np.float32] | None,
        chosen: NDArray[np.bool_] | None,
    ) -> None:
        """Write one product after the other; `x` counts where there are no signs."""
        covariance, association, outcome = self._products
        if self._signs is not None and signs is not None:
            if self._summed:
                self._signs.covariance(signs if chosen is None else signs[chosen], covariance)
            self._signs.association(signs, y, association)
        else:
            if self._summed:
                counted = x if chosen is None else x[chosen]
                np.matmul(counted.T, counted, out=covariance)
            np.matmul(x.T, y, out=association)
        if self.plan.full_outcome_moments:
            np.matmul(y.T, y, out=outcome)
        else:
            np.einsum("ij,ij->j", y, y, out=outcome)

    def total(self) -> Moments:
        covariance, association, outcome = self._totals
        return Moments(
            rows=self.done, covariance=covariance, association=association, outcome=outcome
        )
