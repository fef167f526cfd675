"""Text tables: comma, tab or blank separated, plain or gzipped.

A file is cut into chunks of whole lines when it is opened (a pass that counts lines). A chunk is
parsed separately, so that memory is a few chunks, reading may begin in the middle, and workers can
share a file. In a gzipped file the lines before it still have to be unpacked.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv as arrow_csv

from primo._util.threads import in_order
from primo.errors import Advice, Argument, InputError, NotNumericError
from primo.levels import Levels
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.level_columns import code_batch
from primo.rows.sources.ordered import Piece, read_ordered
from primo.rows.sources.table_columns import TableColumns, refuse_repeated, table_columns
from primo.rows.sources.tabular.arrow import attempt, existing_file, recoding, to_ids
from primo.rows.sources.tabular.assembled import (
    ColumnPortion,
    Portion,
    RowPortion,
    assemble,
    missing_in_store,
    piece_rows,
)
from primo.rows.sources.tabular.cells import (
    Layout,
    check_decimal,
    count_lines,
    first_cells,
    parse_plain,
    tidy,
    unquoted,
)
from primo.rows.sources.tabular.fast import LARGE, compiled_for
from primo.rows.sources.unchanged import Unchanged, remember

__all__ = [
    "BLANKS",
    "MISSING",
    "PLINK_MISSING",
    "TextFile",
    "open_bytes",
    "open_text",
    "refuse_other_kinds",
]

#: Cells that mean a missing value.
MISSING = ("", "NA", "NaN", "nan", "null", ".")

#: The same in phenotype and covariate files of PLINK and regenie; -9 also as -9.0.
PLINK_MISSING = ("", "NA", "NaN", "nan", "null", "-9", ".")

#: The separator that stands for any run of blanks and tabs, as in PLINK's files.
BLANKS = " "

_CHUNK = 2**23  # bytes of text parsed at once
_MANY = 2**24  # from so many cells on, compiled parsing saves more time than loading takes
_THREADS = 2  # parse chunks while a third thread reads the file
_SEPARATORS = {".csv": ",", ".tsv": "\t"}


def open_text(
    path: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    id_column: str | Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    separator: str | None = None,
    decimal: str = ".",
    scratch: str | Path | None = None,
) -> TableColumns:
    r"""Open a text table with a header line; `.gz` files are unpacked while they are read.

    Parameters
    ----------
    path
        The file, in UTF-8. Lines are rows: a quoted cell cannot hold a line break. A blank line is a
        missing cell where there is one column, and is skipped where there are several.
    columns
        Names and patterns of the columns to read; all but the ids if None.
    id_column
        The column that names the person, or several, whose values are joined by a tab.
    missing
        Cells that mean a missing value; `MISSING` if None. An empty cell always does. A number given
        here is missing however it is written: "-9" also covers -9.0.
    separator
        One character, or `BLANKS`. If None: a comma for `.csv`, a tab for `.tsv`; for any other name a
        tab if the header has one, else `BLANKS`.
    decimal
        The sign before the decimals of a number: a point, or a comma ("12,5").
    scratch
        Folder for the rows if they are read in another order than the stored one.

    Cost: one pass over the bytes of the file, for n and the chunks; no cell is parsed.
    """
    found = existing_file(path)
    unchanged = remember(found)
    with closing(open_bytes(found)) as file:
        line = attempt(file.readline, lambda _: _broken(found))
        cut, header = _parse_header(line, separator, found)
        check_decimal(decimal, cut)
        lines, blank, sizes = _scan(file, cut, found)
    rows = lines if len(header) == 1 else lines - blank
    store = TextFile(
        path=found,
        header=header,
        separator=cut,
        missing=tuple(dict.fromkeys(MISSING if missing is None else ("", *missing))),
        starts=np.append(0, np.cumsum(rows)),
        offsets=len(line) + np.append(0, np.cumsum(sizes)),
        skips=len(header) > 1 and bool(blank.any()),
        unchanged=unchanged,
        scratch=None if scratch is None else Path(scratch),
        decimal=decimal,
    )
    table = table_columns(store, columns=columns, id_column=id_column, missing=missing or ())
    return missing_in_store(table)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class TextFile:
    """The `Store` of a text table."""

    path: Path
    header: tuple[str, ...]
    separator: str
    missing: tuple[str, ...]
    starts: NDArray[np.intp]  # (chunks + 1,) number of the first row of each chunk, and n
    offsets: NDArray[np.int64]  # (chunks + 1,) where it begins in the (unpacked) bytes, and the end
    skips: bool  # whether there are blank lines, which are no rows in a table of several columns
    unchanged: Unchanged
    scratch: Path | None
    missing_numbers: tuple[float, ...] = ()  # become NaN
    levels: Mapping[str, Levels] = field(default_factory=dict)  # of columns that are read as codes
    decimal: str = "."  # the sign before the decimals of a number

    @property
    def where(self) -> str:
        """Name of the file."""
        return self.path.name

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<TextFile {self.where} n={self.n} (private)>"

    def check(self, names: Sequence[str]) -> None:
        """Do nothing: text declares no types. A cell that is not a number is found when it is read."""

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`; orders that do not increase go through scratch."""
        dtype = np.dtype(np.float64)
        length, origin = piece_rows(order, rows, max(1, _CHUNK // (8 * len(names))))

        def pieces(chunks: NDArray[np.intp]) -> Iterator[Piece]:
            portions = self.unchanged.during(self._portions(names, chunks))
            return assemble(portions, rows=length, origin=origin, width=len(names), dtype=dtype)

        return read_ordered(
            pieces, self.starts, order, rows, width=len(names), dtype=dtype, scratch=self.scratch
        )

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns as one label per row."""
        if not names:
            return None
        kinds = dict.fromkeys(names, pa.string())
        chunks = np.flatnonzero(np.diff(self.starts))  # the last one may hold only blanks
        texts = self.unchanged.during(self._texts(chunks.tolist()))

        def read(placed: tuple[int, bytes]) -> Ids:
            return to_ids(self._table_of_ids(*placed, kinds), self.where)

        return np.concatenate(list(in_order(read, texts, _THREADS)))

    def _portions(
        self, names: Sequence[str], chunks: NDArray[np.intp]
    ) -> Iterator[tuple[int, Portion]]:
        """Read chunks, with the number of their first row."""
        kinds = {name: pa.string() if name in self.levels else pa.float64() for name in names}
        compiled = compiled_for(self.n * len(names), many=_MANY)
        plain = self.decimal == "." and not self.levels.keys() & set(names)
        layout = Layout.of(
            self.header,
            names,
            separator=self._delimiter,
            quote=self.separator != BLANKS,
            words=self.missing,
            missing=self.missing_numbers,
        )

        def read(placed: tuple[int, bytes]) -> tuple[int, Portion]:
            chunk, text = placed
            first, stop = (int(row) for row in self.starts[chunk : chunk + 2])
            if compiled is not None and layout is not None and plain:
                rows = parse_plain(text, stop - first, layout, compiled)
                if rows is not None:
                    return first, RowPortion(rows)
            batch = code_batch(self._table(chunk, text, kinds), self.levels)
            batch = batch.combine_chunks().to_batches()[0]
            dtype = np.dtype(np.float64)
            return first, ColumnPortion(batch, dtype, self.missing_numbers, compiled)

        return in_order(read, self._texts(map(int, chunks)), _THREADS)

    def _table_of_ids(self, chunk: int, text: bytes, kinds: dict[str, Any]) -> Any:
        """Return the ids; they are usually at the start of a line, and then the rest is not parsed."""
        first = 1 + max(self.header.index(name) for name in kinds)
        cells = len(self.header)
        compiled = compiled_for(self.n * cells, many=_MANY)
        heads = first_cells(text, self._delimiter, cells, first, compiled)
        if heads is None:
            return self._table(chunk, text, kinds)
        return self._table(chunk, heads, kinds, self.header[:first])

    def _texts(self, chunks: Iterable[int]) -> Iterator[tuple[int, bytes]]:
        """Read chunks, one after the other."""
        with closing(open_bytes(self.path)) as file:
            for chunk in chunks:
                read = partial(self._text, file, chunk)
                yield chunk, attempt(read, lambda _: _broken(self.path))

    def _text(self, file: IO[bytes], chunk: int) -> bytes:
        start, stop = (int(offset) for offset in self.offsets[chunk : chunk + 2])
        file.seek(start)
        text = file.read(stop - start)
        return unquoted(tidy(text)) if self.separator == BLANKS else text

    def _table(
        self,
        chunk: int,
        text: bytes,
        kinds: dict[str, Any],
        header: Sequence[str] | None = None,
    ) -> Any:
        """Parse some columns of a chunk whose lines have all cells, or only those of the `header`."""
        parse = partial(self._parsed, text, kinds, header or self.header)

        def explain(message: str) -> InputError:
            try:  # with threads, which of several wrong cells is reported varies
                parse(threads=False)
            except (pa.ArrowException, ValueError) as error:
                message = str(error)
            return self._explain(message)

        table = attempt(parse, explain)
        # Arrow accepts an open quotation mark at the end of a text, and a chunk is one text of many.
        open_ended = self.separator != BLANKS and text.count(b'"') % 2
        if open_ended or len(table) != self.starts[chunk + 1] - self.starts[chunk]:
            raise InputError(
                f"the rows of {self.path} do not match its lines: a quoted cell holds a line break, "
                "or a quotation mark is not closed"
            )
        return table

    @property
    def _delimiter(self) -> str:
        """The separator of cells after `tidy`."""
        return "\t" if self.separator == BLANKS else self.separator

    def _parsed(
        self, text: bytes, kinds: dict[str, Any], header: Sequence[str], threads: bool = True
    ) -> Any:
        return arrow_csv.read_csv(
            pa.BufferReader(text),
            # One block, because the length of a row is not limited.
            read_options=arrow_csv.ReadOptions(
                column_names=header, block_size=len(text) + 1, use_threads=threads
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._delimiter,
                quote_char=False if self.separator == BLANKS else '"',
                ignore_empty_lines=len(self.header) > 1,
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=list(kinds),
                column_types=kinds,
                null_values=self.missing,
                strings_can_be_null=False,
                decimal_point=self.decimal,
            ),
        )

    def _explain(self, message: str) -> InputError:
        """Say what is wrong with a chunk, without the cell and the row that Arrow quotes."""
        column = re.match(r"In CSV column #(\d+)", message)
        # The part after a quotation mark is the cell; it must not decide which message is given.
        if column and "UTF8" not in message.partition("'")[0]:
            return NotNumericError(
                f"column {self.header[int(column[1])]!r} of {self.path} holds something that is not a "
                "number (missing cells are written "
                f"{', '.join(text or 'empty' for text in self.missing)}; give others with ",
                Argument("table.missing", ...),
                f"; decimals follow a {'point' if self.decimal == '.' else 'comma'}). The cell itself "
                "stays private",
                remedy=recoding(self.header[int(column[1])], text_file=self.decimal == "."),
            )
        if "Expected" in message and "columns" in message:
            return InputError(
                f"not every row of {self.path} has {len(self.header)} cells, one for each name in the "
                f"header; is {self.separator!r} the separator, has every column a name (in R: "
                "row.names = FALSE), and is every quotation mark closed?"
            )
        return InputError(f"{self.path} is not text in UTF-8")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for its (unpacked) bytes."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed and path.suffix in (".gz", ".bgz"):
        raise InputError(f"{path} is not a gzip file, though its name says so")
    return gzip.open(path) if packed else path.open("rb")  # type: ignore[return-value]


def refuse_other_kinds(line: bytes, path: Path) -> None:
    """Refuse a file whose first line shows that it is not text in UTF-8, and say what it is."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InputError(f"{path} is text in UTF-16; save it in UTF-8")
    if line.startswith(b"PK\x03\x04"):
        raise InputError(f"{path} is a workbook of Excel or a zip file; export it as CSV")
    if b"\r" in line.rstrip(b"\r\n") and b"\0" not in line:
        raise InputError(
            f"{path} has lines that end with a carriage return alone, as on old Macs; save it with "
            "line ends of Unix or Windows"
        )


def _broken(path: Path) -> InputError:
    return InputError(f"{path} cannot be read to its end: it is truncated or damaged")


def _parse_header(line: bytes, separator: str | None, path: Path) -> tuple[str, tuple[str, ...]]:
    """Return the separator and the names of the columns."""
    refuse_other_kinds(line, path)
    try:
        text = line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InputError(f"{path} is not text in UTF-8 with a header line; save it as such")
    if separator is None:
        suffixes = [suffix for suffix in path.suffixes if suffix not in (".gz", ".bgz")]
        by_name = _SEPARATORS.get(suffixes[-1].lower() if suffixes else "")
        separator = by_name or ("\t" if "\t" in text else BLANKS)
        other = next((sign for sign in ";\t," if sign in text), None)
        if by_name and by_name not in text and other:
            raise InputError(
                f"the header of {path} has no {by_name!r}",
                argument="separator",
                remedy=Advice("separator", f"is it separator={other!r}?", about=repr(other)),
            )
    elif len(separator) != 1:
        raise InputError(
            Argument("separator", separator), " must be one character; ' ' means any blanks"
        )
    blanks = separator == BLANKS
    header = (
        unquoted(tidy(text.encode())).decode().rstrip("\n").split("\t")
        if blanks
        else _cut(text, separator, path)
    )
    if header and separator != ",":
        header[0] = header[0].removeprefix("#")  # PLINK 2 writes #FID
    header = [name.strip() for name in header]
    if not any(header):
        raise InputError(f"{path} has no header: its first line is blank")
    _refuse_data(header, path)
    refuse_repeated(header, path.name)
    return separator, tuple(header)


def _cut(text: str, separator: str, path: Path) -> list[str]:
    """Return the names in the header."""
    try:
        return next(csv.reader([text], delimiter=separator, strict=True), [])
    except csv.Error:
        pass
    raise InputError(f"{path} has a header with a quotation mark that is not closed, or too long")


def _refuse_data(header: Sequence[str], path: Path) -> None:
    """Refuse a first line that looks like a row: messages would quote its cells as names."""
    missing = [name for name in header if name and name in MISSING]
    numbers = [name for name in header if re.fullmatch(r"[-+]?\d*\.?\d+([eE][-+]?\d+)?", name)]
    measured = any(not name.isdigit() for name in numbers)  # "1" may name a column, "1.75" does not
    odd = measured or missing or len(set(numbers)) < len(numbers)
    if measured or (2 * len(numbers + missing) >= len(header) and odd):
        raise InputError(f"the first line of {path} looks like a row; it must name the columns")


def _scan(
    file: IO[bytes], separator: str, path: Path
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
    """Count lines, blank lines and bytes of each chunk after the header."""
    compiled = compiled_for(os.fstat(file.fileno()).st_size, many=LARGE)

    def read() -> tuple[bytes, bytes]:
        return file.read(_CHUNK), file.readline()

    def chunks() -> Iterator[tuple[bytes, bytes]]:
        while any(chunk := attempt(read, lambda _: _broken(path))):
            yield chunk

    def count(chunk: tuple[bytes, bytes]) -> tuple[int, int, int]:
        text, rest = chunk
        size = len(text) + len(rest)
        # The rest of the last line changes no count, and joining takes as long as counting.
        if separator == BLANKS or text.endswith((b"\n", b"\r")) or b"\r" in rest or not text:
            text += rest
        return *count_lines(tidy(text) if separator == BLANKS else text, compiled), size

    counts = np.array(list(in_order(count, chunks(), _THREADS)), dtype=np.int64).reshape(-1, 3)
    return counts[:, 0].astype(np.intp), counts[:, 1].astype(np.intp), counts[:, 2]
