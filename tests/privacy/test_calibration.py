"""Calibration against dp_accounting, from the safe side."""

import math

import mpmath
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from primo.errors import InputError
from primo.privacy.budget import SMALLEST_DELTA, Budget
from primo.privacy.calibration import (
    delta_of,
    epsilon_of,
    epsilon_with_margin,
    lattice_margin,
    mu_of,
    split_ratio,
)
from primo.privacy.grid import SMALLEST_VARIANCE_BITS
from primo.wall.noise.bits import BLOCKS, CHUNK

EPSILONS = [0.01, 0.03, 0.1, 0.5, 1, 2, 5, 10, 20, 50]
DELTAS = [1e-3, 1e-5, 1e-8, 1e-12, 1e-15]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_agrees_with_dp_accounting_from_the_safe_side(epsilon, delta):
    """Our noise is at least theirs and at most 1e-6 more."""
    ours = 1 / mu_of(Budget(epsilon=epsilon, delta=delta), margin=lattice_margin(2_500_000, 80))

    def excess(sigma):
        return math.log(GaussianPrivacyLoss(sigma).get_delta_for_epsilon(epsilon) / delta)

    theirs = brentq(excess, ours * 0.99, ours * 1.01, xtol=1e-13 * ours, rtol=1e-13)
    # 1e-10: the size of the float64 cancellation in their difference of two probabilities.
    assert theirs * (1 - 1e-10) <= ours <= theirs * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(
    epsilon=st.floats(1e-3, 100),
    delta=st.floats(1e-20, 0.5),
)
def test_the_next_float_would_break_the_budget(epsilon, delta):
    """mu is the largest float on the safe side, judged by independent high-precision arithmetic."""
    check_largest_float(epsilon, delta)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-9), (2.0, 1e-6), (8.0, 1e-5)])
def test_the_next_float_would_break_usual_budgets(epsilon, delta):
    """The same without a search, for the mutants: a search that finds a mistake goes on for long."""
    check_largest_float(epsilon, delta)


def check_largest_float(epsilon, delta):
    mu = mu_of(Budget(epsilon=epsilon, delta=delta))

    def exact(value):
        with mpmath.workdps(80):
            m, e = mpmath.mpf(value), mpmath.mpf(epsilon)
            return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)

    assert exact(mu) <= delta < exact(math.nextafter(mu, 1e9))


def test_known_value_of_the_design_document():
    assert 1 / mu_of(Budget(epsilon=5, delta=1 / 5008**2)) == pytest.approx(1.0933, abs=1e-4)


def test_a_margin_only_ever_adds_noise():
    budget = Budget(epsilon=1, delta=1e-6)
    assert mu_of(budget, margin=1e-6) < mu_of(budget)
    assert mu_of(budget, margin=lattice_margin(10**7, 80)) == pytest.approx(mu_of(budget), rel=1e-9)


def test_a_margin_that_eats_the_budget_is_refused():
    with pytest.raises(InputError, match="too small"):
        mu_of(Budget(epsilon=0.001, delta=1e-6), margin=0.01)


@pytest.mark.parametrize("mu", [0.01, 0.5, 1, 4])
@pytest.mark.parametrize("delta", [1e-3, 1e-9])
def test_epsilon_and_mu_are_inverse_on_the_safe_side(mu, delta):
    epsilon = epsilon_of(mu, delta)
    assert delta_of(mu, epsilon) <= delta * (1 + 1e-12)
    assert delta_of(mu, epsilon * (1 - 1e-9)) > delta
    if epsilon > 1e-4:
        assert mu_of(Budget(epsilon=epsilon, delta=delta)) == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize("margin", [200 / 2**58, 1e-9, 0.01])
@pytest.mark.parametrize("mu", [0.3, 2.0, 10.0])
def test_an_epsilon_with_its_margin_is_the_smallest_float_that_is_true(mu, margin):
    """A sum of two floats would be rounded down half of the time."""
    for delta in (1e-20, 1e-9, 1e-3):
        epsilon = epsilon_with_margin(mu, delta, margin)
        with mpmath.workdps(80):

            def excess(value, delta=delta):
                inner = mpmath.mpf(value) - 2 * mpmath.mpf(margin)
                curve = mpmath.ncdf(mu / 2 - inner / mu)
                curve -= mpmath.exp(inner) * mpmath.ncdf(-mu / 2 - inner / mu)
                return curve - delta * mpmath.exp(-2 * mpmath.mpf(margin))

            assert excess(epsilon) <= 0 < excess(math.nextafter(epsilon, 0.0))


def test_an_epsilon_is_never_below_its_margin():
    assert epsilon_with_margin(0.001, 0.5, 0.25) == 0.5


@pytest.mark.parametrize("count", [1, 10**6, 10**15])
@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 100.0])
def test_what_the_margin_leaves_of_delta_pays_for_both_tails(count, epsilon):
    """Section 2 of docs/guarantee.md: δ(1 - e^-κ) against (1 + e^(ε-κ))·t at the smallest delta."""
    margin = lattice_margin(count, SMALLEST_VARIANCE_BITS)
    if 2 * margin >= epsilon:
        with pytest.raises(InputError, match="too small"):
            mu_of(Budget(epsilon=epsilon, delta=SMALLEST_DELTA), margin=margin)
        return
    with mpmath.workdps(400):
        kappa, sigma = mpmath.mpf(margin), mpmath.sqrt(mpmath.mpf(2) ** SMALLEST_VARIANCE_BITS)
        discrete = count * 2 * mpmath.exp(-800)
        rounded = count * 2 * mpmath.ncdf(-(40 - 1 / (2 * sigma)))
        assert rounded <= discrete
        taken = discrete + mpmath.exp(epsilon - kappa) * rounded
        assert taken < mpmath.mpf(SMALLEST_DELTA) * (1 - mpmath.exp(-kappa))


def test_epsilon_is_zero_where_delta_alone_suffices():
    assert epsilon_of(0.001, 0.5) == 0.0


def test_lattice_margin_bounds_the_ratio_of_the_two_laws():
    """Rounded Gaussian against discrete Gaussian, summed exactly at a coarse variance."""
    variance_bits = 12
    sigma = mpmath.sqrt(mpmath.mpf(2) ** variance_bits)
    with mpmath.workdps(60):
        normaliser = mpmath.sqrt(2 * mpmath.pi) * sigma
        for x in (0, 1, 64, 300, int(40 * sigma)):
            rounded = mpmath.quad(
                lambda t: mpmath.exp(-(t**2) / (2 * sigma**2)), [x - 0.5, x, x + 0.5]
            )
            discrete = mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * sigma**2))
            assert abs(mpmath.log(rounded / discrete)) <= lattice_margin(1, variance_bits)
        total = mpmath.nsum(lambda k: mpmath.exp(-(k**2) / (2 * sigma**2)), [-3000, 3000])
        assert abs(total / normaliser - 1) < mpmath.mpf(10) ** -40


def test_split_ratio_grows_with_the_outcomes_toward_two():
    ratios = [split_ratio(l) for l in (1, 11, 101, 1001, 100_000)]
    assert ratios == sorted(ratios)
    assert ratios[0] == pytest.approx(1)
    assert 1.98 < ratios[-1] < 2


@pytest.mark.parametrize(
    ("epsilon", "delta", "message"),
    [
        (0, 1e-6, "epsilon=0"),
        (-1, 1e-6, "epsilon=-1"),
        (1e6, 1e-6, "no protection"),
        (float("nan"), 1e-6, "epsilon=nan must lie between"),
        ("5", 1e-6, "'5'"),
        (True, 1e-6, "True"),
        (1, 0, "delta=0"),
        (1, 1, "delta=1"),
        (1, float("inf"), "delta=inf must lie between"),
        (1, 9.9e-21, r"delta=9.9e-21 must lie between 1e-20 and 1.*random generator"),
        (1, 1e-200, "delta=1e-200"),
    ],
)
def test_absurd_budgets_are_refused_by_value(epsilon, delta, message):
    with pytest.raises(InputError, match=message):
        Budget(epsilon=epsilon, delta=delta)


def test_the_smallest_delta_covers_the_generator():
    """Section 5 of docs/guarantee.md: (1 + e^ε)·α at ε = 10 for 2³⁰ numbers, 2¹⁶ to a stream."""
    streams, blocks = 2**30 // CHUNK + 5, BLOCKS
    alpha = streams * blocks * (blocks - 1) / 2**129
    assert (1 + math.exp(10)) * alpha < SMALLEST_DELTA < 10 * (1 + math.exp(10)) * alpha
    assert Budget(epsilon=10, delta=SMALLEST_DELTA).delta == 1e-20
