"""Mean, deviation and longest row of a public block, to the last bit whatever the order of its rows.

What is in a public block may be known, and yet the order of its rows tell of private columns: files list
cases before controls. A sum of floats depends on that order in its last bits, and what is read off a
public block is published. So values are rounded to a grid about the middle of their column's range and
summed as integers: a function of the set of rows.

The deviation of a column with n rows is at least its range over √(2n), so steps of 2**-26 of half of
the range change it by less than one part in 10**5, even where one value is far from all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Walk", "longest_square", "mean_and_deviation"]

Vector = NDArray[np.float64]

#: Yields all rows of a block, some at a time; every call starts over.
Walk = Callable[[], Iterator[NDArray[Any]]]

_BITS = 26  # of a value on its grid: its square is exact in float64


def mean_and_deviation(walk: Walk) -> tuple[Vector, Vector] | None:
    """Return mean and standard deviation of every column, or None where they are not finite.

    Cost: two passes, and a few exact operations for each column.
    """
    lowest: Any = math.inf
    highest: Any = -math.inf
    for part in walk():
        lowest = np.minimum(lowest, part.min(axis=0))  # NaN wins
        highest = np.maximum(highest, part.max(axis=0))
    with np.errstate(all="ignore"):
        middle = (
            np.asarray(lowest, dtype=np.float64) / 2 + np.asarray(highest, dtype=np.float64) / 2
        )
        half = np.maximum(highest - middle, middle - lowest)
        if not np.isfinite(half * half).all():
            return None
    unit = np.ldexp(1.0, np.maximum(np.frexp(half)[1] - _BITS, -1022))
    rows, total, high, low = 0, np.zeros(len(unit), dtype=np.int64), 0, 0
    for part in walk():
        steps = np.rint((part - middle) / unit)
        total += steps.astype(np.int64).sum(axis=0)
        squares = (steps * steps).astype(np.int64)
        high = high + (squares >> _BITS).sum(axis=0)
        low = low + (squares & (2**_BITS - 1)).sum(axis=0)
        rows += len(part)
    sums, highs, lows = (np.asarray(part).tolist() for part in (total, high, low))
    squared = [
        rows * (above * 2**_BITS + below) - first**2
        for first, above, below in zip(sums, highs, lows, strict=True)
    ]
    mean = middle + unit * (total / rows)
    deviation = unit * np.array([math.sqrt(value) / rows for value in squared])
    return mean, deviation


def longest_square(walk: Walk, centre: Vector, scale: Vector) -> float:
    """Return the squared length of the longest row, scaled. Cost: one pass.

    Squares are added from left to right: NumPy's sums may add in an order that depends on the rows
    beside.
    """
    longest = 0.0
    for part in walk():
        squares = ((part - centre) / scale) ** 2
        longest = max(longest, float(np.cumsum(squares, axis=1)[:, -1].max()))
    return longest
