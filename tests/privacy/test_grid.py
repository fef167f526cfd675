"""The grid spends no more than mu, as exact fractions."""

from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factories import planned
from primo.errors import BoundsError, InputError
from primo.privacy.bounds import Bounds
from primo.privacy.grid import joint_grid, make_grid
from primo.privacy.sensitivity import joint_distance


@settings(max_examples=300, deadline=None)
@given(mu=st.floats(1e-3, 14), split=st.floats(0.001, 2), n=st.integers(1, 2**27))
def test_grid_spends_almost_all_and_never_more_than_mu(mu, split, n):
    grid = joint_grid(mu=mu, split=split, n=n)
    cost = joint_distance(grid.p, grid.q, grid.s)
    assert cost <= Fraction(mu) ** 2
    assert cost >= Fraction(mu) ** 2 * (1 - Fraction(1, 10**5))
    # Sums over all rows, and over one exact stretch, fit their number types.
    largest = max(grid.feature_radius_squared, grid.outcome_radius_squared)
    assert n * largest < 2**62
    assert grid.exact_rows * largest <= 2**53
    assert grid.exact_rows >= 2**13
    # The realised ratio is the one asked for.
    assert float(grid.q / grid.p) == pytest.approx(split, rel=1e-4)


def test_a_grid_that_does_not_fit_is_refused_with_numbers():
    with pytest.raises(InputError, match="64-bit"):
        joint_grid(mu=1e-12, split=1.0, n=10**6)


def plan(**changes):
    settings = {
        "n": 1000,
        "d": 5,
        "l": 7,
        "epsilon": 1.0,
        "delta": 1e-6,
        "feature_bounds": Bounds(norm=2.0),
        "outcome_bounds": Bounds(norm=3.0),
    }
    return planned(**{**settings, **changes})


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("intercept", [True, False])
def test_sigmas_in_scaled_units_match_the_closed_forms(protection, intercept):
    """A factor √2 anywhere between budget and noise would show here."""
    made = plan(protection=protection, fit_intercept=intercept)
    bound_x = 2.0 * ((1 + 0.5 / 5**0.5) ** 0.5 if intercept else 1.0)
    k, mu = made.split, made.mu
    sigma1 = bound_x**2 * (2 + 2 * k + k**2 / 2) ** 0.5 / mu
    sigma2 = bound_x * 3.0 * (2 / k + 2 + k / 2) ** 0.5 / mu
    sigma3 = 3.0**2 * (2 * (2 + 2 * k + k**2 / 2) ** 0.5 / k) / mu
    assert made.association_sigma == pytest.approx(sigma2, rel=1e-5)
    assert made.covariance_sigma == (
        0 if protection == "outcomes" else pytest.approx(sigma1, rel=1e-5)
    )
    assert made.outcome_sigma == (
        0 if protection == "features" else pytest.approx(sigma3, rel=1e-5)
    )
    if protection == "outcomes":
        assert made.association_sigma == pytest.approx(2 * bound_x * 3.0 / mu, rel=1e-5)


def test_the_constant_is_inside_the_bound():
    made = plan(fit_intercept=True)
    assert made.constant_steps**2 < made.grid.feature_radius_squared
    # As long as a typical feature, or longer where many features would leave the means to the noise.
    for d, share in ((1, 1.0), (4, 1 / 4), (5, 0.5 / 5**0.5), (100, 0.05)):
        made = plan(fit_intercept=True, d=d)
        assert made.constant == pytest.approx(2.0 * share**0.5, rel=1e-4)
        assert made.feature_norm == pytest.approx(2.0 * (1 + share) ** 0.5)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_missing_bounds_teach(protection):
    with pytest.raises(BoundsError, match=r"feature_bounds=\(lower, upper\)"):
        plan(feature_bounds=None, protection=protection)
    with pytest.raises(BoundsError, match=r"outcome_bounds=\(lower, upper\)"):
        plan(outcome_bounds=None, protection=protection)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"split": 2.1}, "2.1"),
        ({"split": 0.0}, "split=0.0"),
        ({"protection": "rows"}, '"rows".*both'),
        ({"missing": "mean"}, '"mean"'),
        ({"outcome_moments": "all"}, '"all"'),
        ({"n": 0}, "n=0"),
        ({"feature_bounds": Bounds(lower=[0, 0], upper=[1, 1])}, "2 values.*5 features"),
    ],
)
def test_bad_plans_are_refused_by_value(changes, message):
    with pytest.raises(ValueError, match=message):
        plan(**changes)


@settings(max_examples=300, deadline=None)
@example(p=16.281377151276423, k=5.0, n=1, keep=True)  # 1.4e-17 above q, rounded down as a float
@given(p=st.floats(1e-6, 20), k=st.floats(1e-3, 20), n=st.integers(1, 2**26), keep=st.booleans())
def test_any_pair_of_ratios_is_met_from_below_and_outcome_moments_stay_free(p, k, n, keep):
    q = k * p
    radius = make_grid(p=2 * p, q=q, n=n).feature_radius_squared if keep else None
    grid = make_grid(p=p, q=q, n=n, feature_radius_squared=radius)
    assert grid.q <= q
    assert float(grid.q) == pytest.approx(q, rel=1e-4)
    assert float(grid.s) <= min(q * q / (4 * p), q / 2) * (1 + 1e-12)
    if keep:
        assert grid.feature_radius_squared == radius
    else:
        assert grid.p <= p
        assert float(grid.p) == pytest.approx(p, rel=1e-4)
        without = joint_distance(Fraction(p), Fraction(q), Fraction(0))
        assert joint_distance(grid.p, grid.q, grid.s) <= without * (1 + Fraction(1, 10**9))
