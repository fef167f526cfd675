"""Loops over cells, compiled (needs numba): columns transposed to rows, and plain text to numbers.

Both write exactly the bits that Arrow's conversion gives, or report that they cannot. Compiled code
checks no index: `tabular.assembled` and `tabular.cells` check the arguments before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.numpy_support import carray
from numpy.typing import NDArray

from primo._util.jit import cached as _cached
from primo._util.jit import compiled as _compiled

__all__ = [
    "find_breaks",
    "find_stops",
    "join_heads",
    "parse_rows",
    "transpose_columns",
]

Addresses = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

#: A tile of rows × columns stays in the first-level cache while it is transposed.
_ROWS, _COLUMNS = 16, 64

_STRETCH = 256  # bytes that are searched for a line break at once

_NEWLINE, _RETURN, _MINUS, _PLUS, _POINT, _DIGIT_0 = 10, 13, 45, 43, 46, 48
_SMALL_E, _LARGE_E = 101, 69

#: Indexes into a text are unsigned: numba tests a signed index before each use, whether it counts from
#: the end, and that takes most of the time.
_ONE = np.uint64(1)
_ZERO = np.int64(0)

#: Powers of ten that float64 holds exactly.
_MOST = 22
_POWERS = np.array([float(10**k) for k in range(_MOST + 1)])
_EXACT = 2**53  # integers up to here, too
_DIGITS = 18  # fit into 63 bits
_SPLIT = 2.0**27 + 1  # cuts a float64 into halves whose products are exact


def _at(_: Any, address: Any) -> Any:
    """Return the memory at an address, for `carray`."""

    def generate(_: Any, builder: Any, __: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), generate


_pointer: Any = intrinsic(_at)


@_cached
def transpose_columns(
    columns: Addresses,
    masks: Addresses,
    bits: NDArray[np.int64],
    start: int,
    missing: NDArray[np.float64],
    out: NDArray[Any],
) -> None:
    """Write rows, from `start` on, of the columns at these addresses into `out`, which is C-contiguous.

    Columns have the type of `out`. A value becomes NaN if bit `bits[j]` + row of the mask of column j is
    unset (address 0: there is no mask), or if it equals one of the `missing` numbers.
    """
    rows, width = out.shape
    stop = start + rows
    for top in range(0, rows, _ROWS):
        end = min(top + _ROWS, rows)
        for left in range(0, width, _COLUMNS):
            for j in range(left, min(left + _COLUMNS, width)):
                column = carray(_pointer(columns[j]), (stop,), out.dtype)
                for i in range(top, end):
                    out[i, j] = column[start + i]
                for k in range(len(missing)):
                    for i in range(top, end):
                        if column[start + i] == missing[k]:
                            out[i, j] = np.nan
                if masks[j] != 0:
                    first = bits[j] + start
                    mask = carray(_pointer(masks[j]), ((first + rows + 7) // 8,), np.uint8)
                    for i in range(top, end):
                        if not (mask[(first + i) >> 3] >> ((first + i) & 7)) & 1:
                            out[i, j] = np.nan


@_compiled()
def _digits(text: Bytes, place: Any, number: Any) -> tuple[Any, Any]:
    """Append digits to a number, which may overflow; return it and the place after them."""
    digit = np.uint8(text[place] - 48)  # more than 9 for any other character
    while digit < 10:
        number = number * 10 + np.int64(digit)
        place += _ONE
        digit = np.uint8(text[place] - 48)
    return number, place


@_compiled()
def _number(text: Bytes, start: Any) -> tuple[float, Any]:
    """Return a plain decimal number and the place after it; `start` itself if there is none.

    Plain means: no exponent, and digits and a power of ten that float64 holds exactly. Dividing one
    by the other rounds once, so the result is correctly rounded (Clinger 1990, "How to read
    floating-point numbers accurately"). `text` ends with a character that is not part of a number.
    """
    place = start
    negative = text[place] == _MINUS
    if negative:
        place += _ONE
    first = place
    mantissa, place = _digits(text, place, _ZERO)
    digits, after = np.int64(place - first), _ZERO
    if text[place] == _POINT:
        place += _ONE
        first = place
        mantissa, place = _digits(text, place, mantissa)
        after = np.int64(place - first)
        digits += after
        if after == 0:
            return np.nan, start
    if digits == 0 or digits > _DIGITS or mantissa > _EXACT:
        return np.nan, start
    letter = text[place]  # read once: otherwise it takes three times as long
    if letter in (_SMALL_E, _LARGE_E):
        return np.nan, start
    value = np.float64(mantissa) / _POWERS[after]
    return -value if negative else value, place


@_compiled()
def _product(a: float, b: float) -> tuple[float, float]:
    """Return a product and its rounding error (Dekker 1971)."""
    product = a * b
    high_a, high_b = _SPLIT * a, _SPLIT * b
    high_a, high_b = high_a - (high_a - a), high_b - (high_b - b)
    low_a, low_b = a - high_a, b - high_b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


@_compiled()
def _rounded(mantissa: Any, power: Any) -> float:
    """Return mantissa·10**power rounded once, or NaN where the direction of rounding is uncertain.

    Digits beyond 2**53, products and quotients are rounded on the way; `rest` is the sum of these
    rounding errors, to within a part in 2**102 of the whole. If both ends of a wider range round to the
    same number, so does every number between them.
    """
    value: Any = np.float64(mantissa)
    if mantissa <= _EXACT and abs(power) <= _MOST:
        return float(value / _POWERS[-power] if power < 0 else value * _POWERS[power])
    rest = np.float64(mantissa - np.int64(value))
    while power != 0:
        step = max(-_MOST, min(power, _MOST))
        scale = _POWERS[abs(step)]
        if step < 0:
            quotient = value / scale
            product, error = _product(quotient, scale)
            # The remainder of a rounded quotient is always a float64.
            value, rest = quotient, (((value - product) - error) + rest) / scale
        else:
            value, error = _product(value, scale)
            rest = error + rest * scale
        power -= step
    doubt = abs(value) * 2.0**-100
    low, up = value + (rest - doubt), value + (rest + doubt)
    return low if low == up else np.nan


@_compiled()
def _long_number(text: Bytes, start: Any) -> tuple[float, Any]:
    """Return the same for a number with an exponent, or with 16 to 18 digits without leading zeros.

    It is a separate function because one function for both takes three times as long.
    """
    place = start
    negative = text[place] == _MINUS
    if negative:
        place += _ONE
    first = place
    mantissa, place = _digits(text, place, _ZERO)
    digits, power = np.int64(place - first), _ZERO
    if text[place] == _POINT:
        place += _ONE
        begin = place
        mantissa, place = _digits(text, place, mantissa)
        power = -np.int64(place - begin)
        digits -= power
        if power == 0:
            return np.nan, start
    while digits > _DIGITS and (text[first] == _DIGIT_0 or text[first] == _POINT):
        digits -= text[first] == _DIGIT_0
        first += _ONE
    if digits == 0 or digits > _DIGITS:
        return np.nan, start
    letter = text[place]
    if letter in (_SMALL_E, _LARGE_E):
        place += _ONE
        minus = text[place] == _MINUS
        if minus or text[place] == _PLUS:
            place += _ONE
        begin = place
        exponent, place = _digits(text, place, _ZERO)
        power += -exponent if minus else exponent
        if not 0 < np.int64(place - begin) < 4:
            return np.nan, start
    if abs(power) > 2 * _MOST:
        return np.nan, start
    value = _rounded(mantissa, power)
    if np.isnan(value):
        return np.nan, start
    return -value if negative else value, place


@_compiled()
def _end(text: Bytes, place: Any, separator: int, quote: int) -> Any:
    """Return where a cell ends: at a separator, a line break, or something that needs a parser."""
    while text[place] != separator and text[place] != _NEWLINE:
        odd = text[place] == _RETURN and text[place + _ONE] != _NEWLINE
        if odd or text[place] == quote:
            return place
        place += _ONE
    return place


@_compiled()
def _is_word(text: Bytes, start: Any, stop: Any, words: Bytes, ends: NDArray[np.int64]) -> bool:
    """Whether a cell is one of some words, which lie one after the other."""
    begin, size = 0, np.int64(stop - start)
    for k in range(len(ends)):
        if ends[k] - begin == size:
            same = True
            for i in range(size):
                same &= words[begin + i] == text[start + np.uint64(i)]
            if same:
                return True
        begin = ends[k]
    return False


@_compiled()
def _or_nan(value: float, missing: NDArray[np.float64]) -> float:
    for k in range(len(missing)):
        if value == missing[k]:
            return np.nan
    return value


@_cached
def parse_rows(
    text: Bytes,
    separator: int,
    quote: int,
    target: NDArray[np.int64],
    words: Bytes,
    ends: NDArray[np.int64],
    missing: NDArray[np.float64],
    out: NDArray[np.float64],
) -> Any:
    """Write as many lines of text as `out` has rows; return the place after them.

    Cell c of a line goes to the column `target[c]`, or nowhere if that is negative. Cells that are one
    of the `words`, and numbers that are in `missing`, become NaN. Returns -1 if a line has another
    number of cells, or if a cell is neither a word nor a plain number, or holds the character `quote`
    (negative: no character is special). `text` ends with a line break.
    """
    last, place = len(target) - 1, np.uint64(0)
    for i in range(len(out)):
        if place >= len(text):
            return -1
        for c in range(last + 1):
            j, start = target[c], place
            value, after = _number(text, start) if j >= 0 else (np.nan, start)
            if after == start or text[after] != separator or c == last:
                if after == start and j >= 0:
                    value, after = _long_number(text, start)
                place = _end(text, after, separator, quote)
                if text[place] != (_NEWLINE if c == last else separator):
                    return -1
                stop = place - _ONE if place > start and text[place - _ONE] == _RETURN else place
                if after == start or after != stop:
                    if j >= 0 and not _is_word(text, start, stop, words, ends):
                        return -1
                    value = np.nan
                after = place
            place = after + _ONE
            if j >= 0:
                out[i, j] = _or_nan(value, missing)
    return np.int64(place)


@_cached
def find_breaks(text: Bytes, places: NDArray[np.intp]) -> int:
    """Write where line breaks are, as many as `places` has room for, and return how many there are."""
    found = 0
    for begin in range(0, len(text), _STRETCH):
        stretch = text[begin : begin + _STRETCH]
        some = False
        for i in range(len(stretch)):
            some |= stretch[i] == _NEWLINE
        if some:
            for i in range(len(stretch)):
                if stretch[i] == _NEWLINE:
                    if found < len(places):
                        places[found] = begin + i
                    found += 1
    return found


@_cached
def join_heads(text: Bytes, starts: NDArray[np.intp], stops: NDArray[np.intp], out: Bytes) -> None:
    """Write these parts of a text one after the other, a line break after each."""
    place = 0
    for i in range(len(starts)):
        for k in range(starts[i], stops[i]):
            out[place] = text[k]
            place += 1
        out[place] = _NEWLINE
        place += 1


@_cached
def find_stops(
    text: Bytes,
    ends: NDArray[np.intp],
    separator: int,
    cells: int,
    first: int,
    stops: NDArray[np.intp],
) -> bool:
    """Write where the `first` cells of each line stop; False if a line does not have `cells` cells.

    Lines end at `ends`, and the first one begins at 0; `first` is less than `cells`.
    """
    sign, start = np.uint8(separator), 0
    for i in range(len(ends)):
        line = text[start : ends[i]]
        count = 0
        for k in range(len(line)):
            count += line[k] == sign
        if count != cells - 1:
            return False
        left = first
        for k in range(len(line)):
            left -= line[k] == sign
            if left == 0:
                stops[i] = start + k
                break
        start = ends[i] + 1
    return True
