"""primo against all other methods at equal true privacy: tables, the count, and every loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from experiments.figures.grid import Cell
from experiments.figures.page.compare import Estimate, Scores
from experiments.figures.page.wording import count, data_name, listed, name, r2, signed, table

__all__ = ["FIELD", "Contest", "Loss", "contests", "counts", "losses", "summary_section"]

#: For each protection: primo's default for it, and everything else that protects as much.
FIELD = {
    "both": (
        "primo",
        (
            "gauss",
            "ssp-advanced",
            "ssp-gdp",
            "adassp",
            "boosted-adassp",
            "ihm",
            "dpsgd-each",
            "dpsgd-joint",
            "diffprivlib-true",
        ),
    ),
    "outcomes": ("primo-outcomes", ("proj-x",)),
    "features": ("primo-features", ("proj-y",)),
}
#: The paper's own algorithms, calibrated; the others are somebody else's.
_PAPER = ("gauss", "proj-x", "proj-y")
_MUCH = 0.1  # R² of least squares, from which residuals are notably shorter than outcomes
#: These release noisy moments, as primo does.
_MOMENTS = ("gauss", "ssp-advanced", "ssp-gdp", "adassp", "proj-x", "proj-y")


@dataclass(frozen=True, kw_only=True)
class Contest:
    """One cell under one protection: the methods that kept the budget there."""

    cell: Cell
    protection: str
    ours: str
    means: dict[str, Estimate]  # R² of those that kept the budget, over the repeats they share
    margins: dict[str, Estimate]  # R² of a rival minus ours, over the repeats that both have
    over_budget: tuple[str, ...]

    @property
    def best(self) -> frozenset[str]:
        """Return the best; by paired differences to ours where there are some."""
        values = {m: e.mean for m, e in self.margins.items()}
        if self.ours in self.means:
            values[self.ours] = 0.0
        else:
            values = {m: e.mean for m, e in self.means.items()}
        top = max(values.values(), default=0.0)
        return frozenset(m for m, value in values.items() if value == top)


@dataclass(frozen=True, kw_only=True)
class Loss:
    """A cell where a rival has the higher mean R²."""

    cell: Cell
    protection: str
    rival: str
    ours: Estimate
    margin: Estimate  # R² of the rival minus ours
    reason: str

    @property
    def noise(self) -> bool:
        """Whether the margin is too small to be told from zero."""
        return self.margin.sign in (0, None)


def contests(scores: Scores) -> list[Contest]:
    """Return one contest for every cell and protection in which primo or a rival was run."""
    found = []
    for cell in scores.cells():
        for protection, (ours, rivals) in FIELD.items():
            run = [m for m in (ours, *rivals) if scores.of(cell, m)]
            kept = [m for m in run if scores.keeps_budget(cell, m)]
            if not kept:
                continue
            # One row, the same draws: slow methods have fewer repeats.
            shared = scores.shared_repeats(cell, kept)
            means = {m: scores.mean(cell, m, repeats=shared) for m in kept}
            margins = (
                {m: scores.difference(cell, m, ours) for m in kept if m != ours}
                if ours in kept
                else {}
            )
            found.append(
                Contest(
                    cell=cell,
                    protection=protection,
                    ours=ours,
                    means={m: e for m, e in means.items() if e is not None},
                    margins={m: e for m, e in margins.items() if e is not None},
                    over_budget=tuple(m for m in run if m not in kept),
                )
            )
    return found


def losses(scores: Scores, found: Iterable[Contest]) -> list[Loss]:
    """Return every rival that is ahead of primo in a cell, the clear ones first."""
    lost = [
        Loss(
            cell=contest.cell,
            protection=contest.protection,
            rival=rival,
            ours=contest.means[contest.ours],
            margin=margin,
            reason=_reason(scores, contest, rival, margin),
        )
        for contest in found
        for rival, margin in contest.margins.items()
        if margin.mean > 0
    ]
    return sorted(lost, key=lambda loss: loss.noise)


def _reason(scores: Scores, contest: Contest, rival: str, margin: Estimate) -> str:
    if margin.sign is None:
        return "one repeat: the error of the margin is not known"
    if margin.sign == 0:
        return "within noise: margin below two standard errors"
    if rival.startswith("dpsgd"):
        return _covariance_noise(scores, contest.cell, margin)
    if rival in _MOMENTS:
        return "estimator: same sums, no less noise, better coefficients"
    return "unexplained"


def _covariance_noise(scores: Scores, cell: Cell, margin: Estimate) -> str:
    """Test whether the noise on XᵀX is what separates primo from DP-SGD."""
    # With protection `outcomes` the covariance is exact and the noise of the association no larger.
    gain = scores.difference(cell, "primo-outcomes", "primo")
    if gain is None:
        size = cell.d * (cell.d + 1) // 2
        if size > cell.n:
            return f"covariance noise, probably (d = {cell.d}); not tested in this run"
        return _residuals(scores, cell)
    if gain.sign == 1 and gain.mean >= margin.mean:
        return f"covariance noise (d = {cell.d}): with an exact XᵀX primo gains {signed(gain)}"
    return _residuals(scores, cell)


def _residuals(scores: Scores, cell: Cell) -> str:
    """Say how much shorter residuals are than outcomes, if that can be what helps DP-SGD."""
    exact = scores.mean(cell, "ols")
    if exact is None or not _MUCH < exact.mean < 1:
        return "unexplained"
    return (
        f"residuals, probably: {math.sqrt(1 - exact.mean):.2f} of the outcomes' length; not tested"
    )


def summary_section(scores: Scores) -> str:
    """Return the count, the lost cells and the tables."""
    found = contests(scores)
    if not found:
        return "No cell has been run yet."
    parts = [counts(found), _lost(losses(scores, found)), *_tables(scores, found)]
    return "\n\n".join(part for part in parts if part)


def counts(found: Sequence[Contest]) -> str:
    """Return on how many cells primo's default is not behind, one line for each comparison."""
    lines = []
    for protection in FIELD:
        here = [c for c in found if c.protection == protection]
        if protection == "both":
            descended = [c for c in here if "dpsgd-joint" in c.margins]
            against = f"{_against(protection)}, DP-SGD (joint) among them,"
            lines.append(_count_line(descended, against))
            here = [c for c in here if c not in descended]
            against = "all others where DP-SGD (joint) was not run,"
            lines.append(_count_line(here, against))
        else:
            lines.append(_count_line(here, _against(protection)))
    return "\n".join(line for line in lines if line)


def _count_line(here: Sequence[Contest], against: str) -> str:
    judged = [c.margins for c in here if c.margins]
    if not judged:
        return ""
    won = sum(all(e.mean <= 0 for e in margins.values()) for margins in judged)
    clear = sum(any(e.sign == 1 for e in margins.values()) for margins in judged)
    return (
        f"- Under **{here[0].protection}**, primo's default is at least as accurate as {against} "
        f"on **{won} of {len(judged)} cells**. It is clearly behind (by more than two standard "
        f"errors) on {clear}, and behind within noise on {len(judged) - won - clear}."
    )


def _against(protection: str) -> str:
    _, rivals = FIELD[protection]
    paper = [f"the paper's {name(m)}" for m in rivals if m in _PAPER]
    return listed(["every baseline", *paper] if protection == "both" else paper)


def _lost(lost: Sequence[Loss]) -> str:
    title = "### Where primo is not ahead"
    if not lost:
        return f"{title}\n\nNowhere: no rival has a higher mean R² in any cell."
    intro = (
        "Every cell in which a rival has the higher mean R², by however little. The margin is R² of "
        "the rival minus R² of primo, ± its standard error, paired over repeats. Reasons are "
        "computed, too:\n\n"
        "- *within noise*: the margin is below two standard errors.\n"
        "- *covariance noise*: DP-SGD never releases XᵀX, which has d(d+1)/2 entries. The test: under "
        "protection `outcomes` primo has the same noise on XᵀY, or less, and an exact XᵀX; what it "
        "gains by that is more than the margin.\n"
        "- *residuals*: all but the first steps of DP-SGD see what is left of the outcomes, √(1 − R²) "
        "of their length, and need that much less noise; primo releases XᵀY of the outcomes "
        "themselves. A possible cause, where least squares leaves much less than the outcomes; not a "
        "tested one.\n"
        "- *estimator*: the rival releases the same sums as primo, with about as much noise or "
        "more, so the difference lies in how coefficients are made of them.\n"
        "- *unexplained*: none of these."
    )
    header = ["data", "n", "l", "protection", "rival", "primo", "margin", "reason"]
    clear = [loss for loss in lost if not loss.noise]
    close = [loss for loss in lost if loss.noise]
    parts = [title, intro]
    for caption, some in (
        ("Clearly behind:", clear),
        ("Within noise, or from one repeat:", close),
    ):
        if some:
            parts += [caption, *_pages(header, [_loss_row(loss) for loss in some])]
        else:
            parts.append(f"{caption} none.")
    return "\n\n".join(parts)


def _loss_row(loss: Loss) -> list[str]:
    cell = loss.cell
    return [
        data_name(cell),
        count(cell.n),
        count(cell.l),
        loss.protection,
        name(loss.rival),
        r2(loss.ours.mean),
        signed(loss.margin),
        loss.reason,
    ]


def _pages(header: Sequence[str], rows: Sequence[Sequence[str]], size: int = 30) -> list[str]:
    """Return tables that fit on a page each."""
    return [table(header, rows[i : i + size]) for i in range(0, len(rows), size)]


def _tables(scores: Scores, found: Iterable[Contest]) -> Iterable[str]:
    by_data: dict[Cell, list[Contest]] = {}
    for contest in found:
        by_data.setdefault(replace(contest.cell, l=0), []).append(contest)
    for data, here in by_data.items():
        size = f"n = {count(data.n)}, d = {data.d}, ε = {data.epsilon:g}"
        parts = [f"### {data_name(data)}: {size}"]
        if both := [c for c in here if c.protection == "both"]:
            parts += ["Features and outcomes protected:", _both_table(scores, both)]
        if relaxed := [c for c in here if c.protection != "both"]:
            parts += [
                "One side public (before the colon: what is protected):",
                _relaxed_table(scores, relaxed),
            ]
        yield "\n\n".join(parts)


def _both_table(scores: Scores, here: Sequence[Contest]) -> str:
    ours, rivals = FIELD["both"]
    methods = [m for m in (ours, *rivals) if any(m in c.means for c in here)]
    rows = [
        [count(c.cell.l), _least_squares(scores, [c]), *(_entry(c, m) for m in methods)]
        for c in here
    ]
    return table(["l", "least squares", *map(name, methods)], rows)


def _relaxed_table(scores: Scores, here: Sequence[Contest]) -> str:
    columns = [
        (protection, method)
        for protection in ("outcomes", "features")
        for method in (FIELD[protection][0], *FIELD[protection][1])
        if any(method in c.means for c in here if c.protection == protection)
    ]
    found = {(c.cell, c.protection): c for c in here}
    rows = []
    for cell in dict.fromkeys(c.cell for c in here):
        entries = [
            _entry(found[cell, protection], method) if (cell, protection) in found else "–"
            for protection, method in columns
        ]
        both = [c for c in here if c.cell == cell]
        rows.append([count(cell.l), _least_squares(scores, both), *entries])
    header = [
        f"{protection}: {'primo' if method == FIELD[protection][0] else name(method)}"
        for protection, method in columns
    ]
    return table(["l", "least squares", *header], rows)


def _entry(contest: Contest, method: str) -> str:
    if method in contest.over_budget:
        return "over budget"
    mean = contest.means.get(method)
    if mean is None:
        return "–"
    return f"**{r2(mean.mean)}**" if method in contest.best else r2(mean.mean)


def _least_squares(scores: Scores, here: Sequence[Contest]) -> str:
    """Return R² of least squares on the draws that the methods of a row share."""
    cell, methods = here[0].cell, [m for c in here for m in c.means]
    mean = scores.mean(cell, "ols", repeats=scores.shared_repeats(cell, methods))
    return r2(None if mean is None else mean.mean)
