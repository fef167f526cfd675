"""The cost of DP-SGD under replace-one, against closed forms and integrals of its own."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from baselines.dpsgd_accounting import (
    noise_multiplier,
    noise_multiplier_zcdp,
    renyi_divergence,
    true_delta,
    true_epsilon,
    zcdp_epsilon,
)
from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, mu_of

EPSILON, DELTA = 5.0, 1 / 5000**2


def hockey_stick(z, rate, epsilon):
    """Integrate P - e^ε·Q of the worst pair of one step over where it is positive, x below a root."""

    def loss(x):
        up, down = (math.exp((side * 2 * x - 1) / (2 * z**2)) for side in (-1, 1))
        return math.log((1 - rate + rate * up) / (1 - rate + rate * down))

    root = brentq(lambda x: loss(x) - epsilon, -100, 5, xtol=1e-14)
    common = (1 - rate) * norm.cdf(root, scale=z)
    p, q = (common + rate * norm.cdf(root, centre, z) for centre in (-1, 1))
    return p - math.exp(epsilon) * q


def test_all_rows_in_every_step_is_one_gaussian_of_twice_the_clip():
    z = noise_multiplier(EPSILON, DELTA, rate=1.0, steps=50, compositions=7)
    mu = mu_of(Budget(epsilon=EPSILON, delta=DELTA))
    assert z == pytest.approx(2 * math.sqrt(350) / mu, rel=1e-9)
    assert delta_of(2 * math.sqrt(350) / z, EPSILON) <= DELTA


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.9])
@pytest.mark.parametrize("z", [0.8, 2.0])
def test_one_step_against_an_integral(rate, z):
    pytest.importorskip("dp_accounting")
    for epsilon in (0.1, 0.5, 1.0):
        exact = hockey_stick(z, rate, epsilon)
        counted = true_delta(z, epsilon, rate=rate, steps=1)
        assert exact * (1 - 1e-9) <= counted <= exact * 1.0001 + 1e-13


def test_sampling_nearly_every_row_is_nearly_the_gaussian():
    """The privacy loss distribution meets the closed form: its sensitivity is the clip, not 2C."""
    pytest.importorskip("dp_accounting")
    settings = {"steps": 40, "compositions": 3}
    exact = true_epsilon(25.0, DELTA, rate=1.0, **settings)
    assert true_epsilon(25.0, DELTA, rate=1 - 1e-9, **settings) == pytest.approx(exact, rel=2e-4)


def test_no_pair_of_gradients_is_worse():
    """Search the disk: gradients g, g′ within the clip against the opposite pair at its edge."""
    rng = np.random.default_rng(5)
    z, rate, side = 1.3, 0.3, np.linspace(-10, 10, 401)
    x, y = np.meshgrid(side, side)

    def density(gradient):
        away = (x - gradient[0]) ** 2 + (y - gradient[1]) ** 2
        law = (1 - rate) * np.exp(-(x**2 + y**2) / (2 * z**2)) + rate * np.exp(-away / (2 * z**2))
        return law / (2 * math.pi * z**2) * (side[1] - side[0]) ** 2

    for epsilon in (0.05, 0.4, 1.0):
        worst = np.maximum(0, density((1, 0)) - math.exp(epsilon) * density((-1, 0))).sum()
        assert worst == pytest.approx(hockey_stick(z, rate, epsilon), rel=1e-3)
        for _ in range(40):
            angles = rng.uniform(0, 2 * math.pi, size=2)
            lengths = rng.choice([1.0, rng.uniform(), 0.0], size=2)
            pair = np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=1)
            found = np.maximum(0, density(pair[0]) - math.exp(epsilon) * density(pair[1])).sum()
            assert found <= worst * (1 + 1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 1.0, "steps": 30},
        {"rate": 0.2, "steps": 30},
        {"rate": 0.2, "steps": 30, "compositions": 101},
        {"rate": 0.1, "steps": 100},
    ],
)
def test_never_on_the_wrong_side_and_hardly_on_the_right_one(settings):
    pytest.importorskip("dp_accounting")
    z = noise_multiplier(EPSILON, DELTA, **settings)
    assert true_epsilon(z, DELTA, **settings) <= EPSILON
    assert true_delta(z, EPSILON, **settings) <= DELTA
    assert true_epsilon(0.999 * z, DELTA, **settings) > EPSILON

    paper = noise_multiplier_zcdp(EPSILON, DELTA, **settings)
    assert zcdp_epsilon(paper, DELTA, **settings) <= EPSILON
    assert zcdp_epsilon(0.999 * paper, DELTA, **settings) > EPSILON
    assert paper > z
    assert true_epsilon(paper, DELTA, **settings) < 0.95 * EPSILON


def test_zcdp_as_the_paper_composes():
    """ρ = 2T/z² per run, l runs, and ε = ρ + 2√(ρ·log(1/δ))."""
    z = noise_multiplier_zcdp(EPSILON, DELTA, rate=1.0, steps=20, compositions=11)
    rho = 11 * 20 * (2 / z) ** 2 / 2
    assert rho + 2 * math.sqrt(rho * math.log(1 / DELTA)) == pytest.approx(EPSILON, rel=1e-9)


@pytest.mark.parametrize(("z", "rate"), [(0.7, 0.1), (3.0, 0.2), (60.0, 0.5)])
def test_renyi_divergence_against_an_integral(z, rate):
    orders = np.array([1.5, 2.0, 6.0])

    def log_density(x, centre):
        return np.logaddexp(
            math.log1p(-rate) + norm.logpdf(x, scale=z), math.log(rate) + norm.logpdf(x, centre, z)
        )

    for order, found in zip(orders, renyi_divergence(z, rate, orders), strict=True):
        integral = quad(
            lambda x, a=order: math.exp(a * log_density(x, -1) + (1 - a) * log_density(x, 1)),
            -2 * order - 15 * z,
            15 * z,
            limit=500,
            epsabs=1e-13,
            epsrel=1e-13,
        )[0]
        # A divergence of 1e-8 is what is left of an integral of 1: eight digits are gone.
        assert found == pytest.approx(math.log(integral) / (order - 1), rel=1e-4, abs=1e-10)


def test_renyi_divergence_of_nearly_all_rows_is_the_gaussian_one():
    orders = np.array([1.5, 8.0, 200.0])
    np.testing.assert_allclose(renyi_divergence(5.0, 1 - 1e-12, orders), 2 * orders / 25, rtol=1e-6)


def test_refusals():
    with pytest.raises(InputError, match="probability"):
        noise_multiplier(EPSILON, DELTA, rate=0.0, steps=1)
    with pytest.raises(InputError, match="steps=0"):
        true_epsilon(1.0, DELTA, rate=0.5, steps=0)
    assert true_epsilon(0.0, DELTA, rate=0.5, steps=1) == math.inf
