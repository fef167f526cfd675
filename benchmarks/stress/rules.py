"""Public bounds by rule. A rule sees a public panel (rows that are scored, never fitted), or no row.

Norms are stated as multiples of the typical length of a row in scaled units,
√Σ(sd² + (mean − middle)²) / half-width, which is the root mean square over the panel. Lengths gather
around it the more columns there are, so the default multiple is 1.15 + 1/√columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primo.privacy.bounds import Bounds

__all__ = [
    "Rule",
    "centred",
    "fixed",
    "frequencies",
    "from_zero",
    "plain",
    "ranged",
    "without_offset",
]

Matrix = NDArray[np.float64]
Rule = Callable[[Matrix], Bounds]


def typical_length(panel: Matrix, centre: ArrayLike, scale: ArrayLike) -> float:
    """Return the root mean squared length of a row in scaled units."""
    scaled = (panel - np.asarray(centre)) / np.asarray(scale)
    return float(np.sqrt(np.mean(np.sum(scaled**2, axis=1))))


def centred(multiple: float | None = None, *, off: float = 0.0) -> Rule:
    """Scale by the panel's standard deviations; centre so many of them beside its means."""

    def bounds(panel: Matrix) -> Bounds:
        scale = _spread(panel)
        return _scaled(panel, panel.mean(axis=0) + off * scale, scale, multiple)

    return bounds


def from_zero(multiple: float | None = None) -> Rule:
    """Scale by the panel's standard deviations and leave the centre at 0, wherever the means are."""
    return lambda panel: _scaled(panel, np.zeros(panel.shape[1]), _spread(panel), multiple)


def _scaled(panel: Matrix, centre: Matrix, scale: Matrix, multiple: float | None) -> Bounds:
    norm = _norm(panel, centre, scale, multiple)
    return Bounds(centre=centre, scale=scale, norm=norm)


def _norm(panel: Matrix, centre: ArrayLike, scale: ArrayLike, multiple: float | None) -> float:
    ample = 1.15 + 1 / panel.shape[1] ** 0.5 if multiple is None else multiple
    return ample * typical_length(panel, centre, scale)


def _spread(panel: Matrix) -> Matrix:
    spread = panel.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def plain(multiple: float | None = None) -> Rule:
    """Give a row norm alone, in the data's own units."""
    return lambda panel: Bounds(norm=_norm(panel, 0.0, 1.0, multiple))


def ranged(lower: ArrayLike, upper: ArrayLike, multiple: float | None = None) -> Rule:
    """Give a range for every column; a norm too if a multiple of the typical length is stated."""

    def bounds(panel: Matrix) -> Bounds:
        low, high = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        if multiple is None:
            return Bounds(lower=low, upper=high)
        # A longer norm than the range allows is the range alone.
        norm = multiple * typical_length(panel, (low + high) / 2, (high - low) / 2)
        return Bounds(lower=low, upper=high, norm=norm)

    return bounds


def without_offset(lower: float, upper: float) -> Rule:
    """Leave the offset of the means out of the norm, as README once advised: many rows are shortened."""

    def bounds(panel: Matrix) -> Bounds:
        norm = 1.2 * float(np.sqrt(np.sum(panel.var(axis=0)))) / ((upper - lower) / 2)
        return Bounds(lower=lower, upper=upper, norm=norm)

    return bounds


def frequencies() -> Rule:
    """Centre and scale genotypes by the allele frequencies of the panel."""
    return lambda panel: Bounds.from_frequencies(np.clip(panel.mean(axis=0) / 2, 0.0, 1.0))


def fixed(bounds: Bounds) -> Rule:
    """Give these bounds, whatever the panel."""
    return lambda panel: bounds
