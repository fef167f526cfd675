"""What users hand over (arrays, frames, short forms of bounds, seeds) in the shapes primo works with."""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from primo.errors import InputError, NotNumericError, ReproducibleNoiseWarning
from primo.planning.plan import Plan
from primo.rows.sources.tabular.index import index_labels, index_names
from primo.wall.noise import RandomBits

__all__ = [
    "column_names",
    "labels",
    "numeric",
    "people_of",
    "random_bits",
    "reference_covariance",
    "threads",
]


_MOST_THREADS = 1024  # each holds moments of its own


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
    array = _quietly(lambda: _as_array(table))
    if array is None:
        raise NotNumericError(
            f"the {block} contain something that is not a number (every argument must be a number, or "
            "a string that spells a number). Convert or drop that column, for example code genotypes "
            "as 0, 1, 2; the cell itself stays private"
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


def people_of(n: int, m: int, features: Any, outcomes: Any) -> dict[str, Any]:
    """Return who owns the rows of two tables, of n and m rows, as far as the index of a frame says it.

    What is returned are the arguments `labels` and `id_names` of an `ArraySource`. Tables that do not
    belong together, as far as their labels show, are refused.
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
            "the rows of features and outcomes carry other labels, or the same ones in another order; "
            "align them first, for example y = y.loc[X.index]. Take the labels of one of them away, "
            "with .reset_index(drop=True), only if the rows are in the same order"
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

    NumPy chooses the type of a list by all of its cells. Real numbers of all kinds go together: none is
    rounded that float64 would not round in the same way. Among objects and strings it is otherwise. One
    string makes strings of all cells, and np.float32(0.1), spelled "0.1", becomes another number.
    """
    if isinstance(table, np.ma.MaskedArray):  # a mask means missing; plain conversion drops it
        return np.asarray(np.ma.filled(table.astype(np.float64), np.nan))
    array = np.asarray(table)
    if array.dtype.kind in "OUS":
        return _cell_by_cell(table)
    # Arithmetic with longer floats would round other cells of a list otherwise than float64 does.
    return array.astype(np.float64) if array.dtype.kind == "f" and array.itemsize > 8 else array


def _quietly(convert: Callable[[], NDArray[Any]]) -> NDArray[Any] | None:
    try:
        with np.errstate(all="ignore"):  # a warning would depend on private values
            return convert()
    except MemoryError:
        raise
    except Exception:  # a cell may be an object that raises, and says, what it likes
        return None


def _cell_by_cell(table: Any) -> NDArray[np.float64]:
    """Convert strings and objects; the missing values of nullable pandas columns become NaN."""
    if hasattr(table, "to_numpy") and hasattr(table, "isna"):
        for kind in np.asarray(table.dtypes, dtype=object).flat:
            if getattr(kind, "kind", "O") in "mMc":  # pandas would make some number of them
                raise TypeError("dates, times and complex numbers are no real numbers")
        return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan))
    if hasattr(table, "__array__"):  # its type is its own, and not for us to choose
        table = np.asarray(table)
    return np.asarray(table, dtype=object).astype(np.float64)


def reference_covariance(covariance: Any, mean: Any, plan: Plan) -> NDArray[np.float64] | None:
    """Turn a panel's covariance and mean into sums over the plan's rows, in scaled units."""
    if covariance is None:
        if mean is not None:
            raise InputError("public_mean belongs to public_covariance; give both or neither")
        return None
    if mean is None:
        raise InputError(
            "public_covariance needs public_mean, the means of the same panel: "
            "public_covariance=numpy.cov(panel.T), public_mean=panel.mean(axis=0)"
        )
    d, scale = plan.d, plan.features.scale
    matrix, centre = (_public_numbers(value) for value in (covariance, mean))
    if matrix is None or matrix.shape != (d, d) or centre is None or centre.shape != (d,):
        raise InputError(
            f"{d} features need a public_covariance of finite numbers of shape ({d}, {d}) and a "
            f"public_mean of shape ({d},)"
        )
    largest = float(np.abs(matrix).max(initial=0.0))
    if np.abs(matrix - matrix.T).max() > 1e-8 * largest:
        raise InputError("public_covariance must be symmetric")
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * largest:
        raise InputError("public_covariance has a negative eigenvalue, so it is no covariance")
    wide = np.flatnonzero(np.diagonal(matrix) > scale**2 * (1 + 1e-6))
    if plan.features.box and len(wide):
        i = int(wide[0])
        raise InputError(
            f"public_covariance gives feature {i} a variance of {matrix[i, i]:g}, more than its range "
            f"allows ({scale[i] ** 2:g}); is it a correlation (LD) matrix, or in other units?"
        )
    if np.allclose(np.diagonal(matrix), 1.0):
        warnings.warn(
            "public_covariance has ones on its diagonal. A correlation (LD) matrix only serves if the "
            "features were standardised in the same way; otherwise give the covariance",
            stacklevel=4,
        )
    offset = (centre - plan.features.centre) / scale
    scaled = plan.n * (matrix / np.outer(scale, scale) + np.outer(offset, offset))
    if not plan.intercept:
        return np.asarray(scaled)
    extended = np.empty((plan.width, plan.width))
    extended[:-1, :-1] = scaled
    extended[-1, :-1] = extended[:-1, -1] = plan.n * plan.constant * offset
    extended[-1, -1] = plan.n * plan.constant**2
    return extended


def _public_numbers(value: Any) -> NDArray[np.float64] | None:
    array = _quietly(lambda: np.asarray(value, dtype=np.float64))
    return array if array is not None and np.isfinite(array).all() else None


def random_bits(random_state: Any) -> RandomBits:
    """Return fresh bits, or known ones, with a warning, where a seed is given."""
    if random_state is None:
        return RandomBits.fresh()
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
        raise InputError(
            f"random_state={random_state!r} must be an integer, a numpy RandomState or None"
        )
    warnings.warn(
        "random_state makes the noise reproducible: the release is not private against anyone who "
        "knows or guesses it, and is marked as not for publication. Leave it out for real data",
        ReproducibleNoiseWarning,
        stacklevel=3,
    )
    return RandomBits.seeded(int(random_state))


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


def labels(names: Any, prefix: str, count: int) -> tuple[str, ...]:
    """Return the names as a tuple, or numbered ones where there are none."""
    if names is None:
        return tuple(f"{prefix}{i}" for i in range(count))
    return tuple(str(name) for name in names)


def threads(n_jobs: Any) -> int | None:
    """Read scikit-learn's n_jobs: a positive number, -1 for all cores, None for the default."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InputError(f"n_jobs={n_jobs!r} must be a positive integer, -1 or None")
    wanted = int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
    return min(wanted, _MOST_THREADS)
