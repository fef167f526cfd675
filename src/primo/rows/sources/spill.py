"""Rows written in one order and read in another; on disk if they are many.

The file is inside the trust boundary: it holds private cells. It never has a name (other programs
cannot open it), only the owner may read it, and it disappears with the process, even if that is killed.
Its folder is the system's temporary one (`TMPDIR`) or the one given; choose a local disk
that is encrypted where the data's own disk is.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from primo.errors import Advice, InputError

__all__ = ["Scratch"]

#: A table of up to this many bytes stays in memory; of a larger one, this many are mapped at a time.
MEMORY = 2**25


class Scratch:
    """A table (rows, columns) that is written and read by rows.

    Cost: rows · columns · itemsize bytes of disk (none below 32 MB), 32 MB of memory.
    """

    def __init__(
        self, shape: tuple[int, int], dtype: DTypeLike, folder: str | Path | None = None
    ) -> None:
        """Make room for the whole table, so that a full disk is noticed now and not half-way."""
        size = shape[0] * shape[1] * np.dtype(dtype).itemsize
        self._map: mmap.mmap | None = None
        self._touched = 0
        self._table: NDArray[Any]
        if size <= MEMORY:
            self._table = np.empty(shape, dtype)
            return
        problem = None
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                if shutil.disk_usage(folder or tempfile.gettempdir()).free < size:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                _allocate(file.fileno(), size)
                self._map = mmap.mmap(file.fileno(), size)
        except OSError as error:
            problem = error.strerror
        if self._map is None:
            raise InputError(
                f"reading in another order needs {size / 2**30:.2f} GB of scratch space in "
                f"{folder or tempfile.gettempdir()} ({problem}); give another folder (",
                Advice("scratch", "scratch=..., or "),
                "the variable TMPDIR), or sort the tables by id",
            )
        self._table = np.frombuffer(self._map, dtype).reshape(shape)

    def __repr__(self) -> str:
        """Show the shape only."""
        return f"<Scratch {self._table.shape} (private)>"

    def write(self, start: int, rows: NDArray[Any]) -> None:
        """Write rows, the first one at place `start`."""
        self._table[start : start + len(rows)] = rows
        self._release_pages(rows.nbytes)

    def read(self, places: NDArray[np.intp]) -> NDArray[Any]:
        """Return a copy of the rows at these places, in this order."""
        rows: NDArray[Any] = self._table[places]
        self._release_pages(len(places) * max(rows.nbytes // max(len(rows), 1), mmap.PAGESIZE))
        return rows

    def _release_pages(self, touched: int) -> None:
        """Release mapped pages from time to time: they stay in the file, not in this process."""
        self._touched += touched
        if self._map is not None and self._touched > MEMORY and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)
            self._touched = 0


def _allocate(file: int, size: int) -> None:
    """Reserve the bytes: writing into a mapped hole on a full disk would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # pragma: no cover  (macOS)
        os.truncate(file, size)
