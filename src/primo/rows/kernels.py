"""The quantiser's passes over a row, fused into one, and counting signs; compiled (needs numba).

A kernel reports the squared length of what it wrote for each row, or infinity where that may be wrong,
and `primo.rows.quantise` then does the row again. Why a finite length is right:

- A finite length is a sum of squares of finite, truncated numbers: they are integers. If it is below
  2**53, so was every partial sum, and none was rounded, whatever the order: it is the exact length.
- The integers are bit for bit those of NumPy, because each value goes through the same operations,
  none of them contracted or reordered.

Signs (-1, 0, 1) are packed into two bits each: their products are then counted 64 at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import intrinsic
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from primo._util.jit import cached as _cached
from primo._util.jit import compiled as _compiled

__all__ = ["fused", "multiply_signs", "write_narrow", "write_signs"]

Matrix = NDArray[np.float64]
Bits = NDArray[np.uint64]

_TYPES = tuple(np.dtype(name) for name in ("float64", "float32", "int8"))
_LARGEST = float(np.finfo(np.float64).max)
_EXACT = 2.0**53  # below it, integers and their sums are not rounded


def fused(
    rows: NDArray[Any],
    out: Matrix,
    *,
    centre: Matrix | None,
    factor: Matrix,
    edge: float,
    reach: float,
    fill: bool,
    ends: tuple[Matrix, Matrix] | None = None,
    predicted: Matrix | None = None,
    limit: float = np.inf,
) -> Matrix | None:
    """Write trunc((rows - centre)·factor), cut to ±edge, into `out` and return squared lengths.

    `ends` are given where each column is cut to a range of its own, (width,) each, instead of ±edge.
    `predicted`, whole multiples of a power of two below 2**53, is taken off before truncation, and what
    is missing is then 0. Rows whose squared length exceeds `limit`, a whole number below 2**53, and is
    below 2**53 itself are shortened to it, and their new length is reported.

    Without a centre, `factor` is one number and nothing is cut. A value that is not finite becomes 0 if
    `fill`. Otherwise its row gets the length infinity. So does a row with a value beyond `reach`, whose
    square must be finite, and possibly a row whose values exceed `reach` only together. Returns None,
    and does not write to `out`, if there is no kernel for the type, shape or layout of the rows.
    Cost: one pass, during which other threads run; the first compilation on a machine takes a second.
    """
    # Compiled code checks no index, so what it assumes is checked here.
    width = rows.shape[1]
    fits = rows.shape == out.shape and (centre is None or centre.shape == factor.shape == (width,))
    fits &= ends is None or (centre is not None and ends[0].shape == ends[1].shape == (width,))
    if predicted is not None:
        fits = fits and predicted.shape == rows.shape and predicted.flags.c_contiguous
    read, written = _stretch(rows), _stretch(out)
    if rows.dtype not in _TYPES or out.dtype != np.float64 or not fits or not read or not written:
        return None
    read[0].flags.writeable = False  # one type, so one compilation, for all rows
    lengths, limit = np.empty(len(rows)), float(limit)
    if predicted is not None:
        if centre is None:
            _scale_residuals(*read, float(factor), reach, fill, predicted, *written, lengths, limit)
        else:
            lower, upper = ends or (np.full(width, -edge), np.full(width, edge))
            _range_residuals(
                *read,
                centre,
                factor,
                lower,
                upper,
                reach,
                fill,
                predicted,
                *written,
                lengths,
                limit,
            )
    elif centre is None:
        _scale_rows(*read, float(factor), reach, fill, *written, width, lengths, limit)
    elif ends is not None:
        _range_rows(*read, centre, factor, *ends, reach, fill, *written, lengths, limit)
    else:
        _centre_rows(*read, centre, factor, edge, reach, fill, *written, lengths, limit)
    return lengths


def write_signs(x: Matrix, unit: int, out: NDArray[np.float32]) -> bool:
    """Write the signs of `x` and return whether `x` is `unit` times them; both arrays are contiguous."""
    if x.shape != out.shape or not (x.flags.c_contiguous and out.flags.c_contiguous):
        return False
    return bool(_write_signs(x.reshape(-1), float(unit), out.reshape(-1)))


def multiply_signs(signs: NDArray[np.float32], scale: float, out: Matrix) -> None:
    """Write `scale` times SᵀS for contiguous signs S; it is counted, so exact if `scale` times n is."""
    m, width = signs.shape
    if out.shape != (width, width) or not (signs.flags.c_contiguous and out.flags.c_contiguous):
        raise ValueError("signs or their products have the wrong shape or layout")  # a bug
    some, minus = np.empty((2, width, -(-m // 64)), dtype=np.uint64)
    _pack_signs(signs, some, minus)
    _count_products(some, minus, scale, out)


def write_narrow(y: Matrix, most: int, out: NDArray[np.float32]) -> int:
    """Write rows of integers, from the first on, while Σ|y| is at most `most` in every column.

    Returns the number of rows written. With `most` up to 2**24 they and their sums are exact.
    """
    if y.shape != out.shape or not (y.flags.c_contiguous and out.flags.c_contiguous):
        return 0
    return int(_write_narrow(y, float(most), np.zeros(y.shape[1]), out))


def _stretch(rows: NDArray[Any]) -> tuple[NDArray[Any], int] | None:
    """Return the memory from first to last value and the step from row to row, in values."""
    (m, width), (down, across), size = rows.shape, rows.strides, rows.itemsize
    if m < 2 or across != size or down < width * size or down % size or not rows.flags.aligned:
        return None
    return as_strided(rows, ((m - 1) * (down // size) + width,), (size,)), down // size


@_compiled(fastmath={"reassoc"})  # lets the compiler add several at a time
def _plus(a: float, b: float) -> float:
    return a + b


@_compiled()
def _shortened(row: Matrix, length: float, limit: float) -> float:
    """Shorten a row of whole numbers as `quantise.Quantiser` does; its length is exact."""
    shrink = np.sqrt(limit / length)
    length = 0.0
    for j in range(len(row)):
        value = np.trunc(row[j] * shrink)
        length = _plus(length, value * value)
        row[j] = value
    while length > limit:  # a hair outside: one step toward zero in every coordinate
        length = 0.0
        for j in range(len(row)):
            value = row[j] - np.sign(row[j])
            length = _plus(length, value * value)
            row[j] = value
    return length


@_compiled(inline="always")
def _scale_row(row: Matrix, factor: float, reach: float, fill: bool, out: Matrix) -> float:
    length = 0.0
    for j in range(len(out)):
        value = row[j] * factor
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        value = np.trunc(value)
        length = _plus(length, value * value)
        out[j] = value
    return length if length < reach**2 else np.inf


@_compiled(inline="always")
def _centre_row(
    row: Matrix, centre: Matrix, factor: Matrix, edge: float, reach: float, fill: bool, out: Matrix
) -> float:
    length, sizes = 0.0, 0.0
    for j in range(len(out)):
        value = (row[j] - centre[j]) * factor[j]
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        sizes = _plus(sizes, abs(value))  # before the cut, which would hide infinity
        value = np.trunc(edge if value > edge else (-edge if value < -edge else value))
        length = _plus(length, value * value)
        out[j] = value
    return length if sizes < reach else np.inf  # NaN is not below `reach` either


@_compiled(inline="always")
def _range_row(
    row: Matrix,
    centre: Matrix,
    factor: Matrix,
    lower: Matrix,
    upper: Matrix,
    reach: float,
    fill: bool,
    out: Matrix,
) -> float:
    length, sizes = 0.0, 0.0
    for j in range(len(centre)):
        value = (row[j] - centre[j]) * factor[j]
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        sizes = _plus(sizes, abs(value))  # before the cut, which would hide infinity
        value = upper[j] if value > upper[j] else (lower[j] if value < lower[j] else value)
        value = np.trunc(value)
        length = _plus(length, value * value)
        out[j] = value
    vouched = sizes < reach  # NaN is not
    return length if vouched else np.inf


@_compiled(inline="always")
def _scale_residual(
    row: Matrix, factor: float, reach: float, fill: bool, predicted: Matrix, out: Matrix
) -> float:
    length = 0.0
    for j in range(len(out)):
        value = row[j] * factor - predicted[j]
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        value = np.trunc(value)
        length = _plus(length, value * value)
        out[j] = value
    if length < reach**2:
        return length
    return np.inf


@_compiled(inline="always")
def _range_residual(
    row: Matrix,
    centre: Matrix,
    factor: Matrix,
    lower: Matrix,
    upper: Matrix,
    reach: float,
    fill: bool,
    predicted: Matrix,
    out: Matrix,
) -> float:
    length, sizes = 0.0, 0.0
    for j in range(len(centre)):
        value = (row[j] - centre[j]) * factor[j]
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        sizes = _plus(sizes, abs(value))
        low, high = lower[j], upper[j]
        value = high if value > high else (low if value < low else value)
        value = np.trunc(value - predicted[j])
        if fill:
            value = value if abs(row[j]) <= _LARGEST else 0.0
        length = _plus(length, value * value)
        out[j] = value
    if sizes < reach:
        return length
    return np.inf


# `fill` is tested once per row, not once per value: the loops over values stay short.
@_cached
def _scale_rows(
    rows: NDArray[Any],
    step: int,
    factor: float,
    reach: float,
    fill: bool,
    out: Matrix,
    out_step: int,
    width: int,
    lengths: Matrix,
    limit: float,
) -> None:
    for i in range(len(lengths)):
        a, b = i * step, i * out_step
        row, into = rows[a : a + width], out[b : b + width]
        if fill:
            lengths[i] = _scale_row(row, factor, reach, True, into)
        else:
            lengths[i] = _scale_row(row, factor, reach, False, into)
        if limit < lengths[i] < _EXACT:
            lengths[i] = _shortened(into, lengths[i], limit)


@_cached
def _centre_rows(
    rows: NDArray[Any],
    step: int,
    centre: Matrix,
    factor: Matrix,
    edge: float,
    reach: float,
    fill: bool,
    out: Matrix,
    out_step: int,
    lengths: Matrix,
    limit: float,
) -> None:
    width = len(centre)
    for i in range(len(lengths)):
        a, b = i * step, i * out_step
        row, into = rows[a : a + width], out[b : b + width]
        if fill:
            lengths[i] = _centre_row(row, centre, factor, edge, reach, True, into)
        else:
            lengths[i] = _centre_row(row, centre, factor, edge, reach, False, into)
        if limit < lengths[i] < _EXACT:
            lengths[i] = _shortened(into, lengths[i], limit)


@_cached
def _range_rows(
    rows: NDArray[Any],
    step: int,
    centre: Matrix,
    factor: Matrix,
    lower: Matrix,
    upper: Matrix,
    reach: float,
    fill: bool,
    out: Matrix,
    out_step: int,
    lengths: Matrix,
    limit: float,
) -> None:
    width = len(centre)
    for i in range(len(lengths)):
        a, b = i * step, i * out_step
        row, into = rows[a : a + width], out[b : b + width]
        if fill:
            lengths[i] = _range_row(row, centre, factor, lower, upper, reach, True, into)
        else:
            lengths[i] = _range_row(row, centre, factor, lower, upper, reach, False, into)
        if limit < lengths[i] < _EXACT:
            lengths[i] = _shortened(into, lengths[i], limit)


@_cached
def _scale_residuals(
    rows: NDArray[Any],
    step: int,
    factor: float,
    reach: float,
    fill: bool,
    predicted: Matrix,
    out: Matrix,
    out_step: int,
    lengths: Matrix,
    limit: float,
) -> None:
    width = predicted.shape[1]
    for i in range(len(lengths)):
        a, b = i * step, i * out_step
        row, into = rows[a : a + width], out[b : b + width]
        if fill:
            lengths[i] = _scale_residual(row, factor, reach, True, predicted[i], into)
        else:
            lengths[i] = _scale_residual(row, factor, reach, False, predicted[i], into)
        if limit < lengths[i] < _EXACT:
            lengths[i] = _shortened(into, lengths[i], limit)


@_cached
def _range_residuals(
    rows: NDArray[Any],
    step: int,
    centre: Matrix,
    factor: Matrix,
    lower: Matrix,
    upper: Matrix,
    reach: float,
    fill: bool,
    predicted: Matrix,
    out: Matrix,
    out_step: int,
    lengths: Matrix,
    limit: float,
) -> None:
    width = predicted.shape[1]
    for i in range(len(lengths)):
        a, b = i * step, i * out_step
        row, into = rows[a : a + width], out[b : b + width]
        if fill:
            lengths[i] = _range_residual(
                row, centre, factor, lower, upper, reach, True, predicted[i], into
            )
        else:
            lengths[i] = _range_residual(
                row, centre, factor, lower, upper, reach, False, predicted[i], into
            )
        if limit < lengths[i] < _EXACT:
            lengths[i] = _shortened(into, lengths[i], limit)


@_cached
def _write_signs(x: Matrix, unit: float, out: NDArray[np.float32]) -> bool:
    wrong = 0
    for i in range(len(x)):
        value = x[i]
        sign = 1.0 if value > 0.0 else 0.0
        sign = -1.0 if value < 0.0 else sign
        wrong += 0 if sign * unit == value else 1
        out[i] = sign
    return wrong == 0


@_cached
def _pack_signs(signs: NDArray[np.float32], some: Bits, minus: Bits) -> None:
    m, width = signs.shape
    nonzero, negative = np.empty(width, np.uint64), np.empty(width, np.uint64)
    for w in range(some.shape[1]):
        nonzero[:] = 0
        negative[:] = 0
        for i in range(min(64, m - 64 * w)):
            row, bit = signs[64 * w + i], np.uint64(1) << np.uint64(i)
            for j in range(width):
                nonzero[j] |= bit if row[j] != 0.0 else np.uint64(0)
                negative[j] |= bit if row[j] < 0.0 else np.uint64(0)
        some[:, w] = nonzero
        minus[:, w] = negative


def _count_bits(_: Any, word: Any) -> Any:
    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


_bits_in: Any = intrinsic(_count_bits)


@_cached
def _count_products(some: Bits, minus: Bits, scale: float, out: Matrix) -> None:
    for j in range(len(some)):
        for k in range(j + 1):
            terms, negative = np.uint64(0), np.uint64(0)
            for w in range(some.shape[1]):
                both = some[j, w] & some[k, w]
                terms += _bits_in(both)
                negative += _bits_in(both & (minus[j, w] ^ minus[k, w]))
            out[j, k] = out[k, j] = scale * (np.float64(terms) - 2.0 * np.float64(negative))


@_cached
def _write_narrow(y: Matrix, most: float, sizes: Matrix, out: NDArray[np.float32]) -> int:
    for i in range(y.shape[0]):
        over = 0
        for j in range(y.shape[1]):
            sizes[j] += abs(y[i, j])
            over += not sizes[j] <= most
            out[i, j] = y[i, j]
        if over:
            return i
    return len(y)
