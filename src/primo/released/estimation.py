"""How coefficients are made from a release: one value from the front ends to the bundle."""

from __future__ import annotations

import math
from dataclasses import dataclass

from primo.errors import Argument, InputError
from primo.privacy.budget import is_number
from primo.released.estimate import ESTIMATORS
from primo.released.estimate.reuse_cov import SOLVERS

__all__ = ["LAMBDA_RULES", "Estimation"]

LAMBDA_RULES = ("theorem", "adassp")


@dataclass(frozen=True, kw_only=True)
class Estimation:
    """The options of `primo.coefficients`; checked when made, so before a release is paid for.

    Parameters
    ----------
    estimator
        "auto", "ridge", "filter", "one-sided" or "two-sided" (`primo.released.estimate.estimate`).
    ridge_lambda
        For the ridge: a number on the scale of XᵀX in scaled units, "theorem" (Theorems 1 to 3, needs
        `coefficient_norm`), "adassp", or None for √(d/2)·σ₁.
    coefficient_norm
        ‖w‖ of a typical outcome in scaled units, public knowledge for ``ridge_lambda="theorem"``.
    solver
        For the ridge: "fast", or the paper's "qr" and "cg" (Algorithm 3, section 5.3).

    Examples
    --------
    >>> import primo
    >>> primo.Estimation(estimator="ridge", solver="qr").solver
    'qr'
    """

    estimator: str = "auto"
    ridge_lambda: float | str | None = None
    coefficient_norm: float | None = None
    solver: str = "fast"

    def __post_init__(self) -> None:
        """Refuse unknown words and combinations that make no sense."""
        if self.estimator not in ESTIMATORS:
            raise InputError(
                Argument("estimator", self.estimator),
                " is unknown",
                remedy=f"choose one of {', '.join(ESTIMATORS)}",
            )
        if self.solver not in SOLVERS:
            raise InputError(
                Argument("solver", self.solver),
                " is unknown",
                remedy=f"choose one of {', '.join(SOLVERS)}",
            )
        for name, given in (
            ("ridge_lambda", self.ridge_lambda is not None),
            ("solver", self.solver != "fast"),
        ):
            if given and self.estimator != "ridge":
                raise InputError(
                    Argument(name),
                    " belongs to ",
                    Argument("estimator", "ridge"),
                    f", not to {self.estimator!r}",
                )
        _check_lambda(self.ridge_lambda, self.coefficient_norm)


def _check_lambda(value: float | str | None, norm: float | None) -> None:
    if isinstance(value, str):
        if value not in LAMBDA_RULES:
            raise InputError(
                Argument("ridge_lambda", value),
                " is unknown",
                remedy='give a number, "theorem", "adassp" or None',
            )
        if value == "theorem" and not (is_number(norm) and 0 < (norm or 0) < math.inf):
            raise InputError(
                Argument("ridge_lambda", "theorem"),
                " needs a positive ",
                Argument("coefficient_norm"),
                f", not {norm!r}: the norm of a typical outcome's coefficients in scaled units, from "
                "public knowledge",
            )
    elif value is not None and not (is_number(value) and 0 <= value < math.inf):
        raise InputError(Argument("ridge_lambda", value), " must be a number, not negative")
