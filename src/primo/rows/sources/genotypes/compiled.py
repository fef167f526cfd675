"""Unpacking genotypes in one pass; compiled (needs numba). The values are those of `packed._unpack`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.jit import cached as _cached
from primo._util.jit import compiled as _compiled

__all__ = ["unpack"]

Bytes = NDArray[np.uint8]


@_compiled(inline="always")
def _copies(row: Bytes, shift: np.uint8, out: NDArray[np.int8]) -> None:
    for j in range(len(row)):
        code = (row[j] >> shift) & np.uint8(3)
        out[j] = np.int8(2) - np.int8(code - (code >> np.uint8(1)))


@_compiled(inline="always")
def _copies_or_nan(row: Bytes, shift: np.uint8, out: NDArray[np.float32]) -> None:
    for j in range(len(row)):
        code = (row[j] >> shift) & np.uint8(3)
        copies = np.float32(2) - np.float32(code - (code >> np.uint8(1)))
        out[j] = np.float32(np.nan) if code == np.uint8(1) else copies


@_cached
def _unpack(packed: Bytes, first: int, out: NDArray[np.int8]) -> None:
    for i in range(len(out)):
        place = first + i
        _copies(packed[place // 4], np.uint8(2 * (place % 4)), out[i])


@_cached
def _unpack_or_nan(packed: Bytes, first: int, out: NDArray[np.float32]) -> None:
    for i in range(len(out)):
        place = first + i
        _copies_or_nan(packed[place // 4], np.uint8(2 * (place % 4)), out[i])


@_cached
def _some_missing(packed: Bytes, first: int, people: int) -> bool:
    for i in range(people):
        place = first + i
        row, low = packed[place // 4], np.uint8(1 << (2 * (place % 4)))
        found = np.uint8(0)
        for j in range(len(row)):
            found |= row[j] & ~(row[j] >> np.uint8(1)) & low
        if found:
            return True
    return False


def unpack(packed: Bytes, first: int, people: int) -> NDArray[Any]:
    """Return the copies that some people carry: int8, or float32 with NaN if some are missing."""
    if not packed.flags.c_contiguous or not 0 <= first <= first + people <= 4 * len(packed):
        raise ValueError("packed genotypes have the wrong shape or layout")  # a bug
    if _some_missing(packed, first, people):
        floats = np.empty((people, packed.shape[1]), dtype=np.float32)
        _unpack_or_nan(packed, first, floats)
        return floats
    copies = np.empty((people, packed.shape[1]), dtype=np.int8)
    _unpack(packed, first, copies)
    return copies
