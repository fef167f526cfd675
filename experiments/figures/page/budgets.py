"""What each method truly spent, and how accurate the printed algorithms are at the budget they claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from experiments.figures.grid import Cell
from experiments.figures.page.compare import Scores
from experiments.figures.page.wording import (
    budget,
    count,
    data_name,
    listed,
    name,
    r2,
    signed,
    table,
)

__all__ = ["PAIRS", "SHOWN", "budgets_section", "chosen_l"]

#: A method that does not keep its claim, and the same one calibrated.
PAIRS = {
    "gauss-printed": "gauss",
    "proj-x-printed": "proj-x",
    "proj-y-printed": "proj-y",
    "diffprivlib": "diffprivlib-true",
}
#: Numbers of outcomes that stand for all where a table has little room.
SHOWN = (1, 10, 11, 100, 101, 1001, 5000, 100_000)
_FEW = (1, 100, 101, 1001, 5000, 100_000)


def chosen_l(available: Iterable[int], wanted: Sequence[int] = SHOWN) -> list[int]:
    """Return the available numbers of outcomes that are wanted, or the first few."""
    found = sorted(set(available))
    return [l for l in found if l in wanted] or found[:3]


def budgets_section(scores: Scores) -> str:
    """Return the table of true budgets and the comparisons at the budget that was asked for."""
    if not scores.rows:
        return "Nothing has been run yet."
    parts = [_true(scores)]
    for printed, calibrated in PAIRS.items():
        over = [
            cell
            for cell in scores.cells()
            if scores.of(cell, printed) and not scores.keeps_budget(cell, printed)
        ]
        if over:
            parts.append(_beside(scores, over, printed, calibrated))
        elif any(scores.of(cell, printed) for cell in scores.cells()):
            parts.append(f"**{name(printed)}** keeps the budget that it claims in every cell.")
    return "\n\n".join(parts)


def _true(scores: Scores) -> str:
    methods = dict.fromkeys(row.method for row in scores.rows if row.protection != "none")
    requested = listed(f"{e:g}" for e in sorted({cell.epsilon for cell in scores.cells()}))
    rows = []
    for method in methods:
        spent = [_spent(scores, method, study) for study in scores.studies]
        if any(text != "–" for text in spent):
            rows.append([name(method), _protection(scores, method), *spent])
    return (
        f"True ε where ε = {requested} was requested, at the same δ = 1/n², for neighbours that "
        "differ in one replaced row (rounded up; a range is over l and n of a study). **Bold: above "
        "what was requested.**\n\n" + table(["method", "protection", *scores.studies], rows)
    )


def _spent(scores: Scores, method: str, study: str) -> str:
    cells = [cell for cell in scores.cells(study) if scores.of(cell, method)]
    found = [e for cell in cells if (e := scores.epsilon_true(cell, method)) is not None]
    if not found:
        return "–"
    low, high = budget(min(found)), budget(max(found))
    text = low if low == high else f"{low} to {high}"
    over = any(not scores.keeps_budget(cell, method) for cell in cells)
    return f"**{text}**" if over else text


def _protection(scores: Scores, method: str) -> str:
    return next(row.protection for row in scores.rows if row.method == method)


def _beside(scores: Scores, over: Sequence[Cell], printed: str, calibrated: str) -> str:
    by_data: dict[Cell, list[Cell]] = {}
    for cell in over:
        by_data.setdefault(replace(cell, l=0), []).append(cell)
    rows = []
    for cells in by_data.values():
        wanted = chosen_l((c.l for c in cells), _FEW)
        for cell in (c for c in cells if c.l in wanted):
            means = [scores.mean(cell, method) for method in (printed, calibrated)]
            rows.append(
                [
                    data_name(cell),
                    count(cell.n),
                    count(cell.l),
                    budget(scores.epsilon_true(cell, printed)),
                    *(r2(None if mean is None else mean.mean) for mean in means),
                    signed(scores.difference(cell, calibrated, printed)),
                ]
            )
    names = name(printed), name(calibrated)
    header = [
        "data",
        "n",
        "l",
        "true ε",
        f"R² of {names[0]}",
        f"R² of {names[1]}",
        "second − first",
    ]
    asked = listed(sorted({f"{cell.epsilon:g}" for cell in over}))
    return (
        f"**{names[0]}** spends more than it claims in {len(over)} cells. Beside it {names[1]}, "
        f"which truly spends at most ε = {asked}.\n\n" + table(header, rows)
    )
