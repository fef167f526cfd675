"""Moments of outcomes that are never drawn, from their exact law given the features.

Let M (n×p) be any fixed columns, Y = MB + E with E of independent N(0, 1), and MᵀM = UΛUᵀ of rank r.
Then MᵀE = UΛ^½Z with Z (r×l) of independent N(0, 1), and EᵀE = ZᵀZ + W, where W is independent of Z and
has the Wishart law of n - r degrees of freedom. So MᵀY and YᵀY take O(p²l), and O(l³) for all of YᵀY,
whatever n is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DrawnMoments", "draw_moments"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class DrawnMoments:
    """MᵀY and YᵀY of one draw of Y."""

    association: Matrix  # (p, l)
    outcome: Matrix  # (l, l), or (l,) its diagonal


def draw_moments(
    gram: Matrix, slopes: Matrix, *, n: int, full: bool, rng: np.random.Generator
) -> DrawnMoments:
    """Draw the moments of Y = M·slopes + N(0, 1).

    Parameters
    ----------
    gram
        MᵀM, (p, p).
    slopes
        (p, l).
    n
        Rows of M.
    full
        All of YᵀY instead of its diagonal.
    """
    fitted = gram @ slopes
    noise, squares = _draw_noise(gram, slopes.shape[1], n=n, full=full, rng=rng)
    if full:
        cross = slopes.T @ noise
        outcome = slopes.T @ fitted + cross + cross.T + squares
    else:
        outcome = np.einsum("ij,ij->j", slopes, fitted + 2 * noise) + squares
    return DrawnMoments(association=fitted + noise, outcome=outcome)


def _draw_noise(
    gram: Matrix, l: int, *, n: int, full: bool, rng: np.random.Generator
) -> tuple[Matrix, Matrix]:
    """Draw MᵀE and EᵀE (or its diagonal)."""
    values, vectors = np.linalg.eigh(gram)
    inside = values > 1e-10 * max(values[-1], 0.0)
    z = rng.standard_normal((int(inside.sum()), l))
    associated = (vectors[:, inside] * np.sqrt(values[inside])) @ z
    if full:
        return associated, z.T @ z + _wishart(n - len(z), l, rng)
    return associated, np.einsum("ij,ij->j", z, z) + rng.chisquare(n - len(z), size=l)


def _wishart(freedom: int, l: int, rng: np.random.Generator) -> Matrix:
    """Draw EᵀE of `freedom` rows of l independent N(0, 1)."""
    if freedom < l:  # Bartlett's matrix has a diagonal of chi with freedom - i degrees
        rows = rng.standard_normal((freedom, l))
        return rows.T @ rows
    lower = np.tril(rng.standard_normal((l, l)), -1)
    lower[np.diag_indices(l)] = np.sqrt(rng.chisquare(freedom - np.arange(l)))
    return lower @ lower.T
