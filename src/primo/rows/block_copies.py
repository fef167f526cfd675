"""Moments inside blocks of features that hold copies of an allele: exact, and faster than by products.

A genotype is 0, 1 or 2 copies, or missing. In a column, 0 copies always become the same whole number,
and so do 1 and 2: three numbers that the plan fixes, made by the quantiser itself. A missing one is 0.
So XᵀX of a block is made of counts: how many rows have g copies in one column and h in the other. They
are counted with one bit for each row, 64 rows at a time, and multiplied in int64. (A missing value is
counted as 0 copies at first, and the difference is taken off again: missing values are few.)

A row may have to be shortened:

- a block of it that is too long: it is shortened by itself, as by the quantiser, and not counted; its
  products are added.
- the whole row: it is left to the quantiser. Shortened blocks have at most their limit's length, so a
  row is left only if that may be so.

The integers are those of the quantiser, and no sum is rounded: which rows are counted changes no bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.rows.block_clip import Run
from primo.rows.quantise import Quantiser, shorten_rows

__all__ = ["Copies"]

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]

_TYPES = (np.dtype(np.int8), np.dtype(np.float32))  # of the rows that sources of genotypes give

#: Columns that are treated at once, if they are not one block: few enough to stay in the cache.
_COLUMNS = 2**8


@dataclass(frozen=True, kw_only=True, eq=False)
class _Group:
    """Neighbouring runs that are treated at once; borders and places are counted from `start`."""

    start: int
    runs: tuple[Run, ...]
    borders: Integers  # of the runs, (m + 1,)
    limits: Matrix  # squared norm of each run, (m,); infinite for single columns, which are cut
    values: Matrix  # (3, width) what 0, 1, 2 copies are
    squares: Matrix
    whole: Integers  # (3, width) the values again

    @property
    def width(self) -> int:
        return int(self.borders[-1])


class Copies:
    """One worker's buffers for blocks of at most `rows` rows and `width` columns of outcomes."""

    def __init__(self, features: Quantiser, rows: int, width: int, kernels: ModuleType) -> None:
        self._features, self._kernels = features, kernels
        values = _values(features)
        self.usable = values is not None
        self._groups = [] if values is None else _groups(features.runs, values)
        widest = max((group.width for group in self._groups), default=0)
        self._x = np.empty((rows * widest,))
        self._bits = np.empty((3 * widest * -(-rows // 64),), dtype=np.uint64)
        self._product = np.empty((widest, width))

    def add(
        self, rows: NDArray[Any], y: Matrix, blocks: Integers, association: Integers
    ) -> NDArray[np.intp] | None:
        """Add the products of rows to both totals, and return which rows are left to the quantiser.

        Returns None, and adds nothing, if there is a value that is no number of copies.
        Cost: about that of XᵀY for two outcomes, beside that of XᵀY.
        """
        if not self.usable or rows.dtype not in _TYPES or not rows.flags.c_contiguous:
            return None
        lengths = np.zeros(len(rows))
        longer = []
        fill = self._features.missing == "centre"
        for group in self._groups:
            flags = np.empty((len(rows), len(group.limits)), dtype=np.bool_)
            memory, step = _memory(rows, group)
            if not self._kernels.measure(
                memory, step, group.squares, group.borders, group.limits, fill, lengths, flags
            ):
                return None
            longer.append(flags)
        left = ~(lengths <= self._features.radius_squared)
        if 2 * np.count_nonzero(left) > len(rows):  # the quantiser is faster
            return np.arange(len(rows))
        for group, flags in zip(self._groups, longer, strict=True):
            flags[left] = False
            self._add_group(group, rows, y, flags, left, blocks, association)
        return np.flatnonzero(left)

    def _add_group(
        self,
        group: _Group,
        rows: NDArray[Any],
        y: Matrix,
        longer: NDArray[np.bool_],
        left: NDArray[np.bool_],
        blocks: Integers,
        association: Integers,
    ) -> None:
        m, width = len(rows), group.width
        x = self._x[: m * width].reshape(m, width)
        words = -(-m // 64)
        planes = self._bits[: 3 * width * words].reshape(3, width, words)
        memory, step = _memory(rows, group)
        self._kernels.encode(memory, step, group.values, left, x, planes)
        counted = m - int(np.count_nonzero(left))
        holes = bool(planes[2].any())
        some: NDArray[np.bool_] = np.any(longer, axis=0)
        for k, run in enumerate(group.runs):
            a, b = run.start - group.start, run.stop - group.start
            part, total = x[:, a:b], blocks[run.products]
            if run.single:
                _add(total, np.einsum("ij,ij->j", part, part))
                continue
            square = total.reshape(b - a, b - a)
            shortened = np.flatnonzero(longer[:, k]) if some[k] else ()
            if len(shortened):
                again = part[shortened]
                shorten_rows(again, run.limit)
                part[shortened] = again
            if 4 * len(shortened) > m:
                _add(square, part.T @ part)
            else:
                if len(shortened):
                    _add(square, again.T @ again)
                    self._kernels.drop_rows(planes, shortened, a, b)
                own, values = planes[:, a:b], group.whole[:, a:b]
                self._kernels.count_products(own, values, counted - len(shortened), square)
                if holes:
                    self._kernels.fill_holes(own, values[0], x, a, square)
        product = self._product[:width]
        np.matmul(x.T, y, out=product)
        _add(association[group.start : group.start + width], product)


def _values(features: Quantiser) -> Matrix | None:
    """Return what 0, 1, 2 copies become in each column, before blocks and rows are shortened.

    None if some row of copies would be too long because of one value alone: products of such values
    might not fit int64.
    """
    values = features.whole_steps(np.repeat(np.arange(3.0)[:, None], features.clip.width, axis=1))
    for run in features.runs:
        if run.ends is not None:
            part = values[:, run.columns]
            np.clip(part, -run.ends, run.ends, out=part)
    return values if (values**2 <= features.radius_squared).all() else None


def _groups(runs: tuple[Run, ...], values: Matrix) -> list[_Group]:
    """Put neighbouring runs together, up to `_COLUMNS` columns unless one is wider."""
    groups, first = [], 0
    for k in range(1, len(runs) + 1):
        if k < len(runs) and runs[k].stop - runs[first].start <= _COLUMNS:
            continue
        groups.append(_group(runs[first:k], values))
        first = k
    return groups


def _group(runs: tuple[Run, ...], values: Matrix) -> _Group:
    start, stop = runs[0].start, runs[-1].stop
    part = np.ascontiguousarray(values[:, start:stop])
    return _Group(
        start=start,
        runs=runs,
        borders=np.array([0, *(run.stop - start for run in runs)], dtype=np.int64),
        limits=np.array([np.inf if run.single else float(run.limit) for run in runs]),
        values=part,
        squares=part**2,
        whole=part.astype(np.int64),
    )


def _memory(rows: NDArray[Any], group: _Group) -> tuple[NDArray[Any], int]:
    """Return the memory of rows from a group's first value on, and the step between rows."""
    memory = rows.reshape(-1)[group.start :]
    memory.flags.writeable = False  # one type, so one compilation, for all rows
    return memory, rows.shape[1]


def _add(total: Integers, product: Matrix) -> None:
    # Every number is an integer below 2**53 already; the cast changes none.
    np.add(total, product, out=total, dtype=np.int64, casting="unsafe")
