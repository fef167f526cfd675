"""Gaussian noise on moments, shared by the baselines that perturb sufficient statistics.

Scales are standard deviations on sums over rows. All noise is floating point from a seeded generator:
for experiments, not for private data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baselines.base import Guarantee
from primo.errors import InputError
from primo.privacy.calibration import epsilon_of
from primo.privacy.sensitivity import joint_distance

__all__ = [
    "ASSOCIATION",
    "COVARIANCE",
    "FAILURE",
    "ROUNDING",
    "Scales",
    "guarantee_of",
    "noise_penalty",
    "symmetric_noise",
]

Matrix = NDArray[np.float64]

#: Replace-one sensitivity of XᵀX over b_x², in the Frobenius norm: two rows at a right angle.
COVARIANCE = math.sqrt(2)
#: Replace-one sensitivity of XᵀY over b_x·b_y: y′ = -y.
ASSOCIATION = 2.0
#: ρ, the probability with which Wang's penalty may be too small.
FAILURE = 0.05
#: Scales are raised by this factor, far above the error of their own arithmetic.
ROUNDING = 1 + 1e-12


@dataclass(frozen=True, kw_only=True)
class Scales:
    """Noise scales relative to the bounds."""

    covariance: float  # σ₁/b_x²
    association: float  # σ₂/(b_x·b_y)

    @property
    def separate(self) -> float:
        """Return mu² of two releases, each charged for its own worst case."""
        return (COVARIANCE / self.covariance) ** 2 + (ASSOCIATION / self.association) ** 2

    @property
    def joint(self) -> float:
        """Return mu² of both as one Gaussian release: the truth, never above `separate`.

        No pair of rows is the worst for both (mathematics.md section 2). An iid triangle of noise on
        the covariance costs as much as svec noise (`primo.privacy.paper`).
        """
        return joint_distance(self.covariance**-2, self.association**-2, 0.0)

    def times(self, factor: float) -> Scales:
        """Return both scales multiplied by a factor."""
        return Scales(covariance=factor * self.covariance, association=factor * self.association)


def symmetric_noise(
    rng: np.random.Generator, d: int, scale: float, *, count: int = 1, svec: bool
) -> Matrix:
    """Return `count` symmetric matrices of noise, (count, d, d), with `scale` on the diagonal.

    Off the diagonal it is scale/√2 if `svec`, which costs no privacy; otherwise `scale`, the iid upper
    triangle of the paper and of its sources.
    """
    upper = np.triu(rng.normal(scale=scale, size=(count, d, d)))
    above = np.triu(upper, 1)
    if svec:
        above *= math.sqrt(0.5)
        upper = above + upper * np.eye(d)
    return np.asarray(upper + above.transpose(0, 2, 1), dtype=np.float64)


def noise_penalty(d: int, sigma: float, failure: float = FAILURE) -> float:
    """Return √(d·log(2d²/ρ))·σ₁, which makes a noisy covariance positive definite (Wang 2018)."""
    if not 0 < failure < 1:
        raise InputError(f"failure, a probability, must be between 0 and 1, not {failure}")
    return math.sqrt(d * math.log(2 * d**2 / failure)) * sigma


def guarantee_of(mu_squared: float, delta: float, how: str) -> Guarantee:
    """Return the (epsilon, delta) of a Gaussian release that is exactly mu-GDP."""
    return Guarantee(epsilon=epsilon_of(math.sqrt(mu_squared), delta), delta=delta, how=how)
