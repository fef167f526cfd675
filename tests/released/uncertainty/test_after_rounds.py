"""What a release of several rounds may be trusted with (see benchmarks.coverage_rounds)."""

import numpy as np
import pytest

import primo
from primo.released.estimate.rounds import is_gradual
from primo.released.uncertainty import trust
from primo.released.uncertainty.system import system_of
from primo.released.uncertainty.variation import rows_whole


def fitted(norm, *, rounds=3, n=5000, d=5, l=4, epsilon=5, protection="both"):
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
        protection=protection,
        random_state=2,
    ).fit(x, y)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return model.release_, 1 - residual.var(axis=0) / y.var(axis=0)


@pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")
class TestRSquared:
    @pytest.mark.parametrize("protection", ["both", "features"])
    def test_whole_outcomes_are_trusted_and_right(self, protection):
        release, true = fitted(2.2, protection=protection)
        found = release.goodness_of_fit()
        assert found.trusted.all()
        np.testing.assert_allclose(found.r_squared, true, atol=0.06)

    @pytest.mark.parametrize("norm", [1.15, 1.3, 1.5])  # 20, 10, 4 % are added
    def test_outcomes_that_were_shortened_a_little_count_as_whole(self, norm):
        release, true = fitted(norm, n=20_000)
        found = release.goodness_of_fit()
        assert found.trusted.all()
        np.testing.assert_allclose(found.r_squared, true, atol=0.03)
        assert ((found.lower <= true) & (true <= found.upper)).all()

    def test_shortened_outcomes_leave_it_open(self):
        release, _ = fitted(0.7)
        found = release.goodness_of_fit()
        assert not found.trusted.any()
        assert (found.lower == 0).all()
        assert (found.upper == 1).all()

    def test_outcomes_as_long_as_their_bound_are_taken_as_whole(self):
        """Yes or no, coded as ±1 with norm 1: nothing is shortened, though all are at the bound."""
        rng = np.random.default_rng(3)
        x = rng.normal(size=(6000, 4))
        y = np.sign(x[:, :1] + rng.normal(size=(6000, 1)))
        settings = {"feature_bounds": primo.Bounds(norm=4.0), "random_state": 4}
        settings["outcome_bounds"] = primo.Bounds(norm=1.0)
        model = primo.PrimoRegressor(5, 1e-7, rounds=6, **settings).fit(x, y)
        release = model.release_
        residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
        assert rows_whole(release)
        found = release.goodness_of_fit().r_squared
        np.testing.assert_allclose(found, 1 - residual.var() / y.var(), atol=0.1)
        # Residuals of such outcomes have the length that a clip for normal ones would cut to medians.
        assert 1 - np.mean((y - model.predict(x).reshape(-1, 1)) ** 2) / y.var() > 0.3

    def test_many_small_steps_are_outside_the_noise_law(self):
        release, _ = fitted(1.5, rounds=12, n=4000, d=400, l=2)
        assert is_gradual(release.plan, release.rounds)
        (why,) = system_of(release).warnings
        assert "small steps" in why
        assert why in " ".join(trust.doubts(system_of(release)))
        assert not release.goodness_of_fit().trusted.any()
