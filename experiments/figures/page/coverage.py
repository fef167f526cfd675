"""How much of the grids a folder of results covers, and what was skipped."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from experiments.figures.grid import Cell, Study
from experiments.figures.page.compare import Scores, cell_of
from experiments.figures.page.wording import count, listed, name

__all__ = ["Coverage", "coverage_of", "skipped_lines"]

Fit = tuple[str, Cell, str, int]  # study, cell, method, repeat


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """What there is of what the grids ask for."""

    kind: str  # "full", "quick" or "unfinished"
    fits: int
    wanted: int  # by the full grids
    repeats: tuple[int, int]  # fewest and most of any method in any cell
    missing: tuple[str, ...]

    def banner(self) -> str:
        """Return the warning at the top of the page, or "" if everything is there."""
        if self.kind == "full":
            return ""
        low, high = self.repeats
        repeats = f"{high}" if low == high else f"{low} to {high}"
        what = "a quick run" if self.kind == "quick" else "an unfinished run"
        plural = "" if high == 1 else "s"
        lines = [
            f"> **This page is from {what}, with {repeats} repeat{plural} per cell**: "
            f"{count(self.fits)} fits; the whole grids have {count(self.wanted)}. Verdicts and "
            "tables below are provisional; two standard errors over few repeats prove little. Not "
            "in this run:",
            ">",
            *(f"> - {line}" for line in self.missing),
        ]
        return "\n".join(lines)


def coverage_of(scores: Scores, studies: Sequence[Study]) -> Coverage:
    """Compare scores with the grids."""
    found = {(row.study, cell_of(row), row.method, row.repeat) for row in scores.rows}
    wanted = _fits(studies)
    present = [study for study in studies if study.name in scores.studies]
    if wanted <= found:
        kind = "full"
    elif found and found <= _fits(study.quick_version() for study in present):
        kind = "quick"
    else:
        kind = "unfinished"
    repeats: defaultdict[tuple[str, Cell, str], int] = defaultdict(int)
    for study, cell, method, _ in found:
        repeats[study, cell, method] += 1
    return Coverage(
        kind=kind,
        fits=len(found),
        wanted=len(wanted),
        repeats=(min(repeats.values(), default=0), max(repeats.values(), default=0)),
        missing=tuple(
            line for study in studies if (line := _missing(study, found, study in present))
        ),
    )


def _fits(studies: Iterable[Study]) -> set[Fit]:
    return {
        (study.name, unit.cell, method, unit.repeat)
        for study in studies
        for unit in study.units()
        for method in unit.methods
    }


def _missing(study: Study, found: set[Fit], present: bool) -> str:
    """Say what a study lacks, in the fewest words."""
    if not present:
        return f"{study.title} (`{study.name}`): nothing was run"
    wanted, here = _fits([study]), {fit for fit in found if fit[0] == study.name}
    if wanted <= here:
        return ""
    parts = []
    if sizes := sorted({f[1].n for f in wanted} - {f[1].n for f in here}):
        parts.append(f"n = {listed(map(count, sizes))}")
    if outcomes := sorted({f[1].l for f in wanted} - {f[1].l for f in here}):
        parts.append(f"l = {listed(map(count, outcomes))}")
    if methods := sorted({f[2] for f in wanted} - {f[2] for f in here}):
        parts.append(listed(map(name, methods)))
    if repeats := {f[3] for f in wanted} - {f[3] for f in here}:
        parts.append(f"{len(repeats)} of {len({f[3] for f in wanted})} repeats")
    return f"{study.title} (`{study.name}`): {'; '.join(parts) or 'some fits'}"


def skipped_lines(scores: Scores) -> list[str]:
    """Return what was skipped and why, one line for each method and reason of a study."""
    found: dict[tuple[str, str, str], set[int]] = defaultdict(set)
    for row in scores.rows:
        reason = row.skipped
        if not reason and not math.isfinite(row.r2):
            reason = "no finite R² came out"
        if reason:
            found[row.study, row.method, reason].add(row.l)
    return [
        f"{study}: {name(method)} at l = {listed(map(count, sorted(l)))}: {reason}"
        for (study, method, reason), l in found.items()
    ]
