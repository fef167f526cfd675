"""IBM's diffprivlib: `LinearRegression`, run in an environment of its own.

Version 0.6.6, the newest there is, cannot be imported with the scikit-learn of this project, so the
fit is a subprocess (`diffprivlib_worker`) in .venv-diffprivlib, which ``make diffprivlib`` creates.
What the fit truly costs is derived in `diffprivlib_accounting`.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from baselines.base import Baseline, Guarantee, Matrix
from baselines.diffprivlib_accounting import Shape, nominal_epsilon, true_epsilon
from primo.errors import InputError, PrimoError

__all__ = ["ENVIRONMENT", "DiffprivlibRegression", "MissingEnvironment", "environment_python"]

ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv-diffprivlib"
_WORKER = Path(__file__).with_name("diffprivlib_worker.py")


class MissingEnvironment(InputError):  # noqa: N818 - the reason for a skip, not a failure
    """The environment of another library is not there; the message says how to make it."""


class DiffprivlibRegression(Baseline):
    """diffprivlib's LinearRegression without intercept, rows clipped for it.

    Parameters
    ----------
    epsilon, delta, feature_bounds, outcome_bounds, random_state
        As for every baseline. `delta` is used by approximate accounting only.
    feature_limit, outcome_limit : float, optional
        Entries are clipped to ± this, the bounds that the library is given. Default: the norms, which no
        entry exceeds.
    at_true_budget : bool, default False
        False asks the library for `epsilon`, as its user would, and `guarantee_` says what that truly
        costs. True asks for the epsilon whose true cost is `epsilon`.
    accounting : {"pure", "approximate"}
        Whether the true cost is stated at delta = 0, the library's own promise, or at `delta`. Thousands
        of Laplace releases cost far less at a small delta than the sum of their epsilons: the fair
        opponent of Gaussian methods is ``at_true_budget=True, accounting="approximate"``.

    Attributes
    ----------
    nominal_epsilon_ : float
        What the library was asked for.

    Notes
    -----
    The library minimises its noisy quadratic although it may be unbounded below; coefficients that are
    not finite become 0.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        feature_bounds: float = 1.0,
        outcome_bounds: float = 1.0,
        feature_limit: float | None = None,
        outcome_limit: float | None = None,
        at_true_budget: bool = False,
        accounting: str = "pure",
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epsilon,
            delta,
            feature_bounds=feature_bounds,
            outcome_bounds=outcome_bounds,
            random_state=random_state,
        )
        self.feature_limit = feature_limit
        self.outcome_limit = outcome_limit
        self.at_true_budget = at_true_budget
        self.accounting = accounting

    def _fit(self, features: Matrix, outcomes: Matrix) -> tuple[Matrix, Guarantee | None]:
        if self.accounting not in ("pure", "approximate"):
            raise InputError(f"accounting={self.accounting!r} must be 'pure' or 'approximate'")
        d, l = features.shape[1], outcomes.shape[1]
        feature_limit = _limit(self.feature_limit, self.feature_bounds)
        outcome_limit = _limit(self.outcome_limit, self.outcome_bounds)
        shape = Shape(
            d=d,
            l=l,
            feature_fill=min(1.0, float(self.feature_bounds) / (math.sqrt(d) * feature_limit)),
            outcome_fill=min(1.0, float(self.outcome_bounds) / (math.sqrt(l) * outcome_limit)),
        )
        delta = 0.0 if self.accounting == "pure" else self.delta
        self.nominal_epsilon_ = (
            nominal_epsilon(self.epsilon, shape, delta=delta)
            if self.at_true_budget
            else self.epsilon
        )
        coefficients = _run(
            features=np.clip(features, -feature_limit, feature_limit),
            outcomes=np.clip(outcomes, -outcome_limit, outcome_limit),
            feature_limit=feature_limit,
            outcome_limit=outcome_limit,
            epsilon=self.nominal_epsilon_,
            seed=self._rng().integers(2**31),
        )
        guarantee = Guarantee(
            epsilon=true_epsilon(self.nominal_epsilon_, shape, delta=delta),
            delta=delta,
            how=f"Laplace noise on {shape.released:.0f} numbers, asked for {self.nominal_epsilon_:.4g}",
        )
        return np.where(np.isfinite(coefficients), coefficients, 0.0).T, guarantee


def environment_python() -> Path:
    """Return the interpreter that has diffprivlib, or say how to get it."""
    python = ENVIRONMENT / "bin" / "python"
    if not python.exists():
        raise MissingEnvironment(
            f"diffprivlib needs an environment of its own and {ENVIRONMENT} does not exist; "
            "create it with: make diffprivlib"
        )
    return python


def _limit(limit: float | None, norm: float) -> float:
    return float(norm if limit is None else min(limit, norm))


def _run(**job: Any) -> Matrix:
    """Fit in the other environment and return coefficients (l, d)."""
    python = environment_python()
    with tempfile.TemporaryDirectory(prefix="primo-diffprivlib-") as folder:
        source, target = Path(folder, "job.npz"), Path(folder, "fit.npz")
        np.savez(source, **job)
        done = subprocess.run(
            [python, "-I", _WORKER, source, target], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise PrimoError(f"diffprivlib failed: {done.stderr.strip()[-500:]}")
        with np.load(target) as fitted:
            return np.asarray(fitted["coefficients"], dtype=np.float64)
