"""Columns from a NumPy `.npy` file, memory-mapped a block at a time."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.arrays.chunked import (
    check_ids,
    check_names,
    check_table,
    chunk_starts,
    plain,
    plain_type,
    walk,
)
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.unchanged import Unchanged, remember

__all__ = ["NpyColumns", "open_npy"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class NpyColumns:
    """A table (rows, columns) in a `.npy` file; `open_npy` makes it.

    Cost: one copy. Pages are released once their block is copied, so the file may be larger than memory.
    Blocks are not views of the file: it could change after the last check and before they are used.
    """

    path: Path
    n: int
    names: tuple[str, ...]
    labels: Ids | None
    id_name: str
    dtype: np.dtype[Any]
    offset: int  # of the first number, in bytes
    by_columns: bool  # Fortran order
    unchanged: Unchanged

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<NpyColumns n={self.n} columns={len(self.names)} (private)>"

    def ids(self) -> Ids | None:
        """Return the labels that the caller gave for the rows, or None."""
        return self.labels

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """The name that the caller gave to the labels."""
        return None if self.labels is None else (self.id_name,)

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in blocks of `rows`."""
        return self.unchanged.during(self._walk(order, rows))

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        if self.by_columns:
            yield from self._across(order, rows)
            return
        for start in range(0, len(order), rows):
            part = order[start : start + rows]
            if isinstance(part, range) and part.step == 1:
                yield self._mapped(part)
            else:
                yield self._picked(np.asarray(part, dtype=np.intp))

    def _across(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield blocks of a file in Fortran order, where a row is spread over one page per column."""
        return walk(
            lambda first, stop: self._picked(slice(first, stop)),
            starts=chunk_starts(self.n, self.n),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=plain_type(self.dtype),
        )

    @property
    def _row_bytes(self) -> int:
        return len(self.names) * self.dtype.itemsize

    def _mapped(self, part: range) -> NDArray[Any]:
        """Return a copy of consecutive rows, from a separate memory map, which the system prefetches."""
        first = self.offset + part[0] * self._row_bytes
        page = first - first % mmap.ALLOCATIONGRANULARITY
        size = first - page + len(part) * self._row_bytes
        try:
            with self.path.open("rb") as file:
                pages = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ, offset=page)
        except (OSError, ValueError):
            raise _changed(self.path) from None
        if hasattr(mmap, "MADV_WILLNEED"):
            pages.madvise(mmap.MADV_WILLNEED)
        shape = (len(part), len(self.names))
        return plain(np.array(np.ndarray(shape, self.dtype, buffer=pages, offset=first - page)))

    def _picked(self, rows: Any) -> NDArray[Any]:
        """Return a copy of any rows; the memory map that they come from is closed again."""
        try:
            table = np.memmap(
                self.path,
                mode="r",
                dtype=self.dtype,
                offset=self.offset,
                shape=(self.n, len(self.names)),
                order="F" if self.by_columns else "C",
            )
        except (OSError, ValueError):
            raise _changed(self.path) from None
        return plain(np.array(table[rows], order="C", subok=False))


def open_npy(
    path: str | os.PathLike[str],
    names: Sequence[str] | None = None,
    ids: Sequence[str] | NDArray[Any] | None = None,
    id_name: str = "",
) -> NpyColumns:
    """Open a `.npy` file of shape (rows, columns); only its header is read.

    Parameters
    ----------
    path
        The file, as `np.save` writes it.
    names
        Names of the columns; the file's own name and a number if None.
    ids
        Labels of the rows, if there are any; private.
    id_name
        Name of these labels, such as "IID", for a ledger that fixes which column identifies people.
    """
    path = Path(path)
    place = str(path)
    if not path.is_file():
        raise InputError(f"there is no file {place}")
    unchanged = remember(path)
    shape, by_columns, dtype, offset = _header(path)
    check_table(place, shape, dtype)
    n, width = shape
    if path.stat().st_size < offset + n * width * dtype.itemsize:
        raise InputError(f"{place} is shorter than its header says: it was cut off; copy it again")
    return NpyColumns(
        path=path,
        n=n,
        names=check_names(place, names, width, f"{path.stem}_"),
        labels=check_ids(place, ids, n),
        id_name=id_name,
        dtype=dtype,
        offset=offset,
        by_columns=by_columns,
        unchanged=unchanged,
    )


def _header(path: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any], int]:
    """Return shape, order, type and where the numbers begin."""
    readers = {
        (1, 0): npy_format.read_array_header_1_0,
        (2, 0): npy_format.read_array_header_2_0,
    }
    with path.open("rb") as file:
        try:
            # Version 3 is for field names beyond Latin-1, and a table of numbers has no fields.
            shape, by_columns, dtype = readers[npy_format.read_magic(file)](file)
        except Exception:  # NumPy's parser of headers has errors of many kinds
            raise InputError(
                f"{path} is not a .npy file of numbers, or its header is damaged; write it with "
                "np.save (an .npz file holds several arrays: save the one you mean by itself)"
            ) from None
        return shape, by_columns, dtype, file.tell()


def _changed(path: Path) -> InputError:
    return InputError(
        f"{path} is no longer the file that was opened; do not change it while it is read"
    )
