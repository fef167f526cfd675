"""Columns of categories in a table, read as indicator columns by their public levels.

A store reads such a column as codes (`coded_cells`); `LevelStore` turns the codes into indicators. A
value that is no level is missing, like an empty cell, and follows the same rule. No message tells that
there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from primo.levels import Levels, levels_for
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.table_columns import Store, TableColumns

__all__ = [
    "LevelStore",
    "code_batch",
    "coded_cells",
    "levels_of",
    "stored_names",
    "with_levels",
]

#: Added to codes, so that no number that means a missing value (-9, 0, 99) is taken for one.
_OFFSET = 2.0**20


def coded_cells(cells: Iterable[Any], levels: Levels) -> NDArray[np.float64]:
    """Return the codes of cells, as stores give them; NaN where a cell is no level."""
    return _OFFSET + levels.codes(cells)


def code_batch(batch: Any, levels: Mapping[str, Levels]) -> Any:
    """Return an Arrow batch or table with the codes of the columns that have levels in their place."""
    for i, name in enumerate(batch.schema.names):
        if name in levels:
            column = batch.column(i)
            whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
            codes = pa.array(_coded(whole, levels[name]), pa.float32())
            batch = batch.set_column(i, name, codes)
    return batch


def _coded(column: Any, levels: Levels) -> NDArray[np.float64]:
    """Return the codes of an Arrow array; every distinct value is looked at once."""
    if not isinstance(column, pa.DictionaryArray):
        column = column.dictionary_encode()
    codes = coded_cells(column.dictionary.to_pylist(), levels)
    places = column.indices.cast(pa.int64()).fill_null(len(codes)).to_numpy(zero_copy_only=False)
    return np.asarray(np.append(codes, np.nan)[places])


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class LevelStore:
    """A table some of whose columns are categories: their indicators are columns, too."""

    store: Any  # a `Store` with a field `levels`
    levels: Mapping[str, Levels]
    missing_numbers: tuple[float, ...] = ()  # of a store that leaves them to its columns

    @property
    def where(self) -> str:
        """What the table is called in messages."""
        return str(self.store.where)

    @property
    def header(self) -> tuple[str, ...]:
        """Names of the columns of the table, categories under their own names."""
        return tuple(self.store.header)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.store.n)

    @property
    def skips(self) -> bool:
        """Whether there are blank lines, which are no rows."""
        return bool(getattr(self.store, "skips", False))

    @property
    def index_names(self) -> tuple[str, ...] | None:
        """Names of the levels of the index of a frame, where it names people."""
        found: tuple[str, ...] | None = getattr(self.store, "index_names", None)
        return found

    @property
    def indicators(self) -> dict[str, tuple[str, ...]]:
        """The indicators of every column of categories."""
        return {name: levels.indicators(name) for name, levels in self.levels.items()}

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<LevelStore {self.where} n={self.n} (private)>"

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns whose declared type is not numeric, except categories."""
        self.store.check(self.stored(names))

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`, indicators among them."""
        stored = self.stored(names)
        place = {name: i for i, name in enumerate(stored)}
        parts: list[
            tuple[int, Levels | None, int]
        ] = []  # stored column, its levels, which indicator
        owner = {
            indicator: (name, i)
            for name, indicators in self.indicators.items()
            for i, indicator in enumerate(indicators)
        }
        for name in names:
            base, i = owner.get(name, (name, 0))
            parts.append((place[base], self.levels.get(base), i))
        for block in self.store.numbers(stored, order, rows):
            floats = block if block.dtype.kind == "f" else block.astype(np.float64)
            made = np.empty((len(floats), len(names)), dtype=floats.dtype)
            for j, (column, levels, i) in enumerate(parts):
                if levels is None:
                    values = floats[:, column]
                    made[:, j] = np.where(np.isin(values, self.missing_numbers), np.nan, values)
                else:
                    made[:, j] = levels.expand(floats[:, column] - floats.dtype.type(_OFFSET))[:, i]
            yield made

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns as one label per row."""
        found: Ids | None = self.store.labels(names)
        return found

    def stored(self, names: Sequence[str]) -> list[str]:
        """Return the columns of the table behind these columns, each once."""
        owner = {i: name for name, indicators in self.indicators.items() for i in indicators}
        return list(dict.fromkeys(owner.get(name, name) for name in names))


def with_levels(table: TableColumns, stated: Mapping[str, Any] | None) -> TableColumns:
    """Return a table whose columns with stated levels are read as indicators; no cell is read.

    `stated` maps names, or patterns, of columns to their levels. Those that the table does not have are
    ignored: a study may have several files.
    """
    if not stated or isinstance(table.store, LevelStore):  # or they were stated when it was opened
        return table
    own = [name for name in table.store.header if name and name not in table.id_columns]
    found = levels_for(stated, own)
    if not found:
        return table
    inner: Store = replace(table.store, levels=found)  # type: ignore[type-var]
    store = LevelStore(store=inner, levels=found, missing_numbers=table.missing_numbers)
    indicators = store.indicators
    names = tuple(i for name in table.names for i in indicators.get(name, (name,)))
    return replace(table, store=store, names=names, missing_numbers=())


def stored_names(table: TableColumns) -> list[str]:
    """Return the columns of the file behind the chosen ones, each once."""
    store: Any = table.store
    return store.stored(table.names) if isinstance(store, LevelStore) else list(table.names)


def levels_of(table: TableColumns) -> dict[str, Levels]:
    """Return the levels of the chosen columns that have some, by their names in the file."""
    store: Any = table.store
    if not isinstance(store, LevelStore):
        return {}
    return {name: store.levels[name] for name in stored_names(table) if name in store.levels}
