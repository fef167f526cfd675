"""A release made of outcomes with noise on each of them and of public features: post-processing.

With Ỹ = Y + E, E of variance σ² on every entry, XᵀỸ has noise XᵀE of covariance σ²XᵀX: what a larger
residual variance would do. ỸᵀỸ − nσ²I has the expectation of YᵀY.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.blocks import ReleasedBlocks
from primo.released.moments import ReleasedLengths
from primo.released.release import Release

__all__ = ["perturbed_release"]


def perturbed_release(
    plan: Plan,
    perturbed: NDArray[np.int32],
    *,
    covariance: NDArray[np.int64],
    squares: NDArray[np.int64],
    sums: NDArray[np.int64],
    association: NDArray[np.int64],
    outcome: NDArray[np.int64],
    feature_names: tuple[str, ...],
    outcome_names: tuple[str, ...],
    reproducible: bool,
    backend: str,
    lengths: ReleasedLengths | None = None,
    starts: NDArray[np.int64] | None = None,
    inside: NDArray[np.int64] | None = None,
) -> Release:
    """Make the release from integer moments of the noisy outcomes (`rows.outcome_rows`).

    `inside` holds XᵀX inside blocks with the borders `starts`, where the features are in blocks.

    Guarantee: post-processing of the noisy outcomes and of public features; costs no privacy.
    """
    if plan.perturbation is None or perturbed.shape != (plan.n, plan.l):
        raise InputError("these outcomes with noise do not belong to this plan")
    summed = plan.covariance_origin is CovarianceOrigin.ROWS
    moments: NDArray[Any] = outcome.astype(np.float64) * plan.row_step**2
    own = plan.n * plan.row_sigma**2
    return Release(
        plan=plan,
        feature_names=feature_names,
        outcome_names=outcome_names,
        covariance=covariance.astype(np.float64) * plan.feature_step**2
        if summed
        else np.zeros((0, 0)),
        association=association.astype(np.float64) * (plan.feature_step * plan.row_step),
        outcome_moments=moments - (own * np.eye(plan.l) if moments.ndim == 2 else own),
        reproducible=reproducible,
        backend=backend,
        lengths=lengths,
        perturbed=perturbed,
        feature_squares=None if summed else squares.astype(np.float64) * plan.feature_step**2,
        feature_sums=None if summed else sums.astype(np.float64) * plan.feature_step**2,
        public_blocks=None
        if starts is None or inside is None
        else _inside_blocks(plan, starts, inside, sums),
    )


def _inside_blocks(
    plan: Plan, starts: NDArray[np.int64], inside: NDArray[np.int64], sums: NDArray[np.int64]
) -> ReleasedBlocks:
    """Return the exact covariance of public features inside blocks, and their sums."""
    covariance, at = [], 0
    for width in np.diff(starts).tolist():
        part = inside[at : at + width * width].reshape(width, width)
        covariance.append(part.astype(np.float64) * plan.feature_step**2)
        at += width * width
    constant = plan.constant_steps
    own = np.zeros(plan.d)
    if constant:  # the last column of XᵀX is the sums times the constant
        own = sums[: plan.d].astype(np.float64) * (plan.feature_step / constant)
    return ReleasedBlocks(
        starts=starts.astype(np.intp),
        covariance=tuple(covariance),
        sigma=np.zeros(len(covariance)),
        sums=own,
        sums_sigma=0.0,
    )
