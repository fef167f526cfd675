"""The rest of the page: times, how DP-SGD was tuned, and how well the GAN's rows match."""

from __future__ import annotations

import json
import math
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.figures.budgets import chosen_l
from experiments.figures.compare import Scores
from experiments.figures.grid import Cell
from experiments.figures.wording import count, data_name, listed, name, r2, table, times

__all__ = ["gan_section", "times_section", "tuning_section"]

TUNING = Path(__file__).resolve().parents[1] / "tuning"


def times_section(scores: Scores) -> str:
    """Return, for each study, the time of each method in times of least squares."""
    parts = [_times_table(scores, study) for study in scores.studies]
    return "\n\n".join(filter(None, parts)) or "No method was run on rows, so there are no times."


def _times_table(scores: Scores, study: str) -> str:
    cells = [
        cell
        for cell in scores.cells(study)
        if any(_time(scores, cell, method) is not None for method in scores.methods(cell))
    ]
    by_data: dict[Cell, list[Cell]] = {}
    for cell in cells:
        by_data.setdefault(replace(cell, l=0), []).append(cell)
    shown = [c for some in by_data.values() for c in some if c.l in chosen_l(s.l for s in some)]
    rows = []
    for method in dict.fromkeys(m for cell in shown for m in scores.methods(cell)):
        found = [_time(scores, cell, method) for cell in shown]
        if any(value is not None for value in found):
            rows.append([name(method), *map(times, found)])
    if not rows:
        return ""
    # What all columns share goes into the title, or nowhere.
    if len(by_data) == 1:
        one = shown[0]
        title = f"`{study}`: {data_name(one)}, n = {count(one.n)}, d = {one.d}"
        heads = [f"l = {count(cell.l)}" for cell in shown]
    else:
        title = f"`{study}`"
        heads = [f"{_data(cell, by_data)}, l = {count(cell.l)}" for cell in shown]
    return f"{title}:\n\n" + table(["method", *heads], rows)


def _data(cell: Cell, among: Iterable[Cell]) -> str:
    """Name the data of a cell, with n where others of the same name have another."""
    known = {other.n for other in among if data_name(other) == data_name(cell)}
    return data_name(cell) + (f", n = {count(cell.n)}" if len(known) > 1 else "")


def _time(scores: Scores, cell: Cell, method: str) -> float | None:
    found = [score.time_ratio for score in scores.of(cell, method).values()]
    known = [value for value in found if math.isfinite(value)]
    return statistics.median(known) if known else None


def tuning_section(folder: Path = TUNING) -> str:
    """Return the grid of DP-SGD's hyperparameters, what was chosen, and what it cost."""
    chosen, grid = _toml(folder / "tuned.toml"), _toml(folder / "grid.toml")
    cells = chosen.get("cells", [])
    if not cells:
        return f"`{folder.name}/tuned.toml` is not there: DP-SGD has not been tuned."
    parts = []
    if values := grid.get("values"):
        rows = [
            [_words(axis), ", ".join(f"{v:g}" for v in tried)] for axis, tried in values.items()
        ]
        parts += ["What was tried:", table(["hyperparameter", "values"], rows)]
    axes = [axis for axis in (values or cells[0]) if axis in cells[0]]
    parts += ["What was chosen:", table(*_chosen(cells, axes))]
    runs = sum(cell.get("tuning_runs", 0) for cell in cells)
    if runs:
        parts.append(_cost(cells, runs))
    return "\n\n".join(parts)


def _chosen(
    cells: Sequence[Mapping[str, Any]], axes: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    scored = "r_squared" in cells[0]
    header = ["DP-SGD", "d", "l", *map(_words, axes)]
    header += ["R² there", "least squares there"] if scored else []
    rows = []
    for cell in cells:
        row = [f"{cell['variant']}", f"{cell['d']}", count(cell["l"])]
        row += [f"{cell[axis]:g}" for axis in axes]
        if scored:
            row += [r2(cell["r_squared"]), r2(cell.get("least_squares_r_squared"))]
        rows.append(row)
    return header, rows


def _cost(cells: Sequence[Mapping[str, Any]], runs: int) -> str:
    in_runs = [c["tuning_time_in_runs"] for c in cells if "tuning_time_in_runs" in c]
    key = "tuning_time_in_least_squares_fits"
    in_fits = [c[key] for c in cells if key in c]
    text = f"**Cost**: {count(runs)} runs in all."
    if in_runs:
        text += (
            f" The search of one row of the table took as long as {times(min(in_runs))} to "
            f"{times(max(in_runs))} runs with the chosen values"
        )
        text += (
            f", or {times(min(in_fits))} to {times(max(in_fits))} least-squares fits."
            if in_fits
            else "."
        )
    return text + " No other method was tuned."


def _toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _words(key: str) -> str:
    return key.replace("_", " ")


def gan_section(path: Path) -> str:
    """Return the numbers of the check, if it has been run."""
    if not path.exists():
        return "The check of the GAN's rows is not among these results."
    found = json.loads(path.read_text(encoding="utf-8"))
    rows = [[_words(key), _number(value)] for key, value in found.items()]
    return table(["", "value"], rows)


def _number(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        items = value if isinstance(value, list) else [value]
        return listed(items) if items else "–"
    if isinstance(value, int):
        return count(value)
    return f"{value:.3g}" if math.isfinite(value) else "–"
