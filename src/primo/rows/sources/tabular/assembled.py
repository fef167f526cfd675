"""Columns of Arrow batches and lines of text, written directly into blocks of rows.

A file is read in *portions*, whose number of rows depends on the file; the number of rows of a block is
chosen by the caller. A portion is therefore written into all blocks that it overlaps: one copy in all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from primo.rows.sources.base import Rows
from primo.rows.sources.ordered import Piece
from primo.rows.sources.table_columns import TableColumns
from primo.rows.sources.tabular.arrow import to_floats

__all__ = [
    "ColumnPortion",
    "Portion",
    "RowPortion",
    "assemble",
    "mark_missing",
    "missing_in_store",
    "piece_rows",
]


class Portion(Protocol):
    """Some rows that were read and not yet converted to an array of rows."""

    def __len__(self) -> int:
        """Return the number of rows."""
        ...

    def write(self, start: int, out: NDArray[Any]) -> None:
        """Write the rows from `start` on, as many as `out` has."""
        ...


def assemble(
    portions: Iterator[tuple[int, Portion]],
    *,
    rows: int,
    origin: int,
    width: int,
    dtype: np.dtype[Any],
) -> Iterator[Piece]:
    """Yield the same rows in pieces that end at `origin`, `origin + rows` and so on, or at a gap.

    A portion is given with the number of its first row in the store.
    """
    piece: NDArray[Any] = np.empty((0, width), dtype)
    first = filled = 0
    for place, portion in portions:
        if filled and first + filled != place:
            yield first, piece[:filled]
            filled = 0
        start = 0
        while start < len(portion):
            if filled == 0:
                first = place + start
                piece = np.empty((rows - (first - origin) % rows, width), dtype)
            taken = min(len(piece) - filled, len(portion) - start)
            portion.write(start, piece[filled : filled + taken])
            start += taken
            filled += taken
            if filled == len(piece):
                yield first, piece
                filled = 0
    if filled:
        yield first, piece[:filled]


def piece_rows(order: Rows, rows: int, most: int) -> tuple[int, int]:
    """Return the length of pieces and where one should begin.

    Pieces are the blocks if `order` takes consecutive rows. Otherwise they have `most` rows, because
    many of them may not be wanted.
    """
    if isinstance(order, range) and order.step == 1 and len(order):
        return min(rows, len(order)), order.start
    return most, 0


class ColumnPortion:
    """Rows of an Arrow batch."""

    def __init__(
        self,
        batch: Any,
        dtype: np.dtype[Any],
        missing: Sequence[float],
        compiled: ModuleType | None,
    ) -> None:
        """Take a batch whose columns hold numbers; values in `missing` become NaN."""
        self._batch, self._dtype, self._missing = batch, dtype, np.array(missing, dtype=np.float64)
        self._compiled = compiled
        self._memory = None if compiled is None else _memory(batch, dtype)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._batch)

    def __repr__(self) -> str:
        """Show the number of rows only."""
        return f"<ColumnPortion rows={len(self)} (private)>"

    def write(self, start: int, out: NDArray[Any]) -> None:
        """Write the rows from `start` on, as many as `out` has."""
        memory, fits = self._memory, 0 <= start <= len(self) - len(out)
        if memory is not None and self._compiled is not None and fits and out.flags.c_contiguous:
            self._compiled.transpose_columns(
                memory.columns, memory.masks, memory.bits, start, self._missing, out
            )
            return
        out[...] = to_floats(self._batch.slice(start, len(out)), self._dtype)
        mark_missing(out, self._missing)


class RowPortion:
    """Rows that are already an array of rows."""

    def __init__(self, rows: NDArray[Any]) -> None:
        """Take the rows."""
        self._rows = rows

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._rows)

    def __repr__(self) -> str:
        """Show the number of rows only."""
        return f"<RowPortion rows={len(self)} (private)>"

    def write(self, start: int, out: NDArray[Any]) -> None:
        """Write the rows from `start` on, as many as `out` has."""
        out[...] = self._rows[start : start + len(out)]


def mark_missing(block: NDArray[Any], missing: NDArray[np.float64]) -> None:
    """Write NaN over numbers that mean a missing value; compared in float64, also in float32 blocks."""
    for number in missing:
        block[block == number] = np.nan


def missing_in_store(table: TableColumns) -> TableColumns:
    """Let the store replace the numbers that mean a missing value, while it copies them."""
    store: Any = table.store
    changed = replace(store, missing_numbers=table.missing_numbers)
    return replace(table, store=changed, missing_numbers=())


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _Memory:
    """Where the columns of a batch lie in memory."""

    columns: NDArray[np.uint64]  # (columns,) address of the first value
    masks: NDArray[np.uint64]  # (columns,) address of the validity bitmap, or 0 without one
    bits: NDArray[np.int64]  # (columns,) number of the first row's bit
    arrays: tuple[Any, ...]  # keep the memory alive


def _memory(batch: Any, dtype: np.dtype[Any]) -> _Memory | None:
    """Return where columns lie, converted to one type; None if a buffer is too short or misaligned."""
    kind = pa.from_numpy_dtype(dtype)
    arrays = tuple(
        array if array.type == kind else array.cast(kind, safe=False) for array in batch.columns
    )
    columns, masks, bits = [], [], []
    for array in arrays:
        mask, values = array.buffers()
        end = array.offset + len(array)
        if not array.null_count:
            mask = None
        if values is None or values.size < end * dtype.itemsize or values.address % dtype.itemsize:
            return None
        if mask is not None and 8 * mask.size < end:
            return None
        columns.append(values.address + array.offset * dtype.itemsize)
        masks.append(0 if mask is None else mask.address)
        bits.append(array.offset)
    return _Memory(
        columns=np.array(columns, dtype=np.uint64),
        masks=np.array(masks, dtype=np.uint64),
        bits=np.array(bits, dtype=np.int64),
        arrays=arrays,
    )
