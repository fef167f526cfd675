"""The scikit-learn shell: conventions, containers, messages, and what it refuses."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

import primo

TRAINING_SCORE = "scores on the rows that were fitted, which primo refuses: it would leak them"


@pytest.mark.filterwarnings("ignore::primo.ReproducibleNoiseWarning")
@parametrize_with_checks(
    [primo.PrimoRegressor(5.0, 1e-6, feature_bounds=10.0, outcome_bounds=10.0)],
    expected_failed_checks=lambda _: {
        "check_fit_score_takes_y": TRAINING_SCORE,
        "check_pipeline_consistency": TRAINING_SCORE,
        "check_regressors_train": TRAINING_SCORE,
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def cohort(n=3000, d=4, l=3, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (n, d)).astype(float)
    w = rng.normal(size=(d, l))
    return x, (x - 1) @ w + 2 + 0.3 * rng.normal(size=(n, l)), w


def model(**changes):
    settings = {
        "epsilon": 8.0,
        "delta": 1e-6,
        "feature_bounds": (0, 2),
        "outcome_bounds": primo.Bounds(lower=-8, upper=12, norm=1.0),
    }
    return primo.PrimoRegressor(**{**settings, **changes})


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("estimator", ["auto", "ridge", "filter", "two-sided"])
def test_recovers_the_truth_where_there_is_enough_data(protection, estimator):
    x, y, w = cohort(n=60_500)
    held_x, held_y, x, y = x[:500], y[:500], x[500:], y[500:]
    public = {"outcomes": {"feature_bounds": None}, "features": {"outcome_bounds": None}}
    fitted = model(protection=protection, estimator=estimator, **public.get(protection, {}))
    fitted.fit(x, y)
    assert fitted.coef_.shape == (3, 4)
    np.testing.assert_allclose(fitted.coef_, w.T, atol=0.06)
    np.testing.assert_allclose(fitted.predict(np.ones((1, 4)))[0], 2, atol=0.1)
    assert fitted.score(held_x, held_y) > 0.9


def test_without_intercept_the_line_passes_through_the_public_centres():
    x, y, _ = cohort()
    fitted = model(fit_intercept=False).fit(x, y)
    np.testing.assert_allclose(fitted.predict(np.ones((1, 4)))[0], 2)
    assert fitted.release_.covariance.shape == (4, 4)


def test_one_dimensional_outcomes_stay_one_dimensional():
    x, y, _ = cohort()
    fitted = model().fit(x, y[:, 0])
    assert fitted.coef_.shape == (4,)
    assert isinstance(fitted.intercept_, float)
    assert fitted.predict(x).shape == (len(x),)


def test_data_frames_name_features_and_outcomes():
    x, y, _ = cohort()
    columns, outcomes = ["a", "b", "c", "e"], ["height", "weight", "pulse"]
    expected = model(random_state=1)
    with pytest.warns(primo.ReproducibleNoiseWarning):
        expected.fit(x, y)
    frames = [
        (pd.DataFrame(x, columns=columns), pd.DataFrame(y, columns=outcomes)),
        (pl.DataFrame(x, schema=columns), pl.DataFrame(y, schema=outcomes)),
    ]
    for features, targets in frames:
        fitted = model(random_state=1)
        with pytest.warns(primo.ReproducibleNoiseWarning):
            fitted.fit(features, targets)
        assert fitted.release_.feature_names == tuple(columns)
        assert fitted.release_.outcome_names == tuple(outcomes)
        assert fitted.outcome_names_.tolist() == outcomes
        np.testing.assert_array_equal(fitted.coef_, expected.coef_)
    series = model().fit(frames[0][0], frames[0][1]["pulse"])
    assert series.release_.outcome_names == ("pulse",)


def test_works_in_a_pipeline_and_clones():
    x, y, _ = cohort()
    pipeline = make_pipeline(PolynomialFeatures(1, include_bias=False), model())
    assert pipeline.fit(x, y).predict(x).shape == y.shape
    twin = clone(pipeline[-1])
    assert twin.get_params()["feature_bounds"] == (0, 2)
    assert not hasattr(twin, "coef_")


def test_two_fits_draw_different_noise_and_a_seed_the_same():
    x, y, _ = cohort()
    assert not np.array_equal(model().fit(x, y).coef_, model().fit(x, y).coef_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        a, b, c = (
            model(random_state=seed, n_jobs=jobs).fit(x, y)
            for seed, jobs in ((1, 1), (1, 2), (2, 1))
        )
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert not np.array_equal(a.coef_, c.coef_)


def test_a_seeded_release_says_that_it_is_not_for_publication():
    x, y, _ = cohort()
    with pytest.warns(primo.ReproducibleNoiseWarning, match="not private"):
        fitted = model(random_state=3).fit(x, y)
    assert not fitted.release_.publishable
    assert "reproducible: not for publication" in repr(fitted.release_)
    assert model().fit(x, y).release_.publishable


def test_the_statement_says_what_a_steward_asks():
    x, y, _ = cohort()
    statement = repr(model(protection="features", outcome_bounds=None).fit(x, y).release_)
    for words in (
        "features of every row",
        "(8, 1e-06)",
        "GDP",
        "replacing one row",
        "3000",
        "a range per column",
        "sigma",
        "all outcomes",
        "exact (public)",
    ):
        assert words in statement, words


def test_training_score_is_refused_and_held_out_score_is_not():
    x, y, _ = cohort()
    fitted = model().fit(x, y)
    for again in (x, x.copy(), pd.DataFrame(x)):
        with pytest.raises(primo.PrivacyError, match="held-out"):
            fitted.score(again, y)
    assert fitted.score(x[:1500], y[:1500]) < 1


def test_nothing_of_the_rows_is_in_a_pickle_or_a_copy():
    x, y, _ = cohort()
    sentinel = 1.2345678901234567
    x[17, 2], y[17, 1] = sentinel, -sentinel
    fitted = model().fit(x, y)
    for twin in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        assert not hasattr(twin, "_fitted_on")
        np.testing.assert_array_equal(twin.coef_, fitted.coef_)
    assert np.float64(sentinel).tobytes() not in pickle.dumps(fitted)
    assert not any(
        np.shares_memory(value, x)
        for value in vars(fitted).values()
        if isinstance(value, np.ndarray)
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"feature_bounds": None}, "features are private and have no bounds"),
        ({"outcome_bounds": None}, "outcomes are private and have no bounds"),
        ({"epsilon": -2}, "epsilon=-2"),
        ({"delta": 0}, "delta=0"),
        ({"protection": "full"}, "'full'.*'both', 'features', 'outcomes'"),
        ({"estimator": "lasso"}, "'lasso'.*auto, ridge"),
        ({"association": "magic"}, "'magic'.*gauss"),
        ({"backend": "numpy"}, "'numpy'"),
        ({"random_state": "x"}, "random_state='x'"),
        ({"feature_bounds": "wide"}, "'wide'"),
        ({"feature_bounds": (2, 0)}, "lower=2 is not below upper=0"),
    ],
)
def test_bad_parameters_are_refused_by_value(changes, message):
    x, y, _ = cohort(n=100)
    with pytest.raises(primo.PrimoError, match=message):
        model(**changes).fit(x, y)


def test_missing_values_are_refused_without_saying_where_and_can_be_centred():
    x, y, _ = cohort()
    y[1234, 1] = np.nan
    with pytest.raises(primo.InputError) as caught:
        model().fit(x, y)
    assert "1234" not in str(caught.value)
    assert 'missing="centre"' in str(caught.value)
    assert np.isfinite(model(missing="centre").fit(x, y).coef_).all()


def test_unequal_rows_are_refused():
    x, y, _ = cohort()
    with pytest.raises(ValueError, match="inconsistent"):
        model().fit(x[:-1], y)
