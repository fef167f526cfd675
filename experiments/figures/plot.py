"""Draw the figures of a study from its scores: mean and standard error over repeats, as SVG and PNG."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figures.grid import Figure
from experiments.figures.methods import METHODS
from experiments.figures.results import Score

__all__ = ["draw_figure"]

#: One look for one method in all figures; Okabe and Ito's colours. Dashed: not at the stated budget.
_LOOKS = {
    "ols": ("#000000", ":", ""),
    "gauss-printed": ("#d55e00", "--", "^"),
    "gauss": ("#d55e00", "-", "^"),
    "proj-x-printed": ("#e69f00", "--", "s"),
    "proj-x": ("#e69f00", "-", "s"),
    "ssp-advanced": ("#999999", "--", "v"),
    "ssp-gdp": ("#999999", "-", "v"),
    "adassp": ("#cc79a7", "-", "D"),
    "dpsgd-each": ("#009e73", "--", "P"),
    "dpsgd-joint": ("#009e73", "-", "P"),
    "diffprivlib-true": ("#b8a600", "-", "x"),
    "primo": ("#0072b2", "-", "o"),
    "primo-outcomes": ("#56b4e9", "-", "o"),
    "primo-features": ("#56b4e9", "--", "o"),
}
_METRICS = {"r2": "R²", "log_ratio": "log(MSE / MSE of least squares)"}


def draw_figure(figure: Figure, scores: Iterable[Score], folder: Path) -> list[Path]:
    """Write figure-NAME.svg and .png; the same bytes for the same scores."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update({"svg.hashsalt": "primo", "svg.fonttype": "none"})
    from matplotlib import pyplot

    picture, axes = pyplot.subplots(figsize=(7.2, 4.2), layout="constrained")
    values: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
    shown = [s for s in scores if s.outcomes == figure.outcomes and s.l in figure.l]
    # A quick run, or a user's file, has another n.
    for score in [s for s in shown if s.n == figure.n] or shown:
        value = getattr(score, figure.metric)
        if math.isfinite(value):
            values[score.method, score.l].append(value)
    for name in figure.methods:
        _line(axes, name, [(l, values[name, l]) for l in figure.l if (name, l) in values])
    axes.set_xscale("log")
    axes.set_xlabel("number of outcomes l")
    axes.set_ylabel(_METRICS[figure.metric])
    if figure.metric == "r2":
        axes.axhline(0, color="#bbbbbb", linewidth=0.8, zorder=0)
    if figure.y_limits is not None:
        axes.set_ylim(*figure.y_limits)
    axes.set_title(f"Figure {figure.name}. {figure.title}", fontsize="medium", loc="left")
    axes.legend(
        frameon=False,
        fontsize="x-small",
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        handlelength=3.5,  # long enough to tell dashed from solid
    )
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"figure-{figure.name}.{kind}" for kind in ("svg", "png")]
    picture.savefig(paths[0], metadata={"Date": None})
    picture.savefig(paths[1], dpi=130, metadata={"Software": None})
    pyplot.close(picture)
    return paths


def _line(axes: Any, name: str, points: list[tuple[int, list[float]]]) -> None:
    if not points:
        return
    colour, dash, marker = _LOOKS.get(name, ("#666666", "-", "."))
    x = np.array([l for l, _ in points])
    mean = np.array([np.mean(values) for _, values in points])
    error = np.array([np.std(values, ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
                      for _, values in points])  # fmt: skip
    label = METHODS[name].label
    axes.plot(x, mean, color=colour, linestyle=dash, marker=marker, markersize=4, label=label)
    axes.fill_between(x, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
