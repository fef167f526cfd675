"""Tidy results: one row for each method, repeat and cell, as Parquet."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.figures.grid import Unit
from primo._util.atomic import whole_file

__all__ = ["COLUMNS", "Score", "part_path", "read", "write"]


@dataclass(frozen=True, kw_only=True)
class Score:
    """What one method did on one draw of the data."""

    study: str
    features: str
    outcomes: str
    n: int
    d: int
    l: int
    repeat: int
    seed: int
    method: str
    protection: str  # "both", "features", "outcomes", or "none"
    epsilon_requested: float
    delta_requested: float
    epsilon_true: float  # what the method truly gives under replace-one; infinite without privacy
    delta_true: float
    r2: float  # pooled over outcomes, as in the paper
    mse: float
    log_ratio: float  # log(MSE / MSE of least squares)
    time_ratio: float  # to least squares on the same rows; NaN where only moments were drawn
    fitted_outcomes: int  # l, or fewer where a method is run on a sample of exchangeable outcomes
    from_moments: bool  # moments were drawn from their exact law, without rows
    skipped: str  # why there is no number, or ""
    version: str  # of primo
    commit: str


_TYPES: dict[str, pa.DataType] = {
    "str": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()
}  # fmt: skip
#: The schema of every result file.
COLUMNS = pa.schema(
    [(name, _TYPES[kind]) for name, kind in Score.__annotations__.items()]  # annotations are text
)


def part_path(folder: Path, study: str, unit: Unit, source: str = "") -> Path:
    """Return where the results of one unit of work are kept until the study is whole.

    `source` says which file of the user's the features come from, and in which state.
    """
    key = f"{unit.cell} repeat={unit.repeat}{source}"
    return folder / study / f"{hashlib.sha256(key.encode()).hexdigest()[:16]}.parquet"


def write(rows: Iterable[Score], path: Path) -> None:
    """Write rows, whole or not at all."""
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=COLUMNS)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        pq.write_table(table, file)


def read(path: Path) -> list[Score]:
    """Read rows that `write` wrote."""
    rows: list[dict[str, Any]] = pq.read_table(path, schema=COLUMNS).to_pylist()
    return [Score(**row) for row in rows]
