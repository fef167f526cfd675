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

from experiments.figures.grid import Cell
from experiments.figures.page.budgets import chosen_l
from experiments.figures.page.compare import Scores
from experiments.figures.page.wording import count, data_name, name, r2, table, times

__all__ = ["gan_section", "times_section", "tuning_section"]

_EDGE = "\\*"  # an asterisk that Markdown leaves alone
#: Hyperparameters that could go further than the grid; a share cannot.
_OPEN = ("learning_rate", "clip_norm", "steps")

TUNING = Path(__file__).resolve().parents[2] / "tuning"


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
    axes = [axis for axis in (values or {}) if axis in cells[0]]
    header, rows, edges = _chosen(cells, axes, values or {})
    parts += ["What was chosen:", table(header, rows)]
    notes = "R² of *each* is over a few outcomes drawn at random, so it may exceed least squares'."
    if edges:
        notes = (
            f"{_EDGE}: at the edge of what was tried ({edges} values); the best may lie "
            f"beyond. {notes}"
        )
    parts.append(notes)
    runs = sum(cell.get("tuning_runs", 0) for cell in cells)
    if runs:
        parts.append(_cost(cells, runs))
    return "\n\n".join(parts)


def _chosen(
    cells: Sequence[Mapping[str, Any]], axes: Sequence[str], tried: Mapping[str, Sequence[float]]
) -> tuple[list[str], list[list[str]], int]:
    """Return header and rows, and how many values lie at the edge of the grid."""
    header = ["DP-SGD", "d", "l", *map(_words, axes), "R² there", "least squares there"]
    rows, edges = [], 0
    for cell in cells:
        row = [str(cell["variant"]), str(cell["d"]), count(cell["l"])]
        for axis in axes:
            edge = axis in _OPEN and cell[axis] in (min(tried[axis]), max(tried[axis]))
            edges += edge
            row.append(f"{cell[axis]:g}" + (_EDGE if edge else ""))
        row += [r2(cell.get("r_squared")), r2(cell.get("least_squares_r_squared"))]
        rows.append(row)
    return header, rows, edges


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
    """Return the numbers of the check (`experiments.figures.gan.check`), if it has been run."""
    if not path.exists():
        return "The check of the GAN's rows is not among these results."
    found = json.loads(path.read_text(encoding="utf-8"))
    failures = found["failures"]
    verdict = (
        "**The check does not pass**: " + "; ".join(failures) + "."
        if failures
        else "All numbers are within the limits that were set for them (`gan/check.py`)."
    ) + (
        " The limits are for what regressions on a few SNPs need: frequencies, and LD within 60 SNPs. "
        "Two were widened during development, after a GAN had missed them (sets of SNPs at random; "
        "no upper limit on the distance to the nearest row). In patches the rows are noisier than "
        "real haplotypes, as the table shows. The GAN was trained without any privacy."
    )
    intro = (
        f"{count(found['rows'])} generated rows of {count(found['snps'])} SNPs against the rows "
        f"that the GAN learned from. *Real*: the same number for {count(found['held_out'])} real "
        "rows that were held out, which no generator should be expected to beat. *Untrained*: the "
        "GAN before training."
    )
    return "\n\n".join([intro, _gan_totals(found), _gan_ld(found["ld"]), verdict])


def _gan_totals(found: Mapping[str, Any]) -> str:
    kinds = ("frequency", "frequency_floor", "frequency_untrained")
    near = found["nearest"]
    rows = [
        [f"allele frequencies: {what}", *(_number(found[kind][key]) for kind in kinds)]
        for what, key in (
            ("correlation", "correlation"),
            ("mean error", "mean_error"),
            ("largest error", "max_error"),
        )
    ]
    for what, key in (("in a row", "run_error"), ("at random", "set_error")):
        values = [found.get(key + end) for end in ("", "_floor", "_untrained")]
        rows.append([f"covariance of 25 SNPs {what}: relative error", *map(_number, values)])
    for what, key in (
        ("nearest row learned from: share of SNPs that differ, median", "median"),
        ("the same, the nearest 1 %", "closest"),
        ("the same, in patches of 100 SNPs", "patch"),
        ("nearest row of the same kind", "between"),
    ):
        rows.append([what, _number(near[key]), _number(near[f"{key}_floor"]), "–"])
    return table(["", "generated", "real", "untrained"], rows)


def _gan_ld(bins: Sequence[Mapping[str, Any]]) -> str:
    keys = ("correlation", "floor", "untrained", "slope", "slope_floor", "mean_r2", "real_r2")
    header = [
        "LD of SNPs so far apart", "correlation of r", "real", "untrained", "slope of r", "real",
        "mean r²", "real",
    ]  # fmt: skip
    rows = [
        [f"{found['least']} to {found['most']}", *(_number(found[key]) for key in keys)]
        for found in bins
    ]
    return table(header, rows)


def _number(value: float | None) -> str:
    return "–" if value is None or not math.isfinite(value) else f"{value:.3f}"
