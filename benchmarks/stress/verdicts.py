"""The targets of the suite, and whether they were met."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.stress.results import STATISTICS, Result
from benchmarks.stress.rivals import RIVALS
from benchmarks.stress.score import ONE_ROUND

__all__ = ["Verdict", "judge"]

FLOOR = {"median": -0.05, "pooled": -0.1}  # held-out R² that no draw may fall below
BEHIND = 0.01  # R² by which the default may trail the best plain method in the mean
CLIFF, FAR_BEHIND = -0.2, 0.1  # the same for a few draws: more than chance explains
CLOSE = 0.05  # between an estimated or predicted R² and the measured one
TRUE_SHARE = 0.9  # of trusted cells in which the estimate is close
COVERED = (0.93, 0.97)
FORECAST_SHARE = 0.8  # of cells in which the forecast is close


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One target, and whether it was met."""

    asked: str
    met: bool
    found: str  # in numbers
    cells: tuple[str, ...] = ()  # that fail
    every_run: bool = False  # makes sense for few draws, too, so CI requires it


def judge(results: Sequence[Result]) -> list[Verdict]:
    """Return all verdicts on cells that were run."""
    run = [result for result in results if result.draws]
    return [
        _no_cliff(run),
        *_floors(run),
        *_behind(run),
        *_rivals([r for r in run if r.rivals]),
        _broken(run),
        _published(run),
        _covered(run),
        _forecast(run),
    ]


def _no_cliff(results: Sequence[Result]) -> Verdict:
    fallen = [r for r in results if min(map(r.worst, STATISTICS)) < CLIFF]
    late = [r for r in results if max(map(r.behind, STATISTICS)) > FAR_BEHIND]
    return Verdict(
        asked=f"no cliff: no draw below R² = {CLIFF:g}, no cell {FAR_BEHIND:g} behind the best of "
        "ridge, filter and mean only",
        met=not fallen and not late,
        found=f"{len(fallen)} cells below, {len(late)} behind",
        cells=tuple(r.cell.title for r in [*fallen, *late]),
        every_run=True,
    )


def _floors(results: Sequence[Result]) -> Iterator[Verdict]:
    words = {"median": "the median outcome", "pooled": "all outcomes pooled"}
    for statistic in STATISTICS:
        floor = FLOOR[statistic]
        below = [r for r in results if r.worst(statistic) < floor]
        count = sum(score < floor for r in below for score in r.scores("auto", statistic))
        worst = min((r.worst(statistic) for r in results), default=0.0)
        yield Verdict(
            asked=f"no draw below R² = {floor:g} for {words[statistic]}",
            met=not below,
            found=f"{count} draws of {len(below)} cells; the worst {worst:.3f}",
            cells=tuple(f"{r.cell.title} ({r.worst(statistic):.3f})" for r in below),
        )


def _behind(results: Sequence[Result]) -> Iterator[Verdict]:
    for statistic in STATISTICS:
        late = [r for r in results if r.behind(statistic) > BEHIND]
        most = max((r.behind(statistic) for r in results), default=0.0)
        yield Verdict(
            asked=f"mean R² ({statistic}) never more than {BEHIND:g} behind the best of ridge, filter "
            "and mean only",
            met=not late,
            found=f"{len(late)} of {len(results)} cells; at most {most:.3f}",
            cells=tuple(f"{r.cell.title} ({r.behind(statistic):.3f})" for r in late),
        )


def _rivals(results: Sequence[Result]) -> Iterator[Verdict]:
    """Targets of several rounds; none where there is one round."""
    if not results:
        return
    floor, others = FLOOR["median"], ("ridge", *RIVALS)
    low = [r for r in results if r.worst("pooled") < floor]
    yield Verdict(
        asked=f"rounds: no draw below R² = {floor:g}, pooled",
        met=not low,
        found=f"{len(low)} of {len(results)} cells",
        cells=tuple(f"{r.cell.title} ({r.worst('pooled'):.3f})" for r in low),
    )
    compared = (("ridge, AdaSSP and IHM", others), ("one round", (ONE_ROUND,)))
    for words, methods in compared:
        gaps = [(r, r.behind("pooled", methods)) for r in results]
        late = [(r, gap) for r, gap in gaps if gap > BEHIND]
        yield Verdict(
            asked=f"rounds: mean R² (pooled) never more than {BEHIND:g} behind the best of {words}",
            met=not late,
            found=f"{len(late)} of {len(results)} cells; at most {max(g for _, g in gaps):.3f}",
            cells=tuple(f"{r.cell.title} ({gap:.3f})" for r, gap in late),
        )


def _broken(results: Sequence[Result]) -> Verdict:
    bad = [r for r in results if r.broken]
    return Verdict(
        asked="no interval of R² without its estimate, none beyond [0, 1]",
        met=not bad,
        found=f"{sum(r.broken for r in bad)} intervals",
        cells=tuple(f"{r.cell.title} ({r.broken})" for r in bad),
        every_run=True,
    )


def _published(results: Sequence[Result]) -> Verdict:
    known = [(r, r.optimism) for r in results]
    trusted = [(r, gap) for r, gap in known if gap is not None]
    far = [(r, gap) for r, gap in trusted if abs(gap) > CLOSE]
    draws = [abs(said - true) <= CLOSE for r, _ in trusted for said, true in r.published]
    share = 1 - len(far) / len(trusted) if trusted else 1.0
    return Verdict(
        asked=f"estimated R² of what is published within {CLOSE:g} of the held-out one in "
        f"{TRUE_SHARE:.0%} of the trusted cells",
        met=share >= TRUE_SHARE,
        found=f"{share:.0%} of {len(trusted)} cells (means over trusted draws); "
        f"{np.mean(draws) if draws else 1:.0%} of {len(draws)} single draws",
        cells=tuple(f"{r.cell.title} ({gap:+.3f})" for r, gap in far),
    )


def _covered(results: Sequence[Result]) -> Verdict:
    """Cells count alike, however many outcomes they have."""
    known = [(r, share) for r in results if (share := r.coverage) is not None]
    mean = float(np.mean([share for _, share in known])) if known else float("nan")
    low, high = COVERED
    # Of 20 intervals at 95 %, 16 or fewer are covered in 2 % of cells.
    poor = [(r, share) for r, share in known if r.intervals >= 20 and share < 0.85]
    return Verdict(
        asked=f"trusted 95 % intervals of R² cover {low:.0%} to {high:.0%}",
        met=not known or low <= mean <= high,
        found=f"{mean:.1%} in the mean over {len(known)} cells with trusted intervals"
        + (f"; {len(poor)} cells below 85 %" if poor else ""),
        cells=tuple(f"{r.cell.title} ({share:.0%} of {r.intervals})" for r, share in poor),
    )


def _forecast(results: Sequence[Result]) -> Verdict:
    known = [(r, gap) for r in results if (gap := r.forecast_error) is not None]
    far = [(r, gap) for r, gap in known if abs(gap) > CLOSE]
    share = 1 - len(far) / len(known) if known else 1.0
    return Verdict(
        asked=f"forecast within {CLOSE:g} of the measured mean in 8 of 10 cells",
        met=share >= FORECAST_SHARE,
        found=f"{share:.0%} of {len(known)} cells",
        cells=tuple(f"{r.cell.title} ({gap:+.3f})" for r, gap in far),
    )
