"""What bounds say of the columns, and forecasts against fits of real rows in all kinds of bounds."""

import warnings

import numpy as np
import pytest

import primo
from primo.forecast.assumptions import Signal
from primo.forecast.forecast import predict
from primo.forecast.law import law_of
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds, as_bounds


def planned(x, y, *, n=3000, d=20, l=10, epsilon=3.0, intercept=True):
    return make_plan(
        Settings(
            epsilon=epsilon,
            delta=1 / n**2,
            feature_bounds=as_bounds(x, "feature"),
            outcome_bounds=as_bounds(y, "outcome"),
            fit_intercept=intercept,
        ),
        n=n,
        d=d,
        l=l,
    )


def test_centre_and_scale_are_mean_and_deviation():
    f = np.linspace(0.05, 0.5, 20)
    law = law_of(planned(Bounds.from_frequencies(f), 3.0), Signal())
    np.testing.assert_array_equal(law.features.mean, 0)
    np.testing.assert_array_equal(law.features.sd, 1)
    assert "centres and scales" in law.features.words
    stated = law.stated(planned(Bounds.from_frequencies(f), 3.0))
    np.testing.assert_allclose(stated.feature_mean, 2 * f)
    np.testing.assert_allclose(stated.feature_sd, np.sqrt(2 * f * (1 - f)))


def test_genotypes_lie_off_the_middle():
    law = law_of(planned((0, 2), (0, 1), d=500), Signal()).features
    f = (law.mean + 1) / 2
    assert law.genotypes.all()
    assert 0.05 <= f.min() < 0.06
    assert 0.49 < f.max() <= 0.5
    np.testing.assert_allclose(law.sd**2, 2 * f * (1 - f))
    assert law.norm == np.inf  # no genotype leaves its range
    assert "allele frequencies spread evenly over 0.05 to 0.5" in law.words
    half = law_of(planned(Bounds(lower=0, upper=2, norm=10), 1.0, d=500), Signal()).features
    assert half.norm == 10
    assert "shortened" in half.words


def test_a_range_or_a_norm_is_taken_to_fit():
    law = law_of(planned((-6, 6), 3.0), Signal())
    np.testing.assert_allclose(law.features.sd, 1 / 3)
    np.testing.assert_allclose(np.abs(law.features.mean), 1 / 4)
    assert law.outcomes.length**2 == pytest.approx(9 * Signal().outcome_share(10))
    both = law_of(planned(Bounds(lower=-6, upper=6, norm=2), 3.0), Signal()).features
    assert both.length**2 == pytest.approx(0.5 * 4)


def test_what_is_stated_goes_first():
    plan = planned((-6, 6), Bounds(lower=-5, upper=5, norm=2))
    signal = Signal(feature_sd=1.5, feature_mean=2.0, outcome_sd=tuple(np.arange(1.0, 11)))
    law = law_of(plan, signal)
    np.testing.assert_allclose(law.features.sd, 0.25)
    np.testing.assert_allclose(law.features.mean, 1 / 3)
    np.testing.assert_allclose(law.outcomes.sd, np.arange(1, 11) / 5)
    assert law.outcomes.cut  # standard deviations of up to 10 in a range of ±5
    assert not law.features.cut
    spread = law_of(plan, Signal(outcome_spread=0.2)).outcomes
    assert spread.share == pytest.approx(0.2)
    assert law.spreads().outcome_spread == 1.0


def rows(rng, n, w, *, mean, outcome_mean, r2):
    z = rng.standard_normal((n, len(w)))
    y = z @ w + np.sqrt(1 - r2) * rng.standard_normal((n, w.shape[1]))
    return z + mean, y + outcome_mean


def measured(plan, x, y, *, mean=0.0, outcome_mean=0.0, r2=0.4, draws=4):
    """Mean R², on new rows, of what `PrimoRegressor` publishes."""
    scores = []
    for seed in range(draws):
        rng = np.random.default_rng((11, seed))
        w = rng.standard_normal((plan.d, plan.l))
        w *= np.sqrt(r2 / (w**2).sum(axis=0))
        law = {"mean": mean, "outcome_mean": outcome_mean, "r2": r2}
        features, outcomes = rows(rng, plan.n, w, **law)
        model = primo.PrimoRegressor(
            plan.budget.epsilon,
            plan.budget.delta,
            feature_bounds=x,
            outcome_bounds=y,
            rounds=plan.round_count,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
            model.fit(features, outcomes)
        features, outcomes = rows(rng, 4000, w, **law)
        error = np.sum((outcomes - model.predict(features)) ** 2)
        scores.append(1 - error / np.sum((outcomes - outcomes.mean(axis=0)) ** 2))
    return float(np.mean(scores))


CENTRED = {"feature_mean": 0.0, "outcome_mean": 0.0}
UNIT = {"feature_sd": 1.0, "outcome_sd": 1.0}
CELLS = {
    # features in, outcomes in, what is stated, what the rows are like, and about what comes out
    "bounds that fit": (
        Bounds(centre=0.5, scale=1, norm=5.5),
        Bounds(centre=0.5, scale=1, norm=4.6),
        {},
        {"mean": 0.5, "outcome_mean": 0.5},
        (0.3, 0.4),
    ),
    "a range of ±20": ((-20, 20), (-20, 20), {**UNIT, **CENTRED}, {}, (-0.1, 0.05)),
    "a range of ±4, as assumed": (
        (-3, 3),
        (-3, 3),
        {},
        {"mean": 0.75 * (-1.0) ** np.arange(20), "outcome_mean": 0.75},
        (0.05, 0.3),
    ),
    "rows far too long": (
        Bounds(centre=0, scale=1.001, norm=2.5),
        Bounds(centre=0, scale=1.001, norm=2.0),
        {},
        {},
        (0.3, 0.4),
    ),
    "outcomes cut": (
        Bounds(centre=0, scale=1.001, norm=5.5),
        (-0.5, 0.5),
        {"outcome_sd": 1.0, "outcome_mean": 0.0},
        {},
        (0.2, 0.32),
    ),
}


@pytest.mark.parametrize("name", CELLS)
def test_the_forecast_is_what_a_fit_then_reaches(name):
    x, y, stated, like, (low, high) = CELLS[name]
    plan = planned(x, y)
    made = predict(plan, signal=Signal(r2=0.4, effective_rank=20, **stated)).r2
    assert made == pytest.approx(measured(plan, x, y, **like), abs=0.05)
    assert low < made < high


def test_the_offset_from_the_middle_counts():
    """The same features in ranges of the same width, about their means and far off them."""
    signal = Signal(r2=0.4, effective_rank=20, **UNIT, **CENTRED)
    centred = predict(planned((-5, 5), (-4, 4), n=8000), signal=signal)
    off = predict(planned((-1, 9), (-1, 7), n=8000), signal=signal)
    assert off.r2 < centred.r2 - 0.01
    known = predict(planned(Bounds(centre=0, scale=1, norm=5.5), (-4, 4), n=8000), signal=signal)
    assert known.r2 > centred.r2 + 0.05
