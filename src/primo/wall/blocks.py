"""The Gaussian mechanism on moments whose covariance is that inside blocks of features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.blocks import ReleasedBlocks
from primo.released.moments import ReleasedLengths
from primo.released.release import Release
from primo.rows.block_moments import BlockMoments
from primo.wall.noise import RandomBits, add_noise

__all__ = ["release_blocks"]

Integers = NDArray[np.int64]


def release_blocks(
    moments: BlockMoments,
    plan: Plan,
    *,
    feature_names: tuple[str, ...],
    outcome_names: tuple[str, ...],
    bits: RandomBits,
    lengths: ReleasedLengths | None = None,
    backend: str = "primo",
    threads: int = 1,
) -> Release:
    """Add noise to everything that depends on private columns, and return what may be published.

    Guarantee: the result is `plan.mu`-GDP for `plan.protection` under replace-one (module
    `privacy.blocks`), if `moments` were folded with `plan`. What depends on public columns alone is
    exact. The noise has labels of its own. The names are schema and taken to be public.
    Cost: one discrete Gaussian per released number, O(Σ w² + d·l).
    """
    grid, blocks, protection = plan.grid, plan.blocks, plan.protection
    if moments.rows != plan.n:
        raise InputError("these moments do not belong to this plan: the number of rows differs")
    if (lengths is not None) != bool(plan.counted):
        raise InputError("the plan finds norms from row lengths; release those first")
    if blocks is None or plan.covariance_origin is not CovarianceOrigin.BLOCKS:
        raise InputError("this plan has no blocks of features")
    draw = _Draw(bits=bits, backend=backend, threads=threads)
    association = draw(moments.association, grid.association_variance_bits, "association of blocks")
    sums, outcome, last = moments.feature_sums, moments.outcome, moments.outcome_sums
    inside = moments.blocks
    if protection.features_private:
        inside = _noisy_blocks(inside, plan, draw)
        sums = draw(sums, grid.association_variance_bits, "feature sums of blocks")
    if protection.outcomes_private:
        # svec(ŷŷᵀ) with the constant in ŷ: its products with the outcomes lie off the diagonal.
        last = draw(last, grid.outcome_variance_bits - 1, "outcome sums of blocks")
        if plan.full_outcome_moments:
            outcome = _noisy_symmetric(outcome, grid.outcome_variance_bits, draw)
        else:
            outcome = draw(outcome, grid.outcome_variance_bits, "outcome diagonal of blocks")
    scaled = association.astype(np.float64) * (plan.feature_step * plan.outcome_step)
    if plan.intercept:
        scaled = np.vstack([scaled, last.astype(np.float64) * plan.outcome_step**2])
    return Release(
        plan=plan,
        feature_names=feature_names,
        outcome_names=outcome_names,
        covariance=np.zeros((0, 0)),
        association=scaled,
        outcome_moments=outcome.astype(np.float64) * plan.outcome_step**2,
        reproducible=bits.reproducible,
        backend=backend,
        lengths=lengths,
        blocks=_released(inside, sums, plan),
    )


@dataclass(frozen=True, kw_only=True)
class _Draw:
    """How noise is drawn; a label can be drawn once."""

    bits: RandomBits
    backend: str
    threads: int

    def __call__(self, values: Integers, variance_bits: int, label: str) -> Integers:
        """Return the values with noise, in an array of its own."""
        noisy = np.array(values, order="C")
        if noisy.size:
            add_noise(
                noisy.reshape(-1),
                variance_bits=variance_bits,
                bits=self.bits,
                label=label,
                backend=self.backend,
                threads=self.threads,
            )
        return noisy


def _noisy_symmetric(values: Integers, variance_bits: int, draw: _Draw) -> Integers:
    """Svec noise: full variance on the diagonal, half of it off the diagonal."""
    lower = np.tril_indices(len(values), -1)
    noisy = np.diag(draw(np.diagonal(values), variance_bits, "outcome diagonal of blocks"))
    noisy[lower] = draw(values[lower], variance_bits - 1, "outcome of blocks")
    noisy.T[lower] = noisy[lower]
    return noisy


def _noisy_blocks(inside: Integers, plan: Plan, draw: _Draw) -> Integers:
    """Return the sums of products inside every block, times the block's unit, with svec noise.

    Only the lower triangle of a block is given noise and used. Blocks of the same variance are drawn
    together.
    """
    assert plan.blocks is not None
    blocks = plan.blocks
    widths = blocks.widths
    offsets = np.concatenate([[0], np.cumsum(widths**2)])
    noisy = inside * np.repeat(blocks.unit, widths**2)
    for variance_bits in np.unique(blocks.variance_bits).tolist():
        chosen = np.flatnonzero(blocks.variance_bits == variance_bits).tolist()
        on = np.concatenate(
            [offsets[k] + np.arange(widths[k], dtype=np.int64) * (widths[k] + 1) for k in chosen]
        )
        noisy[on] = draw(noisy[on], variance_bits, f"blocks of 2**{variance_bits} diagonal")
        off = [
            offsets[k] + _below(int(widths[k])) for k in chosen if widths[k] > 1
        ]  # places of the lower triangles
        if off:
            places = np.concatenate(off)
            noisy[places] = draw(noisy[places], variance_bits - 1, f"blocks of 2**{variance_bits}")
    return noisy


def _below(width: int) -> Integers:
    """Return the places below the diagonal of a matrix that is stored row by row."""
    row, column = np.tril_indices(width, -1)
    return np.asarray(row * width + column, dtype=np.int64)


def _released(inside: Integers, sums: Integers, plan: Plan) -> ReleasedBlocks:
    """Return blocks and sums in scaled units."""
    assert plan.blocks is not None
    blocks, private = plan.blocks, plan.protection.features_private
    widths = blocks.widths
    offsets = np.concatenate([[0], np.cumsum(widths**2)])
    unit = blocks.unit if private else np.ones(blocks.count, dtype=np.int64)
    scaled = inside / np.repeat(unit / plan.feature_step**2, widths**2)
    covariance = []
    for k, width in enumerate(widths.tolist()):
        square = scaled[offsets[k] : offsets[k + 1]].reshape(width, width)
        if width > 1:
            lower = np.tril_indices(width, -1)
            square.T[lower] = square[lower]
        covariance.append(square)
    step = plan.feature_step / (plan.constant_steps or 1)
    sigma = blocks.steps_sigma * plan.feature_step**2 if private else np.zeros(blocks.count)
    return ReleasedBlocks(
        starts=blocks.starts.astype(np.intp),
        covariance=tuple(covariance),
        sigma=sigma,
        sums=sums.astype(np.float64) * step if plan.intercept else np.zeros(plan.d),
        sums_sigma=plan.feature_sum_sigma,
    )
