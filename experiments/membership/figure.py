"""docs/membership.svg: what is lost with exact coefficients, and what stays within the bound."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.membership.measure import FALSE_ALARMS, auc_bound, tpr_bound
from experiments.membership.page import ATTACKERS, PAGE
from experiments.membership.study import FAINT, Findings, Found

__all__ = ["draw"]

#: Okabe and Ito's colours, which most eyes can tell apart.
_COLOURS = ("#999999", "#56b4e9", "#0072b2", "#e69f00", "#d55e00")


def draw(findings: Findings) -> None:
    """Draw the three panels; the same bytes for the same numbers."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "primo", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
    _coefficients(panels[0], findings)
    _releases(panels[1], findings, "auc", "AUC", 0.5)
    _releases(panels[2], findings, "tpr", "members found at 1 % false alarms", FALSE_ALARMS)
    panels[2].set_ylim(top=0.48)  # room for the legend
    panels[2].legend(frameon=False, loc="upper left", fontsize="small")
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None})
    print(f"written: {PAGE} and its figure")


def _coefficients(panel: Any, findings: Findings) -> None:
    """AUC over the number of outcomes, from coefficients alone."""
    epsilon = max(findings.settings.epsilons)
    lines = (
        ("outcomes", None, "exact: knows genotypes and outcomes", _COLOURS[4], "o-"),
        (
            "genotypes, faint",
            None,
            f"exact: knows genotypes (variants explain {FAINT:.0%})",
            _COLOURS[3],
            "s-",
        ),
        (
            "outcomes",
            epsilon,
            f"primo, ε = {epsilon:g}: genotypes and outcomes",
            _COLOURS[2],
            "o--",
        ),
        ("genotypes, faint", epsilon, f"primo, ε = {epsilon:g}: genotypes", _COLOURS[1], "s--"),
    )
    for attacker, spent, label, colour, style in lines:
        found = [
            findings.one(attacker=attacker, epsilon=spent, l=l, data="people")
            for l in findings.settings.outcomes
        ]
        _points(panel, findings.settings.outcomes, found, "auc", colour, label=label, fmt=style)
    panel.axhline(0.5, color="grey", linewidth=0.8)
    panel.set(xscale="log", xlabel="outcomes", ylabel="AUC", ylim=(0.4, 1.3))
    panel.set_yticks(np.arange(0.4, 1.01, 0.1))
    panel.set_title("published: coefficients")
    panel.legend(frameon=False, loc="upper left", fontsize="small")


def _releases(panel: Any, findings: Findings, measure: str, name: str, chance: float) -> None:
    """Every attacker on whole releases, under the bound of each epsilon."""
    bound_of = auc_bound if measure == "auc" else tpr_bound
    for place, epsilon in enumerate(findings.settings.epsilons):
        found = findings.of(epsilon=epsilon, data="people")
        by_name = {f.attacker: f for f in found}
        level = bound_of(by_name["everybody else"].mu or 0.0)
        label = "no attack can be above" if place == 0 else None
        panel.hlines(level, place - 0.42, place + 0.42, color="black", linewidth=2, label=label)
        for i, (attacker, shown) in enumerate(ATTACKERS.items()):
            _points(
                panel,
                [place + (i - 2) * 0.15],
                [by_name[attacker]],
                measure,
                _COLOURS[i],
                label=shown if place == 0 else None,
                fmt="o",
            )
    panel.axhline(chance, color="grey", linewidth=0.8)
    panel.set_xticks(
        range(len(findings.settings.epsilons)), [f"{e:g}" for e in findings.settings.epsilons]
    )
    panel.set(xlabel="ε", ylabel=name, title="published: primo's whole release")


def _points(
    panel: Any, places: Any, found: list[Found], measure: str, colour: str, **style: Any
) -> None:
    values = np.array([getattr(f.success, measure) for f in found])
    ends = np.array([getattr(f.success, f"{measure}_interval") for f in found])
    # A percentile interval of a bootstrap need not hold the estimate itself.
    lengths = np.maximum([values - ends[:, 0], ends[:, 1] - values], 0.0)
    panel.errorbar(places, values, yerr=lengths, color=colour, markersize=4, capsize=2, **style)
