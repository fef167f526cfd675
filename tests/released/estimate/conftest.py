from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from primo.released.estimate import NoisyMoments

MakeMoments = Callable[..., tuple[NoisyMoments, np.ndarray, np.ndarray]]


def symmetric(rng: np.random.Generator, d: int, sigma: float) -> np.ndarray:
    square = rng.standard_normal((d, d))
    return sigma * (square + square.T) / 2


@pytest.fixture
def make_moments() -> MakeMoments:
    """A release of a random regression, with its true covariance and least-squares coefficients."""

    def make(
        d: int,
        l: int,
        *,
        sigmas: tuple[float, float, float] = (0.0, 0.0, 0.0),
        n: int = 2000,
        seed: int = 0,
        rank: int | None = None,
        diagonal: bool = False,
    ) -> tuple[NoisyMoments, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, d)) * np.geomspace(2, 0.3, d)
        W = rng.standard_normal((d, rank or l)) * 0.3
        if rank is not None:
            W = W @ rng.standard_normal((rank, l)) / np.sqrt(rank)
        Y = X @ W + rng.standard_normal((n, l))
        A, G, C = X.T @ X, X.T @ Y, Y.T @ Y
        C_hat = C + symmetric(rng, l, sigmas[2])
        moments = NoisyMoments(
            n=n,
            covariance=A + symmetric(rng, d, sigmas[0]),
            association=G + sigmas[1] * rng.standard_normal((d, l)),
            outcome_moments=np.diag(C_hat).copy() if diagonal else C_hat,
            covariance_sigma=sigmas[0],
            association_sigma=sigmas[1],
            outcome_sigma=sigmas[2],
        )
        return moments, A, np.linalg.solve(A, G)

    return make
