"""The covariance of a public reference panel, as sums over the rows of a plan."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Advice, Argument, InputError, PrimoWarning
from primo.planning.plan import Plan

__all__ = ["reference_covariance", "with_constant"]


def reference_covariance(covariance: Any, mean: Any, plan: Plan) -> NDArray[np.float64] | None:
    """Turn a panel's covariance and mean into sums over the plan's rows, in scaled units."""
    if covariance is None:
        if mean is not None:
            raise InputError(
                Argument("public_mean"),
                " belongs to ",
                Argument("public_covariance"),
                remedy="give both or neither",
            )
        return None
    if mean is None:
        raise InputError(
            Argument("public_covariance"),
            " needs ",
            Argument("public_mean"),
            ", the means of the same panel",
            remedy=Advice(
                "panel_moments",
                "public_covariance=numpy.cov(panel.T), public_mean=panel.mean(axis=0)",
            ),
        )
    d, scale = plan.d, plan.features.scale
    matrix, centre = (_public_numbers(value) for value in (covariance, mean))
    if matrix is None or matrix.shape != (d, d) or centre is None or centre.shape != (d,):
        raise InputError(
            f"{d} features need a ",
            Argument("public_covariance"),
            f" of finite numbers of shape ({d}, {d}) and a ",
            Argument("public_mean"),
            f" of shape ({d},)",
        )
    largest = float(np.abs(matrix).max(initial=0.0))
    if np.abs(matrix - matrix.T).max() > 1e-8 * largest:
        raise InputError(Argument("public_covariance"), " must be symmetric")
    if np.linalg.eigvalsh(matrix)[0] < -1e-8 * largest:
        raise InputError(
            Argument("public_covariance"), " has a negative eigenvalue, so it is not a covariance"
        )
    wide = np.flatnonzero(np.diagonal(matrix) > scale**2 * (1 + 1e-6))
    if plan.features.box and len(wide):
        i = int(wide[0])
        raise InputError(
            Argument("public_covariance"),
            f" gives feature {i} a variance of {matrix[i, i]:g}, more than its range "
            f"allows ({scale[i] ** 2:g}); is it a correlation (LD) matrix, or in other units?",
        )
    if np.allclose(np.diagonal(matrix), 1.0):
        warnings.warn(
            PrimoWarning(
                Argument("public_covariance"),
                " has ones on its diagonal. A correlation (LD) matrix is only right if the "
                "features were standardised in the same way",
                remedy="otherwise give the covariance",
            ),
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
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return array if np.isfinite(array).all() else None


def with_constant(covariance: NDArray[np.float64], factor: float) -> NDArray[np.float64]:
    """Return the covariance with its constant, the last feature, multiplied by a factor.

    The constant is proportional to the norm of the features, which may be found after the panel's
    covariance was made.
    """
    scaled = covariance.copy()
    scaled[-1] *= factor
    scaled[:, -1] *= factor
    return scaled
