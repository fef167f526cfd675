"""What a cell of the stress suite is: rows to fit, other rows to score, and public bounds."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.privacy.bounds import Bounds

__all__ = ["SEED", "Cell", "Problem"]

Matrix = NDArray[np.float64]

SEED = 15


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """One data set: rows to fit, held-out rows, and bounds made without the fitted rows."""

    features: Matrix  # (n, d)
    outcomes: Matrix  # (n, l)
    held_features: Matrix  # (m, d)
    held_outcomes: Matrix  # (m, l)
    feature_bounds: Bounds
    outcome_bounds: Bounds
    explained: Matrix | None = None  # (l,) R² of the best linear predictor, where it is known

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return n, d, l."""
        return (*self.features.shape, self.outcomes.shape[1])


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One line of the page: a way to draw problems, and the settings of the release."""

    family: str
    name: str
    problem: Callable[[np.random.Generator], Problem]
    epsilon: float
    protection: str = "both"
    intercept: bool = True
    delta: float | None = None  # 1/n² if not given
    quick: bool = False  # part of the run in CI

    @property
    def title(self) -> str:
        """Family and name: what `--only` looks at."""
        return f"{self.family}: {self.name}"

    def rng(self, draw: int) -> np.random.Generator:
        """Return the generator of one draw: the same whichever cells are run beside this one."""
        return np.random.default_rng((SEED, zlib.crc32(self.title.encode()), draw))
