"""Scales of columns that are mostly zeros: zeros tell no unit."""

import numpy as np
import pytest

from primo.privacy import values
from primo.released.found_columns import find_columns

N = 5000


def counted(columns, sigma, rng):
    counts = [np.bincount(values.bin_of(column), minlength=values.BINS) for column in columns]
    return np.array(counts) + sigma * rng.normal(size=(len(columns), values.BINS))


@pytest.mark.parametrize("sigma", [5.0, 60.0])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.1, 0.4])
def test_a_rare_indicator_gets_no_tiny_scale(share, sigma):
    """Before, the smallest bins beside 0 were taken for values: a scale of 1e-12, and slopes of 1e10."""
    rng = np.random.default_rng(3)
    income = rng.lognormal(10, 0.5, N)
    rare = (rng.random(N) < share) * 1.0
    for _ in range(20):
        found = find_columns(counted([income, rare], sigma, rng), sigma=sigma, n=N)
        assert found.found[0]
        if found.found[1]:
            assert 0.3 < found.scale[1] / np.sqrt(share * (1 - share)) < 3
        else:  # hidden by the noise: as large as the others
            assert found.scale[1] == found.scale[0]
    told = share * N > 8 * sigma  # a window's noise six times over, and some
    assert found.found[1] == told or not told
    assert share > 0 or not found.found[1]


def test_counts_that_are_mostly_zero():
    rng = np.random.default_rng(4)
    cigarettes = np.where(rng.random(N) < 0.85, 0, rng.integers(1, 40, N)).astype(float)
    found = find_columns(counted([cigarettes], 10.0, rng), sigma=10.0, n=N)
    assert 0.4 < found.scale[0] / cigarettes.std() < 1.6


def test_rare_zeros_belong_to_the_scale():
    """Before, a column of ones had the width of its bin as scale, and a row with a 0 was 20 long."""
    rng = np.random.default_rng(5)
    flag = (rng.random(N) > 0.03) * 1.0  # 150 zeros: less than five deviations of a count
    found = find_columns(counted([flag] * 40, 32.0, rng), sigma=32.0, n=N)
    assert found.found.all()
    told = found.scale / flag.std()
    assert np.mean((told > 0.6) & (told < 1.6)) > 0.95


def test_ones_without_zeros_keep_a_small_scale():
    rng = np.random.default_rng(6)
    ones = np.ones(N)
    found = find_columns(counted([ones] * 100, 32.0, rng), sigma=32.0, n=N)
    assert np.mean(found.scale < 0.06) > 0.9  # noise passes for zeros in one column of forty
    assert (found.scale < 0.2).all()
