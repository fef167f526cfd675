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
