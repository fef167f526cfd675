from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.release import Release


@dataclass(frozen=True, kw_only=True)
class Truth:
    population: np.ndarray  # (d, l) slopes
    rows: np.ndarray  # (d, l)
    intercept: np.ndarray  # (l,) of the rows
    r_squared: np.ndarray  # (l,) of the rows
    ols_error: np.ndarray  # (d, 1) standard error of least squares


Draw = Callable[[np.random.Generator], tuple[Release, Truth]]


def features(n: int, d: int, collinear: float | None, rng: np.random.Generator) -> np.ndarray:
    X = rng.standard_normal((n, d)) * np.linspace(1.5, 0.8, d)
    if collinear is not None:
        X[:, 1] = X[:, 0] + collinear * X[:, 1]
    return X


def symmetric(size: int, rng: np.random.Generator) -> np.ndarray:
    """Svec noise: variance 1 on the diagonal, 1/2 off it."""
    noise = rng.standard_normal((size, size))
    return (noise + noise.T) / 2


@pytest.fixture
def world() -> Callable[..., Draw]:
    """Releases of a random regression: exact moments plus noise of the plan's scales."""

    def make(
        d: int = 4,
        l: int = 20,
        *,
        n: int = 3000,
        epsilon: float = 2.0,
        protection: str = "both",
        intercept: bool = True,
        nulls: float = 0.3,
        collinear: float | None = None,
        moments: str = "diagonal",
        seed: int = 0,
    ) -> Draw:
        X = features(n, d, collinear, np.random.default_rng(seed))
        plan = make_plan(
            Settings(
                epsilon=epsilon,
                delta=1e-6,
                protection=protection,
                feature_bounds=Bounds(norm=float(np.linalg.norm(X, axis=1).max())),
                outcome_bounds=Bounds(norm=3.0 * np.sqrt(l) + 3),
                outcome_moments=moments,
                fit_intercept=intercept,
            ),
            n=n,
            d=d,
            l=l,
        )
        F = np.column_stack([X, np.full(n, plan.constant)]) if intercept else X
        A = F.T @ F

        def draw(rng: np.random.Generator) -> tuple[Release, Truth]:
            theta = rng.normal(size=(plan.width, l)) * 0.4
            theta[:d][rng.random((d, l)) < nulls] = 0
            Y = F @ theta + rng.standard_normal((n, l))
            G = F.T @ Y
            solved = np.linalg.lstsq(A, G, rcond=None)[0]
            noise = plan.covariance_sigma * symmetric(plan.width, rng)
            added = plan.association_sigma * rng.standard_normal(G.shape)
            if intercept:
                noise[-1, -1] = 0
                if protection == "features":
                    added[-1] = 0
            if moments == "full":
                squares = Y.T @ Y + plan.outcome_sigma * symmetric(l, rng)
            else:
                squares = (Y**2).sum(axis=0) + plan.outcome_sigma * rng.standard_normal(l)
            spread = ((Y - intercept * Y.mean(axis=0)) ** 2).sum(axis=0)
            release = Release(
                plan=plan,
                feature_names=tuple(f"snp{i}" for i in range(d)),
                outcome_names=tuple(f"trait{j}" for j in range(l)),
                covariance=A + noise,
                association=G + added,
                outcome_moments=squares,
                reproducible=True,
                backend="test",
            )
            return release, Truth(
                population=theta[:d],
                rows=solved[:d],
                intercept=solved[-1] * plan.constant if intercept else np.zeros(l),
                r_squared=1 - ((Y - F @ solved) ** 2).sum(axis=0) / spread,
                ols_error=np.sqrt(np.diag(np.linalg.pinv(A)))[:d, None],
            )

        return draw

    return make
