"""Rows in any requested order, from a store that is read in chunks, front to back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from primo.rows.sources.base import Rows
from primo.rows.sources.spill import Scratch

__all__ = ["in_blocks", "is_increasing", "read_ordered"]

#: Some rows, and the number of the first of them in the store.
Piece = tuple[int, NDArray[Any]]


def read_ordered(
    pieces: Callable[[NDArray[np.intp]], Iterator[Piece]],
    starts: NDArray[np.intp],
    order: Rows,
    rows: int,
    *,
    width: int,
    dtype: DTypeLike,
    scratch: Path | None = None,
) -> Iterator[NDArray[Any]]:
    """Yield the stored rows `order` in blocks of exactly `rows` (the last: fewer).

    The store has chunks: chunk k holds the rows `starts[k]` to `starts[k + 1]`. `pieces(chunks)` reads
    the chunks given, in increasing order, in one or more pieces each.

    Cost: where `order` increases, one pass over the chunks it touches and memory of a piece and a
    block. Otherwise the rows are written to `Scratch` once and read from there once.
    """
    rows = min(rows, max(len(order), 1))
    if isinstance(order, range) and len(order) < 2:
        order = range(order.start, order.start + len(order))  # whatever its step was
    if is_increasing(order):
        yield from in_blocks(_sift(pieces(_touched(starts, order)), order), rows)
        return
    stored = np.sort(np.asarray(order, dtype=np.intp))
    spill = Scratch((len(stored), width), dtype, scratch)
    place = 0
    for part in _sift(pieces(_touched(starts, stored)), stored):
        spill.write(place, part)
        place += len(part)
    for start in range(0, len(order), rows):
        wanted = np.asarray(order[start : start + rows], dtype=np.intp)
        yield spill.read(np.searchsorted(stored, wanted))


def is_increasing(order: Rows) -> bool:
    """Whether the rows can be read front to back."""
    if isinstance(order, range):
        return order.step > 0
    return bool((order[1:] >= order[:-1]).all())


def in_blocks(parts: Iterator[NDArray[Any]], rows: int) -> Iterator[NDArray[Any]]:
    """Cut and join arrays into blocks of exactly `rows` (the last: fewer).

    A block that lies inside one array is a view.
    """
    block: NDArray[Any] = np.empty((0, 0))
    filled = 0
    for part in parts:
        while len(part):
            if filled == 0 and len(part) >= rows:
                yield part[:rows]
                part = part[rows:]
                continue
            if filled == 0:
                block = np.empty((rows, part.shape[1]), part.dtype)
            taken = min(rows - filled, len(part))
            block[filled : filled + taken] = part[:taken]
            filled += taken
            part = part[taken:]
            if filled == rows:
                yield block
                filled = 0
    if filled:
        yield block[:filled]


def _sift(pieces: Iterator[Piece], order: Rows) -> Iterator[NDArray[Any]]:
    """Yield the rows of each piece that are in an increasing `order`."""
    for first, piece in pieces:
        wanted = order[_below(order, first) : _below(order, first + len(piece))]
        if isinstance(wanted, range):
            yield piece[wanted.start - first : wanted.stop - first : wanted.step]
        else:
            yield piece[wanted - first]


def _touched(starts: NDArray[np.intp], order: Rows) -> NDArray[np.intp]:
    """Return the numbers of the chunks that hold rows of an increasing `order`."""
    return np.flatnonzero(np.diff(_below(order, starts)))


def _below(order: Rows, row: Any) -> Any:
    """Count the rows of an increasing `order` that come before `row` (a number or an array)."""
    if isinstance(order, range):
        return np.clip(-((order.start - row) // order.step), 0, len(order))
    return np.searchsorted(order, row)
