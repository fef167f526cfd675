"""One computed sentence for each figure."""

from __future__ import annotations

import math

from experiments.figures.grid import Cell, Figure, Study
from experiments.figures.page.compare import Estimate, Scores
from experiments.figures.page.wording import budget, count, name, r2, times

__all__ = ["caption", "cells_of"]


def cells_of(scores: Scores, study: Study, figure: Figure) -> list[Cell]:
    """Return the cells that a figure shows: of its l, outcomes and n."""
    cells = [
        cell for cell in scores.cells(study.name, outcomes=figure.outcomes) if cell.l in figure.l
    ]
    wanted = [cell for cell in cells if cell.n == figure.n]
    return wanted or cells  # a quick run, or a user's file, has another n


def caption(scores: Scores, study: Study, figure: Figure) -> str:
    """Return who is best and who is worst at the largest l of the figure, with numbers."""
    for cell in reversed(cells_of(scores, study, figure)):
        found = {
            m: mean
            for m in figure.methods
            if m != "ols" and (mean := scores.mean(cell, m, figure.metric)) is not None
        }
        if len(found) > 1:
            return _sentence(scores, cell, figure.metric, found)
    return "No two methods of it have been run at the same l."


def _sentence(scores: Scores, cell: Cell, metric: str, found: dict[str, Estimate]) -> str:
    sign = 1 if metric == "r2" else -1
    order = sorted(found, key=lambda m: sign * found[m].mean, reverse=True)
    kept = [m for m in order if scores.keeps_budget(cell, m)]
    parts = []
    if kept:
        best = _said(scores, cell, metric, kept[0], found)
        parts.append(f"the best of those that keep the budget is {best}")
    if order[0] not in kept:
        parts.append(f"the best of all is {_said(scores, cell, metric, order[0], found)}")
    parts.append(f"the worst is {_said(scores, cell, metric, order[-1], found)}")
    text = f"At l = {count(cell.l)} {'; '.join(parts)}."
    exact = scores.mean(cell, "ols")
    return text + (f" Least squares has R² = {r2(exact.mean)}." if exact is not None else "")


def _said(scores: Scores, cell: Cell, metric: str, method: str, found: dict[str, Estimate]) -> str:
    mean = found[method].mean
    if metric == "r2":
        value = r2(mean)
        value = f"R² {value}" if value.startswith("<") else f"R² = {value}"
    elif mean < 1e-4:
        value = "less than 0.01 % more error than least squares"
    elif mean < math.log(2):
        value = f"{100 * math.expm1(mean):.2g} % more error than least squares"
    else:
        value = f"{times(math.exp(min(mean, 700.0)))} times the error of least squares"
    protection = next(iter(scores.of(cell, method).values())).protection
    notes = "" if protection == "both" else f", {protection} protected"
    if not scores.keeps_budget(cell, method):
        notes += f", true ε = {budget(scores.epsilon_true(cell, method))}"
    return f"{name(method)} with {value}{notes}"
