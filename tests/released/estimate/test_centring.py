"""Means estimated with the slopes, and what the release shows to be impossible."""

from dataclasses import replace

import numpy as np
import pytest

from primo import coefficients
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.estimate.centring import centred, reflect
from primo.released.estimate.means import shrunk_means
from primo.released.estimate.selection import fit_filter
from primo.released.release import Release


def released(x, y, *, epsilon, seed=None, **how):
    """Release rows inside their bounds: exact moments, with noise of the plan's scales if seeded."""
    (n, d), l = x.shape, y.shape[1]
    plan = make_plan(Settings(epsilon=epsilon, delta=1e-6, **how), n=n, d=d, l=l)
    rows = np.column_stack([x, np.full(n, plan.constant)])
    covariance, association, squares = rows.T @ rows, rows.T @ y, y.T @ y
    if seed is not None:
        rng = np.random.default_rng(seed)
        for block, sigma in ((covariance, plan.covariance_sigma), (squares, plan.outcome_sigma)):
            noise = rng.standard_normal(block.shape)
            block += sigma * (noise + noise.T) / 2
        covariance[-1, -1] = n * plan.constant**2
        association += plan.association_sigma * rng.standard_normal(association.shape)
    return Release(
        plan=plan,
        feature_names=tuple(f"x{i}" for i in range(d)),
        outcome_names=tuple(f"y{j}" for j in range(l)),
        covariance=covariance,
        association=association,
        outcome_moments=squares,
        reproducible=True,
        backend="test",
    )


def off_centre(n, d, *, mean, rng):
    x = mean * rng.choice([-1, 1], d) + 0.3 * rng.standard_normal((n, d))
    signal = (x - x.mean(axis=0)) @ rng.standard_normal((d, 2))
    return x, 0.5 * signal / signal.std(axis=0) + 0.5 * rng.standard_normal((n, 2)) + [0.0, 3.0]


@pytest.mark.parametrize("mean", [0.0, 1e-9, 0.7, 1e6])
def test_the_reflection_is_orthogonal_and_takes_the_constant_to_the_mean(mean):
    axis = np.append(np.full(5, mean), 0.4)
    axis /= np.linalg.norm(axis)
    h = reflect(axis, np.eye(6))
    np.testing.assert_allclose(h @ h, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(h[:, -1], axis, atol=1e-12)


@pytest.mark.parametrize("mean", [0.0, 0.7])
def test_without_noise_it_is_least_squares_with_an_intercept(mean):
    x, y = off_centre(400, 6, mean=mean, rng=np.random.default_rng(0))
    bounds = {"feature_bounds": Bounds(norm=6.0), "outcome_bounds": Bounds(norm=9.0)}
    release = released(x, y, epsilon=100, protection="outcomes", **bounds)
    exact = np.column_stack([x, np.ones(len(x))])
    solved = np.linalg.lstsq(exact, y, rcond=None)[0]
    fitted = coefficients(release, estimator="ridge", ridge_lambda=0.0)
    np.testing.assert_allclose(fitted.slopes, solved[:-1], atol=1e-6)
    # Outcome means are shrunk by what their stated noise warrants, which is next to nothing here.
    np.testing.assert_allclose(fitted.intercept, solved[-1], atol=0.02)


def test_far_off_centre_nothing_is_carried_away():
    """Subtracting noisy means gave the second outcome, whose mean is 3, R² of −0.2 to −0.5 here."""
    rng = np.random.default_rng(1)
    for seed in range(6):
        x, y = off_centre(1500, 120, mean=0.7, rng=rng)
        bounds = {"feature_bounds": Bounds(norm=9.0), "outcome_bounds": Bounds(norm=5.0)}
        predicted = coefficients(released(x, y, epsilon=3, seed=seed, **bounds)).predict(x)
        left = ((y - predicted) ** 2).mean(axis=0) / y.var(axis=0)
        assert (left < 1.1).all()


def test_every_mean_is_shrunk_by_its_own_evidence():
    rng = np.random.default_rng(2)
    true = np.append([16.0, 23.5], np.zeros(43))
    means, variances = shrunk_means(true + 0.5 * rng.standard_normal(45), 0.5)
    np.testing.assert_allclose(means[:2], true[:2], atol=2.0)
    assert np.mean(means[2:] ** 2) < 0.1 * 0.5**2
    assert (variances[:2] > 0.5 * 0.5**2).all()
    exact, none = shrunk_means(true, 0.0)
    np.testing.assert_array_equal(exact, true)
    assert not none.any()


def test_predictions_do_not_vary_more_than_outcomes_can():
    x, y = off_centre(2000, 4, mean=0.0, rng=np.random.default_rng(3))
    bounds = {"feature_bounds": Bounds(norm=2.0), "outcome_bounds": Bounds(norm=6.0)}
    moments = centred(released(x, y, epsilon=20, seed=0, **bounds)).moments
    before = fit_filter(moments).estimate(moments).coefficients
    small = replace(moments, outcome_moments=moments.outcome_moments / 100, outcome_sigma=0.0)
    small = replace(small, outcome_errors=np.zeros(2))
    fitted = fit_filter(moments)  # of the larger outcomes, judged by the smaller
    after = fitted.estimate(small).coefficients
    values = np.maximum(np.linalg.eigvalsh(moments.covariance), 0.0)
    along = (fitted.vectors.T @ after) ** 2
    assert (np.linalg.norm(after, axis=0) < 0.3 * np.linalg.norm(before, axis=0)).all()
    most = np.diagonal(small.outcome_moments)
    assert (values @ along <= most + 2 * moments.covariance_sigma * along.sum(axis=0) + 1e-9).all()


def test_one_mean_does_not_vouch_for_itself():
    """Its evidence counted twice, once for the prior's weights: 0.76 of it was kept."""
    (kept,), _ = shrunk_means(np.array([2.85]), 1.0)
    assert 0.3 * 2.85 < kept < 0.7 * 2.85


def test_a_published_mean_is_that_of_new_rows():
    """Few rows have a mean of their own: it is shrunk by its sampling error too."""
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((100, 3)), rng.standard_normal((100, 1))
    y += 0.25 - y.mean()
    bounds = {"feature_bounds": Bounds(norm=4.0), "outcome_bounds": Bounds(norm=4.0)}
    found = centred(released(x, y, epsilon=20, seed=0, **bounds))
    raw, _ = shrunk_means(np.array([0.25]), 0.01)
    assert raw[0] > 0.24
    assert 0.0 < found.outcome_means[0] < 0.21
    assert found.outcome_mean_variances[0] > 0.04**2


def test_outcomes_vary_no_more_than_their_bounds_allow():
    """Where the noise of their moments is larger than that, predictions varied as much as the noise."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(-1, 1, size=(100, 2)), rng.uniform(-1, 1, size=(100, 40))
    bounds = {"feature_bounds": Bounds(norm=1.5), "outcome_bounds": Bounds(norm=1.0)}
    moments = centred(released(x, y, epsilon=0.1, seed=0, **bounds)).moments
    assert moments.outcome_sigma * np.sqrt(40) > 100
    assert moments.total_variation == 100
