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

__all__ = ["count_products", "drop_rows", "encode", "measure"]

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


@_cached
def encode(
    rows: NDArray[Any], step: int, values: Matrix, left: Flags, x: Matrix, planes: Bits
) -> None:
    """Write what copies stand for into `x`, and a bit for each person into one of three planes.

    `planes` (3, columns, words) has a bit for 0, 1 and 2 copies. Rows that are `left` out become 0 and
    have no bits, and so do missing values.
    """
    m, width = x.shape
    bits = np.empty((3, width), np.uint64)
    for w in range(planes.shape[2]):
        bits[:] = 0
        for i in range(64 * w, min(64 * w + 64, m)):
            if left[i]:
                x[i, :] = 0.0
                continue
            row = rows[i * step : i * step + width]
            _write_row(row, values[0], values[1], values[2], x[i])
            bit = np.uint64(1) << np.uint64(i - 64 * w)
            for g in range(3):
                _mark(row, g, bit, bits[g])
        planes[:, :, w] = bits


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
    """Add XᵀX to `total` (w, w), for the w columns of one block; `rows` of them have bits or holes."""
    width, words = planes.shape[1], planes.shape[2]
    counts = np.zeros((3, width), np.int64)
    for g in range(3):
        for j in range(width):
            found = np.uint64(0)
            for w in range(words):
                found += _bits_in(planes[g, j, w])
            counts[g, j] = np.int64(found)
    # Over the first: x = first + step·[1 copy] + leap·[2 copies] in columns where nothing is missing.
    first, step, leap = values[0], values[1] - values[0], values[2] - values[0]
    sums = step * counts[1] + leap * counts[2]
    for j in range(width):
        whole = counts[0, j] + counts[1, j] + counts[2, j] == rows
        for k in range(j + 1):
            n11, n12, n21, n22 = np.uint64(0), np.uint64(0), np.uint64(0), np.uint64(0)
            for w in range(words):
                a, b = planes[1, j, w], planes[2, j, w]
                c, d = planes[1, k, w], planes[2, k, w]
                n11 += _bits_in(a & c)
                n12 += _bits_in(a & d)
                n21 += _bits_in(b & c)
                n22 += _bits_in(b & d)
            if whole and counts[0, k] + counts[1, k] + counts[2, k] == rows:
                product = rows * first[j] * first[k] + first[j] * sums[k] + first[k] * sums[j]
                product += step[j] * (step[k] * np.int64(n11) + leap[k] * np.int64(n12))
                product += leap[j] * (step[k] * np.int64(n21) + leap[k] * np.int64(n22))
            else:
                n00, n01, n02, n10, n20 = (
                    np.uint64(0),
                    np.uint64(0),
                    np.uint64(0),
                    np.uint64(0),
                    np.uint64(0),
                )
                for w in range(words):
                    a, c = planes[0, j, w], planes[0, k, w]
                    n00 += _bits_in(a & c)
                    n01 += _bits_in(a & planes[1, k, w])
                    n02 += _bits_in(a & planes[2, k, w])
                    n10 += _bits_in(planes[1, j, w] & c)
                    n20 += _bits_in(planes[2, j, w] & c)
                x, y, z = values[0, k], values[1, k], values[2, k]
                product = values[0, j] * (x * np.int64(n00) + y * np.int64(n01) + z * np.int64(n02))
                product += values[1, j] * (
                    x * np.int64(n10) + y * np.int64(n11) + z * np.int64(n12)
                )
                product += values[2, j] * (
                    x * np.int64(n20) + y * np.int64(n21) + z * np.int64(n22)
                )
            total[j, k] += product
            if k < j:
                total[k, j] += product
