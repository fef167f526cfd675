"""Covariance inside blocks of features only: what a release holds where the whole matrix is not made."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReleasedBlocks"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedBlocks:
    """Covariance inside disjoint blocks of features, with noise where the features are private; public.

    Blocks are neighbouring columns and hold every feature once. A block of one feature is its sum of
    squares.
    """

    starts: NDArray[
        np.intp
    ]  # (m + 1,) borders: block k holds features starts[k] … starts[k + 1] - 1
    covariance: tuple[NDArray[np.float64], ...]  # m symmetric (w_k, w_k), scaled units, over rows
    sigma: NDArray[
        np.float64
    ]  # (m,) noise scale on a block's diagonal, σ/√2 off it; 0 where public
    sums: NDArray[
        np.float64
    ]  # (d,) Σ_i x_ij in scaled units, with noise; zeros without an intercept
    sums_sigma: float  # noise scale of each entry of `sums`
