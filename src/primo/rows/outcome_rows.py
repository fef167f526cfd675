"""Quantised outcomes, row by row, and the exact moments of outcomes with noise and public features.

With noise on the outcomes themselves nothing is summed before the noise: a first walk collects the rows
of outcomes, each rounded as in `rows.quantise`, a function of that row alone. After the noise a second
walk reads the public features, and no private column, and sums products with the noisy outcomes.

The order of the rows may tell outcomes: files list cases before controls. So noisy outcomes are
published in an order that the public features alone decide (`public_order`), and rows with equal
features in that of their noisy outcomes: what is published depends on the set of noisy rows, not on
their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.rows.moments import Moments
from primo.rows.public_block import PublicRows
from primo.rows.quantise import feature_quantiser, kernels_for, outcome_quantiser
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Block, Ids, Source
from primo.rows.sources.paired import PairedSource, SplitSource, one_block
from primo.rows.sources.table_columns import TableColumns
from primo.rows.walk import Progress, thread_number, walk

__all__ = [
    "OutcomeRows",
    "OutcomesOnly",
    "PublicMoments",
    "WithNoisyOutcomes",
    "fold_noisy_outcomes",
    "fold_outcome_rows",
    "public_order",
    "reads_features_alone",
    "row_keys",
]

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]

_BLOCK_ROWS = 2**12  # of outcomes, read at a time
_BLOCK_BYTES = 2**25  # of quantised features in flight per thread
_MOST_ROWS = 2**12  # whatever the width

_KEYS = 4  # numbers that stand for a row of features, of some 30 bits each
_KEY_BITS = 12  # of a weight: sums of products with a row of norm 2**20 are exact in float64
_KEY_STREAM = 0x7072696D6F  # fixed for ever: the order of published rows depends on it


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class OutcomeRows:
    """Private integer rows of outcomes in grid units, in order; add two to put one after the other."""

    rows: int
    outcomes: Integers  # (rows, l)

    def __add__(self, other: Self) -> Self:
        """Append the rows of another."""
        return type(self)(
            rows=self.rows + other.rows,
            outcomes=np.concatenate([self.outcomes, other.outcomes]),
        )

    def __repr__(self) -> str:
        """Show the shape and no number."""
        return f"<OutcomeRows n={self.rows} l={self.outcomes.shape[1]} (private)>"


def reads_features_alone(source: Source) -> bool:
    """Whether the features of a source can be read without its outcomes."""
    return isinstance(source, PairedSource) or (
        isinstance(source, SplitSource) and isinstance(source.columns, TableColumns)
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _View:
    """A source of which one block is read, or taken from elsewhere."""

    source: Source

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<{type(self).__name__} of {self.source!r}>"

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.source.n

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return self.source.feature_names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcomes."""
        return self.source.outcome_names

    def ids(self) -> Ids | None:
        """Return nothing: whoever owns the rows was charged already."""
        return None

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop`, without reading them."""
        return replace(self, source=self.source.part(start, stop))


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OutcomesOnly(_View):
    """The outcomes of a source; its features are not read."""

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield the outcomes of every row, with no features."""
        for outcomes in one_block(self.source, "outcomes", rows):
            yield Block(features=np.empty((len(outcomes), 0)), outcomes=outcomes)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class WithNoisyOutcomes(_View):
    """The public features of a source beside outcomes with noise; its own outcomes are not read."""

    noisy: NDArray[np.int32]  # (n, l) public
    start: int = 0  # number of the first row among those of the whole

    def __post_init__(self) -> None:
        """Check that a row of outcomes goes with every row, and that no private column is read."""
        if len(self.noisy) != self.source.n:
            raise InputError("these outcomes with noise are of another number of rows")
        if not (reads_features_alone(self.source) or isinstance(self.source, ArraySource)):
            raise InputError("the features of this source cannot be read without its outcomes")

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield the features of every row with its noisy outcomes."""
        start = 0
        for features in self._features(rows):
            noisy = self.noisy[start : start + len(features)]
            if len(noisy) != len(features):
                raise InputError("the source gave more rows than it announced")
            yield _Placed(features=features, outcomes=noisy, start=self.start + start)
            start += len(features)

    def _features(self, rows: int) -> Iterator[NDArray[Any]]:
        if not isinstance(self.source, ArraySource):
            return one_block(self.source, "features", rows)
        features = self.source.features
        return (features[start : start + rows] for start in range(0, len(features), rows))

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop`, without reading them."""
        return replace(
            self,
            source=self.source.part(start, stop),
            noisy=self.noisy[start:stop],
            start=self.start + start,
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class _Placed(Block):
    """A block that knows which rows it holds."""

    start: int


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PublicMoments:
    """Integer sums over rows of public features and noisy outcomes: all of it public."""

    moments: Moments
    squares: Integers  # (width,) diagonal of XᵀX
    sums: Integers  # (width,) last column of XᵀX: with an intercept, sums times the constant
    keys: tuple[tuple[int, Matrix], ...]  # number of the first row, (m, _KEYS) keys of some rows
    inside: Integers  # (Σ w²,) XᵀX inside blocks, one after the other; empty without blocks

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.moments.rows

    def __add__(self, other: Self) -> Self:
        """Merge; exact and in any order."""
        return type(self)(
            moments=self.moments + other.moments,
            squares=self.squares + other.squares,
            sums=self.sums + other.sums,
            keys=self.keys + other.keys,
            inside=self.inside + other.inside,
        )

    def row_keys(self) -> Matrix:
        """Return the keys of all rows in order, (rows, _KEYS)."""
        return np.concatenate([keys for _, keys in sorted(self.keys, key=lambda part: part[0])])


def public_order(keys: Matrix, noisy: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the order in which rows are published: by their keys, then by their noisy outcomes."""
    return np.lexsort((*noisy.T[::-1], *keys.T[::-1]))


def row_keys(features: NDArray[Any], plan: Plan) -> Matrix:
    """Return numbers that stand for rows of public features, in the data's own units, (rows, _KEYS).

    A function of the row alone. Rows that differ after they were rounded have different keys, but for
    coincidences that would exchange two rows and harm nobody.
    """
    x = np.empty((len(features), plan.width))
    feature_quantiser(plan)(features, x)
    return np.asarray(x @ _key_weights(plan.width))


def _key_weights(width: int) -> Matrix:
    """Return fixed pseudo-random whole numbers, (width, _KEYS)."""
    raw = np.random.Philox(key=_KEY_STREAM).random_raw(width * _KEYS) >> np.uint64(64 - _KEY_BITS)
    return np.asarray(raw.astype(np.float64).reshape(width, _KEYS) - 2 ** (_KEY_BITS - 1))


def fold_outcome_rows(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> OutcomeRows:
    """Read every row once and return its outcomes as integers, in the order of the rows.

    The arguments are those of `primo.rows.moments.fold`. One thread: rows have to stay in order.

    Guarantee: a row of the result is a function of that row of outcomes and of the plan alone, of
    squared norm at most `plan.grid.outcome_radius_squared`.
    Cost: one pass, O(n·l), and memory of 8·n·l bytes.
    """
    return walk(
        source,
        [_OutcomeCollector(plan, source.n)],
        block_rows=_BLOCK_ROWS,
        progress=progress,
        collect=collect,
    )


class _OutcomeCollector:
    """The quantised outcomes of the blocks so far."""

    def __init__(self, plan: Plan, n: int) -> None:
        kernels = kernels_for(n * plan.l)
        self._quantise = outcome_quantiser(plan, kernel=None if kernels is None else kernels.fused)
        self._plan, self._done = plan, 0
        self._buffer = np.empty((_BLOCK_ROWS, plan.l))
        self._rows = np.empty((n, plan.l), dtype=np.int64)

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        m = len(block.outcomes)
        fits = block.outcomes.shape == (m, self._plan.l) and len(block.features) == m
        if m > _BLOCK_ROWS or not fits or self._done + m > len(self._rows):
            raise InputError("a source gave a block of the wrong size")
        rows = self._buffer[:m]
        self._quantise(block.outcomes, rows)
        self._rows[self._done : self._done + m] = rows  # whole numbers below 2**53
        self._done += m
        return m

    def total(self) -> OutcomeRows:
        return OutcomeRows(rows=self._done, outcomes=self._rows[: self._done])


def fold_noisy_outcomes(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
    starts: Integers | None = None,
) -> PublicMoments:
    """Sum XᵀX, XᵀỸ and ỸᵀỸ for public features X and outcomes Ỹ with noise: all of it public.

    `source` gives the noisy outcomes in the steps they are published in (`WithNoisyOutcomes`). XᵀX is
    left out where the plan does not hold it; with `starts`, borders of blocks of features, it is summed
    inside these.

    Guarantee: post-processing; no private column is read. Integers, so the same whatever the blocks.
    Cost: one pass over the features, O(n·d·l), plus O(n·d²) for XᵀX; memory of some blocks and the
    moments. Blocks are short where there are many features.
    """
    threads = thread_number(threads)
    kernels = kernels_for(source.n * plan.width)
    fitting = max(1, _BLOCK_BYTES // (8 * plan.width))
    rows = min(fitting, _MOST_ROWS, plan.grid.exact_rows, max(1, -(-source.n // threads)))
    kernel = None if kernels is None else kernels.fused
    borders = np.zeros(1, dtype=np.int64) if starts is None else starts
    accumulators = [_NoisyAccumulator(plan, rows, kernel, borders) for _ in range(threads)]
    return walk(source, accumulators, block_rows=rows, progress=progress, collect=collect)


class _NoisyAccumulator:
    """One worker's buffers: products of a block, exact in float64, and int64 totals of many."""

    def __init__(self, plan: Plan, rows: int, kernel: Any, starts: Integers) -> None:
        self._plan, self._done = plan, 0
        self._blocks = list(pairwise(starts.tolist()))
        self._inside = np.zeros(sum((b - a) ** 2 for a, b in self._blocks), dtype=np.int64)
        self._features = feature_quantiser(plan, kernel=kernel)
        self._largest = max(1, int(np.sqrt(plan.grid.feature_radius_squared)) + 1)
        self._x = np.empty((rows, plan.width))
        self._summed = plan.covariance_origin is CovarianceOrigin.ROWS
        width, l = plan.width, plan.l
        shapes = (
            (width, width) if self._summed else (0, 0),
            (width, l),
            (l, l) if plan.full_outcome_moments else (l,),
            (width,),
            (width,),
        )
        self._totals = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        self._weights = _key_weights(width)
        self._keys: list[tuple[int, Matrix]] = []

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        m, plan = len(block.features), self._plan
        shapes = (block.features.shape, block.outcomes.shape)
        if m > len(self._x) or shapes != ((m, plan.d), (m, plan.l)):
            raise InputError("a source gave a block of the wrong size")
        x, y = self._x[:m], np.asarray(block.outcomes, dtype=np.float64)
        self._features(block.features, x)
        if isinstance(block, _Placed):
            self._keys.append((block.start, x @ self._weights))
        for start, stop in self._exact(y):
            part, own = x[start:stop], y[start:stop]
            products = [
                part.T @ part if self._summed else np.zeros((0, 0)),
                part.T @ own,
                own.T @ own if plan.full_outcome_moments else np.einsum("ij,ij->j", own, own),
                np.einsum("ij,ij->j", part, part),
                part.T @ part[:, -1],
            ]
            for total, product in zip(self._totals, products, strict=True):
                # Every number is an integer below 2**53; the cast changes none.
                np.add(total, product, out=total, dtype=np.int64, casting="unsafe")
        at = 0
        for a, b in self._blocks:  # no sum of all rows of a block reaches 2**53
            own = self._inside[at : at + (b - a) ** 2].reshape(b - a, b - a)
            np.add(own, x[:, a:b].T @ x[:, a:b], out=own, dtype=np.int64, casting="unsafe")
            at += own.size
        self._done += m
        return m

    def _exact(self, y: Matrix) -> Iterator[tuple[int, int]]:
        """Cut rows such that no sum of products, with features or with each other, reaches 2**53."""
        size = float(np.abs(y).max(initial=1.0))
        fitting = max(1, int(2.0**53 // (size * max(size, self._largest))))
        for start in range(0, len(y), fitting):
            yield start, min(start + fitting, len(y))

    def total(self) -> PublicMoments:
        covariance, association, outcome, squares, sums = self._totals
        moments = Moments(
            rows=self._done, covariance=covariance, association=association, outcome=outcome
        )
        return PublicMoments(
            moments=moments,
            squares=squares,
            sums=sums,
            keys=tuple(self._keys),
            inside=self._inside,
        )
