"""Counting copies of alleles, 64 rows at a time; compiled (needs numba).

Values are 0, 1 or 2 copies, or NaN where missing. What a column's copies stand for, whole numbers, is
read from a table with a line for each of 0, 1, 2. Nothing here rounds: sums of squares and products are
whole numbers, and all below 2**53 or in int64; `primo.rows.block_copies` says why.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from primo._util.jit import cached as _cached
from primo._util.jit import compiled as _compiled

__all__ = ["count_products", "drop_rows", "encode", "fill_holes", "measure"]

Matrix = NDArray[np.float64]
Integers = NDArray[np.int64]
Bits = NDArray[np.uint64]
Flags = NDArray[np.bool_]


@_compiled(fastmath={"reassoc"})  # lets the compiler add several at a time
def _plus(a: float, b: float) -> float:
    return a + b


def _count_bits(_: Any, word: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_bits_in: Any = intrinsic(_count_bits)


@_compiled(inline="always")
def _length(row: NDArray[Any], none: Matrix, one: Matrix, two: Matrix) -> float:
    length = 0.0
    for j in range(len(none)):
        copies = row[j]
        # Loaded first: a choice between loaded numbers is no jump, so several are made at a time.
        a, b, c = none[j], one[j], two[j]
        square = a if copies == 0 else 0.0
        square = b if copies == 1 else square
        square = c if copies == 2 else square
        length = _plus(length, square)
    return length


@_compiled(inline="always")
def _strangers(row: NDArray[Any], fill: bool) -> int:
    """Count the values that are neither a number of copies nor, with `fill`, missing."""
    found = 0
    for j in range(len(row)):
        copies = row[j]
        known = (copies == 0) | (copies == 1) | (copies == 2)
        if fill:
            known = known | (copies != copies)  # noqa: PLR0124 - NaN
        found += 0 if known else 1
    return found


@_cached
def measure(
    rows: NDArray[Any],
    step: int,
    squares: Matrix,
    starts: Integers,
    limits: Matrix,
    fill: bool,
    lengths: Matrix,
    longer: Flags,
) -> bool:
    """Add to `lengths` the squared length of each row, of which a block counts up to its limit.

    `rows` is the memory of all of them, one every `step` values. `longer` (rows, blocks) says which
    blocks exceed their limits. Returns False as soon as a value is neither a number of copies nor, with
    `fill`, missing.
    """
    none, one, two = squares[0], squares[1], squares[2]
    width = starts[-1]
    for i in range(len(lengths)):
        row = rows[i * step : i * step + width]
        if _strangers(row, True) if fill else _strangers(row, False):
            return False
        for k in range(len(limits)):
            a, b = starts[k], starts[k + 1]
            length = _length(row[a:b], none[a:b], one[a:b], two[a:b])
            longer[i, k] = length > limits[k]
            lengths[i] += min(length, limits[k])
    return True


@_compiled(inline="always")
def _write_row(row: NDArray[Any], none: Matrix, one: Matrix, two: Matrix, out: Matrix) -> None:
    for j in range(len(out)):
        copies = row[j]
        a, b, c = none[j], one[j], two[j]
        value = a if copies == 0 else 0.0
        value = b if copies == 1 else value
        out[j] = c if copies == 2 else value


@_compiled(inline="always")
def _mark(row: NDArray[Any], copies: int, bit: np.uint64, out: Bits) -> None:
    for j in range(len(out)):
        out[j] |= bit if row[j] == copies else np.uint64(0)


@_compiled(inline="always")
def _mark_missing(row: NDArray[Any], bit: np.uint64, out: Bits) -> None:
    for j in range(len(out)):
        out[j] |= bit if row[j] != row[j] else np.uint64(0)  # NaN


@_cached
def encode(
    rows: NDArray[Any], step: int, values: Matrix, left: Flags, x: Matrix, planes: Bits
) -> None:
    """Write what copies stand for into `x`, and bits for 1 copy, 2 copies and none known.

    `planes` (3, columns, words) has a bit for each row. Rows that are `left` out become 0 and have no
    bits; a missing value becomes 0.
    """
    m, width = x.shape
    one, two, gone = np.empty((3, width), np.uint64)
    for w in range(planes.shape[2]):
        for j in range(width):
            one[j] = two[j] = gone[j] = np.uint64(0)
        for i in range(64 * w, min(64 * w + 64, m)):
            if left[i]:
                for j in range(width):
                    x[i, j] = 0.0
                continue
            row = rows[i * step : i * step + width]
            _write_row(row, values[0], values[1], values[2], x[i])
            bit = np.uint64(1) << np.uint64(i - 64 * w)
            _mark(row, 1, bit, one)
            _mark(row, 2, bit, two)
            _mark_missing(row, bit, gone)
        for j in range(width):
            planes[0, j, w] = one[j]
            planes[1, j, w] = two[j]
            planes[2, j, w] = gone[j]


@_cached
def drop_rows(planes: Bits, chosen: NDArray[np.intp], start: int, stop: int) -> None:
    """Take the bits of the chosen rows out of the columns `start` to `stop`."""
    for i in chosen:
        rest = ~(np.uint64(1) << np.uint64(i % 64))
        for g in range(3):
            for j in range(start, stop):
                planes[g, j, i // 64] &= rest


@_cached
def count_products(planes: Bits, values: Integers, rows: int, total: Integers) -> None:
    """Add XᵀX of `rows` rows to `total` (w, w), for the w columns of a block.

    A missing value counts as 0 copies; `fill_holes` corrects that.
    """
    width, words = planes.shape[1], planes.shape[2]
    # In a column, x = first + step·[1 copy] + leap·[2 copies].
    first, step, leap = values[0], np.empty(width, np.int64), np.empty(width, np.int64)
    sums = np.empty(width, np.int64)
    for j in range(width):
        step[j], leap[j] = values[1, j] - first[j], values[2, j] - first[j]
        ones, twos = np.uint64(0), np.uint64(0)
        for w in range(words):
            ones += _bits_in(planes[0, j, w])
            twos += _bits_in(planes[1, j, w])
        sums[j] = step[j] * np.int64(ones) + leap[j] * np.int64(twos)
    for j in range(width):
        for k in range(j + 1):
            n11, n12, n21, n22 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            for w in range(words):
                a, b = planes[0, j, w], planes[1, j, w]
                c, d = planes[0, k, w], planes[1, k, w]
                n11 += _bits_in(a & c)
                n12 += _bits_in(a & d)
                n21 += _bits_in(b & c)
                n22 += _bits_in(b & d)
            product = rows * first[j] * first[k] + first[j] * sums[k] + first[k] * sums[j]
            product += step[j] * (step[k] * np.int64(n11) + leap[k] * np.int64(n12))
            product += leap[j] * (step[k] * np.int64(n21) + leap[k] * np.int64(n22))
            total[j, k] += product
            if k < j:
                total[k, j] += product


@_cached
def fill_holes(planes: Bits, first: Integers, x: Matrix, start: int, total: Integers) -> None:
    """Take off `total` what `count_products` added for missing values, which are 0 in `x`.

    The block begins with the column `start` of `x`. With D the `first` values in the holes,
    (X + D)ᵀ(X + D) was added: XᵀD, DᵀX and DᵀD are too much.
    """
    width, words = planes.shape[1], planes.shape[2]
    beside = np.zeros((width, width))  # DᵀX: whole numbers, as exact as any product of these rows
    for j in range(width):
        value, sums = np.float64(first[j]), beside[j]
        for w in range(words):
            holes = planes[2, j, w]
            while holes:
                lowest = holes & (~holes + np.uint64(1))
                holes ^= lowest
                row = x[64 * w + np.int64(_bits_in(lowest - np.uint64(1)))][start : start + width]
                for k in range(width):
                    sums[k] += value * row[k]
    for j in range(width):
        for k in range(width):
            both = np.uint64(0)
            for w in range(words):
                both += _bits_in(planes[2, j, w] & planes[2, k, w])
            total[j, k] -= np.int64(beside[j, k]) + np.int64(beside[k, j])
            total[j, k] -= first[j] * first[k] * np.int64(both)
