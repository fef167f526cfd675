"""Histograms of row lengths, counted exactly: the first stage of a release with norm="auto".

A length is a function of its row alone: every value takes the same operations whatever its block, and
squares are added by a tree that the number of columns alone fixes. Which bin it falls into is then a
comparison with public edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.privacy.lengths import BINS, bin_of_squared
from primo.rows.block_sums import BlockSums
from primo.rows.public_block import PublicRows
from primo.rows.quantise import missing_values, squares_in_order
from primo.rows.sources.base import Block, Source
from primo.rows.walk import Progress, thread_number, walk

__all__ = ["LengthAccumulator", "Lengths", "fold_lengths", "scaled", "squared_lengths"]

Integers = NDArray[np.int64]
Matrix = NDArray[np.float64]

_BLOCK_ROWS = 2**12  # read at a time
_ROWS = 2**8  # counted at a time: a few arrays of them stay in the cache


class Lengths(BlockSums):
    """Private counts of rows by length, (BINS,) for each block."""


def fold_lengths(
    source: Source,
    plan: Plan,
    *,
    sample: NDArray[np.bool_] | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> Lengths:
    """Read every row once and count rows by the lengths of their features and outcomes.

    The arguments are those of `primo.rows.moments.fold`. Lengths are those of all rows, so that a
    sample does not change them.

    Cost: one pass, O(n·(d + l)). The result does not depend on `threads`.
    """
    accumulators = [LengthAccumulator(plan) for _ in range(thread_number(threads))]
    return walk(
        source,
        accumulators,
        block_rows=_BLOCK_ROWS,
        sample=sample,
        progress=progress,
        collect=collect,
    )


class LengthAccumulator:
    """One worker's counts.

    Guarantee: replacing a row changes at most two counts of each histogram, by one each, whatever the
    row holds; or InputError, which names no value, if it is not finite and `missing` is "error".
    Cost: one pass over the rows.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._done = 0
        self._features = np.zeros(BINS, dtype=np.int64)
        self._outcomes = np.zeros(BINS, dtype=np.int64)

    def add(self, block: Block, chosen: NDArray[np.bool_] | None = None) -> int:
        """Count the rows of a block, whether they are chosen or not, and say how many."""
        m, plan = len(block.features), self._plan
        if block.features.shape != (m, plan.d) or block.outcomes.shape != (m, plan.l):
            raise InputError("a source gave a block of the wrong size")
        for start in range(0, m, _ROWS):
            part = slice(start, start + _ROWS)
            for rows, clip, name, counts in (
                (block.features[part], plan.features, "features", self._features),
                (block.outcomes[part], plan.outcomes, "outcomes", self._outcomes),
            ):
                squares = squared_lengths(rows, clip, missing=plan.missing, block=name)
                counts += np.bincount(bin_of_squared(squares), minlength=BINS)
        self._done += m
        return m

    def total(self) -> Lengths:
        """Return the counts so far."""
        return Lengths(rows=self._done, features=self._features, outcomes=self._outcomes)


def squared_lengths(rows: NDArray[Any], clip: Clip, *, missing: str, block: str) -> Matrix:
    """Return the squared length of each row in scaled units, before it is shortened to a norm."""
    with np.errstate(all="ignore"):
        return squares_in_order(scaled(rows, clip, missing=missing, block=block))


def scaled(rows: NDArray[Any], clip: Clip, *, missing: str, block: str) -> Matrix:
    """Return rows in scaled units, each value by itself, cut to ranges but not shortened."""
    with np.errstate(all="ignore"):  # a warning would depend on private values
        values = rows.astype(np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            if missing != "centre":
                raise missing_values(block)
            values = np.where(finite, values, clip.centre)
        # Halves, so that the difference of two huge numbers is finite; their sign survives.
        z = (values / 2 - clip.centre / 2) * (2 / clip.scale)
        return np.clip(z, *clip.ends) if clip.box else z
