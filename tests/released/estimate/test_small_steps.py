"""Small steps: how long they are, when they are taken, and what clips tell (`gradual`, `trial`)."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from primo.forecast.rounds import recommend_rounds
from primo.released.estimate.rounds import gradual, is_gradual, pool
from primo.released.estimate.rounds.lengths import (
    Lengths,
    residual_lengths,
)
from primo.released.estimate.rounds.schedule import (
    held,
    may_be_gradual,
    trial_ends,
)
from primo.released.estimate.rounds.step import _explained_square
from primo.released.estimate.rounds.trial import is_used, short_clips_hold
from round_cases import make_plan, released, rows, run_rounds, shorten


def test_small_steps_are_for_features_that_the_noise_hides():
    assert not may_be_gradual(make_plan(n=5000, d=25, l=3, rounds=25))
    assert may_be_gradual(make_plan(n=5000, d=784, l=3, rounds=25))
    assert not may_be_gradual(make_plan(n=5000, d=784, l=3, rounds=5))
    # Fewer with many outcomes: a release keeps the association of every round.
    counts = {l: recommend_rounds(make_plan(n=10_000, d=784, l=l, rounds=1)) for l in (3, 101, 201)}
    assert counts == {3: 200, 101: 100, 201: 50}
    assert recommend_rounds(make_plan(n=5000, d=25, l=3, rounds=1)) == 9
    assert recommend_rounds(make_plan(n=150, d=3, l=3, rounds=1)) == 3


def hidden(noise: float):
    """All rounds of features that noise hides, with outcomes of this much noise."""
    rng, d = np.random.default_rng(5), 250
    features = rng.normal(size=(1500, d)) / np.sqrt(4 * d)
    features[:, 0] = 0.7 * rng.normal(
        size=1500
    )  # one direction that stands out, and holds the signal
    outcomes = features[:, :1] * np.array([1.0, -1.0]) + noise * rng.normal(size=(1500, 2))
    plan = make_plan(n=1500, d=d, l=2, rounds=12)
    return plan, run_rounds(plan, features, outcomes, rng)[0]


@pytest.mark.parametrize("noise", [0.2, 0.9])
def test_small_steps_follow_rounds_of_the_outcomes_themselves(noise):
    plan, found = hidden(noise=noise)
    assert is_gradual(plan, found)
    assert all(is_used(plan, found))
    stepped = [released.coefficients.any() for released in found]
    assert stepped == [False] * held(plan) + [True] * (len(found) - held(plan))
    if noise < 0.5:  # nearly all is explained, and clips follow
        assert found[-1].clip < found[0].clip / 2


def test_steps_are_the_longer_the_less_noise_and_the_more_signal():
    law = np.geomspace(1, 1000, 50)

    def damping(*, noise: float, strength: float = 1.0) -> float:
        return gradual._damping(law, strength=strength, noise=noise, steps=40)

    found = [damping(noise=noise) for noise in (1.0, 3.0, 10.0)]
    assert found[2] > found[1] > found[0]
    assert damping(noise=3.0, strength=4.0) < found[1]
    assert damping(noise=1.0, strength=0.0) == pytest.approx(1e5 * law.mean() / gradual.LONGER)


@pytest.mark.parametrize("steepness", [0.8, 1.0, 1.3])
def test_the_law_of_eigenvalues_has_their_sum_and_what_is_known_of_their_squares(steepness):
    exact = 1e4 * np.arange(1.0, 201) ** -steepness
    total, squares = float(exact.sum()), float(exact @ exact)
    np.testing.assert_allclose(gradual._law(total, squares, 1e-6, 200), exact, rtol=1e-9)
    # What much noise makes of the sum of squares says nothing.
    unknown = gradual._law(total, 100 * squares, 1e6, 200)
    np.testing.assert_allclose(unknown, unknown[0] / np.arange(1.0, 201), rtol=1e-9)


def residual_rounds(residuals: np.ndarray, shares: list[float]):
    """Rounds without noise of the same residuals (n, l), with clips of so many lengths."""
    n, l = residuals.shape
    plan = make_plan(n=n, d=784, l=l, rounds=24)
    length = float(np.sqrt(np.mean(np.sum(residuals**2, axis=1))))
    w = np.ones((784, l))
    found = []
    for number, share in enumerate(shares):
        clipped = shorten(residuals, share * length)
        blank = released(plan, number, np.zeros((n, 784)), clipped, np.zeros((784, l)), 2.0)
        found.append(
            dataclasses.replace(blank, coefficients=w, clip=share * length, outcome_sigma=1e-6)
        )
    lengths = np.full(len(shares), length)
    return plan, found, Lengths(lengths=lengths, slopes=lengths, directions=l, saturated=False)


@pytest.mark.parametrize(("kind", "holds"), [("normal", True), ("yes or no", False)])
def test_short_clips_are_given_up_where_hardly_any_residual_is_near_0(kind, holds):
    rng = np.random.default_rng(2)
    residuals = rng.normal(size=(4000, 1))
    if kind == "yes or no":
        residuals = (residuals > 1) - np.mean(residuals > 1, keepdims=True)
    plan, found, known = residual_rounds(0.3 * residuals, [1.6, *[0.25] * 8])
    assert short_clips_hold(plan, found, known) == holds
    first = dataclasses.replace(known, lengths=known.lengths[:1])
    assert short_clips_hold(plan, found[:1], first)  # nothing is known of short ones yet


def test_rounds_of_a_yes_or_no_outcome_are_one_release():
    """Short clips would follow the larger heap: later rounds look at the outcomes themselves."""
    rng, d, n = np.random.default_rng(5), 250, 3000
    features = rng.normal(size=(n, d)) / np.sqrt(4 * d)
    outcomes = np.where(rng.random((n, 1)) < 1 / 6, 1.0, -0.2)
    plan = make_plan(n=n, d=d, l=1, rounds=40)
    found, _ = run_rounds(plan, features, outcomes, rng)
    assert may_be_gradual(plan)
    assert not is_gradual(plan, found)
    after = trial_ends(plan)
    stepped = [released.coefficients.any() for released in found]
    assert stepped == [False] * held(plan) + [True] * (after - held(plan)) + [False] * (40 - after)
    assert all(released.clip == 2.0 for released in found[after:])
    used = [r for r, kept in zip(found, is_used(plan, found), strict=True) if kept]
    assert len(used) == len(found) - (after - held(plan))
    pooled = pool(plan, found)
    assert not pooled.offset.any()
    np.testing.assert_allclose(pooled.association, np.mean([r.association for r in used], axis=0))
    sigma = found[0].outcome_sigma / np.sqrt(len(used))
    assert pooled.scales.outcome == pytest.approx(sigma)


@pytest.mark.parametrize("epsilon", [0.01, 0.5])
def test_no_small_steps_after_noise(epsilon):
    """A trial that noise hides has shown nothing: the rest is one release."""
    rng, d, n = np.random.default_rng(5), 60, 400
    features, outcomes = rng.normal(size=(n, d)) / np.sqrt(4 * d), rng.normal(size=(n, 1)) / 3
    plan = make_plan(n=n, d=d, l=1, rounds=21, epsilon=epsilon)
    found, _ = run_rounds(plan, features, outcomes, rng)
    assert may_be_gradual(plan)
    assert not is_gradual(plan, found)
    assert not any(released.coefficients.any() for released in found[trial_ends(plan) :])


def test_lengths_without_a_round_that_measures():
    """A step may be 0 on the grid of a round that was to tell how long residuals are."""
    plan = make_plan(n=400, d=60, l=1, rounds=21, epsilon=1.0)
    features, outcomes = rows(n=400, d=60, l=1)
    number = held(plan) + 3
    zero = np.zeros((60, 1))
    found = [released(plan, t, features, outcomes, zero, 2.0) for t in range(number)]
    found.append(released(plan, number, features, outcomes, zero + 0.01, 1.0))
    assert np.isfinite(residual_lengths(plan, found).lengths).all()


def test_what_is_explained_tells_how_long_residuals_are_whatever_the_coefficients():
    features, outcomes = rows(n=3000, d=6, l=2, noise=0.5)
    features = shorten(features, 1.0)
    plan = make_plan(n=3000, d=6, l=2, rounds=40)
    w = np.random.default_rng(3).normal(size=(6, 2)) / 2
    found = [released(plan, t, features, outcomes, 0 * w, 20.0) for t in range(held(plan))]
    found.append(released(plan, held(plan), features, outcomes, w, 20.0))
    residual = outcomes - features @ w
    own = np.full(held(plan), np.sqrt(np.mean(np.sum(outcomes**2, axis=1))))
    ones = np.ones(held(plan) + 1)
    known = Lengths(lengths=np.append(own, 1), slopes=ones, directions=2, saturated=False)
    expected = np.mean(np.sum(residual**2, axis=1))
    assert _explained_square(plan, found, known) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_stated_error_of_the_mean_of_the_last_steps_is_that_of_simulated_ones(noise):
    rng, draws, steps = np.random.default_rng(2), 20_000, 30
    expected, strength, lam = np.array([0.5, 4.0, 30.0]), 2.0, 10.0
    w = np.sqrt(strength) * rng.normal(size=(3, draws))
    at, kept = np.zeros_like(w), []
    for _ in range(steps):
        shown = expected[:, None] * (w - at) + noise * np.sqrt(steps) * rng.normal(size=w.shape)
        at = at + shown / (expected + lam)[:, None]
        kept.append(at)
    mean = np.mean(kept[-gradual._averaged(steps) :], axis=0)
    simulated = float(expected @ np.mean((w - mean) ** 2, axis=1))
    stated = gradual._error(expected, lam, strength=strength, noise=noise, steps=steps)
    assert stated == pytest.approx(simulated, rel=0.1)
