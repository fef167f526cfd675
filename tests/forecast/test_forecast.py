"""Predictions from public numbers: right where the truth is known, and monotone."""

import inspect
from dataclasses import asdict
from itertools import pairwise

import numpy as np
import pytest

import primo.forecast.forecast as module
from primo.errors import InputError
from primo.forecast.assumptions import Signal, effective_rank_of, preferred
from primo.forecast.forecast import predict, predict_all, predict_ways
from primo.forecast.law import law_of
from primo.forecast.simulate import draw
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.projection import project_onto_features


def make(*, n=5000, d=10, l=50, epsilon=5.0, protection="both", x=1.0, y=1.0):
    return make_plan(
        Settings(
            epsilon=epsilon,
            delta=1 / n**2,
            protection=protection,
            feature_bounds=Bounds(norm=x),
            outcome_bounds=Bounds(norm=y),
            fit_intercept=False,
        ),
        n=n,
        d=d,
        l=l,
    )


def test_no_data_can_be_given():
    allowed = {"plan", "ways", "association", "estimator", "estimators", "signal", "most_repeats"}
    allowed |= {"draws"}  # simulated rows
    for function in (predict, predict_all, predict_ways):
        assert set(inspect.signature(function).parameters) <= allowed


def test_it_is_deterministic():
    first, again = (asdict(predict(make(d=100, l=10_000))) for _ in range(2))
    assert first.pop("one_round_r2") is again.pop("one_round_r2") is None
    assert again == pytest.approx(first, rel=1e-6)  # the draws are the same, their sums may round


def test_units_do_not_matter():
    plain, scaled = predict(make()), predict(make(x=37.0, y=1e-3))
    assert plain.r2 == pytest.approx(scaled.r2, abs=1e-6)


@pytest.mark.parametrize("l", [1, 20, 5000])
@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_with_hardly_any_noise_all_signal_is_found(l, protection):
    made = predict(make(n=2_000_000, l=l, epsilon=20.0, protection=protection))
    assert made.r2 == pytest.approx(made.no_privacy_r2, abs=0.005)
    assert made.no_privacy_r2 == pytest.approx(0.3, abs=0.001)


@pytest.mark.parametrize(("n", "d"), [(200, 50), (200, 400), (60, 5)])
def test_without_privacy_is_out_of_sample(n, d):
    """A ridge with the ideal penalty, fitted to rows and scored on the law they come from."""
    rng, scores = np.random.default_rng(1), []
    values = Signal(r2=0.4).spectrum(d)
    for _ in range(60):
        w = rng.standard_normal((d, 8))
        w *= np.sqrt(0.4 / (values @ w**2))
        x = rng.standard_normal((n, d)) * np.sqrt(values)
        y = x @ w + np.sqrt(0.6) * rng.standard_normal((n, 8))
        x0, y0 = x.mean(axis=0), y.mean(axis=0)
        x, y = x - x0, y - y0
        fitted = np.linalg.solve(x.T @ x + np.eye(d) * 0.6 / 0.4, x.T @ y)
        error = values @ (w - fitted) ** 2 + (y0 - x0 @ fitted) ** 2 + 0.6
        scores.append(1 - error.mean())
    made = predict(make(n=n, d=d, l=1, x=d**0.5), signal=Signal(r2=0.4, alignment=0))
    assert made.no_privacy_r2 == pytest.approx(np.mean(scores), abs=0.012)
    assert made.no_privacy_r2 < 0.4


def test_a_signal_along_leading_directions_is_easier():
    """Unless stated the forecast is the mean of both; for features that are alike they agree."""
    steep = {"r2": 0.4, "eigenvalues": tuple(0.7 ** np.arange(30))}
    plan = make(n=2000, d=30, l=5, epsilon=1.0)
    even, leading = (predict(plan, signal=Signal(**steep, alignment=a)) for a in (0, 1))
    assert leading.r2 > even.r2 + 0.03
    assert leading.no_privacy_r2 > even.no_privacy_r2
    both = predict(plan, signal=Signal(**steep))
    assert both.r2 == pytest.approx((even.r2 + leading.r2) / 2, abs=0.02)
    ideal = (even.no_privacy_r2 + leading.no_privacy_r2) / 2
    assert both.no_privacy_r2 == pytest.approx(ideal, abs=1e-12)
    assert both.standard_error < 0.02  # the two shapes are no error of the draws
    alike = [predict(plan, signal=Signal(effective_rank=30, alignment=a)).r2 for a in (0, 1)]
    assert alike[0] == pytest.approx(alike[1], abs=1e-9)


def test_effects_are_alike_per_standard_deviation():
    """Without a preferred direction uncorrelated features explain alike, however wide they are."""
    spread = np.array([1.0, 4.0, 25.0])
    explained = spread * preferred(spread, spread[::-1], 0.0)
    np.testing.assert_allclose(explained, explained[0])
    np.testing.assert_allclose(preferred(spread, spread, 1.0), spread / 25)
    assert preferred(np.array([0.0, 1.0]), np.ones(2), 1.0)[0] == 0


def test_the_assumed_direction_is_printed():
    plan = make()
    assert "mean for a signal that prefers no direction" in law_of(plan, Signal()).words[0]
    assert "at 0.5" in law_of(plan, Signal(alignment=0.5)).words[0]


def test_with_nothing_but_noise_it_predicts_the_mean():
    assert (
        abs(predict(make(n=100, l=5000, epsilon=0.1)).r2) < 0.06
    )  # three standard errors of so few simulated releases


def test_more_budget_more_rows_and_fewer_outcomes_never_hurt():
    for name, values in (
        ("epsilon", (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)),
        ("n", (500, 2_000, 8_000, 32_000, 128_000)),
        ("l", (100_000, 10_000, 1_000, 200, 40, 10)),
    ):
        scores = [predict(make(**{name: value})).r2 for value in values]
        assert all(b >= a - 0.002 for a, b in pairwise(scores)), (name, scores)
        assert scores[-1] > scores[0] + 0.1


@pytest.mark.parametrize(("n", "l"), [(3000, 600), (400, 600)])
def test_a_part_of_the_outcomes_stands_for_all_in_a_projection(monkeypatch, n, l):
    plan = make(n=n, l=l, protection="features", epsilon=2.0)
    part = predict(plan, association="projection").r2
    monkeypatch.setattr(module, "MOST_OUTCOMES", l)
    whole = predict(plan, association="projection").r2
    assert part == pytest.approx(whole, abs=0.02)
    assert whole > predict(plan).r2 + 0.03


@pytest.mark.parametrize("n", [300, 12])
@pytest.mark.parametrize("protection", ["features", "outcomes"])
def test_a_simulated_release_is_projected_as_a_real_one(protection, n):
    plan = make(n=n, d=8, l=20, epsilon=0.5, protection=protection)
    drawn = draw(plan, law_of(plan, Signal()), 20, seed=(1, 2))
    cohort = drawn.under(plan)
    noisy = cohort.release("gauss").association
    ours = cohort.release("projection").projected
    if protection == "outcomes":
        radius = np.sqrt(n) * plan.outcomes.norm
        theirs = project_onto_features(noisy, drawn.sums.covariance, radius=radius)
        expected = theirs.association
    else:
        radius = np.sqrt(n) * plan.features.norm
        theirs = project_onto_features(noisy.T, drawn.sums.outcome_moments, radius=radius)
        expected = theirs.association.T
    np.testing.assert_allclose(ours.association, expected, atol=1e-9 * np.abs(expected).max())
    assert ours.noise_left == pytest.approx(theirs.noise_left)
    assert 0 < ours.noise_left < 0.9


def test_the_spectrum_has_the_rank_it_is_given():
    for d, rank in ((5, 4.0), (40, 7.5), (100, 100.0), (30, 1.0)):
        values = Signal(effective_rank=rank).spectrum(d)
        assert values.sum() == pytest.approx(1)
        assert (np.diff(values) >= 0).all()
        assert effective_rank_of(values) == pytest.approx(rank, rel=1e-3)
    assert Signal().spectrum(1) == pytest.approx([1.0])
    assert Signal(eigenvalues=(3.0, 1.0)).spectrum(2) == pytest.approx([0.25, 0.75])


def test_a_public_panel_tells_spread_and_spectrum():
    panel = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    signal = Signal.from_public(panel, norm=4.0, r2=0.2)
    assert signal.feature_spread == pytest.approx(20 / 4 / 16)
    assert signal.spectrum(2) == pytest.approx([0.1, 0.9])
    with pytest.raises(InputError, match="finite"):
        Signal.from_public(np.array([[np.nan]]), norm=1.0, r2=0.2)


def test_correlated_outcomes_share_their_strength():
    alone = predict(make(l=150, epsilon=0.5))
    together = predict(make(l=150, epsilon=0.5), signal=Signal(outcome_correlation=0.7))
    assert together.r2 > alone.r2 + 0.02


def test_more_features_than_rows():
    assert np.isfinite(predict(make(n=20, d=30, l=3)).r2)
    assert np.isfinite(
        predict(make(n=20, d=30, l=300, protection="features"), association="projection").r2
    )


@pytest.mark.parametrize(
    "bad",
    [
        {"r2": 0},
        {"r2": 1.2},
        {"feature_spread": -0.1},
        {"outcome_spread": "wide"},
        {"feature_sd": 0.0},
        {"outcome_mean": (1.0, np.nan)},
        {"outcome_sd": "wide"},
        {"effective_rank": 0.5},
        {"alignment": 2},
        {"alignment": "top"},
        {"outcome_correlation": 1.0},
        {"eigenvalues": (-1.0, 2.0)},
        {"eigenvalues": (0.0,)},
    ],
)
def test_bad_assumptions_are_named(bad):
    (name,) = bad
    with pytest.raises(InputError, match=name):
        Signal(**bad)


def test_bad_requests_are_named():
    with pytest.raises(InputError, match='"projection" needs a public block'):
        predict(make(), association="projection")
    with pytest.raises(InputError, match="unknown estimator 'ols'"):
        predict(make(), estimator="ols")
    with pytest.raises(InputError, match="2 eigenvalues for 10 features"):
        predict(make(), signal=Signal(eigenvalues=(1.0, 2.0)))
    with pytest.raises(InputError, match="not both"):
        Signal(eigenvalues=(1.0, 2.0), effective_rank=2.0)
    with pytest.raises(InputError, match="not both"):
        Signal(feature_sd=1.0, feature_spread=0.5)
    with pytest.raises(InputError, match="feature_sd has 3 values for 10 columns"):
        predict(make(), signal=Signal(feature_sd=(1.0, 2.0, 3.0)))
