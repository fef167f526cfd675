"""Make the specimens again, on purpose: `python tests/specimens/make.py FOLDER`.

Seeded releases of many kinds (golden.npz) and one release file, bundle and ledger. Only names that
`import primo` shows are used, so that the same script runs under any version. A later version must
read the files that an earlier one wrote; golden.npz is made again only by a change that means to
move numbers, and its commit says so.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import primo

warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
warnings.simplefilter("ignore", primo.WeakGuaranteeWarning)

N, D, L = 400, 7, 5
FEATURES = primo.Bounds(lower=0, upper=2, norm=2.2)
OUTCOMES = primo.Bounds(centre=0.5, scale=2.0, norm=3.0)


def rows(d: int = D, l: int = L, *, n: int = N, seed: int = 5) -> tuple[Any, Any]:
    """Simulate genotypes and outcomes, the same on every machine."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 3, size=(n, d))
    slopes = rng.integers(-4, 5, size=(d, l)) / 8
    return features, (features - 1) @ slopes + rng.integers(-8, 9, size=(n, l)) / 8 + 0.5


#: Name and settings of every golden release.
CASES: dict[str, dict[str, Any]] = {
    "both": {},
    "both, diagonal, no intercept": {"outcome_moments": "diagonal", "fit_intercept": False},
    "both, split 0.5": {"split": 0.5},
    "both, sampled": {"covariance_rows": 150},
    "both, paper": {"calibration": "paper"},
    "both, panel": {"public_covariance": np.eye(D) / 2, "public_mean": np.ones(D)},
    "both, ridge": {"estimator": "ridge"},
    "both, filter": {"estimator": "filter"},
    "both, two-sided": {"estimator": "two-sided"},
    "features": {"protection": "features"},
    "features, projection": {"protection": "features", "association": "projection"},
    "outcomes": {"protection": "outcomes"},
    "outcomes, projection, ridge": {
        "protection": "outcomes",
        "association": "projection",
        "estimator": "ridge",
    },
}


def fitted(case: str) -> primo.PrimoRegressor:
    """Fit one case with known noise."""
    # One round: what a later one takes residuals of may differ in the last digit between machines.
    settings: dict[str, Any] = {"rounds": 1, "feature_bounds": FEATURES, "outcome_bounds": OUTCOMES}
    model = primo.PrimoRegressor(3, 1e-6, random_state=7, **(settings | CASES[case]))
    return model.fit(*rows())


def golden() -> dict[str, Any]:
    """Return every number that must not move: released sums, and what is estimated from them."""
    found: dict[str, Any] = {}
    for case in CASES:
        model = fitted(case)
        release = model.release_
        for name in ("covariance", "association", "outcome_moments"):
            found[f"{case}/{name}"] = getattr(release, name)
        found[f"{case}/slopes"] = model.coef_
        found[f"{case}/intercept"] = np.asarray(model.intercept_)
    wide = primo.PrimoRegressor(
        3, 1e-6, protection="outcomes", outcome_bounds=OUTCOMES, rounds=1, random_state=7
    ).fit(*rows(90, 2, n=60))
    found["outcomes, more features than rows/slopes"] = wide.coef_
    found["outcomes, more features than rows/association"] = wide.release_.association
    return found


def write_files(folder: Path) -> None:
    """Write one release file, one bundle and one ledger with its key."""
    features, outcomes = rows()
    model = primo.PrimoRegressor(
        3, 1e-6, feature_bounds=FEATURES, outcome_bounds=OUTCOMES, random_state=None
    )
    ledger = primo.create_ledger(
        folder / "specimen.ledger", limit=primo.Budget(epsilon=6, delta=1e-5), by_values=True
    )
    account = primo.Account(ledger=ledger, purpose="specimen", user="primo", dataset="specimen")
    release = model.fit(features, outcomes, account=account).release_
    primo.save_release(release, folder / "release.npz")
    primo.write_bundle(release, folder / "bundle.zip")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(target / "golden.npz", **golden())
    if len(sys.argv) > 2 and sys.argv[2] == "--files":
        write_files(target)
