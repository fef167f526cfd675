"""Ranges whose centre was found elsewhere than in their middle: the same ends, the same ball."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from factories import quantiser
from primo._util.jit import load
from primo.errors import BoundsError
from primo.privacy.bounds import Bounds
from primo.rows.lengths import squared_lengths
from primo.rows.public_block import PublicColumns

WIDTH = 4
STATED = Bounds(lower=[0, -3, 10, 0], upper=[2, 3, 20, 1]).clip(WIDTH, "features")
OFFSET = np.array([0.5, -0.75, 0.0, 1.0])
MOVED = STATED.about(OFFSET)
NASTY = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=64),
    st.sampled_from([0.0, 2.0, 3.0, -3.0, 20.0, 1e308, -1e308, 1.7e308, 5e-324, 1.0, 0.5]),
)


def integers(quantise, rows):
    out = np.full((len(rows), quantise.width), np.nan)
    quantise(rows, out)
    return out


def quantisers(norm):
    clip = replace(MOVED, norm=norm)
    made, _ = quantiser(Bounds(lower=-1, upper=1), WIDTH, missing="centre")
    return replace(made, clip=clip, step=norm / made.radius_squared**0.5)


def test_a_centre_moves_and_its_range_does_not():
    lower, upper = MOVED.ends
    np.testing.assert_allclose(MOVED.centre + MOVED.scale * lower, [0, -3, 10, 0])
    np.testing.assert_allclose(MOVED.centre + MOVED.scale * upper, [2, 3, 20, 1])
    np.testing.assert_allclose(MOVED.centre, [1.5, -2.25, 15, 1])
    np.testing.assert_allclose(MOVED.range_centre, STATED.centre)
    assert MOVED.longest == pytest.approx(np.sqrt(1.5**2 + 1.75**2 + 1 + 2**2))


def test_a_centre_stays_inside_its_range():
    far = STATED.about(np.full(WIDTH, 7.0))
    np.testing.assert_array_equal(far.centre, [2, 3, 20, 1])
    again = far.about(np.full(WIDTH, -9.0))
    np.testing.assert_array_equal(again.centre, [0, -3, 10, 0])
    assert STATED.about(np.zeros(WIDTH)) is STATED
    with pytest.raises(BoundsError, match="inside its range"):
        replace(STATED, middle=np.full(WIDTH, 1.5))


def test_without_ranges_centre_and_scale_move():
    moved = (
        Bounds(centre=1, scale=2, norm=1)
        .clip(2, "features")
        .about(np.array([1.0, -1.0]), np.array([4.0, 0.5]))
    )
    np.testing.assert_array_equal(moved.centre, [3, -1])
    np.testing.assert_array_equal(moved.scale, [8, 1])
    assert moved.middle is None


@settings(max_examples=150, deadline=None)
@given(rows=arrays(np.float64, (5, WIDTH), elements=NASTY))
@pytest.mark.parametrize("norm", [0.3, 1.0, 5.0])
def test_rows_stay_in_the_ball_and_each_by_itself(norm, rows):
    quantise = quantisers(norm)
    found = integers(quantise, rows)
    for row, own in zip(rows, found, strict=True):
        assert sum(int(v) ** 2 for v in own) <= quantise.radius_squared
        np.testing.assert_array_equal(integers(quantise, row[None])[0], own)


def test_values_are_those_of_the_range_about_the_centre():
    rows = np.array([[1.0, 5.0, 12.0, 0.5], [-9.0, -2.25, np.nan, 1.0]])
    quantise = quantisers(5.0)
    found = integers(quantise, rows)[:, :WIDTH] * quantise.step
    cut = np.array([[1.0, 3.0, 12.0, 0.5], [0.0, -2.25, 15.0, 1.0]])
    wanted = (cut - MOVED.centre) / MOVED.scale
    np.testing.assert_allclose(found, wanted, atol=2 * quantise.step)
    squares = squared_lengths(rows, MOVED, missing="centre", block="features")
    np.testing.assert_allclose(squares, (wanted**2).sum(axis=1), rtol=1e-12)
    columns = PublicColumns.of(np.nan_to_num(rows, nan=15.0), replace(MOVED, norm=5.0))
    np.testing.assert_allclose(np.hstack([block for _, block in columns()]), wanted)


def test_no_signs_are_looked_for_about_a_moved_centre():
    assert quantisers(5.0).box_end is None


@settings(max_examples=100, deadline=None)
@given(rows=arrays(np.float64, (5, WIDTH), elements=NASTY))
def test_the_kernel_writes_the_same_bits(rows):
    kernels = load("primo.rows.kernels")
    if kernels is None:
        pytest.skip("numba is not installed")
    quantise = quantisers(1.5)
    plain = integers(quantise, rows)
    fused = integers(replace(quantise, kernel=kernels.fused), rows)
    np.testing.assert_array_equal(plain, fused)
