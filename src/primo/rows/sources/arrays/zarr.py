"""Columns from Zarr arrays (formats 2 and 3)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import Advice, InputError, PrimoError
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

__all__ = ["ZarrColumns", "checked", "open_node", "open_zarr", "remember_store"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ZarrColumns:
    """A table in a Zarr array; `open_zarr` makes it.

    Cost: every chunk is opened once, and a few times where one row of chunks has more than 64 MB.
    Memory is that of a few such rows. A chunk that is absent holds the fill value, as the format says.
    """

    path: str
    array: str  # inside a group, or ""
    columns_first: bool
    n: int
    names: tuple[str, ...]
    labels: Ids | None
    id_name: str
    unchanged: Unchanged  # its metadata

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<ZarrColumns n={self.n} columns={len(self.names)} (private)>"

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
        array = open_node(self.path, self.array)

        def read(first: int, stop: int) -> NDArray[Any]:
            if not self.columns_first:
                return plain(array[first:stop])
            out = np.empty((stop - first, len(self.names)), dtype=plain_type(array.dtype))
            for part in _slices(len(self.names), array.chunks[0]):
                out[:, part] = array[part, first:stop].T
            return out

        return walk(
            checked(self.path, read),
            starts=chunk_starts(self.n, array.chunks[1 if self.columns_first else 0]),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=plain_type(array.dtype),
        )


def open_zarr(
    path: str | os.PathLike[str],
    array: str = "",
    *,
    names: Sequence[str] | None = None,
    ids: Sequence[str] | NDArray[Any] | None = None,
    id_name: str = "",
    columns_first: bool = False,
) -> ZarrColumns:
    """Open a Zarr array of shape (rows, columns); only its metadata are read.

    Parameters
    ----------
    path
        The store: a folder, a `.zip` file, or an address that Zarr knows.
    array
        Name of the array, where the store holds a group of them.
    names
        Names of the columns; the name of the array (or store) and a number if None.
    ids
        Labels of the rows, if there are any; private.
    id_name
        Name of these labels, such as "IID", for a ledger that fixes which column identifies people.
    columns_first
        The array has the shape (columns, rows), as genotypes often have. It is transposed in blocks.
    """
    path = os.fspath(path)
    place = f"{path}/{array}" if array else path
    unchanged = remember_store(path, array)
    node = checked(path, open_node)(path, array)
    if not hasattr(node, "chunks"):
        names_inside = checked(path, lambda: sorted(name for name, _ in node.arrays()))()
        inside = ", ".join(names_inside) or "none"
        raise InputError(
            f"{place} is a group of arrays ({inside})",
            argument="array",
            remedy=Advice("one_array", "say which with array=..."),
        )
    shape = node.shape[::-1] if columns_first else node.shape
    check_table(place, shape, node.dtype)
    n, width = shape
    stem = array.rsplit("/", 1)[-1] or Path(path).name.split(".")[0]
    return ZarrColumns(
        path=path,
        array=array,
        columns_first=columns_first,
        n=n,
        names=check_names(place, names, width, f"{stem}_"),
        labels=check_ids(place, ids, n),
        id_name=id_name,
        unchanged=unchanged,
    )


def remember_store(path: str, inside: str) -> Unchanged:
    """Record the state of a store's metadata, which change if the store is rewritten.

    The chunks are not checked: they are too many. A `.zip` is recorded as one file. For an
    address on the network nothing is recorded.
    """
    store = Path(path)
    if store.is_file():
        return remember(store)
    folders = dict.fromkeys((store, store / inside))
    names = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")
    found = [folder / name for folder in folders for name in names]
    return remember(*(file.absolute() for file in found if file.is_file()))


def checked(path: str, read: Callable[..., T]) -> Callable[..., T]:
    """Return `read` with an `InputError` where metadata or a chunk cannot be decoded."""

    def guarded(*args: Any) -> T:
        try:
            return read(*args)
        except PrimoError:
            raise
        except Exception as error:  # each codec has errors of its own
            failure = type(error).__name__
        raise InputError(
            f"{path} cannot be read ({failure}): its metadata or a chunk is damaged; copy it again"
        )

    return guarded


def open_node(path: str, inside: str = "") -> Any:
    """Return the Zarr array or group at `path` (and `inside` it), open for reading."""
    zarr = optional("zarr", extra="genomics", purpose="reading Zarr")
    if "://" not in path and not Path(path).exists():
        raise InputError(f"there is no Zarr store {path}")
    try:
        return zarr.open(store=path, path=inside, mode="r")
    except Exception as error:  # stores and codecs have errors of their own
        failure = type(error).__name__
    place = f"array {inside!r} in {path}" if inside else f"Zarr array or group at {path}"
    raise InputError(f"there is no {place}, or its metadata are damaged ({failure})")


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, start + step)
