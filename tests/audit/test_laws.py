import numpy as np
import pytest
from scipy.special import ndtr

from primo.audit.laws import GaussianLaw, SampledLaw
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.privacy.subsampling import calibrate, least_epsilon, true_epsilon


def test_gaussian_rates_are_those_of_two_normals():
    false, hit = GaussianLaw(mu=1.5).rates(0.6)
    # The score is mu·z - mu²/2 with z standard, moved by mu if the row is there.
    limit = (0.6 + 1.5**2 / 2) / 1.5
    assert false == pytest.approx(ndtr(-limit))
    assert hit == pytest.approx(ndtr(1.5 - limit))
    assert GaussianLaw(mu=1.0).epsilon(0.5, 1e-6) == 0


def test_gaussian_epsilon_of_the_best_guess_is_what_is_stated():
    mu = mu_of(Budget(epsilon=5.0, delta=1e-6))
    assert GaussianLaw(mu=mu).epsilon(float(ndtr(mu / 2)), 1e-6) == pytest.approx(5.0)


@pytest.fixture(scope="module")
def law():
    return SampledLaw(rate=0.3, covariance=1.2, rest=0.7)


@pytest.mark.parametrize("threshold", [-0.4, 0.0, 1.0])
@pytest.mark.parametrize("noise", [1.0, 1.3])
def test_sampled_rates_by_simulation(law, threshold, noise):
    rng = np.random.default_rng(1)
    size = 200_000
    drawn = rng.random(size) < law.rate
    for there, rate in zip((False, True), law.rates(threshold, noise), strict=True):
        a = noise * rng.normal(size=size) + law.covariance * (drawn & there)
        b = noise * rng.normal(size=size) + law.rest * there
        drawn_odds = np.exp(law.covariance * a - law.covariance**2 / 2)
        score = np.log1p(law.rate * (drawn_odds - 1)) + law.rest * b - law.rest**2 / 2
        assert law.score(a[0], b[0]) == pytest.approx(score[0])
        assert np.mean(score > threshold) == pytest.approx(rate, abs=5 * 0.5 / size**0.5)


def test_sampled_epsilon_agrees_with_the_accountants_lower_bound():
    """Another computation of the same pair of laws, with code of its own."""
    scales = calibrate(Budget(epsilon=5.0, delta=1e-6), rows=20, sampled=10, l=1)
    p, q, _ = scales.squares
    found = max(
        SampledLaw(
            rate=0.5,
            covariance=max(1e-9, (2 * p * (1 - a * a)) ** 0.5),
            rest=(2 * q * (1 + a)) ** 0.5,
        ).epsilon_at(1e-6)
        for a in np.linspace(0, 1, 11)
    )
    least = least_epsilon(scales, 1e-6)  # its integral is rounded down
    assert least <= found < 1.01 * least
    assert found < true_epsilon(scales, 1e-6) <= 5.0


def test_sampled_epsilon_of_a_guess_finds_the_noise(law):
    for noise in (0.8, 1.0, 1.25):
        found = law.epsilon(law.right(noise), 1e-6)
        assert found == pytest.approx(law.scaled(noise).epsilon_at(1e-6), rel=1e-6)
    assert law.epsilon(0.5, 1e-6) == 0
