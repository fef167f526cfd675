"""Tables written a block of lines at a time; the size of a file does not depend on its numbers.

Text (names) and whole numbers (positions) are public, so their length may vary. Real numbers and flags
come from a mechanism or from rows, so in TSV they have a fixed width (except infinities, `inf`) and in
Parquet a fixed encoding: plain, uncompressed, without statistics. Only .tsv.gz is compressed, for
tables that are not published.
"""

from __future__ import annotations

import gzip
import io
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import as_text
from primo.errors import InputError

__all__ = ["ENDINGS", "Block", "Schema", "Write", "escaped", "open_table", "unescaped"]

#: Name of each column and what it holds: "text", "whole" (both may be None), "number" or "flag".
Schema = Mapping[str, str]
Block = Mapping[str, NDArray[Any]]
Write = Callable[[Block], None]

ENDINGS = (".tsv", ".tsv.gz", ".parquet")

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_TABLE = str.maketrans(_ESCAPES)


@contextmanager
def open_table(file: BinaryIO, name: str, schema: Schema) -> Iterator[Write]:
    """Write blocks of lines to an open file as .tsv, .tsv.gz or .parquet, by the ending of its name."""
    writers = {".tsv": _tsv, ".tsv.gz": _gzipped_tsv, ".parquet": _parquet}
    ending = next((e for e in ENDINGS if name.endswith(e)), None)
    if ending is None:
        raise InputError(f"{name}: give a name that ends in {', '.join(ENDINGS)}")
    with writers[ending](file, schema) as write:
        yield write


def escaped(text: str | None) -> str:
    r"""Write text into one TSV cell: tab, line ends and backslash as \t, \n, \r and \\."""
    return "" if text is None else text.translate(_TABLE)


def unescaped(cell: str) -> str:
    """Undo `escaped`."""
    if "\\" not in cell:
        return cell
    letters = {code[1]: letter for letter, code in _ESCAPES.items()}
    parts = iter(cell)
    return "".join(letters.get(next(parts, ""), "") if c == "\\" else c for c in parts)


def _numbers(values: NDArray[np.float64]) -> list[str]:
    """Seventeen characters each, the exponent with three digits; infinities and NaN have their names.

    Which numbers are infinite follows from the release, so the size of a file tells nothing beyond it.
    """
    cells = [
        cell if len(cell) == 17 else f"{cell[:-2]}0{cell[-2:]}"
        for cell in map("%+.9e".__mod__, values.tolist())
    ]
    for i in np.flatnonzero(~np.isfinite(values)):
        value = values[i]
        cells[i] = "NaN" if math.isnan(value) else "-inf" if value < 0 else "inf"
    return cells


_CELLS: dict[str, Callable[[NDArray[Any]], Sequence[str]]] = {
    "text": lambda values: [escaped(text) for text in values.tolist()],
    "whole": lambda values: ["" if x is None else str(x) for x in values.tolist()],
    "number": _numbers,
    "flag": lambda values: ["1" if x else "0" for x in values.tolist()],
}


@contextmanager
def _tsv(file: BinaryIO, schema: Schema) -> Iterator[Write]:
    with as_text(file) as text:
        yield _lines(text, schema)


@contextmanager
def _gzipped_tsv(file: BinaryIO, schema: Schema) -> Iterator[Write]:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=file, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text,
    ):
        yield _lines(text, schema)


def _lines(file: Any, schema: Schema) -> Write:
    file.write("\t".join(map(escaped, schema)) + "\n")

    def write(block: Block) -> None:
        cells = (_CELLS[kind](np.asarray(block[name])) for name, kind in schema.items())
        file.writelines("\t".join(line) + "\n" for line in zip(*cells, strict=True))

    return write


@contextmanager
def _parquet(file: BinaryIO, schema: Schema) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"text": pa.string(), "whole": pa.int64(), "number": pa.float64(), "flag": pa.bool_()}
    fields = [
        pa.field(name, kinds[kind], nullable=kind in ("text", "whole"))
        for name, kind in schema.items()
    ]
    arrow = pa.schema(fields)
    options = {
        "compression": "none",
        "use_dictionary": [name for name, kind in schema.items() if kind == "text"],
        "write_statistics": False,
    }
    with pq.ParquetWriter(file, arrow, **options) as writer:

        def write(block: Block) -> None:
            columns = [
                pa.array(np.asarray(block[f.name]), type=f.type, from_pandas=False) for f in fields
            ]
            writer.write_table(pa.table(columns, schema=arrow))

        yield write
