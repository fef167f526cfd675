"""The search of one cell: random points of the grid, steps from the best one, a final among the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from baselines.dpsgd import DPSGDEach, DPSGDJoint
from experiments.figures.problem import Problem
from experiments.tuning.hyperparameters import Hyperparameters

__all__ = ["Effort", "Score", "best_of", "evaluate", "search"]

Values = Mapping[str, Sequence[float]]
Point = tuple[int, ...]  # an index into the values of each axis


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much one cell is searched."""

    random: int  # points drawn from the grid, those known from other cells counted in
    refine: int  # points stepped to from the best one
    draws: int  # data sets that score a point
    finalists: int
    fresh: int  # new data sets that score the finalists
    fitted: int | None = None  # outcomes that are fitted, where each has its own run


@dataclass(frozen=True, kw_only=True)
class Score:
    """One run."""

    variant: str
    d: int
    l: int
    phase: str  # "known", "random", "refine", "final"
    draw: int
    hyperparameters: Hyperparameters
    r_squared: float
    seconds: float

    def row(self) -> dict[str, Any]:
        """Return the score as one flat row of a table."""
        fields = {k: getattr(self, k) for k in self.__dataclass_fields__ if k != "hyperparameters"}
        return fields | asdict(self.hyperparameters)


Evaluate = Callable[[Hyperparameters, str, int], Score]


def evaluate(
    problem: Problem,
    variant: str,
    hyperparameters: Hyperparameters,
    *,
    epsilon: float,
    fitted: int | None,
    seed: int,
) -> tuple[float, float]:
    """Fit once and return R² and the time it took."""
    assert problem.rows is not None
    common: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": 1 / problem.n**2,
        "feature_bounds": problem.feature_norm,
        "outcome_bounds": problem.outcome_norm,
        "random_state": seed,
        **hyperparameters.parameters(),
    }
    started = time.perf_counter()
    if variant == "joint":
        joint = DPSGDJoint(**common).fit(*problem.rows)
        score = problem.truth.r_squared(joint.coef_.T)
    else:
        each = DPSGDEach(**common, outcome_limit=problem.outcome_limit, fitted_outcomes=fitted).fit(
            *problem.rows
        )
        chosen = each.fitted_outcomes_
        score = problem.truth.of_outcomes(chosen).r_squared(each.coef_.T[:, chosen])
    # A diverged run may have overflowed: score it as very bad, but finite.
    return float(np.nan_to_num(score, nan=-1e9, neginf=-1e9)), time.perf_counter() - started


def search(
    values: Values,
    effort: Effort,
    run: Evaluate,
    rng: np.random.Generator,
    known: Iterable[Hyperparameters] = (),
) -> Iterator[Score]:
    """Yield the score of every run, the finals last.

    `known` are points that were best elsewhere; they are tried beside the random ones.
    """
    axes = list(values)
    means: dict[Point, float] = {}

    def at(point: Point) -> Hyperparameters:
        return Hyperparameters.of(
            {axis: values[axis][i] for axis, i in zip(axes, point, strict=True)}
        )

    def scored(point: Point, phase: str) -> list[Score]:
        scores = [run(at(point), phase, draw) for draw in range(effort.draws)]
        means[point] = float(np.mean([score.r_squared for score in scores]))
        return scores

    for best in known:
        point = tuple(list(values[axis]).index(getattr(best, axis)) for axis in axes)
        if point not in means:
            yield from scored(point, "known")
    while len(means) < effort.random:
        point = tuple(int(rng.integers(len(values[axis]))) for axis in axes)
        if point not in means:
            yield from scored(point, "random")
    for _ in range(effort.refine):
        neighbour = _unseen_neighbour(means, [len(values[axis]) for axis in axes], rng)
        if neighbour is None:
            break
        yield from scored(neighbour, "refine")
    ranked = sorted(means, key=lambda point: means[point], reverse=True)
    for point in ranked[: effort.finalists]:
        for draw in range(effort.fresh):
            yield run(at(point), "final", effort.draws + draw)


def _unseen_neighbour(
    means: Mapping[Point, float], sizes: list[int], rng: np.random.Generator
) -> Point | None:
    """Return a point one step along one axis from the best one that has such a neighbour left."""
    for best in sorted(means, key=lambda point: means[point], reverse=True):
        steps = [
            (*best[:axis], best[axis] + by, *best[axis + 1 :])
            for axis, size in enumerate(sizes)
            for by in (-1, 1)
            if 0 <= best[axis] + by < size
        ]
        unseen = [point for point in steps if point not in means]
        if unseen:
            return unseen[int(rng.integers(len(unseen)))]
    return None


def best_of(scores: Sequence[Score]) -> tuple[Hyperparameters, float]:
    """Return the finalist with the highest mean R², and that mean."""
    finals: dict[Hyperparameters, list[float]] = {}
    for score in scores:
        if score.phase == "final":
            finals.setdefault(score.hyperparameters, []).append(score.r_squared)
    best = max(finals, key=lambda point: float(np.mean(finals[point])))
    return best, float(np.mean(finals[best]))
