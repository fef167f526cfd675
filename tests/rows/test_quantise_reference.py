"""Random rows against a reference for one row in Python's own integers: with and without a kernel."""

import math
from dataclasses import replace

import numpy as np
import pytest

from primo._util.jit import load
from primo.privacy.clip import Clip
from primo.rows.quantise import Quantiser, shorten_rows

KERNELS = load("primo.rows.kernels")
FUSED = (None,) if KERNELS is None else (None, KERNELS.fused)


def reference(quantise, row, predicted):
    """Integers of one row; None where it is so far out that it is scaled before it is squared."""
    clip = quantise.clip
    plain = clip.is_plain and not clip.box
    lower, upper = (end / quantise.step for end in clip.ends)
    z = []
    for j, value in enumerate(map(float, row)):
        if not math.isfinite(value):
            z.append(0)
            continue
        if plain:
            steps = value * (1.0 / quantise.step)
        else:
            factor = 1.0 / clip.scale[j] / quantise.step
            steps = (value - float(clip.centre[j])) * float(factor)
        if not abs(steps) <= 2.0**480:
            return None
        if clip.box:
            steps = min(max(steps, lower[j]), upper[j])
        z.append(math.trunc(steps - (0.0 if predicted is None else predicted[j])))
    limit = quantise.radius_squared - (quantise.constant or 0) ** 2
    length = sum(v * v for v in z)
    if length > limit:
        shrink = math.sqrt(limit / (length if length < 2**53 else in_order(z)))
        z = [math.trunc(float(v) * shrink) for v in z]
        while sum(v * v for v in z) > limit:
            z = [v - (v > 0) + (v < 0) for v in z]
    return z


def in_order(z):
    """The float sum of squares by halves, as docs/guarantee.md section 3 fixes it."""
    squares = [float(v) * float(v) for v in z]
    while len(squares) > 1:
        half = -(-len(squares) // 2)
        other = squares[half:] + [0.0] * (2 * half - len(squares))
        squares = [a + b for a, b in zip(squares[:half], other, strict=True)]
    return squares[0]


def some_quantiser(rng):
    """Bounds of any kind, a radius that is no power of two, and perhaps a constant."""
    width = int(rng.choice([1, 2, 3, 17, 64]))
    box, norm = bool(rng.random() < 0.5), float(10 ** rng.uniform(-4, 4))
    centre, scale, middle = np.zeros(width), np.ones(width), None
    if rng.random() < 0.7:
        centre, scale = rng.normal(size=width), 10 ** rng.uniform(-3, 3, size=width)
    if box and rng.random() < 0.5:
        middle = rng.uniform(-1, 1, size=width)
    radius = int(rng.integers(2, 2 ** int(rng.integers(3, 53))))
    return Quantiser(
        clip=Clip(centre=centre, scale=scale, norm=norm, box=box, middle=middle),
        step=norm / math.sqrt(radius),
        radius_squared=radius,
        constant=int(math.isqrt(radius) * rng.uniform(0, 0.7)) if rng.random() < 0.5 else None,
        missing="centre",
        block="features",
    )


def some_rows(rng, quantise):
    """Rows of all lengths: 0, subnormal, a hair about the norm, and far beyond it; with holes."""
    clip, m = quantise.clip, int(rng.integers(1, 12))
    limit = quantise.radius_squared - (quantise.constant or 0) ** 2
    rows = rng.normal(size=(m, clip.width))
    rows *= quantise.step * math.sqrt(limit) / np.linalg.norm(rows, axis=1)[:, None]
    sizes = [
        0,
        1e-310,
        1e-9,
        0.5,
        1,
        1 - 1e-12,
        1 + 1e-12,
        1 + 1e-7,
        3,
        64,
        1e5,
        1e12,
        1e200,
        1e300,
    ]
    rows = clip.centre + clip.scale * rows * rng.choice(sizes, size=(m, 1))
    if rng.random() < 0.4:
        holes = rng.random(rows.shape) < 0.1
        rows[holes] = rng.choice([np.nan, np.inf, -np.inf, 1e308, 5e-324], size=int(holes.sum()))
    kind = rng.choice(["float64", "float32", "int8"], p=[0.6, 0.2, 0.2])
    if kind == "int8":
        return rng.integers(-128, 128, size=rows.shape).astype(np.int8)
    with np.errstate(over="ignore"):
        return rows.astype(kind)


@pytest.mark.parametrize("seed", range(4))
def test_every_row_is_that_of_the_reference(seed):
    """Whatever its neighbours and their order; and never longer than the radius."""
    rng = np.random.default_rng(seed)
    compared = 0
    for _ in range(100):
        quantise = some_quantiser(rng)
        rows = some_rows(rng, quantise)
        m, width = rows.shape
        predicted = None
        if rng.random() < 0.5:
            size, bits = 2.0 ** rng.integers(1, 51), int(rng.integers(0, 17))
            predicted = np.rint(rng.uniform(-size, size, size=rows.shape)) * 2.0**-bits
        expected = [
            reference(quantise, row, None if predicted is None else predicted[i])
            for i, row in enumerate(rows)
        ]
        order = rng.permutation(np.repeat(np.arange(m), 2))
        found = {}
        for kernel in FUSED:
            for at in (order, *np.arange(m)[:, None]):
                out = np.full((len(at), quantise.width), np.nan)
                taken = None if predicted is None else predicted[at]
                lengths = replace(quantise, kernel=kernel)(rows[at], out, taken)
                for i, row, length in zip(at, out, lengths, strict=True):
                    integers = [int(v) for v in row]
                    assert found.setdefault(i, integers) == integers
                    assert sum(v * v for v in integers) <= quantise.radius_squared
                    assert sum(v * v for v in integers[:width]) <= length
                    if expected[i] is not None:
                        assert integers[:width] == expected[i]
                        compared += 1
    assert compared > 1000


def test_rows_are_shortened_each_by_itself_however_many_are_too_long():
    rng = np.random.default_rng(0)
    for _ in range(200):
        m, width, limit = (int(rng.integers(1, k)) for k in (9, 6, 2**30))
        rows = np.trunc(rng.normal(size=(m, width)) * 10 ** rng.uniform(0, 8, size=(m, 1)))
        together = rows.copy()
        shorten_rows(together, limit)
        for row, found in zip(rows, together, strict=True):
            alone = row[None].copy()
            shorten_rows(alone, limit)
            assert (alone[0] == found).all()
            assert sum(int(v) ** 2 for v in found) <= limit
            if sum(int(v) ** 2 for v in row) <= limit:
                assert (row == found).all()


def test_a_hair_outside_is_taken_back():
    """One column and a radius just below a whole number of steps: floats round up to that number."""
    rng = np.random.default_rng(0)
    outside = 0
    for _ in range(40):
        steps = int(rng.integers(2**25, 2**26))
        limit = steps**2 - 1
        clip = Clip(centre=np.zeros(1), scale=np.ones(1), norm=1.0, box=False)
        quantise = Quantiser(
            clip=clip,
            step=2.0**-26,
            radius_squared=limit,
            constant=None,
            missing="error",
            block="features",
        )
        rows = rng.integers(steps + 1, 2**26 + 2**24, size=(100, 1)) * quantise.step
        lengths = (rows[:, 0] / quantise.step) ** 2
        first = np.trunc(rows[:, 0] / quantise.step * np.sqrt(limit / lengths))
        outside += int((first == steps).sum())
        for kernel in FUSED:
            out = np.empty((100, 1))
            replace(quantise, kernel=kernel)(rows, out)
            assert (out == steps - 1).all()
    assert outside > 30
