"""Open tables of any format, and make sources of one table or of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from primo.errors import Argument, InputError, Message
from primo.rows.sources.base import Source
from primo.rows.sources.join import match
from primo.rows.sources.level_columns import levels_of, stored_names, with_levels
from primo.rows.sources.paired import PairedSource, SplitSource, Unmatched
from primo.rows.sources.select import refuse_overlap
from primo.rows.sources.table_columns import TableColumns
from primo.rows.sources.tabular.frames import is_frame, open_frame
from primo.rows.sources.tabular.parquet import open_feather, open_parquet
from primo.rows.sources.tabular.text import open_text

__all__ = ["COLUMNAR", "open_table", "table_source"]

_TEXT = (".csv", ".tsv", ".txt", ".tab", ".pheno", ".phen", ".cov", ".covar")
_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow", ".ipc")

#: Endings of files that store columns, with their types.
COLUMNAR = _PARQUET + _FEATHER

Names = str | Sequence[str]


def open_table(
    table: Any,
    *,
    columns: Names | None = None,
    id_column: Names | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
    decimal: str = ".",
    levels: Mapping[str, Sequence[Any]] | None = None,
    scratch: str | Path | None = None,
) -> TableColumns:
    """Open a table by the name of its file, or a frame.

    Parameters
    ----------
    table
        A path: text (`.csv`, `.tsv`, `.txt` and other names of PLINK's text files, also with `.gz`),
        Parquet (`.parquet`, `.pq`) or Arrow (`.feather`, `.arrow`, `.ipc`); or a frame of pandas or
        polars, or an Arrow table.
    columns
        Names and shell patterns of the columns to read; all but the ids if None.
    id_column
        The column that names the person, or several, whose values are joined by a tab.
    missing
        Cells that mean a missing value. See `tabular.text.open_text`. In other formats nulls and NaN
        always do, and codes that are numbers ("-9") can be added.
    separator
        Separator of a text file, where the name of the file does not determine it.
    decimal
        "," if the numbers of a text file have a decimal comma.
    levels
        Public levels of columns of categories, by name or pattern: ``{"sex": ["F", "M"]}``. Such a
        column becomes the indicators of all levels but the first (`sex=M`). A value that is no level is
        missing.
    scratch
        Folder for private rows that are read in another order than the stored one; see
        `primo.rows.sources.spill`.

    Cost: reads names and counts rows, which takes a pass over the bytes of a text file.
    """
    everything = _open_all(
        table,
        id_column=id_column,
        missing=missing,
        separator=separator,
        decimal=decimal,
        scratch=scratch,
    )
    coded = with_levels(everything, levels)
    return coded if columns is None else coded.select(columns)


def _open_all(
    table: Any,
    *,
    id_column: Names | None,
    missing: Sequence[str] | None,
    separator: str | None,
    decimal: str,
    scratch: str | Path | None,
) -> TableColumns:
    """Open all columns of a table but the ids."""
    if is_frame(table):
        return open_frame(table, id_column=id_column, missing=missing)
    if not isinstance(table, str | Path):
        raise InputError(f"expected a table, got {type(table).__name__}; give {_supported()}")
    suffixes = [suffix.lower() for suffix in Path(table).suffixes]
    packed = suffixes[-1:] in ([".gz"], [".bgz"])
    kind = (suffixes[:-1] if packed else suffixes)[-1:]
    suffix = kind[0] if kind else ""
    if suffix in _TEXT or separator is not None:
        return open_text(
            table,
            id_column=id_column,
            missing=missing,
            separator=separator,
            decimal=decimal,
            scratch=scratch,
        )
    if suffix not in _PARQUET + _FEATHER or packed:
        if Path(table).is_dir():
            raise InputError(f"{table} is a folder; give a file")
        raise InputError(f"{table} is not a kind of table that primo knows; give {_supported()}")
    opener = open_parquet if suffix in _PARQUET else open_feather
    return opener(table, id_column=id_column, missing=missing, scratch=scratch)


def table_source(
    table: Any,
    *,
    features: Names,
    outcomes: Names,
    outcomes_table: Any = None,
    id_column: Names | None = None,
    same_order: bool = False,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
    decimal: str = ".",
    levels: Mapping[str, Sequence[Any]] | None = None,
    outcome_levels: Mapping[str, Sequence[Any]] | None = None,
    scratch: str | Path | None = None,
    matched: bool = True,
) -> Source:
    r"""Make a source of one table, or of a table of features and one of outcomes.

    `table` and `outcomes_table` are what `open_table` takes, or what it returned, if the two need
    different settings; `features` and `outcomes` are names and patterns of columns (features "*": all
    that are not outcomes), and `levels` those
    of categories, which become indicators (`open_table`); `outcome_levels` are those of the outcomes, if
    the same names or patterns mean something else there. Two tables are
    joined by `id_column`, and hold the people who are in both. Without ids, `same_order=True` states
    that row i is the same person in both; only the number of rows can be checked.

    Where tables are joined, an id may occur only once. In a single table, a fit refuses ids that occur
    more often than its `rows_per_person` allows. With `matched=False` no id is read: two tables that
    are joined by ids then make a source for a plan only, of as many rows as the shorter one has.

    Cost: opening; to join, a pass over each id column. The rows follow the table with more columns,
    which is read front to back; the other one goes through `scratch` if its order differs.

    Examples
    --------
    >>> from pathlib import Path
    >>> import primo
    >>> lines = ["id,age,dose,pulse", "a,40,1,70", "b,50,2,80", "c,60,0,75"]
    >>> _ = Path("cohort.csv").write_text("\n".join(lines))
    >>> source = primo.table_source(
    ...     "cohort.csv", features=["age", "dose"], outcomes=["pulse"], id_column="id"
    ... )
    >>> source.n, source.feature_names, source.outcome_names
    (3, ('age', 'dose'), ('pulse',))
    """
    if outcome_levels is None:
        outcome_levels = levels

    def opened(source: Any) -> TableColumns:
        if isinstance(source, TableColumns):
            return source
        return open_table(
            source,
            id_column=id_column,
            missing=missing,
            separator=separator,
            decimal=decimal,
            scratch=scratch,
        )

    whole = opened(table)
    if outcomes_table is None:
        right = with_levels(whole, outcome_levels).select(outcomes, what="outcomes")
        left = with_levels(whole, levels).select(
            features, what="features", taken=stored_names(right)
        )
        refuse_overlap(stored_names(left), stored_names(right))
        known = {**levels_of(left), **levels_of(right)}
        both = with_levels(whole, known).select([*left.names, *right.names])
        return SplitSource(columns=both, d=len(left.names), rows=range(left.n))
    left = with_levels(whole, levels).select(features, what="features")
    other = with_levels(opened(outcomes_table), outcome_levels)
    right = other.select(outcomes, what="outcomes")
    refuse_overlap(left.names, right.names)
    if same_order:
        return _in_same_order(left, right)
    for table_ in (left, right):
        _refuse_without_ids(table_)
    if not matched:
        return Unmatched(
            features=left,
            outcomes=right,
            n=min(left.n, right.n),
            join=partial(_joined, left, right),
        )
    return _joined(left, right)


def _in_same_order(left: TableColumns, right: TableColumns) -> PairedSource:
    if left.id_columns and right.id_columns:
        raise InputError(
            "give ids to join the tables by, or ", Argument("same_order", True), ", not both"
        )
    if left.n != right.n:
        raise InputError(
            f"{left.where} has {left.n} rows and {right.where} has {right.n}, so they cannot be the "
            "same people in the same order",
            argument="same_order",
            value=True,
            remedy=Message.of("give the column that names them as ", Argument("id_column")),
        )
    for table in (left, right):
        if getattr(table.store, "skips", False):
            raise InputError(
                f"{table.where} has blank lines. They are skipped, so the same row might be another "
                "person in the other table. Delete the lines that are nobody's, write NA into all "
                "cells of the others, or join the tables by ",
                Argument("id_column"),
            )
    return PairedSource(
        features=left, outcomes=right, feature_rows=range(left.n), outcome_rows=range(right.n)
    )


def _joined(left: TableColumns, right: TableColumns) -> PairedSource:
    ids = [found for found in (left.ids(), right.ids()) if found is not None]
    lead = 0 if len(left.names) >= len(right.names) else 1
    found = match(ids, labels=[left.where, right.where], order=lead)
    return PairedSource(
        features=left, outcomes=right, feature_rows=found.rows[0], outcome_rows=found.rows[1]
    )


def _refuse_without_ids(columns: TableColumns) -> None:
    if columns.id_names is None:
        raise InputError(
            f"{columns.where} has no ids to join by",
            argument="id_column",
            remedy=Message.of(
                "name the column that holds them as ",
                Argument("id_column"),
                ", or state with ",
                Argument("same_order", True),
                " that both tables hold the same people in the same order",
            ),
        )


def _supported() -> str:
    names = ", ".join([*_TEXT, *_PARQUET, *_FEATHER])
    return f"a file ({names}; text also with .gz), or a frame of pandas, polars or Arrow"
