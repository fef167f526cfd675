"""The row space of a public block with more columns than rows; no (columns, columns) matrix is formed.

With d > n public features, XᵀX is d×d and singular, but everything that the data say happens in the
row space of X, of dimension r ≤ n. Write X = U·S·Vᵀ with r positive singular values. The Gram
matrix XXᵀ = U·S²·Uᵀ is n×n and gives U and S; V is never formed, since

    VᵀG = S⁻¹Uᵀ·(X·G)        and        V·C = Xᵀ·(U·S⁻¹·C)

need X itself only, a block of columns at a time. Coefficients W = V·C are fitted in the space of C:
there the covariance is diag(S²), the association VᵀG, and because V has orthonormal columns, noise
N(0, σ²) on every entry of G is noise N(0, σ²) on every entry of VᵀG. The noise outside the row
space, (d − r)·l entries of it, is dropped at no cost (mathematics.md section 5).

The same object, for Y in place of X, is what GaussProj_Y works with (`projection`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from primo.errors import InputError

__all__ = ["Columns", "RowSpace", "column_blocks", "rank_cutoff", "row_space", "walk"]

Floats = NDArray[np.float64]

Columns = Callable[[], Iterable[tuple[slice, NDArray[Any]]]]
"""Yields all columns of an (n, width) matrix, left to right, as (slice, (n, m) block).

Every call starts over: one call is one pass over the data."""


class Sliceable(Protocol):
    """An array, or something on disk that slices like one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""
        ...

    def __getitem__(self, key: tuple[slice, slice], /) -> Any:
        """Return the rows and columns asked for."""
        ...


@dataclass(frozen=True, kw_only=True)
class RowSpace:
    """The row space of a public (n, width) matrix X = U·S·Vᵀ of rank r; made by `row_space`.

    Orthonormality of V holds to ε·s_max²/s_i² in the direction of s_i (ε = 2⁻⁵²): squaring X hides
    singular values below about √ε·s_max, and the rank is decided accordingly.
    """

    values: Floats  # (r,) squares of the positive singular values, ascending
    width: int
    columns: Columns = field(repr=False)
    lift: Floats = field(repr=False)  # (n, r) U·S⁻¹

    @property
    def rank(self) -> int:
        """Dimension r of the row space."""
        return len(self.values)

    def reduce(self, association: Floats) -> Floats:
        """Return VᵀG (r, l) for an association G (width, l).

        Cost: one pass over the columns, O(n·l·(width + r)).
        """
        if association.ndim != 2 or len(association) != self.width:
            raise InputError(
                f"the association has shape {association.shape}; the row space, of a matrix with"
                f" {self.width} columns, needs ({self.width}, l)"
            )
        n = len(self.lift)
        product = np.zeros((n, association.shape[1]))
        for span, block in walk(self.columns, n=n, width=self.width):
            product += block @ association[span]
        return np.asarray(self.lift.T @ product)

    def expand(self, coefficients: Floats) -> Floats:
        """Return V·C (width, l) for C (r, l): the inverse of `reduce` on the row space.

        Cost: as `reduce`.
        """
        if coefficients.ndim != 2 or len(coefficients) != self.rank:
            raise InputError(
                f"the coefficients have shape {coefficients.shape}; the row space, of rank"
                f" {self.rank}, needs ({self.rank}, l)"
            )
        lifted = self.lift @ coefficients
        expanded = np.empty((self.width, coefficients.shape[1]))
        for span, block in walk(self.columns, n=len(lifted), width=self.width):
            np.matmul(block.T, lifted, out=expanded[span])
        return expanded


def row_space(columns: Columns, *, n: int, width: int) -> RowSpace:
    """Find the row space of the public (n, width) matrix that `columns` yields.

    Parameters
    ----------
    columns
        The matrix, in blocks of columns (`column_blocks` makes them from an array); kept, and called
        again by `RowSpace.reduce` and `RowSpace.expand`.
    n, width
        Its shape.

    Notes
    -----
    Cost: one pass over the columns, O(n²·width) for the Gram matrix and O(n³) for its eigenvectors.
    Memory: 3·n² numbers and one block of columns, whatever the width.
    """
    gram = np.zeros((n, n), order="F")
    for _, block in walk(columns, n=n, width=width):
        # Lower triangle of gram += block·blockᵀ, in place: half of the work of a full product.
        gram = scipy.linalg.blas.dsyrk(
            1.0, block.T, beta=1.0, c=gram, trans=1, lower=1, overwrite_c=1
        )
    if not np.isfinite(np.diagonal(gram)).all():
        raise InputError("the public block contains NaN or infinity, or overflows when squared")
    values, vectors = scipy.linalg.eigh(
        gram, lower=True, overwrite_a=True, check_finite=False, driver="evd"
    )
    start = int(np.searchsorted(values, rank_cutoff(values, max(n, width)), side="right"))
    values, lift = values[start:], vectors[:, start:]
    lift /= np.sqrt(values)
    return RowSpace(values=values, width=width, columns=columns, lift=lift)


def column_blocks(matrix: Sliceable, *, block: int = 1024) -> Columns:
    """Cut an (n, width) array, or anything that slices like one, into blocks of columns."""

    def columns() -> Iterator[tuple[slice, NDArray[Any]]]:
        width = matrix.shape[1]
        for start in range(0, width, block):
            span = slice(start, min(start + block, width))
            yield span, np.asarray(matrix[:, span])

    return columns


def walk(columns: Columns, *, n: int, width: int) -> Iterator[tuple[slice, Floats]]:
    """Make one pass: float64 blocks, checked to cover (n, width) from left to right."""
    reached = 0
    for span, block in columns():
        if span.start != reached or block.shape != (n, span.stop - span.start):
            raise InputError(
                f"expected {n} rows of the columns from {reached} on, but got a block of shape"
                f" {block.shape} for columns {span.start} to {span.stop}"
            )
        reached = span.stop
        yield span, np.ascontiguousarray(block, dtype=np.float64)
    if reached != width:
        raise InputError(f"expected {width} columns, but the blocks end after {reached}")


def rank_cutoff(values: Floats, size: int) -> float:
    """Return the eigenvalue of a Gram matrix at or below which it is taken to be 0.

    8·size·ε times the largest: what rounding leaves of a true 0, with some room. Treating a singular
    value s as 0 displaces a projection by no more than s times the radius of the ball.
    """
    return float(8 * size * np.finfo(np.float64).eps * max(values.max(initial=0.0), 0.0))
