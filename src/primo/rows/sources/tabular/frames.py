"""Tables in memory: pandas and polars frames, Arrow tables. Only blocks are copied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from primo.errors import InputError, NotNumericError
from primo.levels import Levels
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.canonical import joined_ids
from primo.rows.sources.level_columns import code_batch, coded_cells
from primo.rows.sources.table_columns import TableColumns, refuse_repeated, table_columns
from primo.rows.sources.tabular.arrow import (
    attempt,
    float_type,
    recoding,
    refuse_text,
    to_floats,
    to_ids,
)
from primo.rows.sources.tabular.index import index_labels, index_names

__all__ = ["ArrowFrame", "PandasFrame", "is_frame", "open_frame"]


def is_frame(table: Any) -> bool:
    """Whether this is a frame of pandas or polars, or a table of Arrow; imports none of them."""
    return type(table).__module__.partition(".")[0] in ("pandas", "polars", "pyarrow")


def open_frame(
    frame: Any,
    *,
    columns: str | Sequence[str] | None = None,
    id_column: str | Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
) -> TableColumns:
    """Open a frame; it is held, not copied, and must not change meanwhile.

    The ids are those of `id_column`. Without it, they are the index of a pandas frame, unless that
    only counts rows. Pickling the result pickles the frame.
    """
    store: PandasFrame | ArrowFrame
    kind = f"{type(frame).__module__.partition('.')[0]}.{type(frame).__name__}"
    if kind == "pandas.DataFrame":
        store = PandasFrame(frame=frame, header=tuple(str(name) for name in frame.columns))
    elif kind == "polars.DataFrame":
        store = ArrowFrame(table=frame.to_arrow(), where="the polars frame")
    elif kind == "pyarrow.Table":
        store = ArrowFrame(table=frame, where="the Arrow table")
    elif kind == "polars.LazyFrame":
        raise InputError("the table is a lazy frame; call .collect() first")
    else:
        raise InputError(f"expected a table, got {kind}; give a data frame with named columns")
    refuse_repeated(store.header, store.where)
    return table_columns(store, columns=columns, id_column=id_column, missing=missing or ())


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PandasFrame:
    """The `Store` of a pandas frame."""

    frame: Any
    header: tuple[str, ...]
    where: str = "the pandas frame"
    levels: Mapping[str, Levels] = field(default_factory=dict)  # of columns that are read as codes

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.frame)

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<PandasFrame n={self.n} (private)>"

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns whose declared type is not numeric."""
        for name, kind in zip(names, self.frame.dtypes.iloc[self._places(names)], strict=True):
            # Objects may be numbers, which is found out when they are read; "b" to "f" are numbers.
            text = kind in ("category", "string")
            if name not in self.levels and (getattr(kind, "kind", "O") not in "biufO" or text):
                raise NotNumericError(
                    _not_numbers(name, f"holds {kind}, not numbers"), remedy=recoding(name)
                )

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`; one block at a time is copied from the frame."""
        places = self._places(names)
        for start in range(0, len(order), rows):
            # Rows first: a slice of rows is a view, a choice of columns is a copy of all of them.
            part = self.frame.iloc[_as_index(order[start : start + rows])].iloc[:, places]
            coded = self.levels.keys() & set(names)
            plain = _is_plain(part) and not coded
            block = part.to_numpy() if plain else _objects_as_floats(part, names, self.levels)
            yield block.copy() if np.shares_memory(block, self.frame) else block

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns, or the index, as one label per row."""
        if names:
            columns = [self.frame.iloc[:, place] for place in self._places(names)]
            for name, column in zip(names, columns, strict=True):
                if getattr(column.dtype, "kind", "O") == "f":
                    raise InputError(
                        f"column {name!r} of {self.where} holds {column.dtype}: ids must be text or "
                        "whole numbers"
                    )
            return joined_ids([column.tolist() for column in columns])
        return index_labels(self.frame.index)

    @property
    def index_names(self) -> tuple[str, ...] | None:
        """Names of the levels of the index, where it names people."""
        return index_names(self.frame.index)

    def _places(self, names: Sequence[str]) -> list[int]:
        place = {name: i for i, name in enumerate(self.header)}
        return [place[name] for name in names]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ArrowFrame:
    """The `Store` of an Arrow table, and so of a polars frame, whose columns Arrow shares."""

    table: Any
    where: str
    levels: Mapping[str, Levels] = field(default_factory=dict)  # of columns that are read as codes

    @property
    def header(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.table.column_names)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.table.num_rows)

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<ArrowFrame n={self.n} (private)>"

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns whose declared type is not numeric."""
        refuse_text(self._types(), [n for n in names if n not in self.levels], self.where)

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`; one block at a time is copied from the table."""
        chosen = self.table.select(list(names))
        coded = dict.fromkeys(self.levels, pa.float32())
        dtype = float_type({**self._types(), **coded}, names)
        for start in range(0, len(order), rows):
            wanted = order[start : start + rows]
            if isinstance(wanted, range) and wanted.step == 1:
                part = chosen.slice(wanted.start, len(wanted))
            else:
                part = chosen.take(np.asarray(wanted, dtype=np.intp))
            yield to_floats(code_batch(part, self.levels), dtype)

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns as one label per row."""
        return to_ids(self.table.select(list(names)), self.where) if names else None

    def _types(self) -> dict[str, Any]:
        return dict(zip(self.header, self.table.schema.types, strict=True))


def _as_index(rows: Rows) -> Any:
    """Return a range as a slice; for a range that runs down to row 0 the slice ends with None."""
    if not isinstance(rows, range):
        return rows
    return slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)


def _is_plain(frame: Any) -> bool:
    """Whether all columns are NumPy's own numbers, of one kind or of kinds that can be mixed."""
    kinds = {str(getattr(kind, "kind", "O")) for kind in frame.dtypes}
    numpy = all(isinstance(kind, np.dtype) for kind in frame.dtypes)
    return numpy and (kinds <= set("iuf") or kinds == {"b"})


def _objects_as_floats(
    frame: Any, names: Sequence[str], levels: Mapping[str, Levels]
) -> NDArray[np.float64]:
    """Convert objects and nullable columns, one by one, so that an error can name the column."""
    block = np.empty(frame.shape)
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        convert: Callable[[], Any] = partial(column.to_numpy, dtype=np.float64, na_value=np.nan)
        if name in levels:
            convert = partial(coded_cells, column.tolist(), levels[name])
        problem = NotNumericError(
            _not_numbers(name, "holds something that is not a number"), remedy=recoding(name)
        )
        block[:, j] = attempt(convert, partial(_instead, problem))
    return block


def _instead(problem: InputError, _: str) -> InputError:
    return problem


def _not_numbers(name: str, what: str) -> str:
    return f"column {name!r} of the pandas frame {what}. The cell itself stays private"
