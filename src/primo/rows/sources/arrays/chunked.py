"""Shared by all stores of arrays: checks of their arguments, and reading chunks as blocks of rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError, NotNumericError
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.ordered import read_ordered

__all__ = [
    "check_ids",
    "check_names",
    "check_table",
    "chunk_starts",
    "plain",
    "plain_type",
    "walk",
]

#: Bytes of rows that are read at a time from a store in chunks.
STRETCH_BYTES = 2**26


def check_table(place: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse what is not a table of real numbers; looks at the shape and the type only."""
    if dtype.kind == "c":
        raise NotNumericError(f"{place} holds complex numbers ({dtype}); give real numbers")
    if dtype.kind not in "biuf":
        raise NotNumericError(
            f"{place} has the type {dtype}; store numbers, for example with .astype('float32')"
        )
    if len(shape) != 2:
        raise InputError(
            f"{place} has {len(shape)} axes; it must be a table of rows and columns. Store one "
            "column as values.reshape(-1, 1)"
        )
    if 0 in shape:
        raise InputError(f"{place} is empty: shape {shape}")


def check_names(place: str, names: Sequence[str] | None, width: int, stem: str) -> tuple[str, ...]:
    """Return the given names if they fit, or numbered ones."""
    if names is None:
        return tuple(f"{stem}{i}" for i in range(width))
    names = tuple(str(name) for name in names)
    if len(names) != width:
        raise InputError(f"{place} has {width} columns but {len(names)} names were given for them")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"the column name {twice!r} was given twice for {place}")
    return names


def check_ids(place: str, ids: Sequence[str] | NDArray[Any] | None, n: int) -> Ids | None:
    """Return the given labels in canonical spelling if there is one per row; messages quote none."""
    if ids is None:
        return None
    # Not as an array: NumPy would convert all to one type, and missing labels to text.
    values = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
    if not isinstance(values, list) or len(values) != n:
        raise InputError(f"{place} has {n} rows but the ids given for them are another number")
    return canonical_ids(values)


def plain_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the type of what `plain` returns for such numbers."""
    return np.dtype(np.uint8) if dtype.kind == "b" else dtype.newbyteorder("=")


def plain(block: NDArray[Any]) -> NDArray[Any]:
    """Return the same numbers in the machine's own byte order, and flags as 0 and 1."""
    dtype = plain_type(block.dtype)
    return block.view(dtype) if block.dtype.kind == "b" else block.astype(dtype, copy=False)


def walk(
    read: Callable[[int, int], NDArray[Any]],
    *,
    starts: NDArray[np.intp],
    order: Rows,
    rows: int,
    width: int,
    dtype: np.dtype[Any],
    whole: bool = False,
) -> Iterator[NDArray[Any]]:
    """Yield the rows `order` in blocks of `rows` from a store that reads consecutive rows.

    Chunk k holds the rows `starts[k]` to `starts[k + 1]`. `read(first, stop)` is called for up to
    `STRETCH_BYTES` of rows: several chunks together, or a part of a larger one (never if `whole`).
    """
    most = max(1, STRETCH_BYTES // (width * dtype.itemsize))
    if not whole:
        cuts = (np.arange(start, stop, most) for start, stop in pairwise(starts.tolist()))
        starts = np.concatenate([*cuts, starts[-1:]]).astype(np.intp)

    def pieces(chunks: NDArray[np.intp]) -> Iterator[tuple[int, NDArray[Any]]]:
        for first, stop in _stretches(chunks, starts, most):
            yield first, read(first, stop)

    return read_ordered(pieces, starts, order, rows, width=width, dtype=dtype)


def chunk_starts(n: int, chunk: int) -> NDArray[np.intp]:
    """Return where chunks of the same number of rows start, and where the last one ends."""
    return np.append(np.arange(0, n, chunk, dtype=np.intp), n)


def _stretches(
    chunks: NDArray[np.intp], starts: NDArray[np.intp], most: int
) -> Iterator[tuple[int, int]]:
    """Yield (first row, row after the last) of neighbouring chunks, up to `most` rows together."""
    first = stop = 0
    for chunk in chunks.tolist():
        start, end = int(starts[chunk]), int(starts[chunk + 1])
        if start != stop or end - first > most:
            if stop > first:
                yield first, stop
            first = start
        stop = end
    if stop > first:
        yield first, stop
