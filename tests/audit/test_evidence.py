"""Lower bounds are lower bounds, as often as they say."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from primo.audit.evidence import (
    at_least,
    at_most,
    best_threshold,
    epsilon_at_least,
    gaussian_epsilon,
    mu_at_least,
    one_run_epsilon,
    one_run_p_value,
)
from primo.audit.laws import GaussianLaw
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (713, 1000)])
def test_clopper_and_pearson(hits, trials):
    exact = stats.binomtest(hits, trials).proportion_ci(confidence_level=0.998, method="exact")
    assert at_least(hits, trials, 0.999) == pytest.approx(exact.low, abs=1e-12)
    assert at_most(hits, trials, 0.999) == pytest.approx(exact.high, abs=1e-12)


@pytest.mark.parametrize("mu", [0.1, 1.0, 2.0])
def test_mu_is_exceeded_as_rarely_as_promised(mu):
    """The chance that the bound is above the truth, summed over all outcomes of 400 guesses."""
    right = np.arange(401)
    chance = stats.binom.pmf(right, 400, ndtr(mu / 2))
    above = [mu_at_least(int(r), 400, 0.99) > mu for r in right]
    assert 0.002 < chance[above].sum() <= 0.01
    assert mu_at_least(200, 400, 0.99) == 0


def test_mu_and_epsilon_belong_together():
    mu = mu_of(Budget(epsilon=3.0, delta=1e-6))
    assert gaussian_epsilon(mu, 1e-6) == pytest.approx(3.0)
    assert gaussian_epsilon(0.0, 1e-6) == 0


def test_rates_by_hand():
    found = epsilon_at_least(
        false_alarms=0, replaced=10_000, alarms=5000, present=10_000, delta=0.1, confidence=0.998
    )
    false = 1 - 0.001 ** (1 / 10_000)  # no alarm in 10 000: the exact upper bound
    assert found == pytest.approx(math.log((at_least(5000, 10_000, 0.999) - 0.1) / false))
    nothing = {"false_alarms": 5, "replaced": 10, "alarms": 0, "present": 10}
    assert epsilon_at_least(**nothing, delta=0.0, confidence=0.999) == 0


def test_rates_of_randomised_response_never_prove_too_much():
    """Coverage of the raw bound on the mechanism that attains (ε, 0) with equality."""
    rng, epsilon = np.random.default_rng(0), 1.0
    honest = math.exp(epsilon) / (1 + math.exp(epsilon))
    above = 0
    for _ in range(2000):
        alarms, false = rng.binomial(300, [honest, 1 - honest])
        above += (
            epsilon_at_least(
                false_alarms=int(false),
                replaced=300,
                alarms=int(alarms),
                present=300,
                delta=0.0,
                confidence=0.95,
            )
            > epsilon
        )
    assert above <= 2000 * 0.05


def test_threshold_is_chosen_from_the_plan_and_beats_the_sign():
    law = GaussianLaw(mu=1.0)
    threshold = best_threshold(law.rates, trials=20_000, delta=1e-6, confidence=0.999)
    assert threshold > 0.5

    def expected(t):
        false, hit = law.rates(t)
        return math.log(hit / false)

    assert expected(threshold) > expected(0.0)


def test_one_run_without_delta_is_binomial():
    p = one_run_p_value(canaries=100, guesses=100, right=75, epsilon=math.log(3), delta=0.0)
    assert p == pytest.approx(stats.binom.sf(74, 100, 0.75))


def test_one_run_delta_term_by_hand():
    args = {"canaries": 50, "guesses": 4, "right": 3, "epsilon": 0.0}
    # Binomial(4, ½): P(2) = 6/16, P(1) = 4/16, P(0) = 1/16; the largest running mean is 6/16.
    without = one_run_p_value(**args, delta=0.0)
    assert without == pytest.approx(5 / 16)
    assert one_run_p_value(**args, delta=1e-3) == pytest.approx(5 / 16 + 2 * 50 * 1e-3 * 6 / 16)
    assert one_run_p_value(canaries=5, guesses=0, right=0, epsilon=1.0, delta=0.1) == 1


def test_one_run_epsilon_inverts_the_p_value():
    args = {"canaries": 1000, "guesses": 200, "right": 180, "delta": 1e-6}
    epsilon = one_run_epsilon(**args, confidence=0.999)
    assert 1 < epsilon < math.log(9)
    assert one_run_p_value(**args, epsilon=epsilon) == pytest.approx(1e-3, rel=1e-6)
    assert one_run_epsilon(**args | {"right": 100}, confidence=0.999) == 0
