"""Every block decomposed once: directions, how much the features vary along them, and how sure that is.

A block's released covariance is Â = A + noise. Along an eigenvector v of Â the estimators need two
numbers of the true A: vᵀAv, by the rotation-invariant estimator of `estimate.spectrum`, and vᵀA²v, which
is larger than its square where noise turned the eigenvectors. The difference is what keeps anybody from
dividing by variation that the noise has made.

The diagonal is known better than that: features have similar variances in scaled units, so all of them
together say how far one may be from the mean (empirical Bayes), and a block's eigenvalues add up to its
diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.diagonal import shrunk_variances
from primo.released.estimate.blocks.problem import BlockMoments

__all__ = ["Directions", "Group", "decompose"]

Floats = NDArray[np.float64]

FLOOR = 1e-9  # of the mean variance of a feature: directions with less are taken to have none


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """All blocks of one width, stacked."""

    features: NDArray[np.intp]  # (blocks, w) places of their features
    vectors: Floats  # (blocks, w, w) eigenvectors in columns
    values: Floats  # (blocks, w) expected vᵀAv; not negative
    squares: Floats  # (blocks, w) expected vᵀA²v; at least values²

    def rotate(self, association: Floats) -> Floats:
        """Return the association (d, l) along the eigenvectors, (blocks, w, l)."""
        return np.asarray(np.swapaxes(self.vectors, 1, 2) @ association[self.features])

    def restore(self, along: Floats) -> Floats:
        """Return vectors (blocks, w, …) given along the eigenvectors in the features' coordinates."""
        return np.asarray(self.vectors @ along)


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """The directions of all blocks, one after the other in the order of the groups."""

    groups: tuple[Group, ...]
    values: Floats  # (d,) expected vᵀAv
    squares: Floats  # (d,) expected vᵀA²v
    block_share: Floats  # (d,) part of the whole variation Σ vᵀAv that a direction's block has

    def split(self, values: Floats) -> Iterator[tuple[Group, Floats]]:
        """Cut numbers of all directions (d, …) into those of the groups, (blocks, w, …)."""
        at = 0
        for group in self.groups:
            end = at + group.values.size
            yield group, values[at:end].reshape(*group.values.shape, *values.shape[1:])
            at = end

    def rotate(self, association: Floats) -> Floats:
        """Return the association (d, l) along all directions, (d, l)."""
        l = association.shape[1]
        parts = [group.rotate(association).reshape(-1, l) for group in self.groups]
        return np.concatenate(parts)

    def restore(self, along: Floats) -> Floats:
        """Return coefficients given along all directions (d, l) for the features, (d, l)."""
        found = np.empty_like(along)
        for group, part in self.split(along):
            found[group.features] = group.restore(part)
        return found


def decompose(moments: BlockMoments) -> Directions:
    """Decompose every block once.

    Cost: O(Σ w³), linear in the number of features where the width of blocks is bounded.
    """
    widths = np.diff(moments.starts)
    diagonal = _diagonal(moments)
    groups = tuple(
        _group(moments, np.flatnonzero(widths == width), int(width), diagonal)
        for width in np.unique(widths)
    )
    values = np.concatenate([group.values.ravel() for group in groups])
    total = max(float(values.sum()), 1e-300)
    share = np.concatenate(
        [np.repeat(group.values.sum(axis=1) / total, group.values.shape[1]) for group in groups]
    )
    return Directions(
        groups=groups,
        values=values,
        squares=np.concatenate([group.squares.ravel() for group in groups]),
        block_share=share,
    )


def _diagonal(moments: BlockMoments) -> tuple[Floats, Floats]:
    """Posterior means of the features' variances and variances of their errors, (d,) each."""
    raw = np.concatenate([np.diagonal(part) for part in moments.covariance])
    return shrunk_variances(raw, np.repeat(moments.sigma, np.diff(moments.starts)) ** 2)


def _group(
    moments: BlockMoments,
    blocks: NDArray[np.intp],
    width: int,
    diagonal: tuple[Floats, Floats],
) -> Group:
    features = moments.starts[blocks][:, None] + np.arange(width)
    known, error = diagonal[0][features], diagonal[1][features]
    if width == 1:
        return Group(
            features=features,
            vectors=np.ones((len(blocks), 1, 1)),
            values=known,
            squares=known**2 + error,
        )
    stacked = np.stack([moments.covariance[k] for k in blocks])
    at = np.arange(width)
    stacked[:, at, at] = known
    noisy, vectors = np.linalg.eigh(stacked)
    sigma = moments.sigma[blocks][:, None]
    values, squares = _expected(noisy, sigma, known.sum(axis=1, keepdims=True))
    return Group(features=features, vectors=vectors, values=values, squares=squares)


def _expected(noisy: Floats, sigma: Floats, total: Floats) -> tuple[Floats, Floats]:
    """Return the expected vᵀAv and vᵀA²v for noisy eigenvalues (blocks, w) of this trace."""
    floor = FLOOR * total / noisy.shape[1]
    exact = np.where(noisy > floor, noisy, 0.0)
    if not sigma.any():
        return exact, exact**2
    width = np.maximum(sigma, 1e-300)[:, :, None]
    gap = noisy[:, :, None] - noisy[:, None, :]
    near = gap * gap + width * width
    pull = sigma**2 * (gap / near).sum(axis=2)  # twice the repulsion of the noise
    reach = sigma**2 / 2 * (width / near).sum(axis=2)
    values = np.maximum(noisy - pull, floor)
    values *= total / values.sum(axis=1, keepdims=True)
    truths = np.maximum(noisy - pull / 2, 0.0)
    truths *= total / np.maximum(truths.sum(axis=1, keepdims=True), floor)
    # A noisy eigenvector is spread over true ones near it as a Cauchy law of this width.
    seen = (noisy - pull / 2)[:, :, None] - truths[:, None, :]
    overlap = 1 / (seen**2 + np.maximum(reach, 1e-300)[:, :, None] ** 2)
    overlap /= overlap.sum(axis=2, keepdims=True)
    first = (overlap * truths[:, None, :]).sum(axis=2)
    second = (overlap * truths[:, None, :] ** 2).sum(axis=2)
    squares = values**2 + np.maximum(second - first**2, 0.0)
    public = sigma == 0
    return np.where(public, exact, values), np.where(public, exact**2, squares)
