"""What a cell showed over its draws, in the numbers that the page and the verdicts need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.stress.problem import Cell
from benchmarks.stress.rivals import RIVALS
from benchmarks.stress.score import METHODS, ONE_ROUND, Draw

__all__ = ["STATISTICS", "Result"]

#: How outcomes are put together: the median one, or all sums in scaled units.
STATISTICS = ("median", "pooled")


@dataclass(frozen=True, kw_only=True)
class Result:
    """All draws of one cell, or why there are none."""

    cell: Cell
    draws: tuple[Draw, ...]
    skipped: str | None = None

    def scores(self, method: str, statistic: str) -> list[float]:
        """Return the held-out R² of a method in every draw."""
        return [float(getattr(draw.scores[method], statistic)) for draw in self.draws]

    def mean(self, method: str, statistic: str) -> float:
        """Return its mean over the draws."""
        return float(np.mean(self.scores(method, statistic)))

    def worst(self, statistic: str) -> float:
        """Return the worst draw of what is published by default."""
        return min(self.scores("auto", statistic))

    def behind(self, statistic: str, methods: Iterable[str] = METHODS) -> float:
        """Return by how much the best other method is ahead of the default, in the mean."""
        run = [method for method in methods if method in self.draws[0].scores]
        best = max(self.mean(method, statistic) for method in run)
        return best - self.mean("auto", statistic)

    @property
    def rivals(self) -> tuple[str, ...]:
        """What several rounds are compared with beside the methods; none for one round."""
        return tuple(name for name in (ONE_ROUND, *RIVALS) if name in self.draws[0].scores)

    @property
    def published(self) -> list[tuple[float, float]]:
        """Estimated R² of what is published and the held-out one, in draws that are trusted."""
        return [
            (draw.fit.published, draw.scores["auto"].pooled)
            for draw in self.draws
            if draw.fit.published is not None
        ]

    @property
    def optimism(self) -> float | None:
        """Mean of estimated minus held-out R², in draws that are trusted."""
        pairs = self.published
        return float(np.mean([said - true for said, true in pairs])) if pairs else None

    @property
    def intervals(self) -> int:
        """Number of trusted intervals."""
        return sum(draw.fit.intervals for draw in self.draws)

    @property
    def coverage(self) -> float | None:
        """Share of trusted intervals that hold the true R²."""
        covered = sum(draw.fit.covered for draw in self.draws)
        return covered / self.intervals if self.intervals else None

    @property
    def broken(self) -> int:
        """Number of intervals without their estimate, or beyond [0, 1]."""
        return sum(draw.fit.broken for draw in self.draws)

    @property
    def forecast(self) -> float | None:
        """R² predicted before the data."""
        made = [draw.forecast for draw in self.draws if draw.forecast is not None]
        return float(np.mean(made)) if made else None

    @property
    def forecast_error(self) -> float | None:
        """Predicted minus measured mean R²."""
        return None if self.forecast is None else self.forecast - self.mean("auto", "pooled")
