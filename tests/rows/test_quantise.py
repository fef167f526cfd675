"""Clipping and rounding: whatever a row holds, its integer form lies in the ball."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from factories import quantiser
from primo.errors import BoundsError, InputError
from primo.privacy.bounds import Bounds

NASTY = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64),
    st.sampled_from([0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.7e308, 1.0, -1.0, 1e154, 3.0]),
)
FIVE = Bounds(norm=5.0)
BOUNDS = [
    Bounds(norm=1.0),
    Bounds(norm=1e-100),
    Bounds(norm=1e100),
    Bounds(lower=-1.0, upper=2.0),
    Bounds(lower=-1e100, upper=1e100),
    Bounds(lower=0.0, upper=1.0, norm=0.7),
    Bounds(norm=3.0, centre=1e200, scale=0.1),
    Bounds(norm=3.0, centre=0.25, scale=1e-100),
]


def integers(quantise, rows):
    out = np.full((len(rows), quantise.width), np.nan)
    quantise(rows, out)
    return out


def check_in_ball(quantise, out):
    exact = [sum(int(v) ** 2 for v in row) for row in out]
    assert (out == np.trunc(out)).all()
    assert max(exact) <= quantise.radius_squared


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("intercept", [True, False])
@settings(max_examples=60, deadline=None)
@given(rows=arrays(np.float64, (4, 3), elements=NASTY))
def test_adversarial_rows_never_leave_the_ball(bounds, intercept, rows):
    quantise, _ = quantiser(bounds, 3, intercept=intercept)
    check_in_ball(quantise, integers(quantise, rows))


@settings(max_examples=200, deadline=None)
@given(
    direction=arrays(np.float64, (1, 7), elements=st.floats(-1, 1)).filter(
        lambda v: np.abs(v).max() > 1e-3
    ),
    stretch=st.floats(1.0, 1.0 + 1e-9),
)
def test_a_row_at_the_bound_stays_within_it(direction, stretch):
    row = direction / np.linalg.norm(direction) * 5.0 * stretch
    quantise, plan = quantiser(FIVE, 7)
    out = integers(quantise, row)
    check_in_ball(quantise, out)
    # and it loses at most one step a coordinate to rounding, two if it had to be pulled in
    assert np.abs(out * plan.feature_step - row).max() <= 2.1 * plan.feature_step + 5e-8


@pytest.mark.parametrize("intercept", [True, False])
def test_shortened_rows_are_in_the_ball_to_the_last_integer(intercept):
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(500, 7)) * rng.uniform(5, 500, size=(500, 1))
    quantise, _ = quantiser(FIVE, 7, intercept=intercept)
    out = integers(quantise, rows)
    check_in_ball(quantise, out)
    # all of them were shortened, and by no more than they had to be
    assert (out**2).sum(axis=1).min() > (1 - 1e-4) * quantise.radius_squared


def test_rounding_is_toward_zero():
    quantise, plan = quantiser(Bounds(norm=5.0), 2)
    step = plan.feature_step
    out = integers(quantise, np.array([[1.9 * step, -1.9 * step], [0.9 * step, -0.9 * step]]))
    assert out.tolist() == [[1, -1], [0, 0]]


def test_a_range_centres_scales_and_cuts():
    quantise, plan = quantiser(Bounds(lower=[0, 100], upper=[2, 300]), 2)
    rows = np.array([[1.0, 200.0], [2.0, 100.0], [99.0, -99.0]])
    scaled = integers(quantise, rows) * plan.feature_step
    np.testing.assert_allclose(scaled, [[0, 0], [1, -1], [1, -1]], atol=2 * plan.feature_step)


def test_long_rows_are_shortened_not_dropped():
    quantise, plan = quantiser(Bounds(norm=1.0), 2)
    scaled = integers(quantise, np.array([[30.0, 40.0]])) * plan.feature_step
    np.testing.assert_allclose(scaled, [[0.6, 0.8]], atol=2 * plan.feature_step)


def test_narrow_types_give_the_same_integers():
    rows = np.random.default_rng(0).integers(0, 3, (50, 4))
    for bounds in (Bounds(norm=3.0), Bounds(lower=0, upper=2)):
        quantise, _ = quantiser(bounds, 4)
        wide = integers(quantise, rows.astype(np.float64))
        for dtype in (np.int8, np.uint8, np.int64, np.float32, bool):
            narrow = rows if dtype is not bool else rows > 1
            expected = wide if dtype is not bool else integers(quantise, (rows > 1) * 1.0)
            np.testing.assert_array_equal(integers(quantise, narrow.astype(dtype)), expected)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("bounds", [Bounds(norm=2.0), Bounds(norm=2.0, centre=0.3, scale=0.7)])
def test_narrow_floats_are_counted_in_full_precision(dtype, bounds):
    rows = np.random.default_rng(1).normal(size=(200, 4)).astype(dtype)
    quantise, _ = quantiser(bounds, 4)
    np.testing.assert_array_equal(
        integers(quantise, rows), integers(quantise, rows.astype(np.float64))
    )


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("bounds", [Bounds(norm=2.0), Bounds(lower=-1.0, upper=3.0)])
def test_missing_values(value, bounds):
    rows = np.array([[0.5, 0.5, 0.5], [0.5, value, 0.5]])
    quantise, _ = quantiser(bounds, 3)
    with pytest.raises(InputError, match='missing="centre"') as caught:
        integers(quantise, rows)
    assert "0.5" not in str(caught.value)
    quantise, _ = quantiser(bounds, 3, missing="centre")
    out = integers(quantise, rows)
    assert out[1, 1] == 0
    centre = 0.0 if bounds.norm else 1.0  # what the missing value should count as
    assert out[1].tolist() == integers(quantise, np.array([[0.5, centre, 0.5]]))[0].tolist()


@pytest.mark.parametrize(
    "bounds",
    [Bounds(norm=0.3), Bounds(norm=30.0), Bounds(lower=0.0, upper=2.0), Bounds(norm=2, centre=0.7)],
)
def test_a_missing_value_counts_exactly_as_the_centre(bounds):
    rng = np.random.default_rng(5)
    rows = rng.normal(1, 1, (50, 6))
    quantise, _ = quantiser(bounds, 6, missing="centre")
    gaps = rng.random(rows.shape) < 0.3
    filled = np.where(gaps, quantise.clip.centre, rows)
    rows[gaps] = rng.choice([np.nan, np.inf, -np.inf], gaps.sum())
    np.testing.assert_array_equal(integers(quantise, rows), integers(quantise, filled))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Bounds, "row norm"),
        (lambda: Bounds(lower=0), "both ends"),
        (lambda: Bounds(lower=1, upper=1), "lower=1.0 is not below upper=1.0"),
        (lambda: Bounds(lower=[0, 5], upper=[1, 2]), r"lower=5.0 .* upper=2.0 \(column 1\)"),
        (lambda: Bounds(norm=-1), "norm=-1"),
        (lambda: Bounds(norm=float("nan")), "nan"),
        (lambda: Bounds(norm="big"), '"big"'),
        (lambda: Bounds(lower=0, upper=1, centre=0.5), "not both"),
        (lambda: Bounds(norm=1, scale=[1, 0]), "scale must be positive"),
        (lambda: Bounds(lower=0, upper=float("inf")), "finite"),
    ],
)
def test_bad_bounds_are_refused(make, message):
    with pytest.raises(BoundsError, match=message):
        make()


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(lower=0, upper=5e-324),
        Bounds(lower=-1e308, upper=1e308),
        Bounds(norm=1e-149),
        Bounds(norm=1.0, scale=1e-300),
        Bounds(norm=1.0, centre=1e301),
    ],
)
def test_bounds_beyond_arithmetic_are_refused(bounds):
    """A half-width that underflows to zero would make NaN of a row, and NaN of every sum."""
    with pytest.raises(BoundsError, match=r"between|at most"):
        bounds.clip(2, "features")


def test_what_is_not_shown_to_be_inside_is_moved_inside():
    """Rows that are NaN or infinite for whatever reason cannot pass the last check."""
    quantise, _ = quantiser(FIVE, 3)
    z = np.array([[np.nan, 1, 1], [1e100, -1e100, 0], [np.inf, 0, 0], [1, 2, 3.0]])
    with np.errstate(all="ignore"):
        quantise._shorten(z, np.arange(4), quantise.radius_squared, np.vecdot(z, z))
    check_in_ball(quantise, z)
    assert z[3].tolist() == [1, 2, 3]


@pytest.mark.parametrize("norm", [1e-99, 1.0, 1e99])
def test_rows_far_beyond_the_norm_keep_their_direction(norm):
    quantise, plan = quantiser(Bounds(norm=norm), 2)
    out = integers(quantise, np.array([[1.2e308, -1.6e308], [3e200, 4e200]])) * plan.feature_step
    np.testing.assert_allclose(out / norm, [[0.6, -0.8], [0.6, 0.8]], atol=1e-5)


def test_bounds_of_a_public_block_cover_it_and_survive_constant_columns():
    rng = np.random.default_rng(1)
    block = np.column_stack([rng.normal(3, 2, 500), np.full(500, 7.1), rng.normal(0, 1e-3, 500)])
    clip = Bounds.from_public(block).clip(3, "features")
    scaled = (block - clip.centre) / clip.scale
    assert np.linalg.norm(scaled, axis=1).max() <= clip.norm
    np.testing.assert_allclose(scaled[:, [0, 2]].std(axis=0), 1)
