"""Products with features whose values are all -u, 0 or u: exact, in less than half the time.

Genotypes and haplotypes that are cut to one common range have such values: u times a sign. The constant
of an intercept is c times the sign 1.

- XᵀX is u² (u·c and c² in the row and column of the constant) times sums of -1, 0 and 1, which are
  counted.
- XᵀY is u times sums of -y, 0 and y, computed in float32, which holds every integer up to 2**24. Over
  rows where Σ|y| is at most 2**24 in every column, no partial sum is larger, in any order of summation,
  so none is rounded.

The products with u, c and u², and the sums of such sums, are computed in float64 and are exact, as are
those of any block.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.rows.quantise import Quantiser

__all__ = ["Signs"]

Matrix = NDArray[np.float64]
Narrow = NDArray[np.float32]

_EXACT = 2**24  # integers up to here in float32
_STRIPE = 2**8  # rows quantised at a time: they stay in the cache
_RUN = 2**10  # most rows that are multiplied by their outcomes at a time
_FEW = 2**6  # with fewer rows, adding up the products takes longer than float32 saves


@dataclass(repr=False, eq=False)
class Signs:
    """One worker's buffers for blocks of at most `rows` rows and `l` outcomes; `unit` is u."""

    features: Quantiser
    unit: int
    rows: int
    l: int
    kernels: ModuleType

    def __post_init__(self) -> None:
        width = self.features.width
        self._x = np.empty((min(self.rows, _STRIPE), width))
        self._signs = np.empty((self.rows, width), dtype=np.float32)
        self._y = np.empty((min(self.rows, _RUN), self.l), dtype=np.float32)
        self._sums = np.empty((width, self.l), dtype=np.float32)
        self._units = np.full(width, float(self.unit))
        if self.features.constant is not None:
            self._units[-1] = self.features.constant

    def of(self, rows: NDArray[Any]) -> Narrow | None:
        """Quantise a block of features and return its signs, or None if it is not u times signs."""
        signs = self._signs[: len(rows)]
        for start in range(0, len(rows), _STRIPE):
            part = signs[start : start + _STRIPE]
            x = self._x[: len(part)]
            self.features(rows[start : start + _STRIPE], x)
            if self.features.constant is not None:
                x[:, -1] = self.unit  # treated as a sign; its own unit is applied below
            if not self.kernels.write_signs(x, self.unit, part):
                return None
        return signs

    def integers(self, signs: Narrow, out: Matrix) -> None:
        """Write the integer rows that signs stand for."""
        np.multiply(signs, self._units, out=out)

    def covariance(self, signs: Narrow, out: Matrix) -> None:
        """Write XᵀX."""
        self.kernels.multiply_signs(signs, float(self.unit**2), out)
        if self.features.constant is not None:
            counts = out[-1] / float(self.unit**2)  # exact: a multiple of u²
            out[-1] = out[:, -1] = counts * self._units * self._units[-1]

    def association(self, signs: Narrow, y: Matrix, out: Matrix) -> None:
        """Write XᵀY; rows whose outcomes are too large for float32 are multiplied in float64."""
        out.fill(0.0)
        start, limit = 0, _EXACT if _float32_is_exact() else 0
        while start < len(signs):
            most = slice(start, start + _RUN)
            rows = self.kernels.write_narrow(y[most], limit, self._y[: len(y[most])])
            if rows >= min(_FEW, len(y[most])):
                np.matmul(signs[start : start + rows].T, self._y[:rows], out=self._sums)
                np.add(out, self._sums, out=out)
                start += rows
            else:
                np.add(out, signs[most].T.astype(np.float64) @ y[most], out=out)
                start += _RUN
        np.multiply(out, self._units[:, None], out=out)


@cache
def _float32_is_exact(multiply: Callable[..., Any] = np.matmul) -> bool:
    """Whether the installed BLAS computes in full float32; some can be set to a lower precision.

    Tested with integers of 24 bits, each by itself, and with sums of one such integer and many ones. The
    integers are arbitrary and not near a power of two: those would also come out right as the sum of two
    or three shorter numbers.
    """
    each = np.random.default_rng(0).integers(2**22, 2**23, _RUN) * 2.0 + 1
    many = np.ones(_RUN)
    many[0] = 2**24 - _RUN + 1
    for l in (1, 64):  # BLAS multiplies a vector by other code than a matrix
        for signs, y in ((np.eye(_RUN)[:, :64], each), (np.ones((_RUN, 64)), many)):
            outcomes = np.repeat(y[:, None], l, axis=1)
            found = multiply(signs.astype(np.float32).T, outcomes.astype(np.float32))
            if not np.array_equal(found, signs.T @ outcomes):
                return False
    return True
