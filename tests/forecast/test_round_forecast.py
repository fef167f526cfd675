"""The forecast of several rounds: what residuals look like, and what rounds gain."""

import warnings

import numpy as np
import pytest

import primo
from primo.errors import InputError
from primo.forecast.assumptions import Signal
from primo.forecast.compare import choose_plan
from primo.forecast.forecast import predict
from primo.forecast.law import law_of
from primo.forecast.round_releases import _squares_kept, release_rounds
from primo.forecast.rows import sum_unshortened
from primo.forecast.simulate import draw
from primo.planning.rounds import as_one_round
from primo.planning.settings import Settings
from primo.released import round_release
from primo.released.estimate.rounds import next_step
from primo.released.estimate.rounds.lengths import mean_slope

SIGNAL = Signal(r2=0.8, feature_spread=0.25, outcome_spread=0.25)


def plan_of(rounds, *, n=3000, d=6, l=4, **more):
    bounds = primo.Bounds(norm=1.0)
    settings = Settings(
        epsilon=1, delta=1e-7, feature_bounds=bounds, outcome_bounds=bounds, rounds=rounds, **more
    )
    return choose_plan(settings, n=n, d=d, l=l)


@pytest.mark.parametrize(("m", "clip"), [(1, 0.3), (5, 0.8), (40, 1.0), (5, 3.0)])
def test_shortened_residuals_are_a_part_of_them_and_something_unrelated(m, clip):
    """R̃ = κR + U: the squares kept, the slope and the length of U, against drawn residuals."""
    rows = np.random.default_rng(0).standard_normal((200_000, m)) / np.sqrt(m)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    short = rows * np.minimum(1.0, clip / lengths)
    kept, slope = _squares_kept(clip, m), mean_slope(1.0, clip, m)
    assert np.sum(short**2, axis=1).mean() == pytest.approx(kept, rel=0.01)
    assert np.sum(short * rows, axis=1).mean() == pytest.approx(slope, rel=0.01)
    rest = np.sum((short - slope * rows) ** 2, axis=1).mean()
    assert rest == pytest.approx(kept - slope**2, rel=0.05, abs=1e-3)


def test_rows_that_no_bound_shortens_have_the_same_sums():
    plan = plan_of(3)
    law = law_of(plan, Signal(r2=0.8, feature_spread=0.01, outcome_spread=0.01))
    for n in (300, 50_000):
        whole = plan_of(3, n=n)
        drawn = draw(whole, law, 4, seed=(7, 0))
        sums, found = drawn.sums, drawn.unshortened
        assert np.allclose(found.between[:-1, :-1], sums.covariance)
        assert np.allclose(found.covariance[:-1, -1], sums.feature_sums)
        assert found.covariance[-1, -1] == pytest.approx(n)
        # Outcomes that are shortened are separated by regression, which these are not.
        assert np.allclose(found.association[:-1], sums.association, rtol=0.02, atol=0.02 * n)
        trace = np.trace(sums.outcome_moments)
        assert np.trace(found.outcome_moments) == pytest.approx(trace, rel=0.01)


def test_residuals_of_the_truth_are_as_long_as_what_is_not_explained():
    plan = plan_of(3, fit_intercept=False)
    law = law_of(plan, SIGNAL)
    drawn = draw(plan, law, 4, seed=(7, 0))
    sums, slopes = sum_unshortened(law, drawn.truth, n=plan.n, seed=(7, 0)), drawn.truth.slopes
    products = sums.products[:-1]
    left = sums.outcome_moments - slopes.T @ products - products.T @ slopes
    left += slopes.T @ sums.covariance[:-1, :-1] @ slopes
    expected = plan.n * np.sum(drawn.truth.residual**2)
    assert np.trace(left) == pytest.approx(expected, rel=0.05)


def test_rounds_of_a_simulated_release_are_those_of_the_plan(monkeypatch):
    # A release keeps the mean of all covariances; here each round keeps the one its step was made of.
    monkeypatch.setattr(round_release, "sharing_covariance", lambda rounds: rounds)
    plan = plan_of(3)
    drawn = draw(plan, law_of(plan, SIGNAL), 4, seed=(7, 1))
    release = release_rounds(drawn, plan)
    assert len(release.rounds) == 3
    first, second, last = release.rounds
    assert not first.coefficients.any()
    step = next_step(release.plan, release.rounds[:2])
    assert np.allclose(last.coefficients, step.coefficients)
    assert last.clip == pytest.approx(step.clip)
    assert last.clip < second.clip < first.clip
    # Noise is in proportion to the clip: budgets are equal.
    assert last.association_sigma / first.association_sigma == pytest.approx(
        last.clip / first.clip, rel=0.01
    )
    assert last.covariance_sigma == pytest.approx(first.covariance_sigma, rel=0.01)


def test_residuals_of_public_outcomes_have_noise_and_the_outcomes_have_none():
    plan = plan_of(3, protection="features")
    drawn = draw(plan, law_of(plan, SIGNAL), 4, seed=(7, 1))
    release = release_rounds(drawn, plan)
    first, _, last = release.rounds
    assert last.coefficients.any()
    assert first.outcome_sigma == release.outcome_sigma == 0
    of_both = plan_of(3).outcome_sigma * (last.clip / first.clip) ** 2
    assert last.outcome_sigma == pytest.approx(of_both, rel=0.01)
    np.testing.assert_array_equal(release.association[-1], first.association[-1])


@pytest.mark.parametrize(("l", "rounds"), [(4, 6), (1001, 1)])
def test_auto_takes_rounds_or_a_projection_by_what_is_predicted(l, rounds):
    """Where outcomes are public and many, the projection is better than any number of rounds."""
    bounds = {"feature_bounds": primo.Bounds(norm=4.0), "outcome_bounds": primo.Bounds(norm=l**0.5)}
    settings = Settings(
        epsilon=5, delta=1e-7, protection="features", association="auto", rounds="auto", **bounds
    )
    plan = choose_plan(settings, n=5000, d=25, l=l)
    assert plan.round_count == rounds
    assert plan.association == ("gauss" if rounds > 1 else "projection")


def test_a_large_delta_is_said_once():
    settings = Settings(
        epsilon=5, delta=0.01, rounds="auto", feature_bounds=1.0, outcome_bounds=1.0
    )
    with pytest.warns(primo.WeakGuaranteeWarning) as said:
        plan = choose_plan(settings, n=5000, d=5, l=2)
    assert plan.round_count > 1
    assert len(said) == 1


@pytest.mark.parametrize("protection", ["both", "outcomes", "features"])
def test_forecast_of_rounds_is_what_a_fit_reaches(protection):
    """Rows as they are assumed: forecast and mean of held-out R² over draws, one round and three."""
    n, d, l = 1200, 6, 4
    signal = Signal(
        r2=0.8, feature_spread=0.25, outcome_spread=0.25, effective_rank=d, alignment=0.0
    )
    measured = {1: [], 3: []}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n + 3000, d)) * np.sqrt(0.25 / d)
        explained = X @ rng.standard_normal((d, l))
        explained *= np.sqrt(0.8 * 0.25 / l) / explained.std(axis=0)
        Y = explained + rng.standard_normal(explained.shape) * np.sqrt(0.2 * 0.25 / l)
        for rounds, scores in measured.items():
            model = primo.PrimoRegressor(
                1,
                1e-7,
                protection=protection,
                feature_bounds=primo.Bounds(norm=1.0),
                outcome_bounds=primo.Bounds(norm=1.0),
                rounds=rounds,
                random_state=seed,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X[:n], Y[:n])
            wrong = np.sum((Y[n:] - model.predict(X[n:])) ** 2)
            scores.append(1 - wrong / np.sum((Y[n:] - Y[n:].mean(axis=0)) ** 2))
    predicted = predict(plan_of(3, n=n, d=d, l=l, protection=protection), signal=signal)
    assert predicted.one_round_r2 is not None
    assert predicted.one_round_r2 == pytest.approx(np.mean(measured[1]), abs=0.03)
    assert predicted.r2 == pytest.approx(np.mean(measured[3]), abs=0.03)
    gain = predicted.r2 - predicted.one_round_r2
    assert gain > 0.02
    assert gain == pytest.approx(np.mean(measured[3]) - np.mean(measured[1]), abs=0.03)


def test_rounds_are_compared_with_one_of_the_whole_budget():
    plan = plan_of(3)
    several = predict(plan, signal=SIGNAL)
    one = predict(as_one_round(plan), signal=SIGNAL)
    assert several.one_round_r2 == one.r2
    assert one.one_round_r2 is None
    assert several == predict(plan, signal=SIGNAL)  # deterministic


def test_a_comparison_says_what_rounds_bring():
    size = {"n": 3000, "d": 6, "l": 4, "epsilon": 1, "signal": SIGNAL}
    plain = primo.compare_plans(**size, rounds=1)
    table = primo.compare_plans(**size)
    assert plain.rounds == ()
    assert table.variants == plain.variants
    both, features, outcomes = table.rounds
    assert (both.count, features.count, outcomes.count) == (6, 6, 6)
    assert features.predicted_r2 > table.best("features").predicted_r2
    assert both.predicted_r2 > table.best("both").predicted_r2
    assert "- both, rounds=6: 0." in str(table)
    assert "instead of" in str(table)
    assert "Several rounds" not in str(plain)
    assert table.to_dict()["rounds"][0]["predicted_r2"] == both.predicted_r2


def test_rounds_where_there_can_be_one_only():
    size = {"n": 3000, "d": 6, "l": 4, "epsilon": 1, "signal": SIGNAL}
    wide = size | {"n": 50, "d": 60}
    with pytest.raises(InputError, match="rounds=4 is not possible here: there are more public"):
        primo.compare_plans(**wide, rounds=4, protection="outcomes")
    with pytest.raises(InputError, match="rounds=0"):
        primo.compare_plans(**size, rounds=0)
