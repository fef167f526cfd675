"""Manhattan and QQ plots whose size on the page does not grow with the number of variants.

Points are put into a grid of bins, and all bins of a kind are one path: however many variants there are,
a plot has a few dozen elements. Only the strongest variants are points of their own, with words.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import ndtri

from primo.report.placing import Axis

__all__ = ["GENOME_WIDE", "MOST_POINTS", "Frame", "inflation", "manhattan_chart", "qq_chart"]

Floats = NDArray[np.float64]

GENOME_WIDE = -math.log10(5e-8)
WIDTH, HEIGHT = 800, 260
SIDE = 260  # of the square QQ plot
LEFT, RIGHT, TOP, BOTTOM = 40, 10, 22, 36
BINS = 360  # along the genome
LEVELS = 90  # of −log₁₀ p
MOST_POINTS = 30  # variants with a point and words of their own
MOST_QQ = 150  # points of the QQ plot
MEDIAN = float(ndtri(0.75)) ** 2  # of a squared standard normal number


class Frame:
    """Axes of a plot whose heights are numbers from 0 up, and what is drawn on them."""

    def __init__(self, *, width: int, below: str, above: str) -> None:
        self.width = width
        axis = Markup('<path class="axis" d="M{} {}H{}"/>')
        self._parts = [
            axis.format(LEFT, HEIGHT - BOTTOM, width - RIGHT),
            _text((LEFT + width - RIGHT) / 2, HEIGHT - 4, below, "middle"),
            _text(2, 10, above, "start"),
        ]

    def add(self, part: Markup) -> None:
        """Draw something."""
        self._parts.append(part)

    @staticmethod
    def y(value: float, top: float) -> float:
        """Return the height of a number where `top` is that of the frame."""
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    def levels(self, top: float) -> None:
        """Draw round numbers up to `top`, and a line at each."""
        for tick in _ticks(top):
            self.add(_grid(self.y(tick, top), self.width))
            self.add(_text(LEFT - 6, self.y(tick, top) + 4, f"{tick:g}", "end"))

    def stretches(self, axis: Axis) -> None:
        """Write the names of chromosomes, where there is room."""
        inner = self.width - LEFT - RIGHT
        for stretch in axis.stretches:
            middle = LEFT + (stretch.start + stretch.end) / 2 * inner
            if stretch.end - stretch.start > 0.025 and axis.genomic:
                self.add(_text(middle, HEIGHT - BOTTOM + 15, stretch.label, "middle"))

    def svg(self, label: str) -> Markup:
        """Return the plot; `label` says what it shows."""
        kind = "chart wide" if self.width > SIDE else "chart"
        shape = '<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
        return Markup(shape).format(kind, self.width, HEIGHT, label, Markup("").join(self._parts))


def manhattan_chart(
    strength: Floats, axis: Axis, names: Sequence[str], *, outcome: str, limit: float = GENOME_WIDE
) -> Markup:
    """Draw −log₁₀ p of all variants along the genome.

    Parameters
    ----------
    strength
        −log₁₀ p, (variants,); NaN where a variant has no effect.
    axis
        Where the variants lie (`placing.place`).
    names
        Their names, for the strongest ones.
    outcome
        What they are tested for.
    limit
        Where the line is drawn: the usual 5e-8.

    Notes
    -----
    Cost: O(variants); at most about 100 elements, and a path of BINS · LEVELS bins.
    """
    known = np.flatnonzero(np.isfinite(strength))
    top = max(limit + 1, float(strength[known].max(initial=0.0)) * 1.02)
    inner = WIDTH - LEFT - RIGHT

    def y(value: float) -> float:
        return frame.y(value, top)

    frame = Frame(width=WIDTH, below="position", above="−log₁₀ p")
    frame.levels(top)
    frame.stretches(axis)
    column = np.clip((axis.places[known] * BINS).astype(np.intp), 0, BINS - 1)
    level = np.clip((strength[known] / top * LEVELS).astype(np.intp), 0, LEVELS - 1)
    odd = axis.stretch[known] % 2
    step = inner / BINS
    for parity, kind in ((0, "curve"), (1, "curve faint")):
        cells = np.unique((column * LEVELS + level)[odd == parity])
        if not len(cells):
            continue
        marks = "".join(
            f"M{LEFT + (cell // LEVELS) * step:.1f} {y((cell % LEVELS + 0.5) * top / LEVELS):.1f}h2"
            for cell in cells.tolist()
        )
        frame.add(Markup('<path class="{}" d="{}"/>').format(kind, marks))
    frame.add(
        Markup('<path class="limit" d="M{} {:.1f}H{}"/>').format(LEFT, y(limit), WIDTH - RIGHT)
    )
    for i in _strongest(strength, limit):
        at = LEFT + float(axis.places[i]) * inner
        words = f"{names[i]}: −log₁₀ p {strength[i]:.1f}"
        shape = '<circle class="chosen" cx="{:.1f}" cy="{:.1f}" r="3.5"><title>{}</title></circle>'
        frame.add(Markup(shape).format(at, y(float(strength[i])), words))
    return frame.svg(f"Manhattan plot of {outcome}: {len(known)} variants")


def qq_chart(strength: Floats, *, outcome: str) -> Markup:
    """Draw sorted −log₁₀ p against what they would be if no variant had an effect.

    At most `MOST_QQ` of them: all of the strongest, and fewer and fewer of the others.
    """
    seen = np.sort(strength[np.isfinite(strength)])[::-1]
    count = len(seen)
    ranks = np.unique(np.round(np.geomspace(1, max(count, 1), MOST_QQ)).astype(np.intp))
    ranks = ranks[ranks <= count]
    expected = -np.log10((ranks - 0.5) / max(count, 1))
    right = float(expected.max(initial=1.0)) * 1.05
    top = max(right, float(seen[:1].max(initial=0.0)) * 1.02)

    def x(value: float) -> float:
        return LEFT + value / right * (SIDE - LEFT - RIGHT)

    def y(value: float) -> float:
        return frame.y(value, top)

    frame = Frame(width=SIDE, below="expected −log₁₀ p", above="observed")
    frame.levels(top)
    for tick in _ticks(right):
        frame.add(_text(x(tick), HEIGHT - BOTTOM + 15, f"{tick:g}", "middle"))
    end = min(right, top)
    diagonal = '<path class="guess" d="M{:.1f} {:.1f}L{:.1f} {:.1f}"/>'
    frame.add(Markup(diagonal).format(x(0), y(0), x(end), y(end)))
    for at, value in zip(expected.tolist(), seen[ranks - 1].tolist(), strict=True):
        shape = '<circle class="point" cx="{:.1f}" cy="{:.1f}" r="2"/>'
        frame.add(Markup(shape).format(x(at), y(value)))
    return frame.svg(f"Observed against expected p-values of {outcome}")


def inflation(z: Floats) -> float:
    """Median of z² over what it is without any effect: 1 where nothing is found; NaN without z."""
    known = z[np.isfinite(z)]
    return float(np.median(known**2)) / MEDIAN if len(known) else math.nan


def _strongest(strength: Floats, limit: float) -> list[int]:
    """Return places of the strongest variants beyond the line."""
    order = np.argsort(-np.nan_to_num(strength, nan=-1.0), kind="stable")[:MOST_POINTS]
    return [int(i) for i in order if strength[i] >= limit]


def _ticks(top: float) -> list[float]:
    """Return round numbers from 0 up to `top`, at most seven."""
    step = 10.0 ** math.floor(math.log10(max(top, 1e-9)))
    step = next(step * k for k in (0.2, 0.5, 1.0, 2.0) if top / (step * k) <= 6)
    return [round(step * k, 6) for k in range(int(top / step) + 1)]


def _grid(at: float, width: int) -> Markup:
    return Markup('<path class="grid" d="M{} {:.1f}H{}"/>').format(LEFT, at, width - RIGHT)


def _text(x: float, y: float, words: str, anchor: str) -> Markup:
    shape = '<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
    return Markup(shape).format(x, y, anchor, words)
