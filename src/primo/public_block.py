"""A public block of rows as the mechanism saw it: scaled, clipped, column by column.

Only for the block that the protection leaves public (features under `outcomes`, outcomes under
`features`): the projections and the row space are post-processing that needs it again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.bounds import Clip
from primo.estimate.rowspace import Columns

__all__ = ["public_columns", "public_means"]

Vector = NDArray[np.float64]

_BLOCK = 1024


def public_columns(rows: NDArray[Any], clip: Clip, *, means: Vector | None = None) -> Columns:
    """Return the columns of the public `rows` in scaled units, less their `means` if given.

    Cost: one pass for the lengths of the rows, and one for every call of the result; memory of one
    block of columns.
    """
    shorten = _shortening(rows, clip)

    def columns() -> Iterator[tuple[slice, Vector]]:
        for start in range(0, clip.width, _BLOCK):
            span = slice(start, min(start + _BLOCK, clip.width))
            block = _scaled(rows[:, span], clip, span) * shorten[:, None]
            yield span, block if means is None else block - means[span]

    return columns


def public_means(rows: NDArray[Any], clip: Clip) -> Vector:
    """Return the mean of every clipped column in scaled units."""
    return np.concatenate([block.mean(axis=0) for _, block in public_columns(rows, clip)()])


def _shortening(rows: NDArray[Any], clip: Clip) -> Vector:
    squares = np.zeros(len(rows))
    for start in range(0, clip.width, _BLOCK):
        span = slice(start, start + _BLOCK)
        block = _scaled(rows[:, span], clip, span)
        squares += np.einsum("ij,ij->i", block, block)
    return np.asarray(clip.norm / np.maximum(np.sqrt(squares), clip.norm))


def _scaled(block: NDArray[Any], clip: Clip, span: slice) -> Vector:
    """Scaled units; NaN counts as the centre, which is what `missing="centre"` made of it."""
    scaled = np.nan_to_num((block - clip.centre[span]) / clip.scale[span], posinf=0.0, neginf=0.0)
    return np.clip(scaled, -1.0, 1.0) if clip.box else scaled
