"""What a check of one of the paper's claims returns, and how verdicts follow from signs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from experiments.figures.grid import Cell
from experiments.figures.page.compare import Scores
from experiments.figures.page.wording import count, listed, r2

__all__ = [
    "UNEXPLAINED",
    "VARIANTS",
    "Claim",
    "Finding",
    "Signs",
    "Verdict",
    "all_are",
    "described",
    "none_is",
    "order_signs",
    "r2_at",
]

#: The two versions of the paper's algorithms, and how the names of their methods end.
VARIANTS = {"as printed": "-printed", "calibrated": ""}
#: Said where no condition singles out a cause.
UNEXPLAINED = "Unexplained."

Signs = Mapping[int, int | None]  # by l, in its order; None where one repeat cannot tell


class Verdict(StrEnum):
    """Whether a claim holds here."""

    REPRODUCED = "reproduced"
    NOT = "not reproduced"
    OPEN = "undecided"
    UNKNOWN = "cannot be judged here"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim on one set of data, for one version of the algorithms."""

    data: str
    variant: str
    verdict: Verdict
    found: str  # our numbers
    why: str = ""  # the cause, where a claim does not hold


@dataclass(frozen=True, kw_only=True)
class Claim:
    """Something that the paper says about its experiments."""

    key: str
    source: str  # where it says so
    statement: str  # in our words
    reading: str  # what we take it to mean, where that is not plain
    findings: tuple[Finding, ...]


def all_are(signs: Signs, wanted: int) -> Verdict:
    """Return whether every sign is the wanted one; one clear exception is enough to refute."""
    if -wanted in signs.values():
        return Verdict.NOT
    if not signs or None in signs.values():
        return Verdict.UNKNOWN
    return Verdict.OPEN if 0 in signs.values() else Verdict.REPRODUCED


def none_is(signs: Signs, unwanted: int) -> Verdict:
    """Return whether no sign is the unwanted one."""
    if unwanted in signs.values():
        return Verdict.NOT
    if not signs or None in signs.values():
        return Verdict.UNKNOWN
    return Verdict.REPRODUCED


def order_signs(scores: Scores, cells: Iterable[Cell], method: str, other: str) -> Signs:
    """Return, by l, 1 where `method` has clearly less error than `other`, -1 where it has more."""
    found = {cell.l: scores.less_error(cell, method, other) for cell in cells}
    return {l: better.sign for l, better in found.items() if better is not None}


def described(
    scores: Scores,
    cells: Sequence[Cell],
    signs: Signs,
    words: tuple[str, str, str],
    methods: Mapping[str, str],
) -> str:
    """Return which l have which sign, and R² at the ends.

    Parameters
    ----------
    words
        What to call a positive sign, none, and a negative one.
    methods
        Whose R² is given, by what they are called.
    """
    if not signs:
        return "Not run."
    run = [cell for cell in cells if cell.l in signs]
    shown = run if len(run) < 4 else [run[0], run[-1]]
    said = _by_sign(signs, words)
    return f"{said[0].upper()}{said[1:]}. {r2_at(scores, shown, methods)}"


def _by_sign(signs: Signs, words: tuple[str, str, str]) -> str:
    named = dict(zip((1, 0, -1), words, strict=True)) | {None: "one repeat, so no verdict,"}
    stretches: dict[int | None, list[str]] = {}
    for sign, run in groupby(signs, key=lambda l: signs[l]):
        some = [count(l) for l in run]
        stretches.setdefault(sign, []).extend(
            [f"{some[0]} to {some[-1]}"] if len(some) > 2 else some
        )
    parts = [f"{named[sign]} at l = {listed(found)}" for sign, found in stretches.items()]
    return "; ".join(parts)


def r2_at(scores: Scores, cells: Iterable[Cell], methods: Mapping[str, str]) -> str:
    """Return the mean R² of some methods, by what they are called, in some cells."""
    parts = []
    for cell in cells:
        found = {word: scores.mean(cell, method) for word, method in methods.items()}
        values = [f"{word} {r2(mean.mean)}" for word, mean in found.items() if mean is not None]
        if values:
            parts.append(f"l = {count(cell.l)}: {', '.join(values)}")
    return f"R² at {'; '.join(parts)}." if parts else ""
