"""Convert the arrays and frames that users give into the shapes that primo works with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from primo._util.closeness import did_you_mean
from primo.errors import Argument, InputError, NotNumericError
from primo.levels import Levels, levels_for
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.tabular.index import index_labels, index_names

__all__ = [
    "array_source",
    "column_names",
    "indicators",
    "labels",
    "numeric",
    "people_of",
]


def numeric(table: Any, block: str) -> NDArray[Any]:
    """Return a table as an array of real numbers, or refuse it without showing what is in it.

    Guarantee: the number that a cell becomes in float64 is a function of that cell alone.

    The conversions of NumPy and scikit-learn quote the offending cell in their messages ("could not
    convert string to float: ..."); a private cell must not end up in a log. For the same reason the
    error is raised outside the handler: it carries no trace of the original one.
    """
    if scipy.sparse.issparse(table):
        raise NotNumericError(f"the {block} are a sparse matrix; make them dense with .toarray()")
    if hasattr(table, "collect") and not hasattr(table, "__array__"):
        raise NotNumericError(f"the {block} are a lazy frame; call .collect() first")
    _refuse_categories(table, block)
    array = _quietly(lambda: _as_array(table))
    if array is None:
        raise NotNumericError(
            f"the {block} contain something that is not a number (every argument must be a number, or "
            "a string that spells a number). Convert or drop that column, for example code genotypes "
            "as 0, 1, 2, and categories with primo.indicators; the cell itself stays private"
            + _declared_text(table)
        )
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: the {block} must be real numbers")
    if array.dtype.kind not in "biuf":
        raise NotNumericError(f"the {block} have dtype {array.dtype}; give numbers")
    if array.ndim != 2 and not (block == "outcomes" and array.ndim == 1):
        raise InputError(
            f"Expected 2D array, got {array.ndim}D array instead: the {block} must be a table of rows "
            "and columns. Reshape your data, for example X[:, [0]] or X.reshape(-1, 1)"
        )
    return array


def indicators(frame: Any, levels: Mapping[str, Sequence[Any]]) -> Any:
    """Return a frame whose columns of categories are replaced by indicators of their public levels.

    Parameters
    ----------
    frame : pandas.DataFrame
        Cells of any type, pandas categoricals among them.
    levels
        The levels of each column of categories, from public knowledge: the categories that pandas
        found in private rows are private, so they are not used.

    Returns
    -------
    pandas.DataFrame
        The same rows. A column with K levels is replaced by K − 1 columns, 1 where the cell is the
        level that ends their name (`sex=M`) and 0 elsewhere; the first level is 0 in all of them. A
        value that is no level is NaN in all of them, a missing value. `primo.Bounds.from_levels` has
        the bounds.

    Notes
    -----
    Guarantee: a row of the result is a function of that row alone. Fit and predict with the same levels.

    Examples
    --------
    >>> import pandas as pd
    >>> import primo
    >>> people = pd.DataFrame({"sex": ["M", "F", "M"], "age": [40.0, 50.0, 60.0]})
    >>> primo.indicators(people, {"sex": ["F", "M"]})
       sex=M   age
    0    1.0  40.0
    1    0.0  50.0
    2    1.0  60.0
    """
    names = column_names(frame)
    if names is None or not hasattr(frame, "iloc"):
        raise InputError("indicators are made from a pandas frame; give one with named columns")
    found = levels_for(levels, names)
    unknown = next((name for name in levels if name not in found), None)
    if unknown is not None and not any(fnmatchcase(name, unknown) for name in names):
        raise InputError(
            Argument("levels"),
            f" has {unknown!r}, which is no column of the frame",
            remedy=did_you_mean(unknown, names) or None,
        )
    columns: dict[str, Any] = {}
    for j, name in enumerate(names):
        column = frame.iloc[:, j]
        if name not in found:
            columns[name] = column
            continue
        known = found[name]
        codes = _quietly(partial(_codes, known, column))
        if codes is None:
            raise NotNumericError(
                f"column {name!r} holds something that cannot be compared with its levels; the cell "
                "itself stays private"
            )
        columns |= dict(zip(known.indicators(name), known.expand(codes).T, strict=True))
    return type(frame)(columns, index=frame.index)


def _codes(levels: Levels, column: Any) -> NDArray[np.float64]:
    return levels.codes(column.tolist())


def _refuse_categories(table: Any, block: str) -> None:
    """Refuse a column that holds categories by its declared type; no cell is looked at."""
    for name, kind in _declared(table):
        if kind == "category":
            raise NotNumericError(
                f"column {str(name)!r} of the {block} holds categories; state their public levels and "
                f"code them first: primo.indicators(frame, {{{str(name)!r}: [...]}})"
            )


def _declared_text(table: Any) -> str:
    """Say which columns of a frame are text by their declared type; no cell is looked at."""
    names = [str(name) for name, kind in _declared(table) if getattr(kind, "kind", "-") in "OUS"]
    return f". Declared as text: {', '.join(map(repr, names[:5]))}" if names else ""


def _declared(table: Any) -> list[tuple[Any, Any]]:
    """Return names and declared types of the columns of a pandas frame or series."""
    kinds = getattr(table, "dtypes", None)
    if column_names(table) is None or not hasattr(table, "iloc") or kinds is None:
        return []
    return [*kinds.items()] if hasattr(kinds, "items") else [(getattr(table, "name", ""), kinds)]


def array_source(
    features: NDArray[Any],
    outcomes: NDArray[Any],
    *,
    tables: tuple[Any, Any],
    feature_names: Iterable[str] | None,
    outcome_names: Iterable[str] | None,
    first_outcome: int = 0,
) -> ArraySource:
    """Return the rows of two arrays of numbers as a source.

    Parameters
    ----------
    features, outcomes
        (n, d), and (n, l) or (n,); what `numeric` returned.
    tables
        The features and outcomes as the user gave them. The index of a frame holds the ids of people.
    feature_names, outcome_names
        If None, names are numbered: x0, x1, ... and y0, y1, ...
    first_outcome
        Number at which numbered outcome names start.
    """
    people = people_of(len(features), len(outcomes), *tables)
    if outcomes.ndim == 1:
        outcomes = outcomes.reshape(-1, 1)
    return ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=labels(feature_names, "x", features.shape[-1]),
        outcome_names=labels(outcome_names, "y", outcomes.shape[1], first=first_outcome),
        **people,
    )


def people_of(n: int, m: int, features: Any, outcomes: Any) -> dict[str, Any]:
    """Return who owns the rows of two tables with n and m rows, if the index of a frame says it.

    Returns the arguments `labels` and `id_names` of an `ArraySource`. Tables whose labels show that they
    do not belong together are refused.
    """
    if n != m:
        raise InputError(
            f"inconsistent numbers of rows: the features have {n} and the outcomes {m}; people are "
            "rows, in the same order in both"
        )
    left, right = getattr(features, "index", None), getattr(outcomes, "index", None)
    first, second = index_labels(left), index_labels(right)
    differ = first is not None and second is not None and not np.array_equal(first, second)
    if differ or _in_another_order(left, right):
        raise InputError(
            "the rows of features and outcomes have different labels, or the same in another order; "
            "align them first, for example y = y.loc[X.index]. Drop the labels of one of them, with "
            ".reset_index(drop=True), only if the rows are in the same order"
        )
    if first is None:
        return {"labels": second, "id_names": index_names(right)}
    return {"labels": first, "id_names": index_names(left)}


def _in_another_order(left: Any, right: Any) -> bool:
    """Whether two pandas indexes hold the same labels, but not at the same places."""
    if not (hasattr(left, "equals") and hasattr(right, "equals")) or left.equals(right):
        return False
    return bool(left.sort_values().equals(right.sort_values()))


def _as_array(table: Any) -> NDArray[Any]:
    """Return the cells in one type; each is the same number in float64 whatever the others are.

    NumPy chooses one type for all cells of a list. Real numbers of all kinds can be mixed: NumPy rounds
    none that float64 would not round in the same way. Objects and strings cannot. One string turns all
    cells into strings, and np.float32(0.1), written as "0.1", becomes a different number.
    """
    if isinstance(table, np.ma.MaskedArray):  # a mask means missing; plain conversion drops it
        return np.asarray(np.ma.filled(table.astype(np.float64), np.nan))
    array = np.asarray(table)
    if array.dtype.kind in "OUS":
        return _cell_by_cell(table)
    # Longer floats would round the other cells of a list differently than float64 does.
    return array.astype(np.float64) if array.dtype.kind == "f" and array.itemsize > 8 else array


def _quietly(convert: Callable[[], NDArray[Any]]) -> NDArray[Any] | None:
    try:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            return convert()
    except MemoryError:
        raise
    except Exception:  # a cell may be an object that raises any error, with any message
        return None


def _cell_by_cell(table: Any) -> NDArray[np.float64]:
    """Convert strings and objects; the missing values of nullable pandas columns become NaN."""
    if hasattr(table, "to_numpy") and hasattr(table, "isna"):
        for kind in np.asarray(table.dtypes, dtype=object).flat:
            if getattr(kind, "kind", "O") in "mMc":  # pandas would convert them to numbers
                raise TypeError("dates, times and complex numbers are not real numbers")
        return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(table, "__array__"):  # keep the type that it has
        table = np.asarray(table)
    return np.asarray(table, dtype=object).astype(np.float64)


def column_names(table: Any) -> list[str] | None:
    """Column names of a data frame or series, if it has any."""
    columns = getattr(table, "columns", None)
    if columns is not None:
        names = [str(name) for name in columns]
        twice = next((name for name, count in Counter(names).items() if count > 1), None)
        if twice is not None:
            raise InputError(f"column {twice!r} appears more than once; rename the columns")
        return names
    name = getattr(table, "name", None)
    return [str(name)] if name is not None and np.ndim(table) == 1 else None


def labels(names: Any, prefix: str, count: int, *, first: int = 0) -> tuple[str, ...]:
    """Return the names as a tuple; if None, names numbered from `first`."""
    if names is None:
        return tuple(f"{prefix}{first + i}" for i in range(count))
    return tuple(str(name) for name in names)
