"""The compiled kernel: the same bits as NumPy, for every row, type and layout; or None."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import factories
from primo._util.jit import load
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.rows import quantise as module

if load("primo.rows.kernels") is None:
    reason = "needs compiled loops: numba (primo-dp[fast]), and NUMBA_DISABLE_JIT not set"
    pytest.skip(reason, allow_module_level=True)

from primo.rows import kernels

NASTY = st.one_of(
    st.floats(width=64),
    st.floats(-5, 5),
    st.sampled_from(
        [0.0, -0.0, 5e-324, -5e-324, 1e308, -1e308, 1.7e308, 1.0, -1.0, 1e154, 1e150, 3.0]
    ),
    st.sampled_from([np.nan, np.inf, -np.inf]),
)
BOUNDS = [
    Bounds(norm=1.0),
    Bounds(norm=50.0),
    Bounds(norm=1e-100),
    Bounds(norm=1e100),
    Bounds(lower=-1.0, upper=1.0),  # scaled units are the data's own, and yet there is a box
    Bounds(lower=-1.0, upper=2.0),
    Bounds(lower=-1e100, upper=1e100),
    Bounds(lower=0.0, upper=1.0, norm=0.7),
    Bounds(norm=3.0, centre=1e200, scale=0.1),
    Bounds(norm=3.0, centre=0.25, scale=1e-100),
]


def quantiser(bounds, width, **changes):
    return factories.quantiser(bounds, width, **changes)[0]


def integers(quantise, rows):
    out = np.full((len(rows), quantise.width), np.nan)
    try:
        quantise(rows, out)
    except InputError as error:
        return str(error)
    return out


def check_same_bits(quantise, rows):
    """Compare the bits, so that -0.0 is not 0.0, and check the ball in Python's integers."""
    expected = integers(quantise, rows)
    found = integers(replace(quantise, kernel=kernels.fused), rows)
    if isinstance(expected, str):
        assert found == expected
        return
    np.testing.assert_array_equal(found.view(np.int64), expected.view(np.int64))
    assert all(sum(int(v) ** 2 for v in row) <= quantise.radius_squared for row in found)


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("missing", ["error", "centre"])
@settings(max_examples=40, deadline=None)
@given(rows=arrays(np.float64, (4, 9), elements=NASTY))
def test_adversarial_rows_have_the_same_bits(bounds, missing, rows):
    check_same_bits(quantiser(bounds, 9, missing=missing, intercept=missing == "error"), rows)


@pytest.mark.parametrize("bounds", BOUNDS)
@settings(max_examples=30, deadline=None)
@given(rows=arrays(np.float32, (4, 9), elements=st.floats(width=32)))
def test_narrow_adversarial_rows_have_the_same_bits(bounds, rows):
    check_same_bits(quantiser(bounds, 9, missing="centre"), rows)


def test_squares_that_overflow_only_together():
    """Rows at the edge of float64, where the order of a sum could decide what is finite."""
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], (500, 9)) * 10 ** rng.uniform(145, 155, (500, 9))
    for bounds in BOUNDS:
        check_same_bits(quantiser(bounds, 9), rows)


def layouts(rows):
    yield rows
    yield np.asfortranarray(rows)
    yield np.hstack([rows, rows])[:, 9:]  # rows apart from each other
    yield np.repeat(rows, 2, axis=1)[:, ::2]
    yield rows[::-1]
    yield rows[::2]
    yield rows[:1]
    yield np.broadcast_to(rows[0], rows.shape)
    frozen = rows.copy()
    frozen.flags.writeable = False
    yield frozen
    yield rows.astype(rows.dtype.newbyteorder())
    unaligned = np.empty(rows.nbytes + 1, dtype=np.uint8)[1:].view(rows.dtype).reshape(rows.shape)
    unaligned[:] = rows
    yield unaligned


@pytest.mark.parametrize(
    "dtype",
    ["float64", "float32", "float16", "longdouble", "int8", "uint8", "int64", "uint64", "bool"],
)
@pytest.mark.parametrize("bounds", [Bounds(norm=2.0), Bounds(lower=0, upper=2)])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_types_and_layouts(dtype, bounds):
    rows = np.random.default_rng(1).normal(1, 1, (12, 9)) * 1.5
    quantise = quantiser(bounds, 9, intercept=True)
    for given_rows in layouts(rows.astype(dtype)):
        before = given_rows.copy()
        check_same_bits(quantise, given_rows)
        np.testing.assert_array_equal(given_rows, before)


def test_the_output_may_be_part_of_a_wider_buffer():
    rows = np.random.default_rng(2).normal(size=(20, 9))
    quantise = quantiser(Bounds(norm=2.0), 9)
    wide = np.full((20, 30), 7.0)
    replace(quantise, kernel=kernels.fused)(rows, wide[:, 5:14])
    np.testing.assert_array_equal(wide[:, 5:14], integers(quantise, rows))
    assert (wide[:, :5] == 7).all()
    assert (wide[:, 14:] == 7).all()


@pytest.mark.parametrize("centre", [None, np.zeros(3)])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_lengths_of_rows_that_are_not_finite_or_far_out_are_infinite(centre, value):
    rows = np.array([[1.5, 2.5, 3.5], [1.0, value, 1.0]])
    out = np.empty((2, 3))
    how = {"centre": centre, "factor": np.float64(1) if centre is None else np.ones(3)}
    lengths = kernels.fused(
        rows, out, **how, edge=2.0 if centre is not None else np.inf, reach=2.0**480, fill=False
    )
    assert lengths.tolist() == [1 + 4 + (9 if centre is None else 4), np.inf]


def test_without_a_kernel_it_returns_none_and_writes_nothing():
    out = np.full((2, 3), 7.0)
    how = {
        "centre": None,
        "factor": np.float64(1),
        "edge": np.inf,
        "reach": 2.0**480,
        "fill": False,
    }
    assert kernels.fused(np.ones((2, 3), dtype=np.uint64), out, **how) is None
    assert kernels.fused(np.asfortranarray(np.ones((2, 3))), out, **how) is None
    assert kernels.fused(np.ones((2, 2)), out, **how) is None
    assert kernels.fused(np.ones((3, 3)), out, **how) is None
    assert kernels.fused(np.ones((2, 3)), out, **how | {"centre": np.ones(2)}) is None
    assert (out == 7).all()


def test_a_folder_that_cannot_be_written_to_only_costs_time():
    names: dict = {}
    exec("def twice(x):\n    return 2 * x", names)  # has no file, so numba finds no place for it
    assert kernels._cached(names["twice"])(4) == 8


def test_only_many_numbers_load_it(monkeypatch):
    monkeypatch.setattr(module, "_counted", type(module._counted)())
    assert module.kernels_for(module._MANY - 1) is None
    assert module.kernels_for(1) is kernels
    with monkeypatch.context() as patch:
        patch.setattr("numba.config.DISABLE_JIT", True)
        assert module._load_kernels.__wrapped__() is None
    monkeypatch.setitem(sys.modules, "primo.rows.kernels", None)
    assert module._load_kernels.__wrapped__() is None


def test_only_signs_times_a_unit_are_taken_for_signs():
    x = np.random.default_rng(0).integers(-1, 2, (200, 3)) * 33001.0
    out = np.empty((200, 3), dtype=np.float32)
    assert kernels.write_signs(x, 33001, out)
    np.testing.assert_array_equal(out * 33001.0, x)
    for wrong in (33000.0, 1.0, 66002.0, np.nan, np.inf):
        y = x.copy()
        y[150, 1] = wrong
        assert not kernels.write_signs(y, 33001, out)
