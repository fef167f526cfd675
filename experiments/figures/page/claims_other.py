"""Claims about half a million rows (Figure 4), other outcomes (Figure 5) and MNIST (Figure 6)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.figures.grid import Cell
from experiments.figures.page import reasons
from experiments.figures.page.claims_realistic import why_no_loss
from experiments.figures.page.compare import Estimate, Scores, estimate
from experiments.figures.page.verdicts import (
    UNEXPLAINED,
    VARIANTS,
    Finding,
    Verdict,
    all_are,
    described,
    order_signs,
)
from experiments.figures.page.wording import count, listed, name, times

__all__ = [
    "dpsgd_gap_shrinks",
    "dpsgd_wins",
    "gauss_wins_at_large_n",
    "linear_in_log_l",
    "projection_catches_up",
    "projection_wins_beyond",
    "same_order_for_networks",
]

#: The share of variance that a straight line must explain to be called one (our reading).
STRAIGHT = 0.95
LARGE, LARGEST = 500_000, 1_000_000
PROHIBITIVE = 100_000

_ORDER = ("projection better", "no difference", "Gauss better")
_RIVALS = {"gauss": "ReuseCovGauss", "proj-x": "ReuseCovProj_X"}


def gauss_wins_at_large_n(scores: Scores) -> Iterable[Finding]:
    """At n = 500 000 Gauss is better than Proj_X at every l."""
    cells = scores.cells("gan", n=LARGE)
    for variant, end in VARIANTS.items():
        gauss, projection = f"gauss{end}", f"proj-x{end}"
        signs = order_signs(scores, cells, projection, gauss)
        verdict = all_are(signs, -1)
        yield Finding(
            data=_large(scores, LARGE),
            variant=variant,
            verdict=verdict,
            found=described(scores, cells, signs, _ORDER, {"Gauss": gauss, "Proj_X": projection}),
            why=why_no_loss(signs) if verdict is Verdict.NOT else "",
        )


def linear_in_log_l(scores: Scores) -> Iterable[Finding]:
    """At n = 500 000 log(error / error of least squares) is a straight line in log l."""
    cells = scores.cells("gan", n=LARGE)
    for (method, label), (variant, end) in itertools.product(_RIVALS.items(), VARIANTS.items()):
        found, verdict, why = _straightness(scores, cells, method + end)
        yield Finding(
            data=f"{_large(scores, LARGE)}, {label}",
            variant=variant,
            verdict=verdict,
            found=found,
            why=why,
        )


def _straightness(scores: Scores, cells: Sequence[Cell], method: str) -> tuple[str, Verdict, str]:
    means = [(c.l, scores.mean(c, method, "log_ratio")) for c in cells]
    points = [(l, mean.mean) for l, mean in means if mean is not None and mean.mean > 0]
    if len(points) < 4:
        return "Not run at four or more l.", Verdict.UNKNOWN, ""
    x = np.log([l for l, _ in points])
    slope, explained = _line(x, np.array([value for _, value in points]))
    power, power_explained = _line(x, np.log(np.expm1([value for _, value in points])))
    found = (
        f"A line explains {_percent(explained)} of the log ratio's variance over l (slope "
        f"{slope:.2g}). The error that privacy adds grows as l to the power {power:.2f}, which "
        f"explains {_percent(power_explained)} of the variance of its logarithm."
    )
    if explained >= STRAIGHT and slope > 0:
        return found, Verdict.REPRODUCED, ""
    powerful = power_explained > explained and power > 0
    return found, Verdict.NOT, reasons.ONLY_THE_ADDITION if powerful else UNEXPLAINED


def projection_catches_up(scores: Scores) -> Iterable[Finding]:
    """At n = 500 000 Proj_X gets closer to Gauss as l grows."""
    cells = scores.cells("gan", n=LARGE)
    for variant, end in VARIANTS.items():
        ratios = {c.l: _added(scores, c, f"proj-x{end}", f"gauss{end}") for c in cells}
        known = {l: found for l, found in ratios.items() if found}
        slope = _slope(known)
        verdict, found, why = Verdict.UNKNOWN, "Not run at three or more l.", ""
        if slope is not None:
            first, last = (_geometric(known[l]) for l in (min(known), max(known)))
            found = (
                "The error that privacy adds under the projection, as a multiple of the same under "
                f"Gauss: {times(first)} at l = {count(min(known))}, {times(last)} at "
                f"l = {count(max(known))}."
            )
            if slope.sign is not None:
                verdict = Verdict.REPRODUCED if slope.sign == -1 else Verdict.NOT
            if verdict is Verdict.NOT:
                why = reasons.AHEAD_ALREADY if first < 1 else UNEXPLAINED
        yield Finding(
            data=_large(scores, LARGE), variant=variant, verdict=verdict, found=found, why=why
        )


def projection_wins_beyond(scores: Scores) -> Iterable[Finding]:
    """At l too large for the paper to run, Proj_X is the better one again."""
    cells = [c for c in scores.cells("gan", n=LARGEST) if c.l >= PROHIBITIVE]
    for variant, end in VARIANTS.items():
        gauss, projection = f"gauss{end}", f"proj-x{end}"
        signs = order_signs(scores, cells, projection, gauss)
        verdict = all_are(signs, 1)
        why = ""
        if verdict is Verdict.NOT:
            shrunk = variant == "calibrated" and -1 in signs.values()
            why = reasons.RIDGE_SHRINKS if shrunk else UNEXPLAINED
            if -1 not in signs.values():
                why = reasons.NOTHING_TO_PROJECT
        yield Finding(
            data=f"{_large(scores, LARGEST)}, l = {count(PROHIBITIVE)}",
            variant=variant,
            verdict=verdict,
            found=described(scores, cells, signs, _ORDER, {"Gauss": gauss, "Proj_X": projection}),
            why=why,
        )


def same_order_for_networks(scores: Scores) -> Iterable[Finding]:
    """Outcomes of a two-layer network leave the order of the algorithms as it is."""
    linear = {c.l: c for c in scores.cells("gaussian", outcomes="linear")}
    network = {c.l: c for c in scores.cells("gaussian", outcomes="mlp")}
    pairs = [(linear[l], network[l]) for l in linear if l in network]
    for variant, end in VARIANTS.items():
        methods = (f"gauss{end}", f"proj-x{end}")
        yield _same_order(scores, pairs, methods, "ReuseCovGauss and ReuseCovProj_X", variant)
    kept = [
        method
        for method in dict.fromkeys(m for pair in pairs for c in pair for m in scores.methods(c))
        if all(scores.keeps_budget(c, method) or not scores.of(c, method) for c in linear.values())
    ]
    # The printed algorithms have their own line above, whatever their budget.
    kept = [method for method in kept if not method.endswith("-printed")]
    yield _same_order(scores, pairs, kept, "all methods that keep the budget", "calibrated")


def _same_order(
    scores: Scores,
    pairs: Sequence[tuple[Cell, Cell]],
    methods: Sequence[str],
    data: str,
    variant: str,
) -> Finding:
    kept, turned, unclear = 0, [], 0
    for (a, b), (one, two) in itertools.product(pairs, itertools.combinations(methods, 2)):
        found = [scores.less_error(c, one, two) for c in (a, b)]
        signs = [better.sign for better in found if better is not None]
        if len(signs) < 2 or None in signs or 0 in signs:
            unclear += len(signs) == 2
        elif signs[0] == signs[1]:
            kept += 1
        else:
            turned.append(f"{name(one)} and {name(two)} at l = {count(a.l)}")
    verdict = Verdict.NOT if turned else Verdict.REPRODUCED if kept else Verdict.UNKNOWN
    told_ = (
        f"Of {kept + len(turned) + unclear} pairs of methods at one l, {kept} keep their order, "
        f"{len(turned)} turn it round, {unclear} are too close to call."
    )
    if turned:
        more = f" and {len(turned) - 4} more" if len(turned) > 4 else ""
        told_ += f" Turned: {'; '.join(turned[:4])}{more}."
    return Finding(
        data=data,
        variant=variant,
        verdict=verdict,
        found=told_ if kept or turned or unclear else "Not run.",
        why=UNEXPLAINED if turned else "",
    )


def dpsgd_wins(scores: Scores) -> Iterable[Finding]:
    """On MNIST DP-SGD by outcome is better than ReuseCov at l = 1, 11 and 101."""
    cells = scores.cells("mnist")
    words = ("DP-SGD better", "no difference", "ReuseCov better")
    for (rival, label), (variant, end) in itertools.product(_RIVALS.items(), VARIANTS.items()):
        signs = order_signs(scores, cells, "dpsgd-each", rival + end)
        verdict = all_are(signs, 1)
        methods = {"DP-SGD": "dpsgd-each", "ReuseCov": rival + end}
        why = ""
        if verdict is Verdict.NOT:
            lost = [c for c in cells if signs.get(c.l) in (-1, 0)]
            why = _why_not_dpsgd(scores, lost, rival, variant)
        yield Finding(
            data=f"MNIST, against {label}",
            variant=variant,
            verdict=verdict,
            found=described(scores, cells, signs, words, methods),
            why=why,
        )


def _why_not_dpsgd(scores: Scores, lost: Sequence[Cell], rival: str, variant: str) -> str:
    end = VARIANTS[variant]
    if rival == "proj-x":
        signs = order_signs(scores, lost, f"proj-x{end}", f"gauss{end}")
        why = reasons.EXACT_COVARIANCE
    else:
        signs = order_signs(scores, lost, "dpsgd-each", "gauss-printed") if not end else {}
        why = reasons.RIDGE_DECIDES
    return why if signs and all(sign == 1 for sign in signs.values()) else UNEXPLAINED


def dpsgd_gap_shrinks(scores: Scores) -> Iterable[Finding]:
    """Check that the lead of DP-SGD shrinks as l grows."""
    cells = scores.cells("mnist")
    for (rival, label), (variant, end) in itertools.product(_RIVALS.items(), VARIANTS.items()):
        leads = {c.l: scores.less_error(c, "dpsgd-each", rival + end) for c in cells}
        known = {l: lead for l, lead in leads.items() if lead is not None}
        verdict, found, why = Verdict.UNKNOWN, "Not run at two or more l.", ""
        if len(known) > 1:
            ratios = {l: math.exp(min(lead.mean, 700.0)) for l, lead in known.items()}
            said = listed(f"{times(ratio)} at l = {count(l)}" for l, ratio in ratios.items())
            found = f"Error of ReuseCov as a multiple of DP-SGD's: {said}."
            worst = scores.mean(cells[-1], rival + end)
            verdict, why = _shrinking(known, None if worst is None else worst.mean, variant)
        yield Finding(
            data=f"MNIST, against {label}", variant=variant, verdict=verdict, found=found, why=why
        )


def _shrinking(
    leads: dict[int, Estimate], worst: float | None, variant: str
) -> tuple[Verdict, str]:
    """Judge leads by l; `worst` is the R² of ReuseCov at the largest l."""
    first, last = leads[min(leads)], leads[max(leads)]
    change = last.minus(first)
    if first.sign is None or change.sign is None:
        return Verdict.UNKNOWN, ""
    if first.sign != 1:
        return Verdict.NOT, f"At l = {count(min(leads))} DP-SGD has no lead that could shrink."
    if change.sign == -1:
        return Verdict.REPRODUCED, ""
    if change.sign == 0:
        return Verdict.NOT, "The change is within two standard errors."
    if variant == "as printed" and worst is not None and worst < -1:
        return Verdict.NOT, reasons.UNBOUNDED
    return Verdict.NOT, UNEXPLAINED


def _added(scores: Scores, cell: Cell, method: str, other: str) -> dict[int, float]:
    """Return by repeat how much error privacy adds, as log(ratio of two methods)."""
    found = {}
    ours, theirs = scores.of(cell, method), scores.of(cell, other)
    for repeat in sorted(ours.keys() & theirs.keys()):
        one, two = ours[repeat].log_ratio, theirs[repeat].log_ratio
        if 0 < one < 700 and 0 < two < 700:  # least squares is the optimum, but for rounding
            found[repeat] = math.log(math.expm1(one) / math.expm1(two))
    return found


def _slope(ratios: dict[int, dict[int, float]]) -> Estimate | None:
    """Return the slope over log l, repeat by repeat."""
    if len(ratios) < 3:
        return None
    repeats = set.intersection(*(set(found) for found in ratios.values()))
    x = np.log(list(ratios))
    return estimate(
        _line(x, np.array([found[repeat] for found in ratios.values()]))[0] for repeat in repeats
    )


def _geometric(logs: dict[int, float]) -> float:
    return math.exp(math.fsum(logs.values()) / len(logs))


def _line(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Return the slope of the least-squares line and the share of variance it explains."""
    slope, intercept = np.polyfit(x, y, 1)
    spread = float(np.sum((y - y.mean()) ** 2))
    rest = float(np.sum((y - slope * x - intercept) ** 2))
    return float(slope), 1 - rest / spread if spread > 0 else 1.0


def _large(scores: Scores, n: int) -> str:
    """Name the data, and say so where a run has another n."""
    known = sorted({c.n for c in scores.cells("gan")})
    run = f" (this run has n = {listed(map(count, known))})" if known and n not in known else ""
    return f"GAN, n = {count(n)}{run}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
