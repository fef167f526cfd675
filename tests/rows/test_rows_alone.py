"""The integers of a row are a function of that row alone: the same by itself as in any block."""

from dataclasses import replace
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from factories import array_source
from primo._util.jit import load
from primo.errors import InputError
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows import quantise as module
from primo.rows.moments import fold
from primo.rows.quantise import outcome_quantiser

KERNELS = load("primo.rows.kernels")
compiled_or_not = pytest.mark.parametrize(
    "kernel",
    [
        None,
        pytest.param("fused", marks=pytest.mark.skipif(KERNELS is None, reason="needs numba")),
    ],
)
BOUNDS = {
    "norm": Bounds(norm=1.0),
    "tiny norm": Bounds(norm=1e-100),
    "huge norm": Bounds(norm=1e100),
    "box": Bounds(lower=-1.0, upper=2.0),
    "box and norm": Bounds(lower=-1.0, upper=2.0, norm=0.7),
    "centre": Bounds(norm=2.0, centre=0.3, scale=0.7),
}
every_bound = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)

#: Columns: few, about as many as NumPy's buffers hold numbers (8192), and as many as there are genes.
WIDTHS = [1, 3, 100, 8192, 8193, 20_001]


@cache
def plan_for(bounds, width, *, missing="centre", d=1):
    """A plan for many outcomes, whose moments stay small."""
    return make_plan(
        Settings(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=Bounds(lower=0, upper=2),
            outcome_bounds=bounds,
            missing=missing,
            outcome_moments="diagonal",
        ),
        n=100,
        d=d,
        l=width,
    )


def quantiser(bounds, width, kernel=None, missing="centre"):
    found = outcome_quantiser(plan_for(bounds, width, missing=missing))
    return replace(found, kernel=kernel and KERNELS.fused)


def integers(quantise, rows):
    out = np.full((len(rows), quantise.width), np.nan)
    quantise(rows, out)
    return out


def odd_rows(width, rng, *, holes=True):
    """Return rows inside the norm, over it, so far over it that squares are rounded, and beyond that."""
    sizes = np.array([0.0, 1e-3, 0.5, 1, 2, 1e2, 1e5, 1e9, 1e12, 1e18, 1e40, 1e140, 1e146, 1e154])
    rows = rng.normal(size=(3 * len(sizes), width)) / np.sqrt(width) * np.repeat(sizes, 3)[:, None]
    rows[2::7] *= 10 ** rng.uniform(-3, 3, rows[2::7].shape)
    if holes:
        gaps = rng.random(rows.shape) < 2 / width
        gaps[1::3] = False
        rows[gaps] = rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308], int(gaps.sum()))
    return rows[rng.permutation(len(rows))]


def check_alone(quantise, rows, *, blocks=(2, 3, 7)):
    """Compare every row of some blocks, and of the reversed rows, with the row by itself."""
    alone = np.vstack([integers(quantise, rows[i : i + 1]) for i in range(len(rows))])
    exact = [sum(int(value) ** 2 for value in row) for row in alone]
    assert max(exact) <= quantise.radius_squared
    for size in (*blocks, len(rows)):
        for start in range(0, len(rows), size):
            part = slice(start, start + size)
            found = integers(quantise, rows[part])
            np.testing.assert_array_equal(found.view(np.int64), alone[part].view(np.int64))
    found = integers(quantise, rows[::-1])
    np.testing.assert_array_equal(found.view(np.int64), alone[::-1].view(np.int64))


@compiled_or_not
@every_bound
@pytest.mark.parametrize("width", WIDTHS)
def test_alone_as_in_a_block(width, bounds, kernel):
    rows = odd_rows(width, np.random.default_rng(width))
    check_alone(quantiser(bounds, width, kernel), rows)


@compiled_or_not
@pytest.mark.parametrize("name", ["norm", "box and norm"])
def test_as_wide_as_outcomes_are(name, kernel):
    rows = odd_rows(100_003, np.random.default_rng(0))[:12]
    check_alone(quantiser(BOUNDS[name], 100_003, kernel), rows, blocks=(2, 5))


def layouts(rows):
    """Return the same rows, in the same order, as they may lie in memory."""
    m, width = rows.shape
    yield np.asfortranarray(rows)
    yield np.hstack([rows, rows])[:, width:]
    yield np.repeat(rows, 2, axis=1)[:, ::2]
    yield np.repeat(rows, 2, axis=0)[::2]
    yield rows[:, ::-1].copy()[:, ::-1]
    yield rows.astype(rows.dtype.newbyteorder())
    unaligned = np.empty(rows.nbytes + 1, dtype=np.uint8)[1:].view(rows.dtype).reshape(m, width)
    unaligned[:] = rows
    yield unaligned


@compiled_or_not
@pytest.mark.parametrize("width", [9, 9000])
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "longdouble", "int8", "int64"])
def test_whatever_its_type_and_layout(dtype, width, kernel):
    rng = np.random.default_rng(1)
    largest = 100 if dtype == "int8" else 2**62 if dtype == "int64" else 1e4
    rows = rng.uniform(-largest, largest, (8, width)) * rng.choice([1e-4, 1], (8, 1))
    rows = rows.astype(dtype)
    for bounds in (Bounds(norm=1e-3), Bounds(lower=-3.0, upper=50.0, norm=2.0)):
        quantise = quantiser(bounds, width, kernel)
        alone = np.vstack([integers(quantise, rows[i : i + 1]) for i in range(len(rows))])
        # A value is what it is in float64, whatever it came in.
        wide = integers(quantise, rows.astype(np.float64))
        np.testing.assert_array_equal(wide, alone)
        for laid_out in layouts(rows):
            np.testing.assert_array_equal(integers(quantise, laid_out), alone)
            np.testing.assert_array_equal(integers(quantise, laid_out[2:4]), alone[2:4])


@compiled_or_not
@every_bound
@settings(max_examples=30, deadline=None)
@given(
    rows=arrays(
        np.float64,
        (5, 4),
        elements=st.one_of(
            st.floats(),
            st.floats(-3, 3),
            st.sampled_from([1e144, 3.2e144, 1e150, 1e154, -1.3e154, 1.7e308, np.nan, -np.inf]),
        ),
    )
)
def test_adversarial_rows(bounds, kernel, rows):
    check_alone(quantiser(bounds, 4, kernel), rows, blocks=(2,))


@compiled_or_not
def test_what_one_row_is_refused_for_is_not_held_against_another(kernel):
    quantise = quantiser(BOUNDS["norm"], 3, kernel, missing="error")
    rows = odd_rows(3, np.random.default_rng(3), holes=False)
    check_alone(quantise, rows)
    with pytest.raises(InputError):
        integers(quantise, np.vstack([rows, [[0, np.nan, 0]]]))


def near_an_integer(quantise, seed):
    """Return rows, each just so long that many values of it lie at the edge of two integers.

    One unit in the last place of a squared norm then decides on a thousand integers at once. Of the last
    two values, integers of grid steps, the one tunes the norm roughly and the other finely.
    """
    rng = np.random.default_rng(seed)
    base = np.trunc(rng.uniform(0.1, 1, quantise.width) * 2**33)
    base[:1000] = base[0]

    def row(rough, fine):
        found = base.copy()
        found[-2:] = fine, rough
        return (found + 0.5) * quantise.step  # in the middle between two steps

    def first(rough, fine):
        return integers(quantise, row(rough, fine)[None])[0, 0]

    goal = first(0, 0) - 3
    low, high = 0.0, 2.0**50
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if first(middle, 0) > goal else (low, middle)
    rough, low, high = low, 0.0, 2.0**26
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if first(rough, middle) > goal else (low, middle)
    squares = low**2 + np.arange(-40, 40) * 1e7
    return np.array([row(rough, fine) for fine in np.sqrt(np.maximum(squares, 0)) // 1])


@compiled_or_not
@pytest.mark.parametrize("seed", range(4))
def test_the_last_bit_of_a_squared_norm_does_not_depend_on_other_rows(seed, kernel):
    """Beyond 8192 columns and 2**53, NumPy adds one row by itself in another order than several."""
    quantise = quantiser(BOUNDS["norm"], 9000, kernel)
    rows = near_an_integer(quantise, seed)
    assert len(np.unique(integers(quantise, rows)[:, 0])) == 2  # the edge is among them
    long = np.full((1, 9000), 2.0**35 * quantise.step)
    for row in rows:
        alone = integers(quantise, row[None])[0]
        for company in (long, np.zeros((1, 9000)), np.vstack([long, row[None] / 2, long])):
            found = integers(quantise, np.vstack([row[None], company]))[0]
            assert (found == alone).all()


@compiled_or_not
@pytest.mark.parametrize("seed", range(4))
def test_whether_squares_overflow_does_not_depend_on_other_rows(seed, kernel):
    """Such rows are scaled before they are cut to their box, which moves many a value by a last bit."""
    quantise = quantiser(Bounds(lower=-1.0, upper=2.0), 9000, kernel)
    clip, rng = quantise.clip, np.random.default_rng(seed)
    steps = np.trunc(rng.uniform(0.1, 0.9, 9000) * quantise.box_end)
    ordinary = clip.centre + steps * quantise.step * clip.scale  # at the edge of two integers
    sizes = rng.uniform(0.5, 1, 9000)

    def row(size, fine=0.0):
        found = np.where(np.arange(9000) % 2, ordinary, size * sizes)
        found[0] *= 1 + fine
        return found

    def overflows(size):
        with np.errstate(over="ignore"):
            scaled = (row(size)[None] - clip.centre) * quantise._factor
            return np.isinf(np.einsum("ij,ij->i", scaled, scaled))

    low, high = 1e140, 1e154
    while np.nextafter(low, high) < high:
        middle = low + (high - low) / 2
        low, high = (low, middle) if overflows(middle) else (middle, high)
    for fine in np.arange(0, 1e-12, 1e-13):
        alone = integers(quantise, row(low, fine)[None])[0]
        for company in (row(low / 2), row(2 * low), np.zeros(9000)):
            found = integers(quantise, np.vstack([row(low, fine), company]))[0]
            assert (found == alone).all()


def test_sums_that_are_not_rounded_need_no_order():
    """What is said in `_lengths`: below 2**53 every order finds the sum, from there on none is below."""
    for ones in (0, 1, 2, 100):
        squares = np.array([2.0**26] * 2 + [1.0] * ones)
        large = np.array([[*squares, 2.0**26 - 1]])
        below = np.array([[2.0**26, 2.0**26 - 1, *[1.0] * ones]])
        for row, is_below in ((large, False), (below, True)):
            exact = sum(int(value) ** 2 for value in row[0])
            assert (exact < 2**53) == is_below
            for order in (row, row[:, ::-1]):
                assert (module._squares(order)[0] < module._EXACT) == is_below
            if is_below:
                assert module._lengths(row)[0] == exact


def test_the_fixed_order_is_a_sum():
    rng = np.random.default_rng(0)
    for width in (*range(1, 20), 8193):
        rows = np.trunc(rng.normal(size=(3, width)) * 1e12)
        exact = [float(sum(int(value) ** 2 for value in row)) for row in rows]
        np.testing.assert_allclose(module.squares_in_order(rows), exact, rtol=1e-14)


def folded(source, plan, **how):
    found = fold(source, plan, **how)
    return found.covariance, found.association, found.outcome


@pytest.mark.parametrize("many", [2**62, 0], ids=["passes", "compiled"])
@pytest.mark.parametrize("genotypes", ["int8", "float32"])
def test_moments_are_the_sum_of_those_of_each_row(genotypes, many, monkeypatch):
    """From arrays to moments: signs, kernels and blocks of all sizes."""
    if not many:
        pytest.importorskip("numba")
    rng = np.random.default_rng(4)
    monkeypatch.setattr(module, "_MANY", many)
    features = rng.integers(0, 3, (11, 70)).astype(genotypes)
    if genotypes == "float32":
        features[rng.random(features.shape) < 0.02] = np.nan
    outcomes = odd_rows(9000, rng)[:11]
    source = array_source(features, outcomes)
    plan = plan_for(BOUNDS["norm"], 9000, d=70)
    rows = [folded(source.part(i, i + 1), plan, threads=1) for i in range(11)]
    expected = [sum(parts) for parts in zip(*rows, strict=True)]
    for size in (1, 2, 3, 10, 11):
        for one, other in zip(folded(source, plan, block_rows=size), expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_packed_genotypes_of_a_person_do_not_depend_on_neighbours(tmp_path):
    """Four people share a byte, and a missing genotype makes floats of its block."""
    bed_reader = pytest.importorskip("bed_reader")
    rng = np.random.default_rng(5)
    values = rng.integers(0, 3, (13, 80)).astype(np.float64)
    values[rng.random(values.shape) < 0.02] = np.nan
    values[[0, 5, 6]] = rng.integers(0, 3, (3, 80))
    bed_reader.to_bed(tmp_path / "cohort.bed", values)
    columns = import_module("primo.rows.sources.genotypes.plink").open_bed(tmp_path / "cohort")
    for bounds in (Bounds(lower=0, upper=2), Bounds(norm=3.0, centre=0.9, scale=0.6)):
        quantise = quantiser(bounds, 80)
        alone = [integers(quantise, values[i : i + 1])[0] for i in range(13)]
        for size in (1, 2, 3, 4, 5, 13):
            for order in (range(13), range(3, 11), rng.permutation(13)):
                blocks = columns.blocks(order, size)
                found = np.vstack([integers(quantise, block) for block in blocks])
                np.testing.assert_array_equal(found, [alone[i] for i in order])
