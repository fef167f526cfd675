"""Outcomes whose mean is far from the middle of their range, as honest ranges often have it."""

import numpy as np
import pytest

import primo


def test_noise_on_the_means_of_features_does_not_carry_outcomes_away():
    """It enters every association in proportion to the outcome's mean; shrinking the means ends that."""
    rng = np.random.default_rng(5)
    n, d = 2500, 80
    bias, explained = [], []
    for seed in range(3):
        x = rng.normal(size=(n, d))
        signal = x @ rng.normal(size=(d, 12))
        z = np.sqrt(0.3) * signal / signal.std(axis=0) + np.sqrt(0.7) * rng.normal(size=(n, 12))
        mean = np.where(np.arange(12) < 2, -1.5, 0.0)  # two outcomes, far off the centre
        model = primo.PrimoRegressor(
            3,
            1e-8,
            feature_bounds=primo.Bounds(centre=0.0, scale=1.0, norm=1.2 * np.sqrt(d)),
            outcome_bounds=primo.Bounds(lower=-5, upper=5, norm=1.2),
            random_state=seed,
        )
        with pytest.warns(primo.ReproducibleNoiseWarning):
            predicted = model.fit(x, z + mean).predict(x)
        bias.append((predicted - z - mean).mean(axis=0)[:2])
        error = ((predicted - z - mean) ** 2).mean(axis=0)
        explained.append((1 - error / z.var(axis=0))[:2])
    assert np.abs(np.mean(bias)) < 0.15
    assert np.mean(explained) > 0.0
