"""Clip a block of rows and put it on the integer grid, so that sums and bounds are exact.

Floating-point sums have a larger sensitivity than real ones (Casacuberta et al. 2022). Here a row
becomes a vector of integers whose squared norm is checked *as an integer*; everything after this
point is exact. The map works on each row by itself, which is all that the sensitivity needs: however
odd a row is, what is counted of it lies in the ball.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.bounds import Clip
from primo.errors import InputError

__all__ = ["Quantiser"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Quantiser:
    """Rows in data units to integer rows of squared norm at most `radius_squared`.

    `step` is the grid step in scaled units. A `constant` (the intercept, in steps) is appended to each
    row and counted in its norm. `missing` is "error" or "centre".
    """

    clip: Clip
    step: float
    radius_squared: int
    constant: int | None
    missing: str
    block: str  # "features" or "outcomes", for messages

    @property
    def width(self) -> int:
        """Number of integer columns, with the constant."""
        return self.clip.width + (self.constant is not None)

    def __call__(self, rows: NDArray[Any], out: Matrix) -> None:
        """Write the integer form of `rows` (m, width) into `out` (m, width with constant).

        Guarantee: every row of `out` holds integers and has squared norm at most `radius_squared`,
        whatever the row holds; or InputError, which names no value, if it is not finite.
        Cost: about five passes over the block, so hand it blocks that fit the cache.
        """
        z = out[:, : self.clip.width]
        # A warning would depend on private values, and every case it could mean is dealt with.
        with np.errstate(all="ignore"):
            self._quantise(rows, z)
        if self.constant is not None:
            out[:, -1] = self.constant

    def _quantise(self, rows: NDArray[Any], z: Matrix) -> None:
        values = self._scaled(rows, z)
        # A norm that is not finite is how missing values and numbers near 1e308 are found.
        squares = _squares(values)
        if not np.isfinite(squares).all():
            z[...] = values
            values = z
            self._repair(rows, z, ~np.isfinite(squares))
            squares = _squares(z)
        if self.clip.box:
            np.clip(values, -1.0, 1.0, out=z)
            values = z
            squares = _squares(z)
        self._to_grid(values, squares, z)

    def _scaled(self, rows: NDArray[Any], z: Matrix) -> Matrix:
        """Rows in scaled units: the rows themselves where nothing has to be done, else `z`."""
        if not self.clip.is_plain:
            np.subtract(rows, self.clip.centre, out=z)
            np.multiply(z, 1.0 / self.clip.scale, out=z)
            return z
        if rows.dtype == np.float64:
            return rows
        z[...] = rows
        return z

    def _to_grid(self, values: Matrix, squares: NDArray[np.float64], z: Matrix) -> None:
        """Shorten rows to the norm, round toward zero, and check the norm in integers."""
        shorten = self.clip.norm / np.maximum(np.sqrt(squares), self.clip.norm)
        np.multiply(values, (shorten / self.step)[:, None], out=z)
        np.trunc(z, out=z)
        limit = self.radius_squared - (self.constant or 0) ** 2
        # Sums of squares of integers below 2**53 are exact in float64, in any order. What is not
        # *shown* to be inside counts as outside, so NaN cannot slip through.
        lengths = _squares(z)
        over = np.flatnonzero(~(lengths <= limit))
        if len(over):
            # Float shortening may end a hair outside, or the caller's array changed meanwhile.
            # One step toward zero in every coordinate always shrinks, so this ends.
            shrink = np.minimum(1.0, np.sqrt(limit / lengths[over]))
            z[over] = np.trunc(np.nan_to_num(z[over] * shrink[:, None], posinf=0.0, neginf=0.0))
            while len(over := over[_squares(z[over]) > limit]):
                z[over] -= np.sign(z[over])

    def _repair(self, rows: NDArray[Any], z: Matrix, suspect: NDArray[np.bool_]) -> None:
        """Deal with rows whose norm is not finite: missing values, or numbers near 1e308."""
        for i in np.flatnonzero(suspect):
            row = np.asarray(rows[i], dtype=np.float64)
            finite = np.isfinite(row)
            if not finite.all() and self.missing != "centre":
                raise InputError(
                    f"the {self.block} contain NaN or infinity. Clean them, or pass "
                    'missing="centre" to count such a value as the public centre of its column. '
                    "(Which row it is stays private)"
                )
            # Halving before subtracting keeps the difference of two huge numbers finite, and
            # capping keeps the square finite; such a row is shortened to the norm in any case.
            halves = row / 2 - self.clip.centre / 2
            scaled = np.clip(halves / self.clip.scale, -1e150, 1e150) * 2
            largest = np.abs(scaled[finite]).max(initial=0.0)
            cap = 1e120 / math.sqrt(self.clip.width)
            shrink = 1.0 if largest <= cap or self.clip.box else cap / largest
            z[i] = np.where(finite, scaled * shrink, 0.0)


def _squares(rows: Matrix) -> NDArray[np.float64]:
    """Return the squared norm of each row; einsum lets other threads run, BLAS dots do not."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows)
    return squares
