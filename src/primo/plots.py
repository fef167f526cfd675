"""Figures of releases and plans, drawn with matplotlib (`pip install 'primo-dp[plots]'`).

Every function draws into the axes it is given, or makes a figure, and returns the axes. Everything is
drawn from released numbers or, before the fit, from public ones: to look costs no privacy.

Examples
--------
>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import numpy as np
>>> import primo
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1, 1, size=(2000, 3))
>>> Y = X @ rng.uniform(-1, 1, size=(3, 5))
>>> model = primo.PrimoRegressor(
...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-3, 3)
... )
>>> release = model.fit(X, Y).release_
>>> axes = primo.plots.coefficients(release, outcome="y2")
>>> axes.get_xlabel()
'coefficient of y2, with 95% interval'
>>> axes = primo.plots.r_squared(release)
>>> axes = primo.plots.noise_and_signal(release)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from primo._util.optional import optional
from primo.errors import InputError
from primo.forecast.assumptions import Signal
from primo.forecast.compare import public_plan
from primo.planning.plan import Plan
from primo.privacy.budget import is_number
from primo.released.moments import ReleasedMoments, expect_release
from primo.released.uncertainty.fit import goodness_of_fit
from primo.released.uncertainty.intervals import check, coefficient_block
from primo.released.uncertainty.report import position
from primo.released.uncertainty.system import system_of
from primo.report.outlook import Outlook, outlook_of
from primo.report.strength import blocks_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["accuracy_against_epsilon", "coefficients", "noise_and_signal", "r_squared"]

# Blue and orange differ for readers who do not tell red from green.
SIGNAL, NOISE, PALE = "#2f6fab", "#d9791f", "#9a9a9a"


def accuracy_against_epsilon(
    of: ReleasedMoments | Plan | None = None,
    *,
    signal: Signal | None = None,
    ax: Axes | None = None,
    **shape: Any,
) -> Axes:
    """Draw the predicted R² on new rows against epsilon, with the chosen budget marked.

    Parameters
    ----------
    of
        A release or its plan. Before there is one, leave it out and give `n`, `d`, `l`, `epsilon`,
        `delta`, `protection`, `feature_bounds` and `outcome_bounds`, as for `primo.compare_plans`.
    signal
        What is assumed of the data.
    ax
        Axes to draw into.

    Notes
    -----
    A prediction under the stated assumption; no number in it depends on data. Cost: a few seconds.
    """
    if isinstance(of, Plan):
        plan = of
    elif of is not None:
        plan = expect_release(of).plan
    else:
        plan = _plan(shape)
    outlook = outlook_of(plan, signal)
    if not isinstance(outlook, Outlook):
        raise InputError(f"there is no forecast to draw: {outlook}")
    ax = _axes(ax)
    epsilons = [epsilon for epsilon, _ in outlook.curve]
    ax.plot(epsilons, [found.r2 for _, found in outlook.curve], "-o", color=SIGNAL, ms=3)
    ax.axhline(
        outlook.chosen.no_privacy_r2, color=PALE, linestyle="--", label="best fit without privacy"
    )
    ax.plot(
        [outlook.chosen_epsilon],
        [outlook.chosen.r2],
        "o",
        color=NOISE,
        ms=9,
        label=f"chosen: ε = {outlook.chosen_epsilon:g}, R² = {outlook.chosen.r2:.2f}",
    )
    ax.set_xscale("log")
    ax.set_xticks([0.1, 0.5, 2, 5, 20], labels=["0.1", "0.5", "2", "5", "20"])
    ax.minorticks_off()
    ax.set_xlabel("ε (smaller is more private)")
    ax.set_ylabel("predicted R² on new rows")
    ax.legend(frameon=False)
    return ax


def coefficients(
    release: ReleasedMoments,
    outcome: str | int = 0,
    *,
    kind: str = "confidence",
    level: float = 0.95,
    most: int = 30,
    ax: Axes | None = None,
) -> Axes:
    """Draw the coefficients of one outcome with their intervals, in the order of the features.

    Parameters
    ----------
    outcome
        Name or position.
    kind
        "confidence" for unshrunk coefficients, "posterior" for the shrunk ones that predict best.
    level
        Nominal coverage.
    most
        Features that are drawn; those with the most evidence are kept.
    ax
        Axes to draw into.

    Notes
    -----
    Hollow, grey: the interval is not `trusted`, so it is wide rather than wrong. An interval without an
    end reaches the edge of the axes.
    """
    check(level=level, kind=kind, target="population")
    if not isinstance(most, int) or most < 1:
        raise InputError(f"most={most!r} must be a whole number of at least 1")
    at = position(expect_release(release), outcome)
    found = coefficient_block(
        system_of(release), slice(at, at + 1), kind=kind, level=level, target="population"
    )
    d = release.plan.d  # the intercept comes after the features and has another scale
    estimate, error = found.estimate[:d, 0], found.standard_error[:d, 0]
    lower, upper = found.lower[:d, 0], found.upper[:d, 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        evidence = np.nan_to_num(np.abs(estimate) / error)
    shown = np.sort(np.argsort(-evidence, kind="stable")[:most])[::-1]
    ax = _axes(ax, height=max(2.4, 0.9 + 0.28 * len(shown)))
    trusted = found.trusted[:d, 0]
    scaling = shown[trusted[shown]] if trusted[shown].any() else shown
    known = np.concatenate([estimate[scaling], lower[scaling], upper[scaling], [0.0]])
    known = known[np.isfinite(known)]
    edge = 1.1 * float(np.abs(known).max()) or 1.0
    for y, i in enumerate(shown):
        colour, wide, filled = (SIGNAL, 2, SIGNAL) if trusted[i] else (PALE, 1, "none")
        ends = [max(lower[i], -edge), min(upper[i], edge)]
        ax.plot(ends, [y, y], color=colour, linewidth=wide, solid_capstyle="butt")
        ax.plot([estimate[i]], [y], "o", color=colour, markerfacecolor=filled, ms=6)
    ax.axvline(0, color=PALE, linewidth=1)
    ax.set_xlim(-edge, edge)
    ax.set_yticks(range(len(shown)), labels=[found.names[i] for i in shown])
    name = release.outcome_names[at]
    ax.set_xlabel(f"coefficient of {name}, with {level:.0%} interval")
    return ax


def r_squared(
    release: ReleasedMoments, *, level: float = 0.95, most: int = 60, ax: Axes | None = None
) -> Axes:
    """Draw R² of every outcome with its interval, the best first.

    Outcomes whose R² is not determined are counted in the label and not drawn. Orange points: no
    signal could be told from noise.
    """
    fit = goodness_of_fit(expect_release(release), level=level)
    if not isinstance(most, int) or most < 1:
        raise InputError(f"most={most!r} must be a whole number of at least 1")
    known = np.flatnonzero(fit.trusted)
    order = known[np.argsort(-fit.r_squared[known], kind="stable")][:most]
    ax = _axes(ax)
    for group, colour, label in (
        (fit.found, SIGNAL, "signal found"),
        (~fit.found, NOISE, "not distinguishable from noise"),
    ):
        xs = np.flatnonzero(group[order])
        picked = order[xs]
        if not len(picked):
            continue
        middle = fit.r_squared[picked]
        ends = np.array([middle - fit.lower[picked], fit.upper[picked] - middle])
        ax.errorbar(
            xs, middle, yerr=np.maximum(ends, 0.0), fmt="o", ms=4, color=colour, label=label
        )
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel(f"R², with {level:.0%} interval")
    text = f"{len(order)} of {len(fit.r_squared)} outcomes, the best first"
    if len(known) < len(fit.r_squared):
        text += f"; {len(fit.r_squared) - len(known)} not determined"
    ax.set_xlabel(text)
    if len(order) <= 12:
        ax.set_xticks(
            range(len(order)), labels=[fit.outcome_names[i] for i in order], rotation=45, ha="right"
        )
    else:
        ax.set_xticks([])
    if len(order):
        ax.legend(frameon=False)
    else:
        said = "R² is determined for none of the outcomes"
        ax.text(0.5, 0.5, said, transform=ax.transAxes, ha="center", color=PALE)
    return ax


def noise_and_signal(release: ReleasedMoments, *, ax: Axes | None = None) -> Axes:
    """Draw how large the released sums are beside the noise on them, block by block.

    The noise is 1. A signal below it means that the block is mostly noise; a public block has none.
    """
    blocks = [
        block
        for block in blocks_of(expect_release(release))
        if block.noise and math.isfinite(block.ratio)
    ][::-1]
    if not blocks:
        raise InputError("no block of this release has noise, so there is nothing to compare")
    ax = _axes(ax, height=1.2 + 0.7 * len(blocks))
    least = 0.05
    for y, block in enumerate(blocks):
        ax.barh(y + 0.18, max(block.ratio, least) - least, 0.34, left=least, color=SIGNAL)
        ax.barh(y - 0.18, 1 - least, 0.34, left=least, color=NOISE)
        ax.annotate(
            f"{block.ratio:.3g} ×" if block.ratio >= 0.01 else "below 0.01 ×",
            (max(block.ratio, least), y + 0.18),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
        )
    ax.set_xscale("log")
    ax.set_xlim(least, 4 * max(1.0, *(block.ratio for block in blocks)))
    ax.set_yticks(range(len(blocks)), labels=[block.name for block in blocks])
    ax.set_xlabel("size, in units of the noise (blue: signal, orange: noise)")
    return ax


def _plan(shape: dict[str, Any]) -> Plan:
    """Return the plan of a release that may never be made."""
    known = ["n", "d", "l", "epsilon", "delta", "protection", "feature_bounds", "outcome_bounds"]
    known.append("fit_intercept")
    unknown = sorted(set(shape) - set(known))
    if unknown:
        raise InputError(f"unknown {unknown[0]!r}", remedy=f"choose among {', '.join(known)}")
    for name in ("n", "d", "l", "epsilon"):
        if not is_number(shape.get(name)):
            raise InputError(f"give a release, a plan, or n, d, l and epsilon: {name} is missing")
    return public_plan(**{"delta": None, "protection": "both", **shape})


def _axes(ax: Axes | None, *, height: float = 3.6) -> Axes:
    """Return the axes to draw into: those given, or those of a new figure."""
    pyplot = optional("matplotlib.pyplot", extra="plots", purpose="drawing figures")
    if ax is None:
        _, ax = pyplot.subplots(figsize=(6.4, height), layout="constrained")
    assert ax is not None
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax
