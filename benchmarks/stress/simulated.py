"""Simulated problems: a design of features, linear effects, and outcomes with means of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.stress.designs import Design, gaussian
from benchmarks.stress.problem import Problem
from benchmarks.stress.rules import Rule, centred

__all__ = ["Simulated", "dense", "mixed", "shared", "sparse", "weak"]

Matrix = NDArray[np.float64]
Effects = Callable[[Matrix, int, np.random.Generator], Matrix]  # standardised features, l


def dense(z: Matrix, l: int, rng: np.random.Generator) -> Matrix:
    """Draw an effect of every feature on every outcome."""
    return rng.standard_normal((z.shape[1], l))


def sparse(z: Matrix, l: int, rng: np.random.Generator) -> Matrix:
    """Draw three features with effects per outcome."""
    d = z.shape[1]
    ranks = rng.random((d, l)).argsort(axis=0)
    return rng.standard_normal((d, l)) * (ranks < 3)


def shared(z: Matrix, l: int, rng: np.random.Generator) -> Matrix:
    """Draw two directions of the features on which all outcomes depend."""
    slopes: Matrix = rng.standard_normal((z.shape[1], 2)) @ rng.standard_normal((2, l))
    return slopes


def weak(z: Matrix, l: int, rng: np.random.Generator) -> Matrix:
    """Draw effects along the features' weakest directions only, where noise hides them."""
    _, vectors = np.linalg.eigh(z.T @ z)
    few = max(1, z.shape[1] // 4)
    slopes: Matrix = vectors[:, :few] @ rng.standard_normal((few, l))
    return slopes


def mixed(z: Matrix, l: int, rng: np.random.Generator) -> Matrix:
    """Draw effects for the first tenth of the outcomes (at least one), none for the others."""
    slopes = dense(z, l, rng)
    slopes[:, max(1, l // 10) :] = 0.0
    return slopes


_PANEL = centred()


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """How to draw a simulated problem; call it with a generator.

    Outcomes have standard deviation 1 about `means`, cycled over the outcomes; `r2` is the share of it
    that the features explain, where an outcome has effects at all.
    """

    n: int
    d: int
    l: int = 1
    design: Design = gaussian
    effects: Effects = dense
    r2: float = 0.4
    means: tuple[float, ...] = (0.0,)
    far: tuple[float, ...] = ()  # means of the first outcomes
    tails: float | None = None  # degrees of freedom of the residuals
    features: Rule = _PANEL
    outcomes: Rule = _PANEL
    held: int = 2000

    def __call__(self, rng: np.random.Generator) -> Problem:
        """Draw rows to fit and rows to score from one population."""
        rows = self.n + self.held
        x = self.design(rows, self.d, rng)
        spread = x.std(axis=0)
        z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        signal = z @ self.effects(z, self.l, rng)
        size = signal.std(axis=0)
        explained = np.where(size > 1e-9, self.r2, 0.0)
        signal *= np.sqrt(explained) / np.where(size > 1e-9, size, 1.0)
        y = signal + np.sqrt(1 - explained) * self._residuals(rows, rng) + self._means()
        held = slice(self.n, None)
        return Problem(
            features=x[: self.n],
            outcomes=y[: self.n],
            held_features=x[held],
            held_outcomes=y[held],
            feature_bounds=self.features(x[held]),
            outcome_bounds=self.outcomes(y[held]),
            explained=explained,
        )

    def _residuals(self, rows: int, rng: np.random.Generator) -> Matrix:
        if self.tails is None:
            return rng.standard_normal((rows, self.l))
        drawn = rng.standard_t(self.tails, size=(rows, self.l))
        return np.asarray(drawn / np.sqrt(self.tails / (self.tails - 2)))

    def _means(self) -> Matrix:
        means = np.resize(np.asarray(self.means, dtype=np.float64), self.l)
        means[: len(self.far)] = self.far
        return means
