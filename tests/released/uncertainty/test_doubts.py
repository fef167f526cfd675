"""Bounds that do not fit are noticed from released numbers; bounds that fit raise no doubt."""

import warnings

import numpy as np
import pandas as pd
import pytest

import primo
from primo.released.uncertainty.doubts import FALSE_ALARM, bound_doubts

N, D = 6000, 4


def rows(seed=0):
    """Four features and one outcome of a plain kind: mean 0, standard deviation about 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D))
    Y = X @ np.array([0.5, -0.4, 0.3, 0.2])[:, None] + 0.7 * rng.normal(size=(N, 1))
    return X, Y


def doubts(X, Y, feature_bounds=(-4, 4), outcome_bounds=(-4, 4), seed=1, **settings):
    """Fixed seeds throughout, so no test here can fail by chance."""
    settings = {"epsilon": 3.0, "delta": 1e-6, "random_state": seed, **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        model = primo.PrimoRegressor(
            feature_bounds=feature_bounds, outcome_bounds=outcome_bounds, **settings
        ).fit(
            pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]),
            pd.DataFrame(Y, columns=[f"y{j}" for j in range(Y.shape[1])]),
        )
    return bound_doubts(model.release_)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_good_bounds_raise_no_doubt(protection, fit_intercept):
    for seed in range(10):
        X, Y = rows(seed)
        settings = {"protection": protection, "fit_intercept": fit_intercept, "seed": seed}
        assert doubts(X, Y, **settings) == ()
        norms = {"feature_bounds": primo.Bounds(norm=1.2 * D**0.5), "outcome_bounds": 1.8}
        assert doubts(X, Y, **settings, **norms) == ()


def test_columns_of_two_values_raise_no_doubt():
    rng = np.random.default_rng(2)
    X = rng.integers(0, 2, size=(N, D)).astype(float)
    Y = (rng.random((N, 1)) < 0.3 + 0.2 * X[:, :1]).astype(float)
    assert not [said for said in doubts(X, Y, (0, 1), (0, 1)) if "range 0 to" not in said]


@pytest.mark.parametrize("block", ["feature", "outcome"])
def test_ranges_that_are_5000_times_too_small(block):
    X, Y = rows()
    (said,) = doubts(X, Y, **{f"{block}_bounds": (-4 / 5000, 4 / 5000)})
    assert "at the two ends of their range" in said
    assert block in said
    assert "Next time: a range that holds most values" in said


@pytest.mark.parametrize("block", ["feature", "outcome"])
def test_norms_that_are_5000_times_too_small(block):
    X, Y = rows()
    (said,) = doubts(X, Y, **{f"{block}_bounds": 2.4 / 5000})
    assert f"nearly all rows of {block}s are as long as their norm" in said.lower()
    assert "Σ (sd² + (mean − middle)²)" in said


@pytest.mark.parametrize("block", ["feature", "outcome"])
@pytest.mark.parametrize("kind", ["range", "norm"])
def test_bounds_that_are_100_000_times_too_wide(block, kind):
    X, Y = rows()
    said = doubts(X, Y, **{f"{block}_bounds": (-4e5, 4e5) if kind == "range" else 2.4e5})
    (told,) = [words for words in said if "cannot be told from noise" in words]
    assert f"variation of the {block}s as a whole" in told
    assert "much too wide" in told


def test_ranges_that_are_40_times_too_wide_and_known_well():
    X, Y = rows()
    said = doubts(X, Y, feature_bounds=(-40, 40), protection="outcomes")
    assert "reaches more than 20 standard deviations to either side" in said[0]


def test_cases_and_controls_coded_1_and_2():
    X, Y = rows()
    cases = 1.0 + (Y > 0)
    (said,) = doubts(X, cases, outcome_bounds=(0, 1))
    assert "next to or beyond one end of their range" in said
    assert "the outcome y0" in said
    assert "1 and 2 in a range of 0 to 1" in said


@pytest.mark.parametrize(("unit", "bounds"), [(100, (1.2, 2.2)), (1, (120, 220))])
def test_centimetres_and_metres(unit, bounds):
    X, Y = rows()
    X = X.copy()
    X[:, 2] = unit * (1.7 + 0.1 * X[:, 2])
    lower, upper = np.full(D, -4.0), np.full(D, 4.0)
    lower[2], upper[2] = bounds
    (said,) = doubts(X, Y, feature_bounds=(lower, upper))
    assert "1 of 4 features (x2) lie next to or beyond one end" in said
    assert "centimetres" in said


def test_means_near_an_edge():
    X, Y = rows()
    said, *_ = doubts(0.3 * X + 3.5, Y, feature_bounds=(-4, 4))
    assert "the mean of 4 of 4 features (for example x0, x1, x2) lies near an end" in said.lower()
    (said,) = doubts(X + 5, Y, feature_bounds=12.0)
    assert "distance of their means from the centres of their bounds" in said


def test_means_lost_in_noise():
    rng = np.random.default_rng(6)
    X, Y = rng.normal(size=(600, 120)), rng.normal(size=(600, 60))
    said = doubts(X, Y, epsilon=0.3, feature_bounds=12.0, outcome_bounds=8.5)
    (told,) = [words for words in said if "The noise of the means of the outcomes" in words]
    assert "Next time: centres near the publicly known means" in told


def test_genotypes_without_frequencies_are_told_of_them():
    rng = np.random.default_rng(3)
    X = rng.binomial(2, 0.4, size=(N, D)).astype(float)
    Y = X[:, :1] - 0.8 + rng.normal(size=(N, 1))
    said = doubts(X, Y, (0, 2))
    assert len(said) == 1
    assert "4 of 4 features have the range 0 to 2" in said[0]
    assert "--frequencies" in said[0]
    assert not doubts(X, Y, primo.Bounds.from_frequencies([0.4] * D))


def test_no_doubt_is_made_of_noise_alone():
    """The limits hold at the edge: columns exactly at a limit are doubted with probability < 1e-6."""
    rng = np.random.default_rng(4)
    X, Y = rows()
    edge = 0.8 * 4 + 0.3 * X
    for _ in range(20):
        said = doubts(edge - edge.mean(axis=0) + 3.2, Y, seed=int(rng.integers(1 << 30)))
        assert not any("near an end" in words for words in said)
    assert FALSE_ALARM < 1e-6


def test_names_are_cut_and_counted():
    rng = np.random.default_rng(5)
    X = np.full((N, 12), 3.0) + 0.1 * rng.normal(size=(N, 12))
    said = doubts(X, rows()[1], feature_bounds=(0, 1))
    assert "12 of 12 features (for example x0, x1, x2)" in said[0]
