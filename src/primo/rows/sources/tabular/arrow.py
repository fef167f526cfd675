"""What the tabular formats share: Arrow columns as arrays of floats, and errors that quote no cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike, NDArray
from pyarrow import compute
from pyarrow import types as kinds

from primo.errors import Advice, Argument, InputError, Message, NotNumericError
from primo.rows.sources.base import Ids
from primo.rows.sources.canonical import canonical_id

__all__ = [
    "attempt",
    "attempt_each",
    "existing_file",
    "float_type",
    "recoding",
    "refuse_text",
    "to_floats",
    "to_ids",
]

T = TypeVar("T")


def attempt(action: Callable[[], T], explain: Callable[[str], InputError]) -> T:
    """Run `action`; if it fails, raise `explain(message)` instead.

    The message of a reader may quote the offending cell, and the objects of a frame may raise any error
    with any message. The new error is raised outside the handler, so that it holds no reference to the
    original one.
    """
    try:
        return action()
    except (InputError, MemoryError):
        raise
    except Exception as error:
        problem = explain(str(error))
    raise problem


def attempt_each(
    start: Callable[[], Iterator[T]], explain: Callable[[str], InputError]
) -> Iterator[T]:
    """Yield the items of an iterator; every step runs under `attempt`."""
    walk = attempt(start, explain)
    end = object()
    while (item := attempt(lambda: next(walk, end), explain)) is not end:
        yield item  # type: ignore[misc]  # it is not the end


def existing_file(path: str | Path) -> Path:
    """Return the absolute path of an existing file, so that workers find it too."""
    found = Path(path).absolute()
    if found.is_dir():
        raise InputError(f"{path} is a folder; give a file")
    if not found.is_file():
        raise InputError(f"there is no file {path}")
    if found.stat().st_size == 0:
        raise InputError(f"{path} is empty")
    return found


def refuse_text(types: dict[str, Any], names: Sequence[str], where: str) -> None:
    """Refuse columns whose declared Arrow type is not numeric; no cell is read."""
    for name in names:
        kind = types[name]
        if not (
            kinds.is_integer(kind)
            or kinds.is_floating(kind)
            or kinds.is_boolean(kind)
            or kinds.is_decimal(kind)
            or kinds.is_null(kind)
        ):
            held = "text" if kinds.is_string(kind) or kinds.is_large_string(kind) else kind
            raise NotNumericError(
                f"column {name!r} of {where} holds {held}, not numbers",
                remedy=recoding(name),
            )


def recoding(name: str, *, text_file: bool = False) -> Message:
    """Say how a column that does not hold numbers can be read, without a look at its cells."""
    key = name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'
    parts: list[str | Argument | Advice] = [
        "If it holds categories, state its public levels: ",
        Advice(
            "levels",
            f"levels={{{name!r}: ['no', 'yes']}}",
            about=f'[features.columns.{key}] (or [outcomes...]) levels = ["no", "yes"]',
        ),
    ]
    if text_file:
        parts += ["; if its numbers have a decimal comma: ", Argument("decimal", ",")]
    parts += [
        "; if it names people: ",
        Argument("id_column", name),
        "; if it is neither, leave it out (choose the others by name or pattern)",
    ]
    return Message.of(*parts)


def float_type(types: dict[str, Any], names: Sequence[str]) -> np.dtype[Any]:
    """Return float32 where it holds every value of these columns exactly, else float64."""
    narrow = {
        pa.float16(),
        pa.float32(),
        pa.bool_(),
        pa.int8(),
        pa.uint8(),
        pa.int16(),
        pa.uint16(),
    }
    return np.dtype(np.float32 if all(types[name] in narrow for name in names) else np.float64)


def to_floats(table: Any, dtype: DTypeLike) -> NDArray[Any]:
    """Return the columns of an Arrow table or batch as one array, NaN where a value is missing.

    Cost: one copy.
    """
    kind = pa.from_numpy_dtype(dtype)
    arrays = [_one_piece(column).cast(kind, safe=False) for column in table.columns]
    if not len(table):
        return np.empty((0, len(arrays)), dtype)
    batch = pa.RecordBatch.from_arrays(arrays, names=[str(i) for i in range(len(arrays))])
    array: NDArray[Any] = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
    return array


def to_ids(table: Any, where: str) -> Ids:
    """Return the columns of an Arrow table as one label per row; several are joined by a tab."""
    return attempt(
        lambda: _ids(table, where),
        lambda _: InputError(f"the ids in {where} are neither text in UTF-8 nor whole numbers"),
    )


def _ids(table: Any, where: str) -> Ids:
    parts = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if kinds.is_floating(column.type):
            raise InputError(
                f"column {name!r} of {where} holds {column.type}: ids must be text or whole numbers"
            )
        part = _canonical(_one_piece(column))
        # A label with a missing part is missing: the join gives null.
        parts.append(compute.if_else(compute.equal(part, ""), None, part))
    joined = compute.binary_join_element_wise(*parts, pa.scalar("\t", pa.large_string()))
    return np.asarray(joined.fill_null("").to_numpy(zero_copy_only=False)).astype(np.str_)


def _canonical(column: Any) -> Any:
    """Apply `canonical_id` to each cell; to all at once if it only has to strip blanks."""
    if kinds.is_integer(column.type) or kinds.is_string(column.type):
        column = compute.utf8_trim_whitespace(column.cast(pa.large_string()))
        if not compute.any(compute.match_substring_regex(column, r"[^!-~]|\.0*$")).as_py():
            return column
    return pa.array(map(canonical_id, column.to_pylist()), pa.large_string())


def _one_piece(column: Any) -> Any:
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column
