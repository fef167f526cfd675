"""Named columns of one table, whatever the format behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.select import choose

__all__ = ["Store", "TableColumns", "refuse_repeated", "table_columns"]


class Store(Protocol):
    """A table in one format: all its columns, read by name."""

    @property
    def where(self) -> str:
        """What the table is called in messages; public."""
        ...

    @property
    def header(self) -> tuple[str, ...]:
        """Names of all columns, without repeats (empty for columns without a name)."""
        ...

    @property
    def n(self) -> int:
        """Number of rows."""
        ...

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns whose declared type is not numeric."""
        ...

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`, as `Columns.blocks` does."""
        ...

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns as one label per row; for no names, the labels of the store itself."""
        ...


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TableColumns:
    """Some columns of a table: the `Columns` of every tabular format.

    Cells are numbers; missing ones are NaN. A cell that is not a number is an error that names the
    table and the column, and nothing else.
    """

    store: Store
    names: tuple[str, ...]
    id_columns: tuple[str, ...]
    missing_numbers: tuple[float, ...]  # numbers that mean a missing value, such as PLINK's -9

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.store.n

    @property
    def where(self) -> str:
        """What the table is called in messages."""
        return self.store.where

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """Names of the columns, or of the index of a frame, that hold the ids; None without ids."""
        index: tuple[str, ...] | None = getattr(self.store, "index_names", None)
        return self.id_columns or index

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<TableColumns of {self.where} n={self.n} columns={len(self.names)} (private)>"

    def select(
        self, wanted: str | Sequence[str], *, what: str = "columns", taken: Sequence[str] = ()
    ) -> Self:
        """Return other columns of the same table, by name or pattern; no cell is read.

        The pattern '*' leaves out columns that are `taken`.
        """
        available = [name for name in self.store.header if name and name not in self.id_columns]
        # A column of categories stands for its indicators, which may be asked for one by one as well.
        parts: dict[str, tuple[str, ...]] = getattr(self.store, "indicators", {})
        also = [part for name in available for part in parts.get(name, ())]
        chosen = choose(available, wanted, what=what, where=self.where, also=also, taken=taken)
        names = tuple(dict.fromkeys(part for name in chosen for part in parts.get(name, (name,))))
        self.store.check(names)
        return replace(self, names=names)

    def ids(self) -> Ids | None:
        """Return the label of each row, or None. Cost: a pass over the id columns of the table."""
        return self.store.labels(self.id_columns)

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in that order, in blocks of exactly `rows`."""
        self.store.check(self.names)
        for block in self.store.numbers(self.names, order, rows):
            if self.missing_numbers:
                yield np.where(np.isin(block, self.missing_numbers), np.nan, block)
            else:
                yield block


def table_columns(
    store: Store,
    *,
    columns: str | Sequence[str] | None,
    id_column: str | Sequence[str] | None,
    missing: Sequence[str],
) -> TableColumns:
    """Choose columns and ids of a store; all columns but the ids if `columns` is None."""
    ids: tuple[str, ...] = ()
    if id_column is not None:
        wanted = [id_column] if isinstance(id_column, str) else list(id_column)
        ids = choose(store.header, wanted, what="id columns", where=store.where, lists=False)
    if store.n <= 0:  # a damaged file may state a negative number
        raise InputError(f"{store.where} has columns but no rows")
    everything = TableColumns(
        store=store,
        names=tuple(name for name in store.header if name and name not in ids),
        id_columns=ids,
        missing_numbers=tuple(number for text in missing for number in _numbers(text)),
    )
    return everything if columns is None else everything.select(columns)


def refuse_repeated(header: Sequence[str], where: str) -> None:
    """Refuse a header in which one name means two columns."""
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise InputError(
            f"column {twice[0]!r} is in {where} more than once ({len(twice)} names in all are "
            "repeated); rename the columns"
        )


def _numbers(text: str) -> list[float]:
    """Return the number that a missing-value code spells, if it spells one."""
    try:
        number = float(text)
    except ValueError:
        return []
    return [number] if np.isfinite(number) else []
