"""Coverage on small cells, with bounds that a wrong standard error (×0.87, ×1.15) would break."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from primo.released import uncertainty

PROTECTIONS = ("both", "features", "outcomes")
DRAWS = 40


def covered(made, truth):
    rows = slice(0, len(truth)) if truth.ndim == 2 else slice(None)
    return (made.lower[rows] <= truth) & (truth <= made.upper[rows])


def assert_nominal(hits, *, low=0.93, high=0.97):
    # Two standard deviations of independent cells around the claimed range.
    slack = 2 * np.sqrt(0.05 * 0.95 / hits.size)
    assert low - slack <= hits.mean() <= high + slack


@pytest.mark.parametrize("protection", PROTECTIONS)
@pytest.mark.parametrize("intercept", [True, False])
def test_coefficients_predictions_and_fit(world, protection, intercept):
    draw = world(protection=protection, intercept=intercept)
    rng = np.random.default_rng(1)
    hits = {name: [] for name in ("population", "rows", "posterior", "predict", "shrunk", "fit")}
    points = rng.standard_normal((5, 4))
    for _ in range(DRAWS):
        release, truth = draw(rng)
        made = uncertainty.coefficient_intervals(release)
        assert made.trusted.all()
        hits["population"].append(covered(made, truth.population))
        rows = {"target": "rows"}
        hits["rows"].append(covered(uncertainty.coefficient_intervals(release, **rows), truth.rows))
        shrunk = uncertainty.coefficient_intervals(release, kind="posterior", **rows)
        hits["posterior"].append(covered(shrunk, truth.rows))
        predicted = points @ truth.rows + truth.intercept
        for name, kind in (("predict", "confidence"), ("shrunk", "posterior")):
            made = uncertainty.prediction_intervals(release, points, kind=kind, **rows)
            hits[name].append(covered(made, predicted))
        fit = uncertainty.goodness_of_fit(release)
        hits["fit"].append(covered(fit, truth.r_squared)[fit.trusted])
    for hit in hits.values():
        assert_nominal(np.concatenate([np.ravel(part) for part in hit]))


def test_a_wrong_noise_scale_would_be_noticed(world):
    draw = world()
    rng = np.random.default_rng(2)
    hits = {0.8: [], 1.25: []}
    for _ in range(DRAWS):
        release, truth = draw(rng)
        made = uncertainty.coefficient_intervals(release, target="rows")
        for factor, list_ in hits.items():
            half = factor * (made.upper - made.lower) / 2
            middle = (made.upper + made.lower) / 2
            wrong = dataclasses.replace(made, lower=middle - half, upper=middle + half)
            list_.append(covered(wrong, truth.rows))
    for hit in hits.values():
        with pytest.raises(AssertionError):
            assert_nominal(np.array(hit))


def test_one_feature_one_outcome(world):
    draw = world(1, 1, epsilon=1.0, nulls=0.0)
    rng = np.random.default_rng(3)
    hits, fits = [], []
    for _ in range(300):
        release, truth = draw(rng)
        made = uncertainty.coefficient_intervals(release)
        assert made.estimate.shape == (2, 1)
        hits.append(covered(made, truth.population))
        fits.append(covered(uncertainty.goodness_of_fit(release), truth.r_squared))
    assert_nominal(np.array(hits))
    assert_nominal(np.array(fits))
    assert not uncertainty.coefficient_intervals(release, kind="posterior").trusted.any()


@pytest.mark.parametrize("protection", ["both", "outcomes"])
def test_nearly_singular_covariance_is_wide_not_wrong(world, protection):
    draw = world(collinear=0.02, protection=protection, epsilon=8.0)
    rng = np.random.default_rng(4)
    pair, rest, trusted, finite = [], [], [], []
    for _ in range(DRAWS):
        release, truth = draw(rng)
        made = uncertainty.coefficient_intervals(release)
        hit = covered(made, truth.population)
        pair.append(hit[:2])
        rest.append(hit[2:])
        trusted.append(made.trusted)
        assert (made.upper - made.lower)[:2].min() > 2 * truth.ols_error[:2].min()
        finite.append(np.isfinite(made.upper[2:4]))
    assert np.mean(pair) > 0.93
    assert np.mean(finite) > 0.9
    assert_nominal(np.array(rest))
    if protection == "both":
        assert not np.array(trusted)[:, :2].any()
        assert np.array(trusted)[:, 2:4].mean() > 0.9


def test_exact_duplicates_are_unbounded_and_leave_others_alone(world):
    release, truth = world(collinear=0.0, protection="outcomes")(np.random.default_rng(5))
    made = uncertainty.coefficient_intervals(release)
    assert np.isinf(made.upper[:2]).all()
    assert not made.trusted[:2].any()
    assert np.isfinite(made.upper[2:]).all()
    assert made.trusted[2:].all()
    assert covered(made, truth.population)[2:].mean() > 0.8
    both = uncertainty.contrasts(release, [1, 1, 0, 0])
    assert np.isfinite(both.upper).all()


def test_null_p_values_are_uniform_and_false_discoveries_rare(world):
    draw = world(nulls=0.6, epsilon=3.0)
    rng = np.random.default_rng(6)
    null_p, false = [], []
    for _ in range(DRAWS):
        release, truth = draw(rng)
        tested = uncertainty.tests(release)
        null = truth.population == 0
        null_p.append(tested.p[null])
        found = tested.q <= 0.1
        false.append((found & null).sum() / max(found.sum(), 1))
        assert (found & ~null).any()
    null_p = np.concatenate(null_p)
    assert stats.kstest(null_p, "uniform").pvalue > 1e-3
    assert abs(np.mean(null_p < 0.05) - 0.05) < 0.02
    assert np.mean(false) < 0.1


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_joint_tests_are_uniform_when_nothing_is_there(world, protection):
    draw = world(nulls=1.0, protection=protection)
    rng = np.random.default_rng(7)
    tested = [uncertainty.tests(draw(rng)[0]) for _ in range(25)]
    outcome_p = np.concatenate([t.outcome_p for t in tested])
    feature_p = np.concatenate([t.feature_p for t in tested])
    assert stats.kstest(outcome_p, "uniform").pvalue > 1e-3
    assert stats.kstest(feature_p, "uniform").pvalue > 1e-3


def test_joint_tests_find_what_is_there(world):
    release, truth = world(nulls=0.0, epsilon=5.0)(np.random.default_rng(8))
    tested = uncertainty.tests(release)
    assert (tested.outcome_q < 0.05).mean() > 0.9
    assert (tested.feature_q < 0.05).all()
    fit = uncertainty.goodness_of_fit(release)
    assert fit.verdict.count("signal found") == fit.found.sum() >= 18
    assert truth.r_squared.mean() == pytest.approx(fit.r_squared.mean(), abs=0.1)


def test_nothing_is_found_in_noise(world):
    release, _ = world(nulls=1.0, epsilon=1.0)(np.random.default_rng(9))
    fit = uncertainty.goodness_of_fit(release)
    assert set(fit.verdict) == {"not distinguishable from noise"}
    assert fit.lower.max() < 0.2


def test_the_bootstrap_agrees_with_the_formula(world):
    release, _ = world(l=6, epsilon=5.0)(np.random.default_rng(10))
    formula = uncertainty.coefficient_intervals(release)
    drawn = uncertainty.bootstrap_intervals(release, draws=120)
    ratio = (drawn.upper - drawn.lower) / (formula.upper - formula.lower)[:-1]
    assert ratio.min() > 0.85
    assert ratio.max() < 1.2
