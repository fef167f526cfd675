"""Columns from Dask arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError, PrimoError
from primo.rows.sources.arrays.chunked import check_names, check_table, plain, plain_type, walk
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.paired import PairedSource

__all__ = ["DaskColumns", "dask_source"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DaskColumns:
    """A Dask array (rows, columns); `dask_source` makes it.

    When it is read here, Dask computes it with its default scheduler, a few chunks at a time, at least
    one chunk of rows. `primo.rows.cluster` instead folds the chunks on the workers that hold them.
    """

    array: Any  # dask.array.Array (n, columns)
    names: tuple[str, ...]

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.array.shape[0])

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<DaskColumns n={self.n} columns={len(self.names)} (private)>"

    def ids(self) -> Ids | None:
        """Return None: Dask arrays do not label their rows."""
        return None

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the rows `order`, in blocks of `rows`."""
        return walk(
            self._read,
            starts=np.cumsum((0, *self.array.chunks[0]), dtype=np.intp),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=plain_type(self.array.dtype),
            whole=True,  # a chunk may take hours to compute, so it is never computed in two halves
        )

    def _read(self, first: int, stop: int) -> NDArray[Any]:
        try:
            return plain(np.asarray(self.array[first:stop].compute()))
        except PrimoError:
            raise
        except Exception as error:
            failure = type(error).__name__
        # Outside the handler: the old error may quote cells, and the new one must not refer to it.
        raise InputError(
            f"Dask could not compute the rows ({failure}); compute a chunk of the array by hand "
            "to see why. The original message stays private"
        )


def dask_source(
    features: Any,
    outcomes: Any,
    feature_names: Sequence[str] | None = None,
    outcome_names: Sequence[str] | None = None,
) -> PairedSource:
    """Return a source over two Dask arrays (n, d) and (n, l) of the same rows; nothing is computed.

    Names are x0, x1, … and y0, y1, … if none are given.
    """
    x = _columns(features, feature_names, "features", "x")
    y = _columns(outcomes, outcome_names, "outcomes", "y")
    return PairedSource(features=x, outcomes=y, feature_rows=range(x.n), outcome_rows=range(y.n))


def _columns(array: Any, names: Sequence[str] | None, block: str, stem: str) -> DaskColumns:
    if not (hasattr(array, "dask") and hasattr(array, "to_delayed") and hasattr(array, "chunks")):
        raise InputError(
            f"the {block} must be a Dask array, not {type(array).__name__}; make one with "
            "dask.array.from_array, or from a Dask frame with .to_dask_array(lengths=True)"
        )
    if any(np.isnan(size) for axis in array.chunks for size in axis):
        raise InputError(
            f"the sizes of the chunks of the {block} are unknown; call .compute_chunk_sizes() first"
        )
    place = f"the Dask array of {block}"
    check_table(place, array.shape, array.dtype)
    # Otherwise chunks of several types would be joined in the type of the first one.
    kind = array.dtype
    alike = array.map_blocks(_as_declared, kind=kind, dtype=kind, meta=np.empty((0, 0), kind))
    return DaskColumns(array=alike, names=check_names(place, names, array.shape[1], stem))


def _as_declared(chunk: Any, *, kind: np.dtype[Any]) -> NDArray[Any]:
    """Return a chunk in the declared type of the array; the chunk's own type may depend on its rows."""
    found = np.asarray(chunk)
    if not np.can_cast(found.dtype, kind):
        raise InputError(
            f"a Dask array says that it holds {kind}, but not all of its chunks do; make them alike "
            "where they come from, for example with .astype('float64')"
        )
    return found.astype(kind, copy=False)
