"""Blocks of features in the file of a release: their borders and noise, and the released numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.blocks import BlockGrid
from primo.released.blocks import ReleasedBlocks
from primo.released.moments import ReleasedMoments

__all__ = ["block_arrays", "read_block_grid", "read_blocks"]

_GRID = ("starts", "radius_squared", "unit", "variance_bits")


def block_arrays(release: ReleasedMoments, grid: dict[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays to store: those of the grid, the lower triangle of every block, and the sums."""
    if release.blocks is None:
        raise ValueError("the plan has blocks, and the release has none")
    if not np.array_equal(release.blocks.starts, grid["starts"]):
        raise InputError(
            "the blocks of this release are not those that were released: a panel has supplied linkage",
            remedy="save the release as it was made; a panel can be attached again after loading",
        )
    lower = [square[np.tril_indices(len(square))] for square in release.blocks.covariance]
    return {
        **{f"blocks_{name}": grid[name] for name in _GRID},
        "blocks_covariance": np.concatenate(lower),
        "blocks_sums": release.blocks.sums,
    }


def read_block_grid(arrays: dict[str, Any]) -> BlockGrid:
    """Return what was stored of the plan; `planning.guarantee` decides whether it is a plan."""
    grid = BlockGrid(**{name: arrays[f"blocks_{name}"] for name in _GRID})
    if any(getattr(grid, name).dtype != np.int64 for name in _GRID) or grid.starts.ndim != 1:
        raise ValueError("the blocks of features are damaged")
    return grid


def read_blocks(plan: Plan, arrays: dict[str, Any]) -> ReleasedBlocks:
    """Return the released blocks; scales are those of the plan, which has been checked."""
    grid = plan.blocks
    values, sums = arrays["blocks_covariance"], arrays["blocks_sums"]
    if grid is None:
        raise ValueError("the blocks of features do not fit the plan")
    for name, array, shape in (("covariance", values, (grid.numbers,)), ("sums", sums, (plan.d,))):
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"the {name} of the blocks of features do not fit the plan")
    covariance, place = [], 0
    for width in grid.widths.tolist():
        lower = np.tril_indices(width)
        square = np.empty((width, width))
        square[lower] = values[place : place + len(lower[0])]
        square.T[lower] = square[lower]
        covariance.append(square)
        place += len(lower[0])
    private = plan.protection.features_private
    return ReleasedBlocks(
        starts=grid.starts.astype(np.intp),
        covariance=tuple(covariance),
        sigma=grid.steps_sigma * plan.feature_step**2 if private else np.zeros(grid.count),
        sums=sums,
        sums_sigma=plan.feature_sum_sigma,
    )
