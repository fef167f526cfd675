"""docs/recovery.svg: what exact statistics reveal, and how little attacks find out from releases."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.recovery.page import PAGE
from experiments.recovery.study import EXPOSED, Findings, Found

__all__ = ["draw"]

#: Okabe and Ito's colours, which most eyes can tell apart.
_COLOURS = ("#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00", "#009e73")


def draw(findings: Findings) -> None:
    """Draw the three panels; the same bytes for the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "primo", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4.2), layout="constrained")
    _recovered(panels[0], findings)
    _recognised(panels[1], findings)
    _gains(panels[2], findings)
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
    print(f"written: {PAGE} and its figure")


def _recovered(panel: Any, findings: Findings) -> None:
    """Genotypes guessed right, over outcomes per person."""
    settings = findings.settings
    for attack, label, colour, style in (
        ("program", "exact: linear program", _COLOURS[4], "o-"),
        ("likeliest", "exact: same, with frequencies", _COLOURS[3], "s-"),
        ("estimate", "exact: best estimate", _COLOURS[5], "^-"),
    ):
        found = [
            findings.one(attack=attack, ratio=r, d=settings.d, epsilon=None, digits=None)
            for r in settings.ratios
        ]
        _line(panel, found, "recovered", label, colour, style)
    _releases(panel, findings, "recovered", settings.d)
    guess = np.mean([f.success.guessed for f in findings.of(d=settings.d)])
    panel.axhline(guess, color="grey", linewidth=0.8)
    panel.set(
        xlabel="outcomes / people", ylabel="share of genotypes guessed right", ylim=(0.45, 1.4)
    )
    panel.set_yticks(np.arange(0.5, 1.01, 0.1))
    panel.set_title("genotypes recovered")
    panel.legend(frameon=False, loc="upper left", fontsize="small")


def _recognised(panel: Any, findings: Findings) -> None:
    """People whose genome leads to their row, over outcomes per person."""
    settings = findings.settings
    for attack, d, colour, style in (
        ("likeliest", settings.d, _COLOURS[3], "s-"),
        ("estimate", settings.d, _COLOURS[5], "^-"),
        ("estimate", settings.many, _COLOURS[4], "D-"),
    ):
        found = [
            findings.one(attack=attack, ratio=r, d=d, epsilon=None, digits=None)
            for r in settings.ratios
        ]
        name = "linear program" if attack == "likeliest" else "best estimate"
        _line(panel, found, "identified", f"exact: {name}, {d} variants", colour, style)
    _releases(panel, findings, "identified", settings.many)
    panel.axhline(1 / settings.n, color="grey", linewidth=0.8)
    panel.set(xlabel="outcomes / people", ylabel="share of people recognised", ylim=(-0.02, 1.65))
    panel.set_yticks(np.arange(0.0, 1.01, 0.2))
    panel.set_title("people recognised by their genome")
    panel.legend(frameon=False, loc="upper left", fontsize="small")


def _releases(panel: Any, findings: Findings, measure: str, d: int) -> None:
    """Add the dashed lines of primo's releases, as far as exact statistics go."""
    settings = findings.settings
    ratios = [r for r in settings.release_ratios if r <= max(settings.ratios)]
    for epsilon, colour, style in (
        (max(settings.epsilons), _COLOURS[2], "o--"),
        (1.0, _COLOURS[1], "s--"),
    ):
        found = [
            findings.one(attack="estimate", ratio=r, d=d, epsilon=epsilon, protection="features")
            for r in ratios
        ]
        variants = f", {d} variants" if measure == "identified" else ": best estimate"
        _line(panel, found, measure, f"primo, ε = {epsilon:g}{variants}", colour, style)


def _line(
    panel: Any, found: list[Found], measure: str, label: str, colour: str, style: str
) -> None:
    values = [getattr(f.success, measure) for f in found]
    panel.plot([f.ratio for f in found], values, style, color=colour, markersize=4, label=label)


def _gains(panel: Any, findings: Findings) -> None:
    """Percentage points above guessing, under the bound of each epsilon."""
    settings = findings.settings
    kinds = [
        ("estimate", "features", f"{settings.d} variants, features protected", _COLOURS[2]),
        ("estimate", "both", f"{settings.d} variants, both protected", _COLOURS[1]),
        (EXPOSED, "features", "single variant, features protected", _COLOURS[4]),
        (EXPOSED, "both", "single variant, both protected", _COLOURS[3]),
    ]
    for place, epsilon in enumerate(settings.epsilons):
        for i, (attack, protection, label, colour) in enumerate(kinds):
            wanted = {"attack": attack, "protection": protection, "epsilon": epsilon}
            wanted |= {"d": 1} if attack == EXPOSED else {"d": settings.d, "ratio": settings.shown}
            found = findings.one(**wanted)
            value, ends = found.success.gain, found.success.gain_interval
            panel.errorbar(
                [place + (i - 1.5) * 0.18],
                [100 * value],
                # A percentile interval of a bootstrap need not hold the estimate itself.
                yerr=100 * np.maximum([[value - ends[0]], [ends[1] - value]], 0.0),
                color=colour,
                fmt="o",
                markersize=4,
                capsize=2,
                label=label if place == 0 else None,
            )
            if i == 0:
                assert found.bound is not None
                panel.hlines(
                    100 * (found.bound - found.success.guessed),
                    place - 0.42,
                    place + 0.42,
                    color="black",
                    linewidth=2,
                    label="no attack can be above" if place == 0 else None,
                )
    panel.axhline(0.0, color="grey", linewidth=0.8)
    panel.set_xticks(range(len(settings.epsilons)), [f"{e:g}" for e in settings.epsilons])
    panel.set(xlabel="ε", ylabel="percentage points above guessing", title="primo's releases")
    panel.legend(frameon=False, loc="upper left", fontsize="small")
