"""What is read off a public block is the same to the last bit for every order of its rows."""

from __future__ import annotations

import numpy as np
import pytest

from primo import Bounds
from primo.errors import InputError
from primo.privacy.public_moments import mean_and_deviation


@pytest.mark.parametrize("rows", [2, 1024, 1025, 3000])
def test_bounds_do_not_tell_the_order_of_public_rows(rows: int) -> None:
    rng = np.random.default_rng(rows)
    block = np.asfortranarray(rng.lognormal(size=(rows, 7)) * 10.0 ** rng.integers(-5, 5, size=7))
    found = Bounds.from_public(block).clip(7, "features")
    for order in (np.argsort(block[:, 0]), rng.permutation(rows)):
        assert Bounds.from_public(block[order]).clip(7, "features") == found


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int8, np.bool_])
def test_mean_and_deviation_are_those_of_numpy(dtype: type) -> None:
    rng = np.random.default_rng(0)
    block = rng.integers(0, 2, size=(500, 4)).astype(dtype)
    mean, deviation = mean_and_deviation(lambda: iter([block[:100], block[100:]])) or (None, None)
    np.testing.assert_allclose(mean, block.mean(axis=0, dtype=np.float64), rtol=1e-12)
    np.testing.assert_allclose(deviation, block.astype(float).std(axis=0), rtol=1e-12)


def test_one_value_far_from_all_others_does_not_spoil_the_deviation() -> None:
    rng = np.random.default_rng(1)
    block = rng.normal(size=(10_000, 2)) + np.array([0.0, 1e6])
    block[0, 0] = 1e9
    mean, deviation = mean_and_deviation(lambda: iter([block])) or (None, None)
    assert (np.abs(mean - block.mean(axis=0)) <= 1e-6 * block.std(axis=0)).all()
    np.testing.assert_allclose(deviation, block.std(axis=0), rtol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e308])
def test_what_is_not_finite_is_refused(bad: float) -> None:
    block = np.ones((5, 2))
    block[3, 1] = bad
    with pytest.raises(InputError, match="NaN, infinite or enormous"):
        Bounds.from_public(block)


def test_a_constant_column_has_scale_one() -> None:
    clip = Bounds.from_public(np.full((50, 1), 0.1)).clip(1, "features")
    assert clip.scale[0] == 1
    assert clip.centre[0] == 0.1
