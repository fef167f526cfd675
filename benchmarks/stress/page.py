"""The page docs/stress.md, and the same in plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from benchmarks.stress.results import Result
from benchmarks.stress.rivals import RIVALS
from benchmarks.stress.score import METHODS, ONE_ROUND
from benchmarks.stress.verdicts import Verdict

__all__ = ["page", "report"]

_INTRODUCTION = """\
# Stress suite

Printed by `make stress` (`python -m benchmarks.stress --write`), {draws} draws per cell.

Every draw makes new rows, new public bounds and one release with seeded noise, of as many rounds as the
default (`rounds="auto"`) takes. The default (`auto`), `ridge` and `filter` are estimated from that same
release. "Mean only" predicts the released outcome means and nothing else (the public centres where
there is no intercept). "One round" is the default estimator of a release of its own with `rounds=1`;
AdaSSP and Iterative Hessian Mixing (IHM) are run on the same rows, and protect features and outcomes,
whatever the cell protects. All are scored on rows that were not fitted: R² = 1 − squared error over
squared distance from the held-out mean, so 0 is as good as knowing that mean, and negative is worse.
"Pooled" adds squared errors over outcomes in scaled units; "median" is the median outcome.

Bounds come from stated ranges, or from the held-out rows as if they were a public panel, never from the
fitted rows. A norm is a multiple of the typical row length √Σ(sd² + (mean − middle)²) / half-width:
1.15 + 1/√columns where nothing else is stated. Real rows are those of `../shared/data`; cells whose data
are absent are skipped.

The suite is not a test on unseen data: the length of the constant, the prior of a small eigenvalue and
the prior of the explained share, the way toward ridge and the number of rounds were chosen while looking
at cells like these, some of them in it.

A default that must also find faint signal publishes some slopes where there is none.
`python -m benchmarks.stress.tradeoff` draws "no signal: few rows, off centre" again with and without
signal, and prints what guards against such slopes gain in the one case and cost in the other.

Columns:

- *auto*, *ridge*, *filter*, *mean only*: mean pooled R²
- *one round*, *AdaSSP*, *IHM*: the same, of releases of their own; empty where one cannot be run
- *worst*: the worst draw of the default, pooled and for the median outcome
- *behind*: by how much the best other method is ahead of the default, pooled and for the median outcome
- *said*: estimated minus held-out R² of what is published, in draws where the estimate is trusted
- *covered*: share of trusted 95 % intervals of R² that hold the true one
- *forecast*: R² predicted from public numbers and the true share of variance, minus the measured mean
"""

OTHERS = (ONE_ROUND, *RIVALS)
_HEADER = (
    "cell",
    "n",
    "d",
    "l",
    "ε",
    *METHODS,
    *OTHERS,
    "worst",
    "behind",
    "said",
    "covered",
    "forecast",
)


def page(results: Sequence[Result], verdicts: Sequence[Verdict], draws: int) -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(results, verdicts, draws)) + "\n"


def _lines(results: Sequence[Result], verdicts: Sequence[Verdict], draws: int) -> Iterator[str]:
    yield _INTRODUCTION.format(draws=draws)
    yield "## Verdicts"
    yield ""
    yield "| asked for | met | found |"
    yield "|---|---|---|"
    for verdict in verdicts:
        yield f"| {verdict.asked} | {'yes' if verdict.met else '**no**'} | {verdict.found} |"
    for verdict in verdicts:
        if verdict.cells:
            yield ""
            yield f"Outside “{verdict.asked}”: {'; '.join(verdict.cells)}."
    for family, group in groupby(results, lambda result: result.cell.family):
        members = list(group)
        yield ""
        yield f"## {family[0].upper()}{family[1:]}"
        yield ""
        yield f"| {' | '.join(_HEADER)} |"
        yield "|" + "---|" * len(_HEADER)
        for result in members:
            yield f"| {' | '.join(_row(result))} |"


def _row(result: Result) -> tuple[str, ...]:
    cell = result.cell
    if not result.draws:
        return (cell.name, f"skipped: {result.skipped}", *[""] * (len(_HEADER) - 2))
    n, d, l = result.draws[0].shape
    return (
        cell.name,
        str(n),
        str(d),
        str(l),
        f"{cell.epsilon:g}",
        *(f"{result.mean(method, 'pooled'):.3f}" for method in METHODS),
        *(f"{result.mean(o, 'pooled'):.3f}" if o in result.rivals else "" for o in OTHERS),
        f"{result.worst('pooled'):.3f}, {result.worst('median'):.3f}",
        f"{result.behind('pooled'):.3f}, {result.behind('median'):.3f}",
        _signed(result.optimism),
        "" if result.coverage is None else f"{result.coverage:.0%} of {result.intervals}",
        _signed(result.forecast_error),
    )


def _signed(value: float | None) -> str:
    return "" if value is None else f"{value:+.3f}"


def report(results: Sequence[Result], verdicts: Sequence[Verdict]) -> str:
    """Return the same in lines of plain text."""
    rows: list[tuple[str, ...]] = [("", *_HEADER)]
    rows += [(result.cell.family, *_row(result)) for result in results]
    # The reason why a cell was skipped is long, and does not make its column wide.
    width = [max(len(row[i]) for row in rows if len(row[2]) < 12) for i in range(len(rows[0]))]
    lines = ["  ".join(text.ljust(width[i]) for i, text in enumerate(row)).rstrip() for row in rows]
    for verdict in verdicts:
        lines.append(f"{'met   ' if verdict.met else 'MISSED'} {verdict.asked}: {verdict.found}")
        lines += [f"         {cell}" for cell in verdict.cells]
    return "\n".join(lines)
