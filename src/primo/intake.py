"""What users hand over (arrays, frames, short forms of bounds, seeds) in the shapes primo works with."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from primo.bounds import Bounds, as_bounds
from primo.errors import InputError, NotNumericError, ReproducibleNoiseWarning
from primo.noise import RandomBits
from primo.plans import Plan

__all__ = [
    "block_bounds",
    "column_names",
    "labels",
    "numeric",
    "random_bits",
    "reference_covariance",
    "threads",
]


def numeric(table: Any, block: str) -> NDArray[Any]:
    """Return a table as an array of real numbers, or refuse it without showing what is in it.

    The conversions of NumPy and scikit-learn quote the offending cell in their messages ("could not
    convert string to float: ..."); a private cell must not end up in a log. For the same reason the
    error is raised outside the handler: it carries no trace of the original one.
    """
    if scipy.sparse.issparse(table):
        raise NotNumericError(f"the {block} are a sparse matrix; make them dense with .toarray()")
    array = _quietly(lambda: np.asarray(table))
    if array is not None and array.dtype.kind in "OUS":
        array = _quietly(lambda: _as_floats(table))
    if array is None:
        raise NotNumericError(
            f"the {block} contain something that is not a number (every argument must be a number, or "
            "a string that spells a number). Convert or drop that column; which one it is stays private"
        )
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: the {block} must be real numbers")
    if array.dtype.kind not in "biuf":
        raise NotNumericError(f"the {block} have dtype {array.dtype}; give numbers")
    return array


def _quietly(convert: Callable[[], NDArray[Any]]) -> NDArray[Any] | None:
    try:
        return convert()
    except (TypeError, ValueError, OverflowError):
        return None


def _as_floats(table: Any) -> NDArray[Any]:
    """Convert strings and objects; the missing values of nullable pandas columns become NaN."""
    if hasattr(table, "to_numpy") and hasattr(table, "isna"):
        return np.asarray(table.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(table).astype(np.float64)


def block_bounds(value: Any, block: str, rows: NDArray[Any], private: bool) -> Bounds | None:
    """Bounds given by the caller; for a public block, else, the ones its rows show."""
    if value is not None:
        return as_bounds(value, block)
    return None if private else Bounds.from_public(rows)


def reference_covariance(covariance: Any, plan: Plan) -> NDArray[np.float64] | None:
    """Turn a panel's covariance matrix into sums over the plan's rows, in scaled units.

    The features' means are taken to be the public centres of their bounds.
    """
    if covariance is None:
        return None
    try:
        matrix = np.asarray(covariance, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("public_covariance is not a matrix of numbers") from None
    if matrix.shape != (plan.d, plan.d):
        raise InputError(
            f"public_covariance has shape {matrix.shape}; {plan.d} features need "
            f"({plan.d}, {plan.d})"
        )
    largest = float(np.abs(matrix).max(initial=0.0))
    if not np.isfinite(largest) or np.abs(matrix - matrix.T).max() > 1e-8 * largest:
        raise InputError("public_covariance must be finite and symmetric")
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * largest:
        raise InputError("public_covariance has a negative eigenvalue, so it is no covariance")
    scaled = plan.n * matrix / np.outer(plan.features.scale, plan.features.scale)
    if not plan.intercept:
        return scaled
    extended = np.zeros((plan.width, plan.width))
    extended[:-1, :-1] = scaled
    extended[-1, -1] = plan.n * plan.constant**2
    return extended


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
        return [str(name) for name in columns]
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
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
