"""One line per coefficient: as a frame, as arrays, or streamed into a file."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.release import Release
from primo.uncertainty.intervals import check, coefficient_block, outcome_blocks
from primo.uncertainty.multiple import benjamini_hochberg
from primo.uncertainty.system import system_of
from primo.uncertainty.testing import p_values, z_scores

__all__ = ["COLUMNS", "table_blocks", "tidy", "write_table"]

Columns = dict[str, NDArray[Any]]

#: Of the tidy table; `shrunk` and its interval are those of `primo.coefficients`.
COLUMNS = (
    "outcome",
    "feature",
    "estimate",
    "standard_error",
    "lower",
    "upper",
    "z",
    "p",
    "q",
    "shrunk",
    "shrunk_lower",
    "shrunk_upper",
    "trusted",
    "shrunk_trusted",
)


def tidy(release: Release, *, level: float = 0.95, target: str = "population") -> Any:
    """Return all slopes of all outcomes, one line each: a pandas DataFrame, or arrays without pandas.

    `estimate` with `lower` and `upper` is the unshrunk slope with its confidence interval, `shrunk`
    the slope to predict with and its posterior interval, `q` Benjamini-Hochberg over all slopes;
    `trusted` (and `shrunk_trusted`) as in
    `coefficient_intervals`.

    Guarantee: post-processing; costs no privacy. Cost: O(d²·l), memory for 14 columns of d·l.
    """
    blocks = list(table_blocks(release, level=level, target=target))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS}
    try:
        import pandas as pd  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return columns
    return pd.DataFrame(columns)


def write_table(
    release: Release, path: str | Path, *, level: float = 0.95, target: str = "population"
) -> Path:
    """Write the tidy table to a .tsv, .tsv.gz or .parquet file, a block of outcomes at a time.

    The file appears whole or not at all. Memory: d·l numbers for the p-values, and one block.
    """
    path = Path(path)
    writers = {".tsv": _tsv, ".tsv.gz": _tsv, ".parquet": _parquet}
    ending = next((e for e in writers if path.name.endswith(e)), None)
    if ending is None:
        raise InputError(f"{path.name}: give a name that ends in {', '.join(writers)}")
    part = path.with_name(path.name + ".part")
    try:
        with writers[ending](part, ending) as write:
            for block in table_blocks(release, level=level, target=target):
                write(block)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return path


def table_blocks(release: Release, *, level: float, target: str) -> Iterator[Columns]:
    """Yield the tidy table in blocks of outcomes, all features of an outcome together."""
    check(level=level, kind="confidence", target=target)
    system = system_of(release)
    d = system.d
    q = benjamini_hochberg(p_values(z_scores(system, target=target)[0]))
    features = np.array(system.feature_names, dtype=object)
    for part in outcome_blocks(system.l, d):
        plain = coefficient_block(system, part, kind="confidence", level=level, target=target)
        shrunk = coefficient_block(system, part, kind="posterior", level=level, target=target)
        z = np.asarray(plain.z)[:d]
        wide = {
            "estimate": plain.estimate[:d],
            "standard_error": plain.standard_error[:d],
            "lower": plain.lower[:d],
            "upper": plain.upper[:d],
            "z": z,
            "p": p_values(z),
            "q": q[:, part],
            "shrunk": shrunk.estimate[:d],
            "shrunk_lower": shrunk.lower[:d],
            "shrunk_upper": shrunk.upper[:d],
        }
        outcomes = np.array(plain.outcome_names, dtype=object)
        yield {
            "outcome": np.repeat(outcomes, d),
            "feature": np.tile(features, len(outcomes)),
            **{name: values.T.ravel() for name, values in wide.items()},
            "trusted": plain.trusted[:d].T.ravel(),
            "shrunk_trusted": shrunk.trusted[:d].T.ravel(),
        }


def _gzip(path: Path, mode: str, **text: Any) -> Any:
    return gzip.open(path, mode, compresslevel=3, **text)


@contextmanager
def _tsv(path: Path, ending: str) -> Iterator[Callable[[Columns], None]]:
    opened: Any = _gzip if ending.endswith(".gz") else open
    with opened(path, "wt", encoding="utf-8", newline="\n") as file:
        file.write("\t".join(COLUMNS) + "\n")

        def write(block: Columns) -> None:
            text = [
                [" ".join(str(name).split()) for name in block[column]]
                for column in ("outcome", "feature")
            ]
            numbers = [[f"{x:.7g}" for x in block[column].tolist()] for column in COLUMNS[2:-2]]
            flags = [["yes" if x else "no" for x in block[c].tolist()] for c in COLUMNS[-2:]]
            lines = zip(*text, *numbers, *flags, strict=True)
            file.writelines("\t".join(line) + "\n" for line in lines)

        yield write


@contextmanager
def _parquet(path: Path, _: str) -> Iterator[Callable[[Columns], None]]:
    try:
        import pyarrow as pa  # type: ignore[import-untyped, unused-ignore]
        import pyarrow.parquet as pq  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        raise InputError(
            "writing .parquet needs pyarrow; pip install pyarrow, or write a .tsv.gz"
        ) from None
    kinds = {"outcome": pa.string(), "feature": pa.string()}
    kinds |= {"trusted": pa.bool_(), "shrunk_trusted": pa.bool_()}
    schema = pa.schema([(name, kinds.get(name, pa.float64())) for name in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        yield lambda block: writer.write_table(pa.table(block, schema=schema))
