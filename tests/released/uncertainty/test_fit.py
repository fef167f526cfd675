"""R² and its interval: in [0, 1], the estimate inside, nothing claimed where nothing is known."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from primo.released import uncertainty
from primo.released.uncertainty.fit import _inverted

sizes = st.one_of(
    st.just(0.0),
    st.floats(1e-320, 1e308),
    st.floats(1e-3, 1e3),
)
rates = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))


def ends(estimate, slope, constant, linear, square, kappa):
    arrays = (np.array([x]) for x in (estimate, slope, constant, linear, square))
    found, slope, constant, linear, square = arrays
    lower, upper = _inverted(
        found, slope=slope, constant=constant, linear=linear, square=square, kappa=kappa
    )
    return float(lower[0]), float(upper[0])


@given(rates, sizes, sizes, sizes, sizes, st.floats(1e-6, 50))
@example(0.0, 1.0, 0.01, 0.0, 5.0, 3.84)  # printed as R² 0, interval [1, 1] once
@example(0.0, 0.0, 0.0, 0.0, 0.0, 3.84)
@example(1.0, 1e-320, 1e308, 1e308, 1e308, 3.84)
def test_an_interval_contains_its_estimate(estimate, slope, constant, linear, square, kappa):
    lower, upper = ends(estimate, slope, constant, linear, square, kappa)
    assert 0 <= lower <= estimate <= upper <= 1


@given(rates, *(st.floats(1e-3, 1e3) for _ in range(4)), st.floats(0.1, 50), rates)
def test_an_interval_holds_what_the_noise_explains(
    estimate, slope, constant, linear, square, kappa, r
):
    """The ends are those of the set itself: up to rounding, inside is inside and outside outside."""
    lower, upper = ends(estimate, slope, constant, linear, square, kappa)
    left = (slope * (estimate - r)) ** 2
    right = kappa * (constant + linear * r + square * r**2)
    if left < right * (1 - 1e-6):
        assert lower - 1e-9 <= r <= upper + 1e-9
    if left > right * (1 + 1e-6):
        assert r <= lower + 1e-6 or r >= upper - 1e-6


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("target", ["rows", "population"])
def test_every_row_of_every_release(world, protection, target):
    for epsilon in (0.02, 0.3, 5.0):
        for nulls in (0.3, 1.0):
            draw = world(5, 25, n=400, epsilon=epsilon, protection=protection, nulls=nulls)
            release, _ = draw(np.random.default_rng(7))
            fit = uncertainty.goodness_of_fit(release, target=target)
            assert (fit.lower >= 0).all()
            assert (fit.lower <= fit.r_squared).all()
            assert (fit.r_squared <= fit.upper).all()
            assert (fit.upper <= 1).all()
            assert (fit.lower[~fit.trusted] == 0).all()
            assert (fit.upper[~fit.trusted] == 1).all()
            for j in np.flatnonzero(~fit.trusted):
                assert fit.words(int(j)) == ("not determined", "0 to 1")
