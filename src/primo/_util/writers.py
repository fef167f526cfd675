"""Tables written a block of lines at a time, by Arrow.

What is published is a function of released numbers, so the size of a text file may depend on them as the
numbers do: that is post-processing. Numbers are written as short as they read back exactly. Parquet
is plain, uncompressed and without statistics, so its size follows from the number of lines and names.

A table of private numbers (predictions) must not show anything of them to those who see its size only:
with `private`, numbers in text have a fixed width. Its names are taken to be known.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError

__all__ = ["ENDINGS", "Block", "Schema", "Write", "escaped", "open_table", "unescaped"]

#: Name of each column and what it holds: "text", "whole" (both may be None), "number" or "flag".
Schema = Mapping[str, str]
Block = Mapping[str, NDArray[Any]]
Write = Callable[[Block], None]

LARGEST_TEXT = 1 << 22  # cells that are made at a time
ENDINGS = (".tsv", ".tsv.gz", ".parquet")

_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_TABLE = str.maketrans(_ESCAPES)


@contextmanager
def open_table(
    file: BinaryIO, name: str, schema: Schema, *, private: bool = False
) -> Iterator[Write]:
    """Write blocks of lines to an open file as .tsv, .tsv.gz or .parquet, by the ending of its name.

    With `private` the size of a .tsv does not depend on its numbers.
    """
    writers = {".tsv": _tsv, ".tsv.gz": _gzipped_tsv, ".parquet": _parquet}
    ending = next((e for e in ENDINGS if name.endswith(e)), None)
    if ending is None:
        raise InputError(f"{name}: give a name that ends in {', '.join(ENDINGS)}")
    with writers[ending](file, schema, private=private) as write:
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


def _fixed(values: NDArray[np.float64]) -> list[str]:
    """Write every number in sixteen characters; those nearer to 0 than 1e-99 as 0."""
    values = np.where(np.abs(values) < 1e-99, 0.0, values)
    return list(map("%+.9e".__mod__, values.tolist()))


def _cells(values: NDArray[Any], kind: str, *, private: bool) -> Any:
    """Return a column as Arrow strings; what is missing is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if kind == "text":
        text = pa.array(values, type=pa.string(), from_pandas=False)
        for letter, code in _ESCAPES.items():  # the backslash first
            text = pc.replace_substring(text, letter, code)
        return pc.fill_null(text, "")
    if kind == "number" and private:
        return pa.array(_fixed(np.asarray(values, dtype=np.float64)))
    if kind == "number":
        numbers = pa.array(np.asarray(values, dtype=np.float64), from_pandas=False)
        return pc.if_else(pc.is_nan(numbers), "NaN", pc.cast(numbers, pa.string()))
    if kind == "whole":
        whole = pa.array(values.tolist(), type=pa.int64())
        return pc.fill_null(pc.cast(whole, pa.string()), "")
    return pc.cast(pa.array(np.asarray(values, dtype=np.uint8)), pa.string())


@contextmanager
def _tsv(file: BinaryIO, schema: Schema, *, private: bool) -> Iterator[Write]:
    import pyarrow as pa
    import pyarrow.compute as pc

    file.write(("\t".join(map(escaped, schema)) + "\n").encode())
    size = max(1, LARGEST_TEXT // max(len(schema), 1))

    def write(block: Block) -> None:
        lines = min(len(block[name]) for name in schema)
        for start in range(0, lines, size):
            cells = [
                _cells(np.asarray(block[name])[start : start + size], kind, private=private)
                for name, kind in schema.items()
            ]
            # pyarrow.csv would refuse a name with a quotation mark in it, or quote all names.
            joined = pc.binary_join_element_wise(*cells, "\t")
            ended = pc.binary_join_element_wise(joined, pa.scalar("\n"), "")
            _, offsets, text = ended.buffers()
            if text is not None:
                stop = int(np.frombuffer(offsets, dtype=np.int32)[len(ended)])
                file.write(memoryview(text)[:stop])

    yield write


@contextmanager
def _gzipped_tsv(file: BinaryIO, schema: Schema, *, private: bool) -> Iterator[Write]:
    with (
        gzip.GzipFile(filename="", mode="wb", compresslevel=3, fileobj=file, mtime=0) as packed,
        _tsv(packed, schema, private=private) as write,  # type: ignore[arg-type]
    ):
        yield write


@contextmanager
def _parquet(file: BinaryIO, schema: Schema, *, private: bool) -> Iterator[Write]:
    del private  # every number takes eight bytes
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
