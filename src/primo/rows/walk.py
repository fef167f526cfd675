"""One walk over all rows of a source, shared by threads; what is summed does not depend on how."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from queue import SimpleQueue
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from primo._util.threads import blas_threads, in_order
from primo.errors import InputError
from primo.planning.plan import Plan
from primo.rows.public_block import PublicRows
from primo.rows.sources.base import Block, Source

__all__ = [
    "Accumulator",
    "Folding",
    "Progress",
    "S",
    "Sums",
    "check_row_count",
    "thread_number",
    "walk",
]

Progress = Callable[[int], None]  # called with the number of rows done since the last call


class Sums(Protocol):
    """Private integers summed over rows; those of two sets of rows add up to those of both."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        ...

    def __add__(self, other: Self, /) -> Self:
        """Merge; exact and in any order."""
        ...


S = TypeVar("S", bound=Sums)
S_co = TypeVar("S_co", bound=Sums, covariant=True)


class Accumulator(Protocol[S_co]):
    """One worker's buffers and totals."""

    def add(self, block: Block, chosen: NDArray[np.bool_] | None, /) -> int:
        """Count the rows of a block, of which some are chosen for the covariance, and say how many."""
        ...

    def total(self) -> S_co:
        """Return the sums so far."""
        ...


class Folding(Protocol[S_co]):
    """A function that reads every row once and returns sums over the rows."""

    def __call__(
        self,
        source: Source,
        plan: Plan,
        *,
        sample: NDArray[np.bool_] | None = None,
        threads: int | None = None,
        progress: Progress | None = None,
        collect: PublicRows | None = None,
    ) -> S_co:
        """Fold the rows of a source, which may be a part of those of the plan."""
        ...


def walk(
    source: Source,
    accumulators: Sequence[Accumulator[S]],
    *,
    block_rows: int,
    sample: NDArray[np.bool_] | None = None,
    progress: Progress | None = None,
    collect: PublicRows | None = None,
) -> S:
    """Read every row once, with a thread for each accumulator, and return the sums of all.

    `sample` marks chosen rows. `collect` keeps the rows of a public block while they are read, so that
    nobody has to read them again.
    """
    free: SimpleQueue[Accumulator[S]] = SimpleQueue()
    for accumulator in accumulators:
        free.put(accumulator)

    def work(placed: tuple[int, Block]) -> int:
        start, block = placed
        chosen = None if sample is None else sample[start : start + len(block.features)]
        accumulator = free.get()
        try:
            return accumulator.add(block, chosen)
        finally:
            free.put(accumulator)

    def placed() -> Iterator[tuple[int, Block]]:
        start = 0
        for block in source.blocks(block_rows):
            if collect is not None:
                collect.add(block)
            yield start, block
            start += len(block.features)

    done = 0
    # One BLAS thread per worker: blocks are the unit of parallel work.
    with blas_threads(1):
        for count in in_order(work, placed(), len(accumulators)):
            done += count
            if progress is not None:
                progress(count)
    check_row_count(source, done)
    total = accumulators[0].total()
    for accumulator in accumulators[1:]:
        total = total + accumulator.total()
    return total


def thread_number(threads: int | None) -> int:
    """Return how many threads to use: as asked, or up to four."""
    return threads or min(4, os.cpu_count() or 1)


def check_row_count(source: Source, rows: int) -> None:
    """Refuse a source that gave another number of rows than it announced."""
    if rows != source.n:
        raise InputError(
            f"the source announced {source.n} rows but gave another number; "
            "n is public and must be right before the release"
        )
