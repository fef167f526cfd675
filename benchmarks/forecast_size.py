"""Does a forecast change when fewer features stand for all? Prints the differences, cell by cell.

Every cell is forecast at its whole size and at the reduced one (`primo.forecast.reduced`). A difference
is within its limit if it is at most `ACCURACY` and three standard errors of both simulations.

    python -m benchmarks.forecast_size          # a few minutes
"""

from __future__ import annotations

from unittest import mock

import numpy as np

from primo.forecast import reduced
from primo.forecast.assumptions import Signal
from primo.forecast.compare import public_plan
from primo.forecast.forecast import predict
from primo.forecast.reduced import ACCURACY

#: Rows, features, outcomes, epsilon, protection, ranges of features and outcomes.
CELLS = (
    (3_000, 700, 1, 5, "both", None, None),
    (20_000, 400, 3, 1, "both", None, None),
    (2_000, 400, 10, 5, "both", None, None),
    (2_000, 400, 300, 5, "both", None, None),
    (20_000, 400, 10, 1, "both", None, None),
    (20_000, 400, 300, 5, "both", None, None),
    (100_000, 400, 300, 3, "both", None, None),
    (2_000, 700, 10, 5, "both", None, None),
    (20_000, 700, 10, 1, "both", None, None),
    (20_000, 700, 300, 1, "both", None, None),
    (20_000, 700, 300, 5, "both", None, None),
    (100_000, 700, 10, 3, "both", None, None),
    (20_000, 500, 300, 5, "features", None, None),
    (5_000, 500, 300, 5, "features", None, None),
    (20_000, 500, 300, 5, "outcomes", None, None),
    (3_000, 500, 50, 2, "outcomes", None, None),
    (20_000, 500, 50, 5, "both", (0, 2), (-5, 5)),
    (50_000, 500, 50, 5, "both", (0, 100), (-5, 5)),
    (20_000, 700, 2_000, 5, "both", (0, 2), (-5, 5)),
)


def main() -> None:
    within = 0
    for n, d, l, epsilon, protection, features, outcomes in CELLS:
        plan = public_plan(
            n=n,
            d=d,
            l=l,
            epsilon=epsilon,
            delta=None,
            protection=protection,
            feature_bounds=features,
            outcome_bounds=outcomes,
        )
        part = predict(plan, signal=Signal())
        with mock.patch.multiple(reduced, LARGEST=10**9, MOST_FEATURES=10**9, MOST_WHOLE=10**9):
            whole = predict(plan, signal=Signal())
        error = float(np.hypot(part.standard_error, whole.standard_error))
        fine = abs(part.r2 - whole.r2) <= ACCURACY + 3 * error
        within += fine
        print(
            f"n={n} d={d} l={l} epsilon={epsilon} {protection} {features or 'norm'}: "
            f"whole {whole.r2:.4f}, reduced {part.r2:.4f}, "
            f"difference {part.r2 - whole.r2:+.4f} (chance {error:.4f})"
        )
    print(f"{within} of {len(CELLS)} within {ACCURACY:g} and chance")


if __name__ == "__main__":
    main()
