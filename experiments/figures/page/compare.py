"""Means, paired differences and their standard errors over the repeats of a cell."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.figures.grid import Cell
from experiments.figures.results import Score

__all__ = ["CLEAR", "Estimate", "Scores", "cell_of", "estimate"]

#: A difference counts if it exceeds this many of its standard errors.
CLEAR = 2.0


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean over repeats."""

    mean: float
    error: float | None  # standard error; one repeat has none
    repeats: int

    @property
    def sign(self) -> int | None:
        """Return 1 or -1 if the mean is clearly not zero, 0 if it may be, None if it is unknown."""
        if self.error is None:
            return None
        if abs(self.mean) <= CLEAR * self.error:
            return 0
        return 1 if self.mean > 0 else -1

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference to a mean over other, independent draws."""
        error = None
        if self.error is not None and other.error is not None:
            error = math.hypot(self.error, other.error)
        return Estimate(
            mean=self.mean - other.mean, error=error, repeats=min(self.repeats, other.repeats)
        )


def estimate(values: Iterable[float]) -> Estimate | None:
    """Return mean and standard error of some numbers, or None if there are none."""
    kept = list(values)
    if not kept:
        return None
    mean = math.fsum(kept) / len(kept)
    error = None
    if len(kept) > 1:
        spread = math.fsum((value - mean) ** 2 for value in kept) / (len(kept) - 1)
        error = math.sqrt(spread / len(kept))
    return Estimate(mean=mean, error=error, repeats=len(kept))


def cell_of(score: Score) -> Cell:
    """Return the cell that a score belongs to."""
    return Cell(
        features=score.features,
        outcomes=score.outcomes,
        n=score.n,
        d=score.d,
        l=score.l,
        epsilon=score.epsilon_requested,
    )


class Scores:
    """All scores of a folder, by cell, method and repeat."""

    def __init__(self, rows: Iterable[Score]) -> None:
        self.rows = tuple(rows)
        self._by: dict[tuple[Cell, str], dict[int, Score]] = defaultdict(dict)
        self._cells: dict[str, dict[Cell, None]] = defaultdict(dict)
        for row in self.rows:
            cell = cell_of(row)
            self._cells[row.study][cell] = None
            if not row.skipped and math.isfinite(row.r2):
                # Two studies may share a cell; its draws come from the same seeds.
                self._by[cell, row.method].setdefault(row.repeat, row)

    @property
    def studies(self) -> tuple[str, ...]:
        """Return the names of the studies that have scores."""
        return tuple(self._cells)

    def cells(
        self,
        study: str | None = None,
        *,
        features: str | None = None,
        outcomes: str | None = None,
        n: int | None = None,
    ) -> list[Cell]:
        """Return the cells of one study or of all, study by study, in the order of size."""
        found: dict[Cell, None] = {}
        for name in self.studies if study is None else (study,):
            here = self._cells.get(name, {})
            found |= dict.fromkeys(
                sorted(here, key=lambda c: (c.features, c.outcomes, c.n, c.d, c.epsilon, c.l))
            )
        return [
            cell
            for cell in found
            if features in (None, cell.features)
            and outcomes in (None, cell.outcomes)
            and n in (None, cell.n)
        ]

    def methods(self, cell: Cell) -> tuple[str, ...]:
        """Return the methods that have a number in a cell."""
        return tuple(name for where, name in self._by if where == cell)

    def of(self, cell: Cell, method: str) -> Mapping[int, Score]:
        """Return the scores of a method in a cell, by repeat; none if it was not run there."""
        return self._by.get((cell, method), {})

    def mean(
        self,
        cell: Cell,
        method: str,
        metric: str = "r2",
        *,
        repeats: frozenset[int] | None = None,
    ) -> Estimate | None:
        """Return the mean of a metric over all repeats, or over some."""
        found = self._finite(cell, method, metric)
        return estimate(v for repeat, v in found.items() if repeats is None or repeat in repeats)

    def shared_repeats(self, cell: Cell, methods: Iterable[str]) -> frozenset[int] | None:
        """Return the repeats that all methods have; None, for all, where they share none."""
        found = [frozenset(self.of(cell, method)) for method in methods]
        return frozenset.intersection(*found) or None if found else None

    def difference(
        self, cell: Cell, method: str, other: str, metric: str = "r2"
    ) -> Estimate | None:
        """Return the mean of `method` minus `other` over the repeats that both have."""
        one, two = self._finite(cell, method, metric), self._finite(cell, other, metric)
        return estimate(one[repeat] - two[repeat] for repeat in one if repeat in two)

    def less_error(self, cell: Cell, method: str, other: str) -> Estimate | None:
        """Return how much less error `method` makes than `other`, as a mean of log(error ratio).

        Positive where `method` is better. Orders are judged here rather than on R²: R² has no lower
        limit, and one very bad repeat would hide what all the others agree on.
        """
        return self.difference(cell, other, method, "log_ratio")

    def beats_constant(self, cell: Cell, method: str) -> Estimate | None:
        """Return the mean of -log(1 - R²): positive where a method beats the constant predictor."""
        found = self._finite(cell, method, "r2").values()
        return estimate(-math.log(1 - value) for value in found if value < 1)

    def epsilon_true(self, cell: Cell, method: str) -> float | None:
        """Return the largest ε that a method truly spent in a cell."""
        return max((score.epsilon_true for score in self.of(cell, method).values()), default=None)

    def keeps_budget(self, cell: Cell, method: str) -> bool:
        """Whether every fit of a method in a cell kept the (ε, δ) that was asked for."""
        found = self.of(cell, method).values()
        return bool(found) and all(
            score.epsilon_true <= score.epsilon_requested * (1 + 1e-9)
            and score.delta_true <= score.delta_requested * (1 + 1e-9)
            for score in found
        )

    def _finite(self, cell: Cell, method: str, metric: str) -> dict[int, float]:
        values = {repeat: getattr(row, metric) for repeat, row in self.of(cell, method).items()}
        return {repeat: value for repeat, value in values.items() if math.isfinite(value)}
