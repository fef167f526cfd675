"""The law of the best attack's log-likelihood ratio between two neighbours, under the claimed noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from scipy.special import ndtr, ndtri

from primo.audit.evidence import gaussian_epsilon

__all__ = ["GaussianLaw", "Law", "OfGaussians", "SampledLaw"]

#: Range in standard deviations, and number of points, of the integral over the association's noise.
_REACH, _POINTS = 10.0, 2001


class Law(Protocol):
    """What a pair of neighbours allows the best attack."""

    def rates(self, threshold: float) -> tuple[float, float]:
        """Return the chances that the score exceeds a threshold: row replaced, row present."""

    def epsilon(self, right: float, delta: float) -> float:
        """Return the least ε at which a guess can be right with chance `right` on this pair."""


@dataclass(frozen=True, kw_only=True)
class GaussianLaw:
    """One Gaussian, moved by `mu` noise scales."""

    mu: float

    def rates(self, threshold: float) -> tuple[float, float]:
        """Return the chances that the score exceeds a threshold: row replaced, row present."""
        at = threshold / self.mu
        return float(ndtr(-at - self.mu / 2)), float(ndtr(-at + self.mu / 2))

    def epsilon(self, right: float, delta: float) -> float:
        """Return the least ε at which a guess can be right with chance `right` on this pair."""
        return gaussian_epsilon(2 * float(ndtri(right)), delta)


class OfGaussians:
    """Base of attacks on neighbours that differ, in all that is released, by a Gaussian's mean."""

    #: The squared, noise-scaled distance of each canary's neighbours, exactly; at the stated bounds.
    distances: tuple[Fraction, ...]

    @property
    def distance(self) -> float:
        """How far apart the neighbours are in noise scales: the mu that they reach."""
        return math.sqrt(max(self.distances))

    @property
    def law(self) -> Law:
        """What the claimed noise allows this attack."""
        return GaussianLaw(mu=self.distance)


@dataclass(frozen=True, kw_only=True)
class SampledLaw:
    """A covariance that is moved by `covariance` noise scales only if the row was drawn.

    All other rows equal the new one, so without the row (and where it is not drawn) the covariance of
    the sample is always the same: (1-γ)N(0, 1) + γN(covariance, 1) against N(0, 1), together with one
    Gaussian moved by `rest`. `primo.privacy.subsampling` bounds ε from above for all pairs; this is
    exact for one pair.
    """

    rate: float  # γ
    covariance: float
    rest: float

    def score(self, covariance: float, rest: float) -> float:
        """Return the log-likelihood ratio of two numbers with standard noise."""
        drawn = math.exp(self.covariance * covariance - self.covariance**2 / 2)
        return math.log1p(self.rate * (drawn - 1)) + self.rest * rest - self.rest**2 / 2

    def rates(self, threshold: float, noise: float = 1.0) -> tuple[float, float]:
        """Return the chances that the score exceeds a threshold, with `noise` times the noise."""
        u = np.linspace(-_REACH, _REACH, _POINTS)
        weight = np.exp(-(u**2) / 2)
        weight /= weight.sum()

        def exceeds(moved: float, rest: float) -> float:
            # The score of the covariance must exceed `left`; it is never below log(1-γ).
            left = threshold - self.rest * (moved + noise * u) + self.rest**2 / 2
            not_drawn = (1 - self.rate) * np.exp(-np.clip(left, -700.0, None))
            with np.errstate(divide="ignore", invalid="ignore"):
                needed = left - math.log(self.rate) + np.log1p(-not_drawn)
                needed = (needed + self.covariance**2 / 2) / self.covariance
                chance = np.where(not_drawn < 1, ndtr((rest - needed) / noise), 1.0)
            return float(weight @ chance)

        not_drawn, drawn = exceeds(self.rest, 0.0), exceeds(self.rest, self.covariance)
        return exceeds(0.0, 0.0), (1 - self.rate) * not_drawn + self.rate * drawn

    def right(self, noise: float = 1.0) -> float:
        """Return how often the guess "score above 0" is right, with `noise` times the noise."""
        false, hit = self.rates(0.0, noise)
        return (1 - false + hit) / 2

    def epsilon(self, right: float, delta: float) -> float:
        """Return the ε of this pair if the noise is such that a guess is right with this chance."""
        if right <= 0.5:
            return 0.0
        noise = _crossing(lambda log_noise: self.right(math.exp(log_noise)) - right, -3.0, 5.0)
        return self.scaled(math.exp(noise)).epsilon_at(delta)

    def scaled(self, noise: float) -> SampledLaw:
        """Return the law of the best attack on `noise` times the noise."""
        return SampledLaw(
            rate=self.rate, covariance=self.covariance / noise, rest=self.rest / noise
        )

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε for which this pair satisfies (ε, δ)-DP."""

        def excess(epsilon: float) -> float:
            false, hit = self.rates(epsilon)
            return hit - math.exp(epsilon) * false - delta

        return _crossing(excess, 0.0, 64.0) if excess(0.0) > 0 else 0.0


def _crossing(decreasing: Callable[[float], float], low: float, high: float) -> float:
    """Return where a decreasing function changes its sign."""
    for _ in range(44):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if decreasing(middle) > 0 else (low, middle)
    return low
