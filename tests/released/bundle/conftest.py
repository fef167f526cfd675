from __future__ import annotations

import numpy as np
import pytest

from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.sources.arrays.memory import ArraySource
from primo.variants import Variants
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

N, D, L = 400, 5, 3


@pytest.fixture(scope="session")
def make():
    """Releases of one cohort under seeded or fresh noise; `neighbour` replaces one row."""

    def made(*, neighbour=False, seed=1, n=N, d=D, l=L, source=ArraySource, **choices):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 3, size=(n, d)).astype(float)
        Y = np.clip(X @ rng.normal(size=(d, l)) * 0.3 + rng.normal(size=(n, l)), -3, 3)
        if neighbour:
            X[7], Y[7] = 2.0, -3.0
        protection = choices.setdefault("protection", "both")
        plan = make_plan(
            Settings(
                epsilon=5.0,
                delta=1e-6,
                feature_bounds=Bounds.from_public(X)
                if protection == "outcomes"
                else Bounds(lower=0.0, upper=2.0),
                outcome_bounds=Bounds.from_public(Y)
                if protection == "features"
                else Bounds(lower=-3.0, upper=3.0),
                **choices,
            ),
            n=n,
            d=d,
            l=l,
        )
        rows = source(
            features=X,
            outcomes=Y,
            feature_names=("age", *(f"rs{i}" for i in range(1, d))),
            outcome_names=tuple(f"trait {j}" for j in range(l)),
        )
        bits = RandomBits.fresh() if seed is None else RandomBits.seeded(seed)
        return make_release(rows, plan, bits=bits, threads=1)

    return made


@pytest.fixture(scope="session")
def variants():
    return Variants(
        names=tuple(f"rs{i}" for i in range(1, D)),
        chromosome=("1", "1", "2", "X"),
        position=np.array([100, 200, 300, 2**40]),
        counted=("A", "C", "G", "ATT"),
        other=("G", "T", "A", "A"),
    )
