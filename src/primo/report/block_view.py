"""Where along the genome a score varies: the share of each block of linked variants in its variance.

Released numbers say it: the variance of the score inside block B is w_BᵀÂ_Bw_B, with the published
coefficients w and the released covariance Â_B about the means. Features of different blocks are taken to
be uncorrelated. The chart is one path and a few points, however many blocks there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from primo.released.estimate.blocks.released import centred_blocks
from primo.released.moments import ReleasedMoments
from primo.report.manhattan import BINS, BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Frame
from primo.report.placing import Axis
from primo.report.prose import count
from primo.variants import Variants

__all__ = ["BlockView", "LinkedBlocks", "block_shares", "block_view", "linked_blocks"]

Floats = NDArray[np.float64]

LINES = 10  # blocks in the table, and with a point of their own
WIDE = 2  # a chart needs blocks of at least so many variants, in the mean


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkedBlocks:
    """Blocks of a release whose features are all variants."""

    starts: NDArray[np.intp]  # (m + 1,)
    covariance: tuple[Floats, ...]  # about the means, as released


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockView:
    """A chart, a sentence and a table of one outcome."""

    chart: Markup
    words: str
    lines: list[tuple[str, ...]]


def linked_blocks(release: ReleasedMoments, variants: Variants) -> LinkedBlocks | None:
    """Return the blocks of a release; None where there are none, or features that are no variants."""
    blocks, d = release.blocks, release.plan.d
    if blocks is None or len(variants) != d or d < WIDE * len(blocks.sigma):
        return None
    moments = centred_blocks(release).moments
    return LinkedBlocks(starts=moments.starts, covariance=moments.covariance)


def block_shares(blocks: LinkedBlocks, slopes: Floats) -> Floats:
    """Return each block's share of the score's variance, (m,); zeros if there is no score.

    Noise of the covariance can make a small part negative, which counts as none.
    """
    parts = np.array(
        [
            float(slopes[a:b] @ part @ slopes[a:b])
            for part, (a, b) in zip(blocks.covariance, pairwise(blocks.starts), strict=True)
        ]
    )
    parts = np.maximum(parts, 0.0)
    total = float(parts.sum())
    return np.asarray(parts / total if total > 0 else parts)


def block_view(
    blocks: LinkedBlocks, slopes: Floats, variants: Variants, axis: Axis, *, outcome: str
) -> BlockView | None:
    """Draw the shares of all blocks along the genome; None if there is no score.

    `slopes` (d,) are the published coefficients of one outcome in scaled units. Where several blocks
    fall into one of the `BINS` places, the largest is drawn. Cost: O(Σ w²).
    """
    shares = block_shares(blocks, slopes)
    if not shares.any():
        return None
    order = np.argsort(-shares, kind="stable")
    shown = [int(k) for k in order[:LINES] if shares[k] > 0]
    half = int(np.searchsorted(np.cumsum(shares[order]), 0.5)) + 1
    words = (
        "Share of each block of linked variants in the variance of the published score. Half of it lies "
        f"in {count(half, 'block')} of {len(shares)}."
    )
    return BlockView(
        chart=_chart(blocks, shares, shown, variants, axis, outcome),
        words=words,
        lines=[
            (
                _name(blocks, k, variants),
                str(int(blocks.starts[k + 1] - blocks.starts[k])),
                f"{100 * shares[k]:.1f}\u202f%",
                variants.names[_largest(blocks, k, slopes)],
            )
            for k in shown
        ],
    )


def _largest(blocks: LinkedBlocks, k: int, slopes: Floats) -> int:
    a, b = int(blocks.starts[k]), int(blocks.starts[k + 1])
    return a + int(np.argmax(np.abs(slopes[a:b])))


def _name(blocks: LinkedBlocks, k: int, variants: Variants) -> str:
    a, b = int(blocks.starts[k]), int(blocks.starts[k + 1]) - 1
    return f"{variants.chromosome[a]}:{int(variants.position[a])}–{int(variants.position[b])}"


def _chart(
    blocks: LinkedBlocks,
    shares: Floats,
    shown: list[int],
    variants: Variants,
    axis: Axis,
    outcome: str,
) -> Markup:
    frame = Frame(width=WIDTH, below="position", above="share of the score\u2019s variance, %")
    top = 100 * float(shares.max()) * 1.05
    inner, high = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    frame.levels(top)
    frame.stretches(axis)
    middle = axis.places[(blocks.starts[:-1] + blocks.starts[1:] - 1) // 2]
    column = np.clip((middle * BINS).astype(np.intp), 0, BINS - 1)
    largest = np.zeros(BINS)
    np.maximum.at(largest, column, 100 * shares)
    step = inner / BINS
    bars = "".join(
        f"M{LEFT + (i + 0.5) * step:.1f} {HEIGHT - BOTTOM}V{frame.y(float(largest[i]), top):.1f}"
        for i in np.flatnonzero(largest * high / top >= 0.5).tolist()
    )
    frame.add(Markup('<path class="curve" d="{}"/>').format(bars))
    for k in shown:
        at = LEFT + (int(column[k]) + 0.5) * step
        said = f"{_name(blocks, k, variants)}: {100 * shares[k]:.1f} %"
        shape = '<circle class="chosen" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>'
        frame.add(Markup(shape).format(at, frame.y(100 * float(shares[k]), top), said))
    return frame.svg(f"Share of {len(shares)} blocks in the variance of the score of {outcome}")
