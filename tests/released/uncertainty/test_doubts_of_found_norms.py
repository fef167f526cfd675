"""Doubts do not advise another norm where primo chose it."""

import numpy as np
import pytest

import primo


@pytest.mark.parametrize(("norm", "advised"), [("auto", False), (0.8, True)])
@pytest.mark.filterwarnings("ignore::primo.ReproducibleNoiseWarning")
def test_advice_for_scales_that_are_too_wide(norm, advised):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(20_000, 2))
    release = (
        primo.PrimoRegressor(
            epsilon=5,
            delta=1e-6,
            feature_bounds=primo.Bounds(centre=0, scale=3, norm=norm),
            outcome_bounds=(-8, 8),
            random_state=1,
        )
        .fit(X, Y)
        .release_
    )
    (said,) = [words for words in release.doubts() if "vary less than the scales" in words]
    assert ("a longer norm" in said) is advised
    assert "scales that are standard deviations" in said


@pytest.mark.parametrize(("norm", "advised"), [("auto", False), (None, True)])
@pytest.mark.filterwarnings("ignore::primo.ReproducibleNoiseWarning")
def test_ranges_that_are_too_wide_cost_nothing_where_norms_are_found(norm, advised):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(20_000, 2))
    bounds = primo.Bounds(lower=-100, upper=100, norm=norm)
    given = {"feature_bounds": bounds, "outcome_bounds": bounds}
    model = primo.PrimoRegressor(epsilon=5, delta=1e-6, random_state=1, **given).fit(X, Y)
    said = " ".join(model.release_.doubts())
    assert ("noise grows with the range" in said) is advised


@pytest.mark.filterwarnings("ignore::primo.ReproducibleNoiseWarning")
def test_the_range_of_one_column_may_hide_it_all_the_same():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    Y = X @ rng.normal(size=(3, 2)) + rng.normal(size=(20_000, 2))
    wide = np.array([5.0, 5.0, 500.0])
    model = primo.PrimoRegressor(
        epsilon=5,
        delta=1e-6,
        random_state=1,
        feature_bounds=primo.Bounds(lower=-wide, upper=wide, norm="auto"),
        outcome_bounds=(-8, 8),
    ).fit(X, Y)
    (said,) = [words for words in model.release_.doubts() if "reaches more than" in words]
    assert "beside the others it drowns" in said
