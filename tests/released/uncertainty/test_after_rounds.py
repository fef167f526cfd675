"""What a release of several rounds may be trusted with (see benchmarks.coverage_rounds)."""

import numpy as np
import pytest

import primo
from primo.released.estimate.rounds import is_gradual
from primo.released.uncertainty import trust
from primo.released.uncertainty.system import system_of


def fitted(norm, *, rounds=3, n=5000, d=5, l=4, epsilon=5):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=(d, l)) / np.sqrt(d)
    y = x @ w + rng.normal(size=(n, l))
    length = np.sqrt(l * (1 + (w**2).sum(axis=0).mean()))
    model = primo.PrimoRegressor(
        epsilon=epsilon,
        delta=1e-7,
        feature_bounds=primo.Bounds(norm=2 * np.sqrt(d)),
        outcome_bounds=primo.Bounds(norm=norm * length),
        rounds=rounds,
        random_state=2,
    ).fit(x, y)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return model.release_, 1 - residual.var(axis=0) / y.var(axis=0)


@pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")
class TestRSquared:
    def test_whole_outcomes_are_trusted_and_right(self):
        release, true = fitted(2.2)
        found = release.goodness_of_fit()
        assert found.trusted.all()
        np.testing.assert_allclose(found.r_squared, true, atol=0.06)

    def test_shortened_outcomes_leave_it_open(self):
        release, true = fitted(0.9)
        found = release.goodness_of_fit()
        assert not found.trusted.any()
        assert (found.lower == 0).all()
        assert (found.upper == 1).all()
        # Even so the guess is one for whole outcomes: moments as they were cut would say 1.5 times that.
        assert np.abs(found.r_squared / true - 1).max() < 0.15

    def test_many_small_steps_are_outside_the_noise_law(self):
        release, _ = fitted(1.5, rounds=12, n=400, d=60, l=2, epsilon=1)
        assert is_gradual(release.plan)
        (why,) = system_of(release).warnings
        assert "small steps" in why
        assert why in " ".join(trust.doubts(system_of(release)))
        assert not release.goodness_of_fit().trusted.any()
