"""Fit diffprivlib's LinearRegression; runs in its own environment, which has no primo.

Called as ``python -I baselines/diffprivlib_worker.py IN.npz OUT.npz`` (-I, since the module beside it
has the name of the library).
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def fit(job: Any) -> Any:
    """Return coefficients (l, d) for the arrays of a job.

    Bounds are symmetric and always given, rows were clipped to them by the caller: what follows if not
    is in `diffprivlib_accounting`.
    """
    from diffprivlib.models import LinearRegression  # type: ignore[import-not-found]

    feature_limit, outcome_limit = float(job["feature_limit"]), float(job["outcome_limit"])
    model = LinearRegression(
        epsilon=float(job["epsilon"]),
        bounds_X=(-feature_limit, feature_limit),
        bounds_y=(-outcome_limit, outcome_limit),
        fit_intercept=False,
        random_state=int(job["seed"]),
    )
    model.fit(job["features"], job["outcomes"])
    return np.atleast_2d(model.coef_)


if __name__ == "__main__":
    with np.load(sys.argv[1]) as arrays:
        np.savez(sys.argv[2], coefficients=fit(arrays))
