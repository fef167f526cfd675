"""Outcomes whose variance is lost in noise count as nearly constant, unless others or features speak."""

import numpy as np
import pytest

import primo
from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.variances import all_the_same, harmonic_variances, own_variances


def test_what_stands_out_of_its_noise_is_kept():
    squares = np.array([1000.0, 300.0])
    assert harmonic_variances(squares, np.full(2, 10.0)) == pytest.approx(squares, rel=0.1)
    assert harmonic_variances(squares, np.zeros(2)) == pytest.approx(squares)


@pytest.mark.parametrize("lost", [-1.5, 0.0, 1.0])
def test_what_is_lost_beside_a_large_one_is_nearly_nothing(lost):
    found = harmonic_variances(np.array([1000.0, 10 * lost]), np.full(2, 10.0))
    assert found[1] < 0.1 * 10
    assert found[0] == pytest.approx(1000, rel=0.05)


@pytest.mark.parametrize("l", [5, 2000])
@pytest.mark.parametrize("size", [0.0, 0.5, 20.0])
def test_outcomes_that_are_alike_are_taken_as_alike(l, size):
    rng = np.random.default_rng(1)
    assert all_the_same(size + rng.normal(size=l), np.ones(l))


def test_outcomes_that_differ_are_told_apart():
    rng = np.random.default_rng(1)
    assert not all_the_same(np.array([10.0, 0.5]), np.ones(2))
    assert not all_the_same(np.repeat([8.0, 0.0], 50) + rng.normal(size=100), np.ones(100))


def test_what_features_explain_for_certain_is_variance():
    rng = np.random.default_rng(2)
    association = rng.normal(size=(4, 2))
    association[:, 1] += 50
    moments = NoisyMoments(
        n=100,
        covariance=np.diag([10.0, 10.0, 10.0, 10.0]),
        association=association,
        outcome_moments=np.array([20_000.0, 0.0]),
        covariance_sigma=1.0,
        association_sigma=1.0,
        outcome_sigma=1000.0,
    )
    energy = float(association[:, 1] @ association[:, 1])
    assert own_variances(moments)[1] > 0.9 * energy / 10


def test_an_outcome_of_small_variance_is_not_drowned_by_a_large_one():
    """The second outcome's range is 50 times too wide, and features say nothing of it.

    Where the first outcome is lost in noise, too (one of these draws), nothing tells them apart.
    """
    variances = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1, 1, size=(4000, 5))
        y = np.stack([x @ [1, 1, 0, 0, 1] + rng.normal(size=4000), rng.normal(size=4000)], axis=1)
        with pytest.warns(primo.ReproducibleNoiseWarning):
            model = primo.PrimoRegressor(
                epsilon=0.5,
                delta=1e-7,
                feature_bounds=(-1, 1),
                outcome_bounds=primo.Bounds(lower=[-6, -50], upper=[6, 50]),
                random_state=seed,
            ).fit(x, y)
        predicted = model.predict(x)
        variances.append(float(np.var(predicted[:, 1])))
        assert np.var(predicted[:, 0]) > 0.05
    assert np.sort(variances)[-2] < 0.5  # of 1; it was 3 to 9 in five draws
