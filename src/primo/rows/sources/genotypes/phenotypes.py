"""Phenotype and covariate files in the convention of PLINK and regenie: `FID IID name name ...`."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from primo.errors import InputError
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.level_columns import with_levels
from primo.rows.sources.table_columns import TableColumns
from primo.rows.sources.tabular.arrow import existing_file
from primo.rows.sources.tabular.tables import COLUMNAR, open_table
from primo.rows.sources.tabular.text import (
    MISSING,
    PLINK_MISSING,
    open_bytes,
    open_text,
    refuse_other_kinds,
)

__all__ = ["open_covariates", "open_phenotypes", "people_of"]


def open_phenotypes(
    path: str | PathLike[str],
    *,
    also_missing: Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    decimal: str = ".",
) -> TableColumns:
    """Open outcomes. NA, nan, a dot and -9 are missing, as in PLINK, and the cells in `also_missing`.

    `levels` and `decimal` are those of `open_table`.
    """
    return with_levels(_open(path, (*PLINK_MISSING, *also_missing), decimal), levels)


def open_covariates(
    path: str | PathLike[str],
    *,
    also_missing: Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    decimal: str = ".",
) -> TableColumns:
    """Open further features. NA, nan, a dot and `also_missing` are missing; -9 is a number."""
    return with_levels(_open(path, (*MISSING, *also_missing), decimal), levels)


def people_of(table: TableColumns) -> People:
    """Read who the rows of such a file are. Cost: a pass over its first columns."""
    labels = table.ids()
    assert labels is not None  # `_open` checked it
    where = Path(table.where)
    if len(table.id_columns) == 1:
        return People(where=where, iid=labels, fid=None)
    parts = np.char.partition(labels, "\t")
    return People(where=where, iid=parts[:, 2], fid=parts[:, 0])


def _open(path: str | PathLike[str], missing: tuple[str, ...], decimal: str) -> TableColumns:
    if Path(path).suffix.lower() in COLUMNAR:
        return _open_columnar(Path(path), missing)
    _check_header(existing_file(Path(path)))
    table = open_text(Path(path), missing=missing, decimal=decimal)
    ids = tuple(name for name in ("FID", "IID") if name in table.names)
    names = tuple(name for name in table.names if name not in ids)
    if "IID" not in ids:
        raise InputError(
            f"{path} has no column IID when its lines are split: a .csv at commas, a .tsv at tabs, any "
            "other file at tabs or else at blanks. Rename the file, or write it with such a separator"
        )
    if not names:
        raise InputError(f"{path} has id columns but no others")
    return replace(table, id_columns=ids, names=names)


def _open_columnar(path: Path, missing: tuple[str, ...]) -> TableColumns:
    """Open the same columns in a Parquet or Arrow file."""
    try:
        return open_table(path, id_column=("FID", "IID"), missing=missing)
    except InputError:
        return open_table(path, id_column="IID", missing=missing)


def _check_header(path: Path) -> None:
    """Refuse a file without header: messages would quote its first line, which is about a person."""
    try:
        with open_bytes(path) as file:
            line = file.readline().removeprefix(codecs.BOM_UTF8)
    except (OSError, EOFError, zlib.error):
        return  # the reader says what is wrong with the file
    names = re.split(rb'[\s,;"#]+', line)
    refuse_other_kinds(line, path)
    if b"IID" not in names:
        case = " (in capitals)" if b"iid" in [name.lower() for name in names] else ""
        raise InputError(
            f"{path} has no column IID{case}; its first line must name the columns: FID IID and then "
            "the phenotypes or covariates (FID may be left out)"
        )
