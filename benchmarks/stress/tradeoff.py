"""What a guard against slopes without signal gains where there is none, and costs where there is some.

    python -m benchmarks.stress.tradeoff

The cell "no signal: few rows, off centre" of the stress suite is drawn again with the same rows of
features and the same noise, but with outcomes that the features explain a share of. A guard looks at the
probability p that the features explain nothing, as the default finds it from the release, and takes back
slopes: all of them where p exceeds a threshold, a multiple of p, or a fixed share everywhere. Slopes
that are taken back are replaced by the mean prediction. Draws are others than those of docs/stress.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import primo
from benchmarks.stress.cells import CELLS
from benchmarks.stress.problem import Cell
from benchmarks.stress.score import make_release, released_means
from benchmarks.stress.simulated import Simulated
from benchmarks.stress.verdicts import BEHIND
from primo.released.estimate.centring import centred
from primo.released.estimate.selection import fit_filter

__all__ = ["GUARDS", "SHARES", "Draw", "Guard", "compare", "draws_of", "main", "table"]

Matrix = NDArray[np.float64]

CELL = "no signal: few rows, off centre"
SHARES = (0.0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8)  # of the outcome's variance that features explain
FIRST = 1000  # draw: far from those of the page
DRAWS = 60


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One release: R² as a function of the share f of the slopes that is kept, and of the others."""

    nothing: float  # probability that features explain nothing, from released numbers
    parts: tuple[float, float, float]  # R² = a + b·f + c·f²
    others: dict[str, float]  # R² of ridge, filter and mean only

    def r_squared(self, kept: float) -> float:
        """Return R² if so much of the slopes is kept."""
        a, b, c = self.parts
        return a + b * kept + c * kept**2


@dataclass(frozen=True, kw_only=True)
class Guard:
    """What is kept of the slopes, given the probability of nothing."""

    name: str
    kept: Callable[[float], float]


def _guards() -> Iterator[Guard]:
    yield Guard(name="none", kept=lambda p: 1.0)
    for t in (0.35, 0.3, 0.25, 0.2, 0.15, 0.1, 0.05):
        yield Guard(name=f"no slopes where p > {t:g}", kept=_below(t))
    for t in (0.5, 1.0, 1.5, 2.0, 3.0, 4.0):
        yield Guard(name=f"slopes times 1 − {t:g}·p", kept=_less(t))
    for t in (0.95, 0.9, 0.85, 0.8, 0.7, 0.6):
        yield Guard(name=f"slopes times {t:g}", kept=_always(t))


def _below(t: float) -> Callable[[float], float]:
    return lambda p: float(p <= t)


def _less(t: float) -> Callable[[float], float]:
    return lambda p: max(1 - t * p, 0.0)


def _always(t: float) -> Callable[[float], float]:
    return lambda p: t


GUARDS = tuple(_guards())


def sibling(share: float) -> Cell:
    """Return the cell with outcomes that features explain a share of."""
    (cell,) = (cell for cell in CELLS if cell.title == CELL)
    assert isinstance(cell.problem, Simulated)
    return replace(cell, problem=replace(cell.problem, r2=share))


def draws_of(share: float, draws: int) -> list[Draw]:
    """Draw releases of a sibling. The title of all is the same, and so are their seeds."""
    cell = sibling(share)
    return [_draw(cell, FIRST + k) for k in range(draws)]


def _draw(cell: Cell, number: int) -> Draw:
    rng = cell.rng(number)
    problem = cell.problem(rng)
    release = make_release(cell, problem, int(rng.integers(2**31)))
    held = problem.held_outcomes
    spread = float(held.var())
    made = {
        name: primo.coefficients(release, estimator=name).predict(problem.held_features)
        for name in ("auto", "ridge", "filter")
    }
    mean = made["auto"].mean(axis=0)
    error, slopes = held - mean, made["auto"] - mean
    others = {name: 1 - float(np.mean((held - made[name]) ** 2)) / spread for name in made}
    others["mean only"] = 1 - float(np.mean((held - released_means(release)) ** 2)) / spread
    del others["auto"]
    parts = (
        1 - float(np.mean(error**2)) / spread,
        2 * float(np.mean(error * slopes)) / spread,
        -float(np.mean(slopes**2)) / spread,
    )
    return Draw(nothing=_nothing(release), parts=parts, others=others)


def _nothing(release: primo.Release) -> float:
    """Return the probability that features explain nothing, by the default's own prior and likelihood.

    Twice the odds of nothing raise the evidence by the factor 1 + p.
    """
    moments = centred(release).moments
    once = fit_filter(moments, sides="one-sided").signal.score
    doubled = replace(moments, doubt=1 + 2 * moments.doubt)
    return float(np.expm1(fit_filter(doubled, sides="one-sided").signal.score - once))


def compare(found: dict[float, list[Draw]]) -> dict[str, tuple[float, dict[float, float]]]:
    """Return by guard how far it is behind the best other method without signal, and its cost.

    The cost is R² without a guard minus R² with it, for every share that features explain.
    """

    def mean(share: float, guard: Guard) -> float:
        return float(np.mean([d.r_squared(guard.kept(d.nothing)) for d in found[share]]))

    names = found[0.0][0].others
    best = max(float(np.mean([d.others[name] for d in found[0.0]])) for name in names)
    none = GUARDS[0]
    return {
        guard.name: (
            best - mean(0.0, guard),
            {s: mean(s, none) - mean(s, guard) for s in found if s > 0},
        )
        for guard in GUARDS
    }


def table(compared: dict[str, tuple[float, dict[float, float]]], draws: int) -> str:
    """Return what is printed."""
    shares: Sequence[float] = list(next(iter(compared.values()))[1])
    lines = [
        f"{CELL}: {draws} draws; behind the best of ridge, filter and mean only without signal,",
        "and what the guard costs in mean R² where features explain a share of the outcome",
        "",
        f"{'guard':<28}{'behind':>8}" + "".join(f"{f'{s:.0%}':>8}" for s in shares),
    ]
    enough = []
    for name, (behind, costs) in compared.items():
        lines.append(f"{name:<28}{behind:8.4f}" + "".join(f"{costs[s]:8.4f}" for s in shares))
        if behind <= BEHIND:
            enough.append((max(costs.values()), name))
    cost, name = min(enough, default=(float("nan"), "none"))
    lines += [
        "",
        f"{len(enough)} guards are at most {BEHIND:g} behind without signal. Of these the cheapest "
        f"({name}) costs {cost:.4f} where it costs most.",
    ]
    return "\n".join(lines)


def main() -> int:
    """Draw the releases and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=DRAWS, help=f"of each share ({DRAWS})")
    draws = parser.parse_args().draws
    found = {share: draws_of(share, draws) for share in SHARES}
    print(table(compare(found), draws))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
