"""A stated R² is true: bounds that do not fit leave it open. Fixed seeds throughout."""

import warnings

import numpy as np
import pandas as pd
import pytest

import primo
from primo.released import uncertainty
from primo.released.uncertainty.published import _toward_common
from primo.released.uncertainty.words import r2_words, spread_words

N = 40_000
GOOD = np.full(4, 4.0)


def release(feature_half=GOOD, outcome_half=GOOD, shift=0.0, n=N, epsilon=3.0):
    """Four features and outcomes with R² of 0.6, 0.2, 0.4 and 0.3; half-widths of their ranges."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    share = np.array([0.6, 0.2, 0.4, 0.3])
    Y = X * np.sqrt(share) + rng.normal(size=(n, 4)) * np.sqrt(1 - share)
    Y[:, 3] += shift
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        return (
            primo.PrimoRegressor(
                epsilon=epsilon,
                delta=1e-6,
                feature_bounds=primo.Bounds(lower=-feature_half, upper=feature_half),
                outcome_bounds=primo.Bounds(lower=-outcome_half, upper=outcome_half),
                random_state=1,
            )
            .fit(pd.DataFrame(X, columns=list("abcd")), pd.DataFrame(Y, columns=list("stuv")))
            .release_
        )


def both(made):
    return uncertainty.published_r_squared(made), uncertainty.goodness_of_fit(made)


def test_good_bounds_are_trusted():
    published, fit = both(release())
    assert published.trusted.all()
    assert fit.trusted.all()
    assert published.usable.all()


@pytest.mark.parametrize("case", ["wide", "beyond", "cut"])
def test_one_bad_outcome_is_named_and_leaves_the_others_true(case):
    half = GOOD.copy()
    half[3] = {"wide": 1e5, "beyond": 4.0, "cut": 0.01}[case]
    made = release(outcome_half=half, shift=100.0 if case == "beyond" else 0.0)
    for found in both(made):
        assert found.trusted.tolist() == [True, True, True, False]
        assert found.r_squared[:3] == pytest.approx([0.6, 0.2, 0.4], abs=0.06)
    assert uncertainty.published_r_squared(made).usable.tolist() == [True, True, True, False]
    assert any("1 of 4 outcomes (v)" in said for said in made.doubts())


def test_outcomes_lost_altogether_have_no_r_squared():
    published, fit = both(release(outcome_half=1e5 * GOOD))
    assert not published.trusted.any()
    assert not published.pooled_trusted
    assert published.together == "not determined"
    assert not fit.trusted.any()


def test_cut_features_leave_r_squared_open():
    half = GOOD.copy()
    half[3] = 0.01
    published, fit = both(release(feature_half=half))
    assert not published.trusted.any()
    assert published.together == "not determined"
    assert not fit.trusted.any()


@pytest.mark.parametrize("settings", [{"feature_half": 1e6 * GOOD}, {"n": 1}, {"n": 2}])
def test_nothing_is_known_and_no_arithmetic_warning(settings):
    made = release(**settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        published, fit = both(made)
    assert not fit.trusted.any()
    for numbers in (published.r_squared, published.standard_error, fit.r_squared):
        assert np.isfinite(numbers).all()


def test_an_unsure_outcome_does_not_make_all_alike():
    found, error = np.array([0.55, 0.17, 0.0, 0.45]), np.array([0.02, 0.02, 0.4, 0.02])
    shrunk, errors = _toward_common(found, error, 0.01)
    assert shrunk[[0, 1, 3]] == pytest.approx(found[[0, 1, 3]], abs=0.01)
    assert (errors[[0, 1, 3]] < 0.03).all()


def test_words():
    assert r2_words(-0.001) == "0.00"
    assert spread_words(np.array([0.94]), 2) == "0.94; determined for 1 of 2 outcomes only"
    assert spread_words(np.array([]), 4) == "determined for none of the 4 outcomes alone"
    assert spread_words(np.array([]), 1) == "not determined"
    assert spread_words(np.array([0.1, 0.2]), 40) == "not determined for 38 of 40 single outcomes"
    assert spread_words(np.array([0.1, 0.2, 0.3]), 3) == "median 0.20 (lowest 0.10, highest 0.30)"


def tailed(features, residual, feature_bounds=None, outcome_bounds=None, **settings):
    """One outcome of four features with R² of 0.5; bounds that fit normal rows of deviation 1."""
    n = len(features)
    Y = features.sum(axis=1, keepdims=True) / 2 * np.sqrt(0.5)
    Y = Y + np.sqrt(0.5) * residual.reshape(n, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        model = primo.PrimoRegressor(
            epsilon=3.0,
            delta=1e-6,
            feature_bounds=feature_bounds or primo.Bounds(centre=0, scale=1.001, norm=3.3),
            outcome_bounds=outcome_bounds or primo.Bounds(centre=0, scale=1.001, norm=2.2),
            random_state=1,
            **settings,
        )
        return model.fit(features, Y).release_


@pytest.mark.parametrize("where", ["features", "residuals", "nowhere"])
def test_heavy_tails_that_were_shortened_leave_r_squared_open(where):
    """Scales say how much columns vary; what the longest rows held of it is missing."""
    rng = np.random.default_rng(3)
    X, residual = rng.normal(size=(N, 4)), rng.normal(size=N)
    heavy = rng.standard_t(2.3, size=(N, 5)) / np.sqrt(2.3 / 0.3)
    made = tailed(
        heavy[:, :4] if where == "features" else X,
        heavy[:, 4] if where == "residuals" else residual,
    )
    published, fit = both(made)
    doubted = any("vary less than the scales of their bounds say" in d for d in made.doubts())
    assert doubted == (where != "nowhere")
    assert fit.trusted.all() == published.trusted.all() == (where == "nowhere")
    if where == "nowhere":
        assert fit.r_squared[0] == pytest.approx(0.5, abs=0.04)


def test_scales_that_promise_nothing_are_not_held_to_it():
    """A norm that no row comes near shortens nothing, whatever the scales are."""
    rng = np.random.default_rng(4)
    X, residual = rng.normal(size=(N, 4)), rng.normal(size=N)
    for bounds in (primo.Bounds(centre=0, scale=4, norm=3.3), primo.Bounds(norm=3.3)):
        assert both(tailed(X, residual, feature_bounds=bounds))[1].trusted.all()
    X = rng.binomial(2, 0.3, size=(N, 4)).astype(float)  # of another frequency than the panel's
    panel = primo.Bounds.from_frequencies([0.5] * 4)
    outcome_bounds = primo.Bounds(centre=0.85, scale=0.82, norm=3.0)
    assert both(tailed(X, residual, panel, outcome_bounds, rounds=1))[1].trusted.all()


@pytest.mark.parametrize("half", [1.0, 0.5])
def test_columns_of_minus_one_and_one_keep_their_r_squared(half):
    rng = np.random.default_rng(5)
    X = half * rng.choice([-1.0, 1.0], size=(N, 4))
    made = tailed(X, rng.normal(size=N), (-half, half), (-4, 4))
    published, fit = both(made)
    assert fit.trusted.all()
    assert published.trusted.all()
    (said,) = made.doubts()
    assert "as those of columns of two values do: they are taken for that" in said


def test_signs_and_something_between_are_not_two_values():
    rng = np.random.default_rng(6)
    X = np.clip(40 * rng.normal(size=(N, 4)), -1, 1)
    fit = both(tailed(X, rng.normal(size=N), (-1, 1), (-4, 4)))[1]
    assert not fit.trusted.any()
