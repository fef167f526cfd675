"""A release in rounds with float noise of the exact scales: fast enough to compare many rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.base import shortened
from experiments.figures.problem import Problem
from primo.planning.make import FULL_OUTCOME_MOMENTS
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of, split_ratio
from primo.released.estimate import NoisyMoments
from primo.released.estimate.spectrum import symmetric_noise

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    coefficients: Matrix
    clip: float
    covariance: Matrix
    association: Matrix
    outcome_moments: Matrix
    covariance_sigma: float
    association_sigma: float
    outcome_sigma: float

    def moments(self, n: int) -> NoisyMoments:
        return NoisyMoments(
            n=n,
            covariance=self.covariance,
            association=self.association,
            outcome_moments=self.outcome_moments,
            covariance_sigma=self.covariance_sigma,
            association_sigma=self.association_sigma,
            outcome_sigma=self.outcome_sigma,
        )


def scales(mu: float, k: float) -> tuple[float, float, float]:
    """sigma1/bx^2, sigma2/(bx*c), sigma3/c^2."""
    s2 = math.sqrt(2 / k + 2 + k / 2) / mu
    s1 = math.sqrt(2 + 2 * k + k * k / 2) / mu
    # outcome: symmetrical, same k
    return s1, s2, s1


@dataclass(frozen=True, kw_only=True, eq=False)
class Emulator:
    features: Matrix
    outcomes: Matrix
    feature_norm: float
    outcome_norm: float
    mu: float
    k: float = 2.0
    whole: bool = False  # residual of the unshortened row

    @classmethod
    def of(cls, problem: Problem, epsilon: float, delta: float, **options) -> Emulator:
        x, y = problem.rows
        mu = mu_of(Budget(epsilon=epsilon, delta=delta))
        return cls(
            features=x, outcomes=y, feature_norm=problem.feature_norm,
            outcome_norm=problem.outcome_norm, mu=mu, **options,
        )

    def round(self, W: Matrix, clip: float, share: float, rng: np.random.Generator) -> Round:
        x = shortened(self.features, self.feature_norm)
        multiplied = self.features if self.whole else x
        r = shortened(self.outcomes - multiplied @ W, clip)
        s1, s2, s3 = scales(self.mu * math.sqrt(share), self.k)
        b = self.feature_norm
        s1, s2, s3 = s1 * b * b, s2 * b * clip, s3 * clip * clip
        d, l = x.shape[1], r.shape[1]
        cov = x.T @ x + symmetric_noise(rng, copies=1, d=d, sigma=s1)[0]
        assoc = x.T @ r + rng.normal(size=(d, l)) * s2
        if l <= FULL_OUTCOME_MOMENTS:
            out = r.T @ r + symmetric_noise(rng, copies=1, d=l, sigma=s3)[0]
        else:
            out = np.einsum("ij,ij->j", r, r) + rng.normal(size=l) * s3
        return Round(coefficients=W, clip=clip, covariance=cov, association=assoc,
                     outcome_moments=out, covariance_sigma=s1, association_sigma=s2, outcome_sigma=s3)
