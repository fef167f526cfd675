"""Directions in the space of outcomes, grouped by how much variance they carry.

Correlated outcomes share a few strong directions. If signal is spread over these directions in some
proportion to their variance, shrinking each by its own amount beats one amount for all. The moments
YᵀY were released anyway, so the rotation costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.spectrum import expected_spectrum
from primo.released.estimate.variances import all_the_same, own_variances

__all__ = ["OutcomeGroups", "alike", "by_variance", "group_outcomes"]

Floats = NDArray[np.float64]

GROUP_RATIO = 1.25  # directions whose variances are closer than this share one filter
FAINTEST = 1e-3  # variances below this fraction of the largest are not told apart


@dataclass(frozen=True, kw_only=True)
class OutcomeGroups:
    """A rotation of the outcomes and a partition of its directions."""

    rotation: Floats | None  # (l, l) orthogonal; None for the outcomes as they are
    group: NDArray[np.intp]  # (l,) which group each direction belongs to
    weights: Floats  # (groups,) variance of a direction relative to the average direction
    counts: Floats  # (groups,) directions in each
    noise_variance: Floats  # (groups,) of an entry of the association along a direction
    equal: bool = False  # whether no direction is expected to carry more signal than another

    @property
    def signal_weights(self) -> Floats:
        """Expected signal of a direction relative to the average direction, (groups,)."""
        return np.ones_like(self.weights) if self.equal else self.weights

    def rotate(self, association: Floats) -> Floats:
        """Express (d, l) columns along the directions."""
        return association if self.rotation is None else np.matmul(association, self.rotation)

    def rotate_back(self, coefficients: Floats) -> Floats:
        """Undo `rotate`."""
        return coefficients if self.rotation is None else np.matmul(coefficients, self.rotation.T)

    def energy(self, rotated: Floats) -> Floats:
        """Return the sums of squares of (d, l) rows within each group, (d, groups)."""
        if len(self.counts) == 1:
            return np.asarray(np.einsum("ij,ij->i", rotated, rotated))[:, None]
        columns = (rotated[:, self.group == g] for g in range(len(self.counts)))
        return np.stack([np.einsum("ij,ij->i", c, c) for c in columns], axis=1)

    def with_equal_weights(self) -> OutcomeGroups:
        """Return the same directions, none expected to carry more signal than another."""
        return replace(self, equal=True)

    def spread(self, per_group: Floats) -> Floats:
        """Turn (d, groups) into something that multiplies (d, l)."""
        return per_group if len(self.counts) == 1 else per_group[:, self.group]


def alike(moments: NoisyMoments) -> OutcomeGroups:
    """Treat outcomes alike. Those whose means bring more noise into the association are apart."""
    noise = moments.noise_variances
    _, group = np.unique(_noise_classes(noise), return_inverse=True)
    return _grouped(None, group, np.ones(len(noise)), noise)


def by_variance(moments: NoisyMoments) -> OutcomeGroups:
    """Treat outcomes alike that have about the same variance, and the same noise.

    All of them are alike where one variance for all explains what was released.
    """
    if all_the_same(moments.squares, moments.square_errors):
        return alike(moments)
    noise = moments.noise_variances
    relative, variance_class = _classes(own_variances(moments))
    both = np.stack([_noise_classes(noise), variance_class])
    _, group = np.unique(both, axis=1, return_inverse=True)
    return _grouped(None, group.ravel(), relative, noise)


def _noise_classes(noise: Floats) -> NDArray[np.intp]:
    return np.asarray(np.round(np.log2(noise / noise.min())), dtype=np.intp)


def group_outcomes(moments: NoisyMoments) -> OutcomeGroups | None:
    """Rotate by the released outcome moments (if whole) and group directions by variance.

    None where the moments tell no directions apart.
    """
    sigma = moments.outcome_sigma
    rotation = None
    l = len(moments.outcome_moments)
    if moments.outcome_moments.ndim == 2:
        values, rotation = np.linalg.eigh(moments.outcome_moments)
        if _is_noise(values, sigma, entries=l * (l + 1) // 2):
            return None
        variance = expected_spectrum(values, sigma)
    else:
        values = moments.outcome_moments
        if _is_noise(values, sigma, entries=l):
            return None
        centre = values.mean()
        variance = centre + (1 - sigma**2 / values.var()) * (values - centre)
    if variance.max() <= 0:
        return None
    relative, variance_class = _classes(variance)
    _, group = np.unique(variance_class, return_inverse=True)
    if group.max() == 0:
        return None
    noise = moments.noise_variances
    if rotation is not None:
        noise = noise @ rotation**2
    return _grouped(rotation, group, relative, noise)


def _classes(variance: Floats) -> tuple[Floats, NDArray[np.intp]]:
    """Return variances (l,) relative to the largest, and numbers of classes within `GROUP_RATIO`."""
    top = max(float(variance.max()), 1e-300)
    relative = np.maximum(variance / top, FAINTEST)
    steps = np.floor(-np.log(relative) / np.log(GROUP_RATIO))
    return relative, steps.astype(np.intp)


def _grouped(
    rotation: Floats | None, group: NDArray[np.intp], relative: Floats, noise: Floats
) -> OutcomeGroups:
    """Average relative variances and noise variances, (l,) each, over each group."""
    counts = np.bincount(group).astype(np.float64)
    weights = np.bincount(group, weights=relative) / counts
    return OutcomeGroups(
        rotation=rotation,
        group=group.astype(np.intp),
        weights=weights / relative.mean(),
        counts=counts,
        noise_variance=np.bincount(group, weights=noise) / counts,
    )


def _is_noise(values: Floats, sigma: float, *, entries: int) -> bool:
    """Whether the scatter of eigenvalues, or of variances, is what equal outcomes would show.

    The sum of squares of that many noise entries, within three of its standard deviations.
    """
    scatter = float(((values - values.mean()) ** 2).sum())
    return bool(scatter <= sigma**2 * (entries + 3 * np.sqrt(2 * entries)))
