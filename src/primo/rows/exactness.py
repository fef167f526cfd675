"""A probe: whether BLAS adds integers exactly on this machine, as `rows.moments` assumes.

Products of quantised rows are sums of integers below 2**53 (2**24 in single precision). Every BLAS that
multiplies and adds in the precision it is asked for gives them exactly, in whatever order. One that
takes fewer digits inside (bfloat16 units, emulated precision) would not, and then the sensitivity that
the guarantee rests on would not be that of the numbers released.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.threads import blas_threads

__all__ = ["Check", "probe"]

Product = Callable[[Any, Any], Any]

_ROW = 2**20  # the largest norm of a quantised row
_SHAPES = ((8192, 1), (8192, 7), (8192, 64), (2048, 200), (333, 129))  # rows, columns


@dataclass(frozen=True, kw_only=True)
class Check:
    """One product, and whether it came out exactly."""

    name: str
    exact: bool


def probe(product: Product = np.matmul) -> list[Check]:
    """Multiply integers as large as any release multiplies them, and compare with integer arithmetic.

    Reads no data. Cost: below a second.
    """
    rng = np.random.default_rng(20)
    checks = []
    for rows, width in _SHAPES:
        largest = int(_ROW / np.sqrt(width))
        x = rng.integers(-largest, largest, size=(rows, width), endpoint=True)
        y = rng.integers(largest // 2, largest, size=(rows, max(1, width // 2)), endpoint=True) | 1
        for threads in (1, None):
            with blas_threads(threads):
                exact = _agree(product, x, y, np.float64) and _agree(product, x, x, np.float64)
            many = "one thread" if threads == 1 else "all threads"
            checks.append(Check(name=f"float64, {rows} x {width}, {many}", exact=exact))
    signs = rng.integers(-1, 1, size=(4096, 65), endpoint=True)
    small = rng.integers(0, 2**12, size=(4096, 33)) | 1  # Σ|y| stays below 2**24
    checks.append(Check(name="float32, 4096 x 65", exact=_agree(product, signs, small, np.float32)))
    return checks


def _agree(
    product: Product, x: NDArray[np.int64], y: NDArray[np.int64], kind: type[np.floating[Any]]
) -> bool:
    """Whether xᵀy in floats is xᵀy in integers (which NumPy computes without BLAS)."""
    found = product(x.T.astype(kind), y.astype(kind))
    return bool(np.array_equal(np.asarray(found, dtype=np.float64), (x.T @ y).astype(np.float64)))
