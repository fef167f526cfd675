"""The charts that need no script: plain SVG whose colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from primo.privacy import values
from primo.privacy.lengths import edges
from primo.released.uncertainty.fit import GoodnessOfFit
from primo.report.guessing import found_at_most
from primo.report.outlook import Outlook
from primo.report.strength import Block, Directions

__all__ = [
    "blocks_chart",
    "directions_chart",
    "guess_chart",
    "histogram_chart",
    "lengths_chart",
    "outlook_chart",
    "values_chart",
]

WIDTH, HEIGHT = 400, 260
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 14, 40

Scale = Callable[[float], float]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class _Frame:
    """A plot area with its axes; x and y map data to the picture."""

    x: Scale
    y: Scale
    parts: list[Markup]

    def add(self, shape: str, *values: object) -> None:
        """Add an element; `shape` is markup, and every value that fills it is escaped."""
        self.parts.append(Markup(shape).format(*values))

    def line(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        path = " ".join(f"{self.x(a):.1f},{self.y(b):.1f}" for a, b in points)
        self.add('<polyline class="{}" points="{}"/>', kind, path)

    def dot(self, at: tuple[float, float], kind: str, words: str, radius: float = 3.5) -> None:
        x, y = self.x(at[0]), self.y(at[1])
        shape = '<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{:g}"><title>{}</title></circle>'
        self.add(shape, kind, x, y, radius, words)

    def bar(
        self, kind: str, words: str, *, x: float, y: float, width: float, height: float
    ) -> None:
        shape = (
            '<rect class="bar {}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}">'
            "<title>{}</title></rect>"
        )
        self.add(shape, kind, x, y, width, height, words)

    def text(
        self, x: float, y: float, words: str, *, anchor: str = "middle", kind: str = ""
    ) -> None:
        shape = '<text class="{}" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>'
        self.add(shape, kind, x, y, anchor, words)

    def svg(self, label: str, height: int = HEIGHT) -> Markup:
        shape = '<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>'
        return Markup(shape).format(WIDTH, height, label, Markup("").join(self.parts))


def blocks_chart(blocks: Sequence[Block]) -> Markup:
    """Bars of signal and noise per block, in units of each block's noise, on a logarithmic axis."""
    noisy = [b for b in blocks if b.noise and math.isfinite(b.ratio)]
    if not noisy:
        return Markup("")
    top = max(10.0, *(b.ratio for b in noisy))
    high = math.ceil(math.log10(top) - 1e-9)
    low = -1
    row, height = 56, 34 + 56 * len(noisy)

    def x(value: float) -> float:
        inside = min(max(math.log10(max(value, 1e-9)), low), high)
        return 12 + (inside - low) / (high - low) * (WIDTH - 24)

    frame = _Frame(x=x, y=float, parts=[])
    for power in range(low, high + 1):
        at = x(10.0**power)
        frame.add('<path class="grid" d="M{:.1f} 4V{}"/>', at, height - 26)
        frame.text(at, height - 12, _power(power))
    for i, block in enumerate(noisy):
        y = 8 + row * i
        wide = max(x(block.ratio) - x(0.1), 1.0)
        words = f"{block.name}: signal {block.ratio:.3g} times the noise"
        frame.text(14, y + 11, block.name, anchor="start", kind="strong")
        for kind, length, offset in (("signal", wide, 16), ("noise", x(1.0) - x(0.1), 29)):
            frame.bar(kind, words, x=x(0.1), y=y + offset, width=length, height=11)
    return frame.svg("Signal against noise of each released block, noise = 1", height)


def lengths_chart(counts: Floats, *, sigma: float, norm: float, block: str) -> Markup:
    """Draw counts of rows by length, on a logarithmic axis, with the norm as a line.

    Only bins around the norm and those that noise (`sigma`) does not reach are drawn.
    """
    at = edges()
    used = np.flatnonzero(counts[1:-1] > max(0.02 * float(counts.max()), 5 * sigma))
    around = int(np.searchsorted(at, norm))
    first = max(min(used.min(initial=around), around) - 8, 0)
    last = min(max(used.max(initial=around), around) + 8, len(at) - 2)
    top = max(float(counts[first + 1 : last + 2].max()), 1.0)
    frame = _axes(
        x=_linear(math.log2(at[first]), math.log2(at[last + 1])),
        y=_linear(0.0, top, up=True),
        x_ticks=_octave_ticks(math.log2(at[first]), math.log2(at[last + 1])),
        y_ticks=[(0.0, "0"), (top, f"{top:,.0f}")],
        x_title="length of a row, in scaled units",
        y_title="rows",
    )
    for i in range(first, last + 1):
        height = max(float(counts[i + 1]), 0.0)
        left, right = frame.x(math.log2(at[i])), frame.x(math.log2(at[i + 1]))
        words = f"{at[i]:.3g} to {at[i + 1]:.3g}: about {height:.0f} rows"
        base = frame.y(0.0)
        frame.bar(
            "signal",
            words,
            x=left,
            y=frame.y(height),
            width=right - left,
            height=base - frame.y(height),
        )
    frame.add(
        '<path class="limit" d="M{:.1f} {:.1f}V{}"/>',
        frame.x(math.log2(norm)),
        TOP,
        HEIGHT - BOTTOM,
    )
    return frame.svg(f"Histogram of the lengths of rows of {block}")


def values_chart(counts: Floats, *, sigma: float, centre: float, name: str) -> Markup:
    """Draw counts of rows by the value of a column, with the centre as a line.

    The axis is that of the public grid: logarithmic to both sides of 0. Only bins that noise (`sigma`)
    does not reach are drawn, with those between them and a few beside.
    """
    at = values.centres()
    middle = int(values.bin_of(np.array([centre]))[0])
    used = np.flatnonzero(counts > max(0.02 * float(counts.max()), 5 * sigma))
    first = max(min(used.min(initial=middle), middle) - 2, 0)
    last = min(max(used.max(initial=middle), middle) + 2, values.BINS - 1)
    top = max(float(counts[first : last + 1].max()), 1.0)
    step = max(1, math.ceil((last - first + 1) / 6))
    frame = _axes(
        x=_linear(first - 0.5, last + 0.5),
        y=_linear(0.0, top, up=True),
        x_ticks=[(float(i), f"{at[i]:.3g}") for i in range(first, last + 1, step)],
        y_ticks=[(0.0, "0"), (top, f"{top:,.0f}")],
        x_title="value",
        y_title="rows",
    )
    for i in range(first, last + 1):
        height = max(float(counts[i]), 0.0)
        frame.bar(
            "signal",
            f"about {at[i]:.3g}: about {height:.0f} rows",
            x=frame.x(i - 0.5),
            y=frame.y(height),
            width=frame.x(i + 0.5) - frame.x(i - 0.5),
            height=frame.y(0.0) - frame.y(height),
        )
    frame.add('<path class="limit" d="M{:.1f} {}V{}"/>', frame.x(middle), TOP, HEIGHT - BOTTOM)
    return frame.svg(f"Histogram of the values of {name}")


def _octave_ticks(low: float, high: float) -> list[tuple[float, str]]:
    """Return at most seven whole powers of two between two logarithms."""
    step = max(1, math.ceil((high - low) / 7))
    return [(float(k), f"{2.0**k:.3g}") for k in range(math.ceil(low), math.floor(high) + 1, step)]


def directions_chart(directions: Directions) -> Markup:
    """Draw the eigenvalues of the released covariance and the noise they are measured against."""
    values = directions.values
    if len(values) > 400:  # a curve needs no more
        values = values[np.unique(np.linspace(0, len(values) - 1, 400).astype(int))]
    floor = directions.sigma / 10
    high = math.log10(max(float(values[0]), directions.limit) * 1.5)
    low = math.log10(floor)

    def y(value: float) -> float:
        share = (math.log10(max(value, floor)) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)

    count = len(directions.values)
    frame = _axes(
        x=_linear(0.5, count + 0.5),
        y=y,
        x_ticks=[(v, f"{v}") for v in _whole_ticks(count)],
        y_ticks=[
            (10.0**p, _power(p))
            for p in range(math.ceil(low), math.floor(high) + 1, _step(low, high))
        ],
        x_title="direction of the features, strongest first",
        y_title="strength",
    )
    ends = (0.5, count + 0.5)
    frame.line([(ends[0], directions.limit), (ends[1], directions.limit)], "limit")
    frame.text(LEFT + 4, y(directions.limit) + 15, "5 × noise", anchor="start", kind="note")
    places = np.unique(np.linspace(0, count - 1, len(values)).astype(int))
    for place, value in zip(places.tolist(), values.tolist(), strict=True):
        kind = "point" if value > directions.limit else "point lost"
        frame.dot((place + 1, value), kind, f"direction {place + 1}: {value:.3g}", 2.6)
    return frame.svg(
        f"Strength of the {count} directions of the features; {directions.lost} lie below 5 times the "
        "noise"
    )


def guess_chart(mu: float, earlier: float | None = None) -> Markup:
    """Draw the best possible attack: share found against false alarms, with the line of pure guessing.

    `earlier` is mu of this release alone, where `mu` counts the earlier ones too.
    """
    frame = _axes(
        x=_linear(0, 1),
        y=_linear(0, 1, up=True),
        x_ticks=_percent_ticks(),
        y_ticks=_percent_ticks(),
        x_title="false alarms",
        y_title="found, at most",
    )
    rates = [
        float(r) for r in np.concatenate([np.geomspace(1e-4, 0.02, 12), np.linspace(0.03, 1, 60)])
    ]
    rates[-1] = 1.0
    frame.line([(0, 0), (1, 1)], "guess")
    if earlier is not None:
        frame.line([(0, 0), *((r, found_at_most(earlier, r)) for r in rates)], "curve faint")
    frame.line([(0, 0), *((r, found_at_most(mu, r)) for r in rates)], "curve")
    frame.text(frame.x(0.98), frame.y(0.58), "pure guessing", anchor="end", kind="note")
    frame.dot(
        (0.05, found_at_most(mu, 0.05)),
        "chosen",
        f"5 % false alarms: finds at most {100 * found_at_most(mu, 0.05):.1f} %",
    )
    return frame.svg("How much the best possible attack can find, against its false alarms")


def outlook_chart(outlook: Outlook) -> Markup:
    """Draw predicted R² against epsilon, with the chosen budget."""
    low, high = outlook.curve[0][0], outlook.curve[-1][0]
    best = max(p.no_privacy_r2 for _, p in outlook.curve)
    top = min(1.1, max(0.05, math.ceil(best * 1.12 * 20) / 20))

    def x(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    step = next(
        s for limit, s in ((0.55, 0.2), (0.25, 0.1), (0.12, 0.05), (0, 0.02)) if top > limit
    )
    frame = _axes(
        x=x,
        y=_linear(0, top, up=True),
        x_ticks=[(v, f"{v:g}") for v in (0.01, 0.1, 0.5, 1, 2, 5, 10, 20, 50) if low <= v <= high],
        y_ticks=[(k * step, f"{k * step:.2f}") for k in range(int(top / step + 1e-9) + 1)],
        x_title="privacy budget ε (smaller is stricter)",
        y_title="predicted R²",
    )
    frame.line([(e, p.no_privacy_r2) for e, p in outlook.curve], "guess")
    frame.text(x(low) + 4, frame.y(best) - 6, "without privacy", anchor="start", kind="note")
    frame.line([(e, max(p.r2, 0.0)) for e, p in outlook.curve], "curve")
    for epsilon, made in outlook.curve:
        frame.dot((epsilon, max(made.r2, 0)), "point", f"ε = {epsilon:g}: R² {made.r2:.3f}", 2.2)
    chosen = (outlook.chosen_epsilon, max(outlook.chosen.r2, 0.0))
    words = f"chosen: ε = {chosen[0]:g}, R² {outlook.chosen.r2:.3f}"
    foot = '<path class="limit" d="M{:.1f} {:.1f}V{}"/>'
    frame.add(foot, x(chosen[0]), frame.y(chosen[1]), HEIGHT - BOTTOM)
    frame.dot(chosen, "chosen", words, 5)
    # A rising curve leaves room below, to the right of the point; else above, to its left.
    below = frame.y(chosen[1]) < HEIGHT - BOTTOM - 48
    right = x(chosen[0]) < (WIDTH - 75 if below else 120)
    beside, side = x(chosen[0]) + (9 if right else -9), "start" if right else "end"
    lowest = frame.y(chosen[1]) + (26 if below else -26)
    frame.text(beside, lowest, "chosen", anchor=side, kind="strong")
    frame.text(beside, lowest + 15, f"ε = {chosen[0]:g}", anchor=side, kind="strong")
    return frame.svg(f"Predicted accuracy against the privacy budget; {words}")


def histogram_chart(fit: GoodnessOfFit) -> Markup:
    """Count outcomes whose R² is determined by its estimate, split by verdict."""
    top = float(fit.r_squared[fit.trusted].max())
    width, tick = next(
        (w, t)
        for end, w, t in ((0.1, 0.005, 0.02), (0.2, 0.01, 0.05), (0.4, 0.02, 0.1), (1, 0.05, 0.2))
        if top <= end
    )
    edges = np.arange(math.ceil(max(top, tick) / tick - 1e-9) * round(tick / width) + 1) * width
    found, _ = np.histogram(fit.r_squared[fit.trusted & fit.found], edges)
    rest, _ = np.histogram(fit.r_squared[fit.trusted & ~fit.found], edges)
    most = int((found + rest).max())
    ticks = _count_ticks(most)
    frame = _axes(
        x=_linear(0, float(edges[-1])),
        y=_linear(0, max(most, ticks[-1]), up=True),
        x_ticks=[(float(e), f"{e:.2g}") for e in edges[:: round(tick / width)]],
        y_ticks=[(t, f"{t:,}".replace(",", "\u202f")) for t in ticks],
        x_title="estimated R²",
        y_title="outcomes",
    )
    for start, end, one, other in zip(edges[:-1], edges[1:], found, rest, strict=True):
        base = 0
        words = f"R² {start:.2f} to {end:.2f}: signal in {one}, noise in {other}"
        for kind, count in (("signal", int(one)), ("noise", int(other))):
            if count:
                x, top = frame.x(float(start)) + 0.7, frame.y(base + count)
                wide, high = frame.x(float(end)) - x - 0.7, frame.y(base) - top
                frame.bar(kind, words, x=x, y=top, width=wide, height=high)
                base += count
    return frame.svg(f"Estimated R² of {int(fit.trusted.sum())} outcomes")


def _axes(
    *,
    x: Scale,
    y: Scale,
    x_ticks: Sequence[tuple[float, str]],
    y_ticks: Sequence[tuple[float, str]],
    x_title: str,
    y_title: str,
) -> _Frame:
    frame = _Frame(x=x, y=y, parts=[])
    for value, words in y_ticks:
        at = y(value)
        frame.add('<path class="grid" d="M{} {:.1f}H{}"/>', LEFT, at, WIDTH - RIGHT)
        frame.text(LEFT - 6, at + 4, words, anchor="end")
    for value, words in x_ticks:
        frame.text(x(value), HEIGHT - BOTTOM + 16, words)
    frame.add('<path class="axis" d="M{} {}H{}"/>', LEFT, HEIGHT - BOTTOM, WIDTH - RIGHT)
    frame.text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, x_title, kind="title")
    frame.text(2, 10, y_title, anchor="start", kind="title")
    return frame


def _linear(low: float, high: float, *, up: bool = False) -> Scale:
    if up:
        span = HEIGHT - TOP - BOTTOM - 8
        return lambda v: HEIGHT - BOTTOM - (v - low) / (high - low) * span
    return lambda v: LEFT + (v - low) / (high - low) * (WIDTH - LEFT - RIGHT)


def _percent_ticks() -> list[tuple[float, str]]:
    return [(k / 4, f"{25 * k} %") for k in range(5)]


def _whole_ticks(count: int) -> list[int]:
    """Return at most six round numbers from 1 to `count`."""
    if count <= 6:
        return list(range(1, count + 1))
    step = _round_step(count)
    return [1, *range(step, count + 1, step)]


def _count_ticks(most: int) -> list[int]:
    step = _round_step(most)
    return list(range(0, most + step, step))


def _round_step(most: int) -> int:
    """Return 1, 2 or 5 times a power of ten that cuts `most` into at most five."""
    power = int(10 ** max(0, math.floor(math.log10(max(most, 1))) - 1))
    return next(power * k for k in (1, 2, 5, 10, 20) if most / (power * k) <= 5)


def _step(low: float, high: float) -> int:
    return max(1, math.ceil((high - low) / 6))


def _power(power: int) -> str:
    if -2 <= power <= 3:
        return f"{10.0**power:g}"
    return "10" + str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
