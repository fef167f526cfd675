"""Sources made of columns: one store split into features and outcomes, or two stores row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Block, Columns, Ids, Rows, Source
from primo.rows.sources.row_owners import id_names_of, rows_per_person_of
from primo.rows.sources.table_columns import TableColumns

__all__ = [
    "PairedSource",
    "SplitSource",
    "StackedColumns",
    "Unmatched",
    "compose_rows",
    "labels_of",
    "one_block",
    "select_ids",
]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class SplitSource:
    """One store whose first `d` columns are the features and whose others are the outcomes."""

    columns: Columns
    d: int
    rows: Rows  # stored rows, in the order in which they are read

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features."""
        return self.columns.names[: self.d]

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the l outcomes."""
        return self.columns.names[self.d :]

    def __repr__(self) -> str:
        """Show the schema only."""
        return _schema(self)

    @property
    def rows_per_person(self) -> int:
        """How many rows one person owns."""
        return rows_per_person_of(self.columns)

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """Names of the columns that hold the ids, or None."""
        return id_names_of(self.columns)

    def ids(self) -> Ids | None:
        """Return the label of each row, or None."""
        return select_ids(self.columns, self.rows)

    def other_ids(self) -> Ids | None:
        """Return another spelling of the same ids, or None."""
        return _other_ids(self.columns, self.rows)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield every row once, at most `rows` at a time."""
        for block in self.columns.blocks(self.rows, rows):
            yield Block(features=block[:, : self.d], outcomes=block[:, self.d :])

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop` as a separate source."""
        return replace(self, rows=self.rows[start:stop])


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class _TwoStores:
    """Features in one store and outcomes in another, before a row is read."""

    features: Columns
    outcomes: Columns

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features."""
        return self.features.names

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the l outcomes."""
        return self.outcomes.names

    @property
    def rows_per_person(self) -> int:
        """How many rows one person owns."""
        return rows_per_person_of(self.features)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PairedSource(_TwoStores):
    """Features from one store, outcomes from another: row i is `feature_rows[i]`, `outcome_rows[i]`."""

    feature_rows: Rows
    outcome_rows: Rows

    def __post_init__(self) -> None:
        """Check that the two choices of rows belong together."""
        if len(self.feature_rows) != len(self.outcome_rows):
            raise InputError(
                f"{len(self.feature_rows)} rows of features but {len(self.outcome_rows)} rows of "
                "outcomes; give both the same rows, or ids to join them by"
            )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.feature_rows)

    def __repr__(self) -> str:
        """Show the schema only."""
        return _schema(self)

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """Names of the columns that hold the ids, or None."""
        found = id_names_of(self.features)
        return found if found is not None else id_names_of(self.outcomes)

    def ids(self) -> Ids | None:
        """Return the label of each row, or None."""
        found = select_ids(self.features, self.feature_rows)
        return found if found is not None else select_ids(self.outcomes, self.outcome_rows)

    def other_ids(self) -> Ids | None:
        """Return another spelling of the same ids, or None."""
        if id_names_of(self.features) is not None:
            return _other_ids(self.features, self.feature_rows)
        return _other_ids(self.outcomes, self.outcome_rows)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Yield every row once, at most `rows` at a time."""
        pairs = zip(
            self.features.blocks(self.feature_rows, rows),
            self.outcomes.blocks(self.outcome_rows, rows),
            strict=True,
        )
        for features, outcomes in pairs:
            yield Block(features=features, outcomes=outcomes)

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop` as a separate source."""
        return replace(
            self,
            feature_rows=self.feature_rows[start:stop],
            outcome_rows=self.outcome_rows[start:stop],
        )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Unmatched(_TwoStores):
    """Two stores whose ids were not compared yet: enough for a plan, but no row can be read.

    A plan that is only shown (`primo fit --dry-run`) must not tell how many ids two files share: a user
    who brings their own file would learn from it, without any charge, who is in the other one.
    """

    n: int  # rows at most
    join: Callable[[], PairedSource]  # finds out who is in both; reads the ids for the first time

    def __repr__(self) -> str:
        """Show the schema only."""
        return _schema(self)

    def ids(self) -> Ids | None:
        """Raise an error: the rows were not matched."""
        raise InputError(_NOT_MATCHED)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Raise an error: the rows were not matched."""
        raise InputError(_NOT_MATCHED)

    def part(self, start: int, stop: int) -> Self:
        """Raise an error: the rows were not matched."""
        raise InputError(_NOT_MATCHED)


_NOT_MATCHED = "the rows of these files were opened for a plan only; open them again to read them"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StackedColumns:
    """The columns of several stores side by side: row i is row `rows[k][i]` of each store k."""

    parts: tuple[Columns, ...]
    rows: tuple[Rows, ...]

    def __post_init__(self) -> None:
        """Check that column names do not repeat and that all stores give equally many rows."""
        twice = next((n for n, count in Counter(self.names).items() if count > 1), None)
        if twice is not None:
            raise InputError(f"column {twice!r} is in two of the files; choose it in one of them")
        if len({len(rows) for rows in self.rows}) != 1:
            raise InputError("the files do not have the same rows; give ids to join them by")

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.rows[0])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns of all stores, one store after the other."""
        return tuple(name for part in self.parts for name in part.names)

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<StackedColumns n={self.n} columns={len(self.names)} (private)>"

    @property
    def rows_per_person(self) -> int:
        """How many rows one person owns."""
        return max(map(rows_per_person_of, self.parts))

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """Names of the columns that hold the ids of the first labelled store, or None."""
        return next((names for names in map(id_names_of, self.parts) if names is not None), None)

    def ids(self) -> Ids | None:
        """Return the labels that the first labelled store gives."""
        for part, rows in zip(self.parts, self.rows, strict=True):
            found = select_ids(part, rows)
            if found is not None:
                return found
        return None

    def other_ids(self) -> Ids | None:
        """Return another spelling of those labels, or None."""
        for part, rows in zip(self.parts, self.rows, strict=True):
            if id_names_of(part) is not None:
                return _other_ids(part, rows)
        return None

    def labels(self) -> Ids | None:
        """Return the labels that distinguish the rows in that store; they may be longer than `ids`."""
        for part, rows in zip(self.parts, self.rows, strict=True):
            found = labels_of(part)
            if found is not None:
                chosen: Ids = found[_as_index(rows)]
                return chosen
        return None

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the rows `order`, in blocks of `rows`."""
        walks = [
            part.blocks(compose_rows(stored, order), rows)
            for part, stored in zip(self.parts, self.rows, strict=True)
        ]
        for blocks in zip(*walks, strict=True):
            yield np.hstack(blocks)


def one_block(
    source: Source, block: Literal["features", "outcomes"], rows: int
) -> Iterator[NDArray[Any]]:
    """Yield the features or the outcomes of all rows; the columns of the other block are not read.

    Except from a source that is not primo's own, which can only be read as a whole.
    """
    if isinstance(source, SplitSource) and isinstance(source.columns, TableColumns):
        names = source.feature_names if block == "features" else source.outcome_names
        return replace(source.columns, names=names).blocks(source.rows, rows)
    if isinstance(source, PairedSource) and block == "features":
        return source.features.blocks(source.feature_rows, rows)
    if isinstance(source, PairedSource):
        return source.outcomes.blocks(source.outcome_rows, rows)
    if isinstance(source, Unmatched):
        columns = source.features if block == "features" else source.outcomes
        return columns.blocks(range(columns.n), rows)
    return (getattr(part, block) for part in source.blocks(rows))


def select_ids(columns: Columns, rows: Rows) -> Ids | None:
    """Return the labels of the chosen rows, or None where the store has none."""
    found = columns.ids()
    return None if found is None else found[_as_index(rows)]


def _other_ids(columns: Columns, rows: Rows) -> Ids | None:
    own = getattr(columns, "other_ids", None)
    found: Ids | None = own() if callable(own) else None
    return None if found is None else found[_as_index(rows)]


def labels_of(columns: Columns) -> Ids | None:
    """Return the store's own labels of its rows, for people to read; its ids where it has no others."""
    own = getattr(columns, "labels", None)
    found: Ids | None = own() if callable(own) else columns.ids()
    return found


def compose_rows(stored: Rows, order: Rows) -> Rows:
    """Return the stored rows at the places `order`."""
    if isinstance(stored, range) and isinstance(order, range):
        part: range = stored[_as_index(order)]
        return part
    picked: NDArray[np.intp] = np.asarray(stored, dtype=np.intp)[_as_index(order)]
    return picked


def _as_index(rows: Rows) -> Any:
    """Return a range as a slice; for a range that runs down to row 0 the slice ends with None."""
    if not isinstance(rows, range):
        return rows
    return slice(rows.start, rows.stop if rows.stop >= 0 else None, rows.step)


def _schema(source: SplitSource | PairedSource | Unmatched) -> str:
    d, l = len(source.feature_names), len(source.outcome_names)
    return f"<{type(source).__name__} n={source.n} d={d} l={l} (private)>"
