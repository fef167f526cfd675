"""Parquet files and Arrow IPC files (also called Feather): typed columns, rows in groups."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from primo._util.threads import prefetch
from primo.errors import InputError
from primo.levels import Levels
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.level_columns import code_batch
from primo.rows.sources.ordered import Piece, read_ordered
from primo.rows.sources.spill import Scratch
from primo.rows.sources.table_columns import TableColumns, refuse_repeated, table_columns
from primo.rows.sources.tabular.arrow import (
    attempt,
    attempt_each,
    existing_file,
    float_type,
    refuse_text,
    to_ids,
)
from primo.rows.sources.tabular.assembled import (
    ColumnPortion,
    Portion,
    RowPortion,
    assemble,
    missing_in_store,
    piece_rows,
)
from primo.rows.sources.tabular.fast import compiled_for
from primo.rows.sources.unchanged import Unchanged, remember

__all__ = ["GroupedFile", "open_feather", "open_parquet"]

_PIECE = 2**23  # bytes of numbers transposed at once, where not all rows are wanted
_BATCH = 2**24  # bytes of numbers decoded at once; half of it takes a tenth longer
_GROUP = 2**25  # bytes of numbers up to which a group is read with all chosen columns at once
_PAGED = 16  # columns of a larger Parquet group read at once; a reader holds about 4 MB of each
_BUFFERS = 2**25  # bytes read ahead, over all columns
_MANY = 2**27  # from so many numbers on, compiled conversion saves more time than loading takes

#: Processors that a fold leaves free. Arrow's threads take more processor time in all than one thread,
#: so they are used only if there are free processors.
_SPARE = (os.cpu_count() or 1) - 4

#: Reads some columns of one group, as Arrow batches.
GroupReader = Callable[[Sequence[str], int], Iterator[Any]]

#: Opens a file to read these columns; the flag: whether a group has more than `_GROUP` bytes of them.
Reader = Callable[[Path, Sequence[str], bool], AbstractContextManager[GroupReader]]


def open_parquet(
    path: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    id_column: str | Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    scratch: str | Path | None = None,
) -> TableColumns:
    """Open a Parquet file; only the chosen columns of the row groups that hold chosen rows are read.

    Parameters are those of `tabular.text.open_text`. Nulls are missing; of `missing`, only codes
    that spell numbers matter.

    Cost: reads the footer. Memory of a pass: 100 to 250 MB (measured up to 1000 columns). Row groups of
    more than 32 MB of numbers in more than 16 columns are read a few columns at a time, through
    `scratch`; smaller row groups are not.
    """
    found = existing_file(path)
    unchanged = remember(found)

    def footer() -> tuple[Any, list[int]]:
        with pq.ParquetFile(found) as file:
            groups = range(file.metadata.num_row_groups)
            return file.schema_arrow, [file.metadata.row_group(i).num_rows for i in groups]

    schema, rows = attempt(footer, lambda _: _broken(found, "a Parquet"))
    store = _store(found, unchanged, schema, rows, _open_pages, scratch, at_once=_PAGED)
    table = table_columns(store, columns=columns, id_column=id_column, missing=missing or ())
    return missing_in_store(table)


def open_feather(
    path: str | Path,
    *,
    columns: str | Sequence[str] | None = None,
    id_column: str | Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    scratch: str | Path | None = None,
) -> TableColumns:
    """Open an Arrow IPC file (Feather version 2), memory-mapped.

    Parameters are those of `open_parquet`. Reading an uncompressed file maps one record batch at a
    time, and the system reclaims its pages when it needs them. In a compressed file, record batches
    of more than 32 MB of numbers go through `scratch`, one whole column of a batch or more at a time.
    """
    found = existing_file(path)
    unchanged = remember(found)

    def footer() -> tuple[Any, list[int], bool]:
        with pa.memory_map(str(found)) as file:
            if file.read(6) != b"ARROW1":
                raise InputError(
                    f"{found} is not an Arrow file: it is in Arrow's stream format, Feather version 1 "
                    "or something else; write it again with pyarrow.feather.write_feather"
                )
            file.seek(0)
            reader = pa.ipc.open_file(file)
            schema = reader.schema
            packed = reader.num_record_batches > 0 and _is_packed(file)
            fields = [0] if packed else None  # one column is enough to count the rows
            options = pa.ipc.IpcReadOptions(included_fields=fields)
            reader = pa.ipc.open_file(file, options=options)
            groups = range(reader.num_record_batches)
            return schema, [reader.get_batch(i).num_rows for i in groups], packed

    schema, rows, packed = attempt(footer, lambda _: _broken(found, "an Arrow"))
    reader = _open_packed if packed else _open_mapped
    at_once = 1 if packed else len(schema)
    store = _store(found, unchanged, schema, rows, reader, scratch, at_once=at_once)
    table = table_columns(store, columns=columns, id_column=id_column, missing=missing or ())
    return missing_in_store(table)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GroupedFile:
    """The `Store` of a file whose rows come in groups and whose columns have types."""

    path: Path
    types: dict[str, Any]  # Arrow type of each column
    starts: NDArray[np.intp]  # (groups + 1,) number of the first row of each group, and n
    reader: Reader
    at_once: int  # columns that can be read at once however large the group
    unchanged: Unchanged
    scratch: Path | None
    missing_numbers: tuple[float, ...] = ()  # become NaN
    levels: Mapping[str, Levels] = field(default_factory=dict)  # of columns that are read as codes

    @property
    def where(self) -> str:
        """Name of the file."""
        return self.path.name

    @property
    def header(self) -> tuple[str, ...]:
        """Names of all columns."""
        return tuple(self.types)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.starts[-1])

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<GroupedFile {self.where} n={self.n} (private)>"

    def check(self, names: Sequence[str]) -> None:
        """Refuse columns whose declared type is not numeric."""
        numbers = [name for name in names if name not in self.levels]
        refuse_text(self.types, numbers, self.where)

    def numbers(self, names: Sequence[str], order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield these columns of the rows `order`; orders that do not increase go through scratch."""
        coded = dict.fromkeys(self.levels, pa.float32())
        dtype = float_type({**self.types, **coded}, names)
        compiled = compiled_for(len(order) * len(names), many=_MANY)
        most = max(1, _PIECE // (dtype.itemsize * len(names)))
        length, origin = piece_rows(order, rows, most)

        def as_portion(batch: Any) -> Portion:
            batch = code_batch(batch, self.levels)
            return ColumnPortion(batch, dtype, self.missing_numbers, compiled)

        def pieces(groups: NDArray[np.intp]) -> Iterator[Piece]:
            portions = prefetch(self._portions(names, list(map(int, groups)), dtype, as_portion))
            made = assemble(portions, rows=length, origin=origin, width=len(names), dtype=dtype)
            # A portion may be a view of the file until it is written.
            return self.unchanged.during(made)

        return read_ordered(
            pieces, self.starts, order, rows, width=len(names), dtype=dtype, scratch=self.scratch
        )

    def labels(self, names: Sequence[str]) -> Ids | None:
        """Return these columns as one label per row."""
        if not names:
            return None
        batches = self._batches(names, range(len(self.starts) - 1))
        return np.concatenate([to_ids(batch, self.where) for _, batch in batches])

    def _portions(
        self,
        names: Sequence[str],
        groups: Sequence[int],
        dtype: np.dtype[Any],
        as_portion: Callable[[Any], Portion],
    ) -> Iterator[tuple[int, Portion]]:
        """Yield the rows of groups with their number in the file, all columns at once."""
        # Consecutive groups that are read in the same way share an open file.
        for width, run in groupby(groups, lambda group: self._width(group, dtype)):
            if len(names) <= width:
                for place, batch in self._batches(names, list(run)):
                    yield place, as_portion(batch)
            else:
                for group in run:
                    yield from self._by_slabs(names, group, dtype, width, as_portion)

    def _by_slabs(
        self,
        names: Sequence[str],
        group: int,
        dtype: np.dtype[Any],
        width: int,
        as_portion: Callable[[Any], Portion],
    ) -> Iterator[tuple[int, Portion]]:
        """Yield the same rows through scratch, which is written `width` columns (a slab) at a time."""
        first, stop = (int(row) for row in self.starts[group : group + 2])
        rows = stop - first
        slabs = [names[i : i + width] for i in range(0, len(names), width)]
        spill = Scratch((rows * len(slabs), width), dtype, self.scratch)
        step = max(1, _PIECE // (dtype.itemsize * width))
        for i, slab in enumerate(slabs):
            padding = ((0, 0), (0, width - len(slab)))  # of the last slab
            portions = ((place, as_portion(batch)) for place, batch in self._batches(slab, [group]))
            for place, piece in assemble(
                portions, rows=step, origin=first, width=len(slab), dtype=dtype
            ):
                spill.write(i * rows + place - first, np.pad(piece, padding))
        step = max(1, _PIECE // (dtype.itemsize * len(names)))
        for start in range(0, rows, step):
            places = np.arange(start, min(start + step, rows))
            parts = [spill.read(i * rows + places) for i in range(len(slabs))]
            yield first + start, RowPortion(np.hstack(parts)[:, : len(names)])

    def _width(self, group: int, dtype: np.dtype[Any]) -> int:
        """Return how many columns of a group can be read at once."""
        rows = int(self.starts[group + 1] - self.starts[group])
        return max(self.at_once, _GROUP // (rows * dtype.itemsize))

    def _batches(self, names: Sequence[str], groups: Sequence[int]) -> Iterator[tuple[int, Any]]:
        """Yield batches of groups with the number of their first row."""
        sizes = np.diff(self.starts)[list(groups)]
        large = bool(8 * len(names) * max(sizes, default=0) > _GROUP)

        def explain(_: str) -> InputError:
            return _broken(self.path, "a whole")

        with ExitStack() as stack:
            opening = partial(self.reader, self.path, names, large)
            read = attempt(lambda: stack.enter_context(opening()), explain)
            for group in groups:
                self.unchanged.check()
                place, stop = (int(row) for row in self.starts[group : group + 2])
                for batch in attempt_each(partial(read, names, group), explain):
                    yield place, batch.select(list(names))
                    place += len(batch)
                if place != stop:
                    raise explain("")
                self.unchanged.check()
                if large:
                    # Arrow keeps freed memory; over many large groups and slabs that adds up.
                    pa.default_memory_pool().release_unused()
        pa.default_memory_pool().release_unused()


@contextmanager
def _open_pages(path: Path, names: Sequence[str], large: bool) -> Iterator[GroupReader]:
    # A reader without buffer loads its columns of a whole row group: faster, where that is small.
    buffer = min(2**20, max(2**12, _BUFFERS // len(names))) if large else 0
    rows = max(1, _BATCH // (8 * len(names)))
    with pq.ParquetFile(path, buffer_size=buffer, pre_buffer=False) as file:
        yield lambda names, group: file.iter_batches(
            batch_size=rows, row_groups=[group], columns=list(names), use_threads=_SPARE > 0
        )


def _open_mapped(path: Path, _: Sequence[str], __: bool) -> AbstractContextManager[GroupReader]:
    return nullcontext(partial(_mapped_batches, path))  # opened for each group


def _open_packed(path: Path, _: Sequence[str], __: bool) -> AbstractContextManager[GroupReader]:
    return nullcontext(partial(_packed_batches, path))


def _mapped_batches(path: Path, names: Sequence[str], group: int) -> Iterator[Any]:
    with pa.memory_map(str(path)) as file:  # unmapped after the last of its batches
        yield _validated(pa.ipc.open_file(file).get_batch(group).select(list(names)))


def _packed_batches(path: Path, names: Sequence[str], group: int) -> Iterator[Any]:
    with pa.memory_map(str(path)) as file:
        schema = pa.ipc.open_file(file).schema
        fields = sorted(schema.get_field_index(name) for name in names)
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        yield _validated(pa.ipc.open_file(file, options=options).get_batch(group))


def _validated(batch: Any) -> Any:
    """Return the batch after checking that its lengths and offsets stay inside its buffers."""
    batch.validate(full=True)
    return batch


def _is_packed(file: Any) -> bool:
    """Whether the first record batch of an Arrow file is compressed, according to its metadata.

    Arrow's Python interface does not say so. The addresses of the buffers would show it, but reading a
    batch unpacks all its columns, and reading some of them copies even uncompressed ones. The metadata
    are a flatbuffer: `Message.header` is field 2 and `RecordBatch.compression` is field 3 of that
    (format/Message.fbs in apache/arrow). If they cannot be read, the file counts as compressed, which is
    always correct, but slower.
    """
    file.seek(0)
    start = bytes(file.read(2**20)).find(b"\xff" * 4)  # the mark before a message
    try:
        file.seek(max(start, 0))
        while (message := pa.ipc.read_message(file)).type != "record batch":
            pass  # the schema, and dictionaries
        text = message.metadata.to_pybytes()
        header = _field(text, struct.unpack_from("<I", text)[0], 2)
        batch = header + struct.unpack_from("<I", text, header)[0]
        return _field(text, batch, 3) > 0
    except (pa.ArrowException, OSError, EOFError, struct.error):
        return True


def _field(text: bytes, table: int, number: int) -> int:
    """Return where a field of a flatbuffer's table lies, or 0 where it is absent."""
    layout = table - int(struct.unpack_from("<i", text, table)[0])
    entry = 4 + 2 * number
    if entry >= struct.unpack_from("<H", text, layout)[0]:
        return 0
    offset = int(struct.unpack_from("<H", text, layout + entry)[0])
    return table + offset if offset else 0


def _store(
    path: Path,
    unchanged: Unchanged,
    schema: Any,
    rows: list[int],
    reader: Reader,
    scratch: str | Path | None,
    *,
    at_once: int,
) -> GroupedFile:
    names = attempt(lambda: list(schema.names), lambda _: _broken(path, "a whole"))
    refuse_repeated(names, path.name)
    return GroupedFile(
        path=path,
        types=dict(zip(names, schema.types, strict=True)),
        starts=np.concatenate([[0], np.cumsum(rows)]).astype(np.intp),
        reader=reader,
        at_once=at_once,
        unchanged=unchanged,
        scratch=None if scratch is None else Path(scratch),
    )


def _broken(path: Path, kind: str) -> InputError:
    return InputError(f"{path} is not {kind} file: it is truncated, damaged or of another kind")
