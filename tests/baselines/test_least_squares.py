from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from sklearn.linear_model import Ridge as TheirRidge
from sklearn.linear_model import RidgeCV

from baselines.base import ExactMoments
from baselines.least_squares import LeastSquares, Ridge


def test_least_squares_is_numpys(rows):
    features, outcomes = rows
    expected = np.linalg.lstsq(features, outcomes, rcond=None)[0]
    np.testing.assert_allclose(LeastSquares().fit(features, outcomes).coef_.T, expected)


def test_of_many_solutions_the_shortest(rows):
    features, outcomes = rows
    doubled = np.hstack([features, features[:, :2], np.zeros((len(features), 1))])
    expected = np.linalg.lstsq(doubled, outcomes, rcond=None)[0]
    np.testing.assert_allclose(
        LeastSquares().fit(doubled, outcomes).coef_.T, expected, rtol=1e-6, atol=1e-9
    )
    few = doubled[:3], outcomes[:3]
    np.testing.assert_allclose(
        LeastSquares().fit(*few).coef_.T, np.linalg.lstsq(*few, rcond=None)[0], atol=1e-7
    )


def test_rows_are_shortened_only_on_request(rows):
    features, outcomes = rows
    free = LeastSquares().fit(100 * features, outcomes)
    np.testing.assert_allclose(100 * free.coef_, LeastSquares().fit(features, outcomes).coef_)
    bound = LeastSquares(feature_bounds=1.0).fit(100 * features, outcomes)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    np.testing.assert_allclose(bound.coef_, LeastSquares().fit(unit, outcomes).coef_)


def test_a_given_penalty_is_scikit_learns(rows):
    features, outcomes = rows
    theirs = TheirRidge(alpha=3.0, fit_intercept=False).fit(features, outcomes)
    np.testing.assert_allclose(Ridge(penalty=3.0).fit(features, outcomes).coef_, theirs.coef_)


@pytest.mark.parametrize("noise", [0.5, 20.0])
def test_cross_validation_is_scikit_learns_where_leverages_are_equal(noise):
    # scikit-learn leaves out one row at a time; with ±s_k as k-th column all rows have one leverage.
    rng = np.random.default_rng(5)
    features = scipy.linalg.hadamard(64)[:, 1:9] * np.geomspace(0.05, 3, 8)
    outcomes = features @ rng.normal(size=(8, 5)) + noise * rng.normal(size=(64, 5))
    penalties = np.geomspace(1e-3, 1e5, 60)
    theirs = RidgeCV(penalties, fit_intercept=False).fit(features, outcomes)
    ours = Ridge(penalties=penalties).fit(features, outcomes)
    assert 1e-3 < ours.penalty_ < 1e5
    assert ours.penalty_ == pytest.approx(theirs.alpha_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_)


def test_the_refined_penalty_is_no_worse_than_a_fine_grid():
    rng = np.random.default_rng(5)
    features = rng.normal(size=(60, 20))
    outcomes = features @ rng.normal(size=(20, 5)) + 20 * rng.normal(size=(60, 5))

    def score(penalty: float) -> float:
        fitted = Ridge(penalty=penalty).fit(features, outcomes)
        hat = features @ np.linalg.solve(features.T @ features + penalty * np.eye(20), features.T)
        residual = np.sum((outcomes - fitted.predict(features)) ** 2)
        return float(60 * residual / (60 - np.trace(hat)) ** 2)

    best = min(score(penalty) for penalty in np.geomspace(1e-4, 1e6, 300))
    assert score(Ridge().fit(features, outcomes).penalty_) <= best * (1 + 1e-9)


def test_ridge_needs_no_more_than_the_diagonal_of_outcome_moments(rows):
    whole = ExactMoments.of(*rows, full=True)
    assert whole.outcome.ndim == 2
    # The penalty is searched for around a flat minimum: rounding moves it by the root of a rounding.
    np.testing.assert_allclose(
        Ridge().fit_moments(whole).coef_,
        Ridge().fit_moments(ExactMoments.of(*rows)).coef_,
        rtol=1e-5,
    )


def test_nothing_to_learn_gives_zeros():
    zeros = np.zeros((10, 3)), np.zeros((10, 2))
    assert not LeastSquares().fit(*zeros).coef_.any()
    assert not Ridge().fit(*zeros).coef_.any()
