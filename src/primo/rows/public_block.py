"""A public block of rows as the mechanism saw it: scaled, clipped, column by column.

Only for the block that the protection leaves public (features under `outcomes`, outcomes under
`features`): the projections and the row space are post-processing that uses it after the noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.bounds import Clip
from primo.privacy.protection import Protection
from primo.rows.sources.base import Block

__all__ = ["PublicColumns", "PublicRows", "in_public_order", "public_block", "public_means"]

Vector = NDArray[np.float64]

_BLOCK = 1024


def public_block(plan: Plan) -> Literal["features", "outcomes"] | None:
    """Say which public block is needed again after the noise is drawn, if any."""
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE:
        return "features"
    if plan.association == "projection" and plan.protection is Protection.FEATURES:
        return "outcomes"
    return None  # under `outcomes` the projection needs the exact covariance only


class PublicRows:
    """The rows of a public block, kept while the moments are folded: nothing is read twice.

    Only the public columns are copied. A view would keep the private columns of its block alive.
    """

    def __init__(self, block: Literal["features", "outcomes"]) -> None:
        self.block: Literal["features", "outcomes"] = block
        self._parts: list[NDArray[Any]] = []

    def __repr__(self) -> str:
        """Show which block it is."""
        return f"<PublicRows of the {self.block}>"

    def add(self, block: Block) -> None:
        """Keep the public columns of the next rows."""
        self.extend(np.array(getattr(block, self.block)))

    def extend(self, rows: NDArray[Any]) -> None:
        """Keep the next rows, which nobody else writes to."""
        self._parts.append(rows)

    def rows(self) -> NDArray[Any]:
        """Return all rows that were kept, in order."""
        self._parts = [np.concatenate(self._parts)]
        return self._parts[0]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class PublicColumns:
    """Columns of a public block in scaled units; calling it makes one pass from left to right."""

    rows: NDArray[Any]  # (n, width) in the data's own units
    clip: Clip
    shorten: Vector  # (n,) what each row is multiplied by to stay within the norm
    means: Vector | None  # (width,) taken off each column, if given

    @classmethod
    def of(cls, rows: NDArray[Any], clip: Clip, *, means: Vector | None = None) -> Self:
        """Compute the factor that shortens each row.

        Cost: one pass, and memory of one block of columns.
        """
        squares = np.zeros(len(rows))
        for span in _spans(clip.width):
            block = _scaled(rows[:, span], clip, span)
            squares += np.einsum("ij,ij->i", block, block)
        shorten = clip.norm / np.maximum(np.sqrt(squares), clip.norm)
        return cls(rows=rows, clip=clip, shorten=shorten, means=means)

    def __call__(self) -> Iterator[tuple[slice, Vector]]:
        """Yield blocks of columns."""
        for span in _spans(self.clip.width):
            block = _scaled(self.rows[:, span], self.clip, span) * self.shorten[:, None]
            yield span, block if self.means is None else block - self.means[span]


def in_public_order(rows: NDArray[Any]) -> NDArray[Any]:
    """Return a copy of public rows, sorted by their bytes: equal for all orders of the same rows.

    The order of the rows may tell of private columns (files list cases before controls), and what is
    computed of them in floats depends on their order in its last bits.
    """
    whole = np.ascontiguousarray(rows)
    if not whole.size:
        return whole.copy()
    each = whole.view(np.dtype((np.void, whole.shape[1] * whole.itemsize)))[:, 0]
    return np.asarray(whole[np.argsort(each)])


def public_means(rows: NDArray[Any], clip: Clip) -> Vector:
    """Return the mean of every clipped column in scaled units."""
    return np.concatenate([block.mean(axis=0) for _, block in PublicColumns.of(rows, clip)()])


def _spans(width: int) -> Iterator[slice]:
    for start in range(0, width, _BLOCK):
        yield slice(start, min(start + _BLOCK, width))


def _scaled(block: NDArray[Any], clip: Clip, span: slice) -> Vector:
    """Scaled units; NaN counts as the centre, which is what `missing="centre"` made of it."""
    scaled = np.nan_to_num((block - clip.centre[span]) / clip.scale[span], posinf=0.0, neginf=0.0)
    if not clip.box:
        return scaled
    lower, upper = clip.ends
    return np.clip(scaled, lower[span], upper[span])
