"""Features that are signs times a unit: the same integers, by counting and in float32."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primo._util.jit import load
from primo.errors import InputError
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.quantise import feature_quantiser

if load("primo.rows.kernels") is None:
    reason = "needs compiled loops: numba (primo-dp[fast]), and NUMBA_DISABLE_JIT not set"
    pytest.skip(reason, allow_module_level=True)

from primo.rows import genotype_products as module
from primo.rows import kernels
from primo.rows.genotype_products import Signs

WIDTH = 5


def signs_for(rows, l, *, missing="centre", intercept=False):
    plan = make_plan(
        Settings(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=Bounds(lower=0, upper=2),
            outcome_bounds=Bounds(norm=1.0),
            fit_intercept=intercept,
            missing=missing,
        ),
        n=rows,
        d=WIDTH - intercept,
        l=l,
    )
    features = feature_quantiser(plan)
    return Signs(features, features.box_end, rows, l, kernels)


def exact(a, b):
    """Return aᵀb in Python's integers."""
    whole = [np.array([[int(v) for v in row] for row in m], dtype=object) for m in (a, b)]
    return whole[0].T @ whole[1]


def associated(signs, y):
    found = signs_for(*y.shape)
    out = np.empty((WIDTH, y.shape[1]))
    found.association(signs, y, out)
    return out, found.unit * exact(signs, y)


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([1, 2, 63, 64, 65, 300, 1024, 1025, 2500]),
    st.sampled_from([1, 100, 2**13, 2**16, 2**18, 2**20]),
    st.integers(0, 2**32 - 1),
)
def test_sums_are_those_of_integers(rows, size, seed):
    rng = np.random.default_rng(seed)
    signs = rng.integers(-1, 2, (rows, WIDTH)).astype(np.float32)
    sizes = rng.choice([1, size], (rows, 1))  # small rows before and after large ones
    y = np.trunc(rng.uniform(-1, 1, (rows, 3)) * sizes)
    out, expected = associated(signs, y)
    assert (out == expected).all()
    found, covariance = signs_for(rows, 3), np.empty((WIDTH, WIDTH))
    found.covariance(signs, covariance)
    assert (covariance == found.unit**2 * exact(signs, signs)).all()


@pytest.mark.parametrize("size", [2**14 + 1, 2**16 + 1, 2**17 - 1, 2**18 + 1, 2**20 - 1])
@pytest.mark.parametrize("sign", [1, -1])
def test_sums_end_at_the_integers_of_float32(size, sign):
    """Odd outcomes all of one sign: the first sum beyond 2**24 that is odd would be rounded."""
    y = np.full((2048, 2), float(sign * size))
    y[:, 1] = 1
    out, expected = associated(np.ones((2048, WIDTH), dtype=np.float32), y)
    assert (out == expected).all()


@pytest.mark.parametrize(("size", "rows"), [(2**14, 1024), (2**15, 512), (2**18, 64), (2**24, 1)])
def test_as_many_rows_are_narrow_as_add_up_exactly(size, rows):
    y, out = np.full((1024, 3), -float(size)), np.empty((1024, 3), dtype=np.float32)
    assert kernels.write_narrow(y, 2**24, out) == rows
    np.testing.assert_array_equal(out[:rows], y[:rows])
    y[0, 2] -= 1
    assert kernels.write_narrow(y, 2**24, out) == rows - 1
    y[3, 1] = np.nan  # quantised rows hold none; it would not be taken for a small number
    assert kernels.write_narrow(y, 2**30, out) == 3
    assert kernels.write_narrow(np.asfortranarray(y), 2**30, out) == 0


@pytest.mark.parametrize("bits", [8, 11, 16, 23])  # bfloat16, TF32, two bfloat16 at once
def test_a_blas_that_rounds_its_numbers_is_found_out(bits):
    def rounded(a):
        digits, power = np.frexp(a)
        return np.ldexp(np.rint(digits * 2.0**bits), power - bits).astype(np.float32)

    def split(a, b):
        first = rounded(b)
        second = rounded(b - first)
        return a @ first + a @ second

    assert module._float32_is_exact()
    assert not module._float32_is_exact(lambda a, b: rounded(a) @ rounded(b))
    assert not module._float32_is_exact(lambda a, b: rounded(a @ b))
    assert bits > 11 or not module._float32_is_exact(split)


def test_a_blas_that_rounds_is_not_asked(monkeypatch):
    rng = np.random.default_rng(0)
    signs = rng.integers(-1, 2, (500, WIDTH)).astype(np.float32)
    y = np.trunc(rng.normal(size=(500, 3)) * 10_000)
    monkeypatch.setattr(module, "_float32_is_exact", lambda: False)
    asked = []
    matmul = np.matmul
    monkeypatch.setattr(np, "matmul", lambda *a, **k: asked.append(a) or matmul(*a, **k))
    out, expected = associated(signs, y)
    assert (out == expected).all()
    assert not asked


def test_other_features_are_left_to_float64():
    found = signs_for(300, 1, intercept=True)
    x = np.random.default_rng(0).integers(0, 3, (300, WIDTH - 1)).astype(np.float32)
    x[17, 1] = np.nan
    signs = found.of(x)
    np.testing.assert_array_equal(signs[:, :-1], np.nan_to_num(x, nan=1) - 1)
    np.testing.assert_array_equal(signs[:, -1], 1)
    x[290, 2] = 0.5
    assert found.of(x) is None


def test_a_missing_value_is_an_error_unless_said_otherwise():
    with pytest.raises(InputError, match="features contain NaN"):
        signs_for(3, 1, missing="error").of(np.full((3, WIDTH), np.nan))


def test_products_of_the_wrong_shape_or_layout_are_refused():
    signs = np.ones((70, WIDTH), dtype=np.float32)
    for wrong in (np.empty((WIDTH, WIDTH - 1)), np.empty((WIDTH, 2 * WIDTH))[:, ::2]):
        with pytest.raises(ValueError, match="wrong shape or layout"):
            kernels.multiply_signs(signs, 1.0, wrong)
