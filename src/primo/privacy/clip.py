"""Bounds made concrete: what a row is centred, scaled, cut and shortened by."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.errors import BoundsError

__all__ = ["Clip"]

Vector = NDArray[np.float64]

#: Norms and scales lie between 1e-100 and 1e100, so that squares of both stay inside float64.
_LARGEST = 1e100


@dataclass(frozen=True, kw_only=True)
class Clip:
    """Bounds made concrete for a block of known width; what `quantise` works with.

    A value v of column j becomes z = (v - centre[j]) / scale[j] (*scaled units*), is cut to its range
    if `box`, and the row is then shortened to `norm`. The range is [-1, 1] about `middle`, which is
    0 unless a centre was found elsewhere than in the middle of the stated range.
    """

    centre: Vector  # (width,)
    scale: Vector  # (width,) positive
    norm: float
    box: bool
    middle: Vector | None = None  # (width,) of the range, in scaled units; None: all 0

    def __post_init__(self) -> None:
        """Refuse numbers with which the arithmetic of a row could leave the ball, or float64."""
        if not (np.abs(self.centre) <= _LARGEST**2).all():
            raise BoundsError(f"every centre must be finite and at most {_LARGEST**2:g} in size")
        for name, value in (("scale (or half-width of a range)", self.scale), ("norm", self.norm)):
            if not ((np.asarray(value) >= 1 / _LARGEST) & (np.asarray(value) <= _LARGEST)).all():
                raise BoundsError(
                    f"every {name} must lie between {1 / _LARGEST:g} and {_LARGEST:g}"
                )
        if self.middle is not None and not (
            self.box and self.middle.shape == self.centre.shape and (np.abs(self.middle) <= 1).all()
        ):
            raise BoundsError("a centre must lie inside its range")

    def __eq__(self, other: object) -> bool:
        """Compare to the last bit; what dataclasses make would ask an array for its truth."""
        if not isinstance(other, Clip):
            return NotImplemented
        nothing = np.zeros(0)
        return (
            (self.norm, self.box) == (other.norm, other.box)
            and np.array_equal(self.centre, other.centre)
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(
                nothing if self.middle is None else self.middle,
                nothing if other.middle is None else other.middle,
            )
        )

    __hash__ = None  # type: ignore[assignment]  # arrays have none

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.centre)

    @property
    def is_plain(self) -> bool:
        """Whether scaled units are the data's own units, so that the affine step can be skipped."""
        return not self.centre.any() and bool((self.scale == 1.0).all())

    @property
    def ends(self) -> tuple[Vector, Vector]:
        """Lower and upper ends of each column in scaled units, (width,); infinite without ranges."""
        if not self.box:
            return np.full(self.width, -math.inf), np.full(self.width, math.inf)
        middle = np.zeros(self.width) if self.middle is None else self.middle
        return middle - 1.0, middle + 1.0

    @property
    def range_centre(self) -> Vector:
        """Middles of the ranges in data units; found centres are whole multiples of a power of two."""
        return self.centre if self.middle is None else self.centre + self.scale * self.middle

    @property
    def longest(self) -> float:
        """Length that no row exceeds once its values are cut to their ranges."""
        if not self.box:
            return math.inf
        reach = np.maximum(*map(np.abs, self.ends))
        return math.sqrt(math.fsum(reach * reach))

    def about(self, offset: Vector, scale: Vector | None = None) -> Clip:
        """Return the clip about another centre, given in scaled units, and in other scales, if any.

        A centre is kept inside its range. Ranges keep their scales.
        """
        if self.box:
            offset = np.clip(offset, *self.ends)
            if not offset.any():
                return self
            middle = (0.0 if self.middle is None else self.middle) - offset
            # Sums of rounded numbers may leave the range by a hair.
            middle = np.clip(middle, -1.0, 1.0)
            return replace(self, centre=self.centre + self.scale * offset, middle=middle)
        scales = self.scale if scale is None else self.scale * scale
        return replace(self, centre=self.centre + self.scale * offset, scale=scales)
