"""Pooling of rounds, the clip's mean slope, the next step, and what the covariance's noise acts on."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from primo.forecast.compare import choose_plan
from primo.forecast.rounds import length_noise, recommend_rounds
from primo.planning.plan import Plan
from primo.planning.rounds import round_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.risk import Carried, FilterRisk, simulate
from primo.released.estimate.rounds import next_step, pool
from primo.released.estimate.rounds.lengths import (
    clip_in_lengths,
    length_of,
    mean_slope,
    residual_lengths,
)
from primo.released.estimate.rounds.pooling import expected_product
from primo.released.estimate.rounds.schedule import (
    association_noise,
)
from primo.released.estimate.rounds.step import _centred
from primo.released.rounds import ReleasedRound
from round_cases import make_plan, released, rows, run_rounds, shorten


@pytest.mark.parametrize("m", [1, 2, 9, 300])
@pytest.mark.parametrize("ratio", [0.5, 0.9, 1.5])
def test_slope_and_length_are_those_of_normal_residuals(m, ratio):
    rng = np.random.default_rng(3)
    r = rng.normal(size=(100_000, m)) / np.sqrt(m)
    lengths = np.linalg.norm(r, axis=1)
    step = 0.02
    moved = r.copy()
    moved[:, 0] += step  # the slope along one direction, the same for all
    change = (shorten(moved, ratio) - shorten(r, ratio))[:, 0].mean() / step
    assert mean_slope(1.0, ratio, m) == pytest.approx(change, rel=0.03)
    seen = float(np.minimum(lengths**2, ratio**2).mean())
    if seen < 0.97 * ratio**2:
        assert length_of(seen, ratio, m) == pytest.approx(1.0, rel=0.05)


def test_pooling_without_clips_and_noise_gives_the_moments_of_the_outcomes():
    features, outcomes = rows()
    features, outcomes = shorten(features, 1.0), shorten(outcomes, 2.0)
    plan = make_plan(n=4000, d=6, l=3, rounds=3)
    rng = np.random.default_rng(1)
    starts = [np.zeros((6, 3)), *(rng.normal(size=(6, 3)) / 10 for _ in range(2))]
    found = [released(plan, t, features, outcomes, w, 2.0) for t, w in enumerate(starts)]
    pooled = pool(plan, found)
    np.testing.assert_allclose(pooled.covariance, features.T @ features)
    # The slopes are near 1 here, so the association is that of all outcomes up to a few per cent.
    exact = features.T @ outcomes
    assert np.linalg.norm(pooled.association - exact) < 0.08 * np.linalg.norm(exact)
    assert pooled.scales.carried == pytest.approx(2 / 3, abs=0.05)


def test_pooled_noise_is_that_of_one_release_with_the_whole_budget():
    features, outcomes = rows()
    plan, alone = (make_plan(n=4000, d=6, l=3, rounds=t) for t in (4, 1))
    found = [released(plan, t, features, outcomes, np.zeros((6, 3)), 2.0) for t in range(4)]
    scales = pool(plan, found).scales
    assert scales.covariance == pytest.approx(alone.covariance_sigma, rel=0.02)
    assert scales.association == pytest.approx(alone.association_sigma, rel=0.1)
    # All four rounds look at the outcomes themselves: together they are one release.
    assert scales.outcome == pytest.approx(alone.outcome_sigma, rel=0.02)
    assert scales.carried == 0


def test_rounds_come_nearer_to_least_squares_than_one_release():
    features, outcomes = rows(n=6000, d=10, l=5, noise=0.05)
    exact = np.linalg.lstsq(features, outcomes, rcond=None)[0]
    errors = []
    for count in (1, 4):
        plan, rng = make_plan(n=6000, d=10, l=5, rounds=4), np.random.default_rng(2)
        _, step = run_rounds(plan, features, outcomes, rng, count=count)
        errors.append(float(np.sum((features @ (step.coefficients - exact)) ** 2)))
    assert errors[1] < 0.2 * errors[0]
    assert step.clip < 0.6  # residuals are a tenth as long as the bound


def test_a_clip_that_everything_exceeds_is_not_shortened_further():
    features, outcomes = rows()
    plan = make_plan(n=4000, d=6, l=3, rounds=5)
    found = [
        released(plan, 0, features, outcomes, np.zeros((6, 3)), 2.0),
        released(plan, 1, features, outcomes, np.zeros((6, 3)), 0.05),
    ]
    assert residual_lengths(plan, found).saturated
    assert next_step(plan, found).clip >= 0.05


def test_carried_risk_is_the_simulated_one():
    """E‖X(W − w)‖² of W = V diag(g) Vᵀ(Aw + (Ã − A)W̄ + noise), with W̄ what the filter had found."""
    values = np.array([2.0, 5.0, 30.0, 80.0])
    replicas = simulate(values, 3.0, copies=6)
    shapes = np.ones((1, *replicas.truths.shape))
    g, s = np.array([0.05, 0.1, 0.03, 0.0122]), 0.8
    expected = np.array([3.0, 6.0, 29.0, 79.0])
    risk = FilterRisk.build(replicas, shapes, Carried(share=s, filter=g, expected=expected))
    noise = np.array([4.0])
    stated = float(risk.excess(g[:, None], np.ones((1, 1)), noise)[0])
    rng, total = np.random.default_rng(5), 0.0
    for a, basis in zip(replicas.truths, replicas.bases, strict=True):
        w = rng.normal(size=(4, 40_000))
        exact, filtered = np.diag(a), basis @ np.diag(g) @ basis.T
        error = basis @ np.diag(expected) @ basis.T - exact
        found = filtered @ (
            exact @ w + error @ (s * filtered @ exact @ w) + 2.0 * rng.normal(size=w.shape)
        )
        total += float(np.mean(np.sum((found - w) ** 2 * a[:, None], axis=0))) / len(
            replicas.truths
        )
    assert stated == pytest.approx(total, rel=0.02)
    plain = FilterRisk.build(replicas, shapes)
    assert abs(float(plain.excess(g[:, None], np.ones((1, 1)), noise)[0]) - total) > 0.05 * total


def test_carried_is_checked():
    moments = NoisyMoments(
        n=10,
        covariance=np.eye(2),
        association=np.ones((2, 1)),
        outcome_moments=np.ones(1),
        covariance_sigma=1.0,
        association_sigma=1.0,
        outcome_sigma=1.0,
    )
    with pytest.raises(ValueError, match="carried"):
        dataclasses.replace(moments, carried=1.0)


def test_no_step_without_a_trace_of_signal():
    rng = np.random.default_rng(9)
    features = shorten(rng.normal(size=(3000, 5)) / np.sqrt(5), 1.0)
    outcomes = shorten(rng.normal(size=(3000, 2)), 2.0)
    plan = make_plan(n=3000, d=5, l=2, rounds=6)
    first = released(plan, 0, features, outcomes, np.zeros((5, 2)), 2.0, rng)
    step = next_step(plan, [first])
    assert not step.coefficients.any()
    assert step.clip == 2.0


def test_a_clip_is_longer_than_most_residuals_until_they_are_seen_to_be_normal():
    rng = np.random.default_rng(4)
    for m in (1, 3, 9, 40):
        lengths = np.sqrt(rng.chisquare(m, size=20_000) / m)
        assert float(np.mean(lengths < clip_in_lengths(m, normal=False))) > 0.75
        assert 0.2 < float(np.mean(lengths < clip_in_lengths(m, normal=True))) < 0.45
    assert clip_in_lengths(1, normal=True) == pytest.approx(0.5)
    assert 0.95 < clip_in_lengths(1000, normal=True) < 1


def far_off(mean: float, *, n: int = 3000, d: int = 4, l: int = 5):
    """Rows of features and outcomes, with an intercept, the first outcome far from 0."""
    rng = np.random.default_rng(6)
    features = shorten(rng.normal(size=(n, d)) / np.sqrt(d), 1.0)
    outcomes = 0.1 * rng.normal(size=(n, l))
    outcomes[:, 0] += mean
    return features, outcomes


def with_constant(plan: Plan, features: np.ndarray) -> np.ndarray:
    return np.hstack([features, np.full((len(features), 1), plan.constant)])


@pytest.mark.parametrize(
    ("mean", "slope", "expected"),
    [
        (0.0, 0.0, "outcomes"),  # nothing is known: any number of such rounds are one release
        (0.0, 0.08, "outcomes"),  # slopes explain little, and clips would hardly be shorter
        (4.0, 0.0, "means"),  # residuals of the means alone are much shorter
        (4.0, 2.0, "slopes"),
        (0.0, 2.0, "slopes"),
    ],
)
def test_what_a_round_looks_at(mean, slope, expected):
    rng = np.random.default_rng(8)
    n, d, l = 20_000, 4, 3
    settings = Settings(
        epsilon=5.0,
        delta=1e-6,
        feature_bounds=Bounds(norm=1.0),
        outcome_bounds=Bounds(norm=8.0 if mean else 2.0),
        rounds=3,
    )
    plan = choose_plan(settings, n=n, d=d, l=l)
    features = shorten(rng.normal(size=(n, d)) / 3, 1.0)
    outcomes = mean + slope * features @ rng.normal(size=(d, l)) + 0.7 * rng.normal(size=(n, l))
    norm = plan.outcomes.norm
    found, w, clip = [], np.zeros((plan.width, l)), norm
    for number in range(2):
        found.append(released(plan, number, with_constant(plan, features), outcomes, w, clip, rng))
        step = next_step(plan, found)
        w, clip = step.coefficients, step.clip
        if expected == "outcomes":
            assert not w.any()
            assert clip == norm
        else:
            assert clip < (0.8 if mean else 1.0) * norm
            assert w[-1].any()
            assert w[:d].any() == (expected == "slopes")
    assert (pool(plan, found).scales.carried > 0) == (expected == "slopes")


def rounds_about_means(epsilon: float, rng=None) -> tuple[Plan, list[ReleasedRound], np.ndarray]:
    """One round of outcomes with far-off means, and two of what is left of them about 1.9."""
    n, d, l = 20_000, 4, 2
    made = np.random.default_rng(5)
    settings = Settings(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=Bounds(norm=1.0),
        outcome_bounds=Bounds(norm=8.0),
        rounds=3,
    )
    plan = choose_plan(settings, n=n, d=d, l=l)
    features = with_constant(plan, shorten(made.normal(size=(n, d)) / 3, 0.8))
    outcomes = 2.0 + 0.2 * made.normal(size=(n, l))
    means = np.zeros((plan.width, l))
    means[-1] = 1.9 / plan.constant
    found = [
        released(plan, number, features, outcomes, w, clip, rng)
        for number, (w, clip) in enumerate([(0 * means, 8.0), (means, 1.5), (means, 1.5)])
    ]
    return plan, found, outcomes


def test_rounds_about_means_tell_how_outcomes_vary():
    plan, found, outcomes = rounds_about_means(epsilon=1.0)
    pooled = pool(plan, found)
    exact = outcomes.T @ outcomes
    assert pooled.outcome_moments == pytest.approx(exact, rel=1e-3)
    assert pooled.scales.outcome < 0.1 * found[0].outcome_sigma
    spread = float(np.sum((outcomes - outcomes.mean(axis=0)) ** 2))
    plan, found, _ = rounds_about_means(epsilon=0.2, rng=np.random.default_rng(1))
    pooled = pool(plan, found)
    means = pooled.association[-1] / (plan.n * plan.constant)
    left = float(np.trace(pooled.outcome_moments)) - plan.n * float(means @ means)
    assert left == pytest.approx(spread, rel=0.3)


def test_noise_of_the_constant_acts_on_means_that_rounds_have_not_added_back():
    plan, found, _ = rounds_about_means(epsilon=1.0)

    def noise_of_means(rounds):
        return float(_centred(plan, rounds).moments.mean_noise.mean())

    assert noise_of_means(found) < 0.02 * noise_of_means(found[:1])


def test_no_slopes_where_the_spread_is_below_its_noise():
    """Noise makes the mean square about the means negative: slopes do not explain a part of that."""
    plan, found, _ = rounds_about_means(epsilon=1.0)
    first = found[0]
    below = first.outcome_moments - 3 * first.outcome_sigma * np.eye(plan.l)
    step = next_step(plan, [dataclasses.replace(first, outcome_moments=below)])
    assert not step.coefficients[: plan.d].any()


def test_a_clip_is_at_most_halved_from_one_round_to_the_next():
    features, outcomes = rows(noise=0.01)
    plan = make_plan(n=4000, d=6, l=3, rounds=6)
    found, w, clip = [], np.zeros((6, 3)), 2.0
    for number in range(5):
        found.append(released(plan, number, features, outcomes, w, clip))
        step = next_step(plan, found)
        assert step.clip >= clip / 2
        w, clip = step.coefficients, step.clip
    assert clip < 0.3  # residuals are a hundredth as long as outcomes


def test_a_far_off_mean_makes_all_outcomes_equally_long():
    """They are not taken for a heavy tail, and nothing is thought to be clipped that was not."""
    features, outcomes = far_off(1.7)
    plan = dataclasses.replace(make_plan(n=3000, d=4, l=5, rounds=3), intercept=True)
    x = with_constant(plan, features)
    own = round_plan(plan, 0, 2.0)
    first = ReleasedRound(
        coefficients=np.zeros((5, 5)),
        clip=2.0,
        covariance=x.T @ x,
        association=x.T @ outcomes,
        outcome_moments=outcomes.T @ outcomes,
        covariance_sigma=own.covariance_sigma,
        association_sigma=own.association_sigma,
        outcome_sigma=own.outcome_sigma,
    )
    found = residual_lengths(plan, [first])
    assert found.slopes[0] > 0.99
    assert found.lengths[0] == pytest.approx(
        np.sqrt(np.mean(np.sum(outcomes**2, axis=1))), rel=0.02
    )
    assert found.directions == pytest.approx(5, abs=0.5)


def test_what_is_added_back_is_the_expected_covariance_times_the_coefficients():
    """Without noise to speak of it is the covariance itself, with an intercept and without."""
    features, _ = far_off(0.5)
    for intercept in (False, True):
        plan = make_plan(n=3000, d=4, l=5, rounds=3)
        plan = dataclasses.replace(plan, intercept=intercept)
        x = with_constant(plan, features + 0.3) if intercept else features
        w = np.random.default_rng(7).normal(size=(x.shape[1], 5))
        exact = x.T @ x @ w
        found = expected_product(plan, x.T @ x, 1e-6, w)
        assert np.linalg.norm(found - exact) < 1e-3 * np.linalg.norm(exact)


def test_noise_of_the_covariance_is_not_taken_for_signal():
    """With outcomes that have nothing to do with the features, rounds find nothing, as one release."""
    rng = np.random.default_rng(8)
    features = shorten(rng.normal(size=(800, 40)) / np.sqrt(40), 1.0)
    outcomes = shorten(rng.normal(size=(800, 6)) / np.sqrt(6), 2.0)
    plan = make_plan(n=800, d=40, l=6, rounds=3, epsilon=2.0)
    _, step = run_rounds(plan, features, outcomes, rng)
    assert np.sum((features @ step.coefficients) ** 2) < 0.02 * np.sum(outcomes**2)


def test_one_round_where_a_round_could_not_tell_how_long_residuals_are():
    few = make_plan(n=1000, d=100, l=50, rounds=1, epsilon=1.0)
    assert recommend_rounds(few) == 1
    assert length_noise(few, 3) == pytest.approx(
        np.sqrt(3 * 50) * few.outcome_sigma / (1000 * 2.0**2)
    )
    many = make_plan(n=3000, d=300, l=50, rounds=1, epsilon=1.0)
    assert length_noise(many, 3) < 0.1 < length_noise(many, 25)
    assert recommend_rounds(many) == 1  # lengths are known, but steps would follow the noise
    assert association_noise(many) == pytest.approx(
        np.sqrt(300 * 50) * many.association_sigma / (3000 * 1.0 * 2.0)
    )
    assert association_noise(many) > 0.1
