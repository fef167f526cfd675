"""DP-SGD by Opacus: its clip, its noise, its sampling, and what it reaches."""

import math

import numpy as np
import pytest
from scipy.stats import chi2

pytest.importorskip("torch", reason="DP-SGD needs PyTorch (the experiments extra)")
pytest.importorskip("opacus", reason="DP-SGD needs Opacus (the experiments extra)")

import torch

from baselines import dpsgd
from baselines.base import shortened
from baselines.dpsgd import Descent, DPSGDEach, DPSGDJoint, descend
from baselines.dpsgd_accounting import noise_multiplier, noise_multiplier_zcdp, true_epsilon
from primo.errors import InputError

PLAIN = {"learning_rate": 1.0, "clip_norm": 1.0, "steps": 1}


def regression(n=400, d=5, l=3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d))
    outcomes = features @ rng.normal(size=(d, l)) + rng.normal(size=(n, l))
    bounds = {
        "feature_bounds": float(np.linalg.norm(features, axis=1).max()),
        "outcome_bounds": float(np.linalg.norm(outcomes, axis=1).max()),
    }
    return features, outcomes, bounds


@pytest.mark.parametrize("kind", [DPSGDEach, DPSGDJoint])
def test_interface(kind):
    features, outcomes, bounds = regression()
    model = kind(5.0, 1e-6, **bounds, steps=4, random_state=3).fit(features, outcomes)
    assert model.coef_.shape == (3, 5)
    assert model.predict(features).shape == (400, 3)
    again = kind(5.0, 1e-6, **bounds, steps=4, random_state=3).fit(features, outcomes)
    np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-4, atol=1e-6)  # float32 in PyTorch
    other = kind(5.0, 1e-6, **bounds, steps=4, random_state=4).fit(features, outcomes)
    assert not np.allclose(model.coef_, other.coef_)
    single = kind(5.0, 1e-6, **bounds, steps=4, random_state=3).fit(features, outcomes[:, 0])
    assert single.coef_.shape == (5,)
    assert kind(**model.get_params()).get_params() == model.get_params()
    assert model.guarantee_.protection == "both"
    assert 0 < model.guarantee_.epsilon <= 5.0


def test_leaves_threads_and_the_global_generator_alone():
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    features, outcomes, bounds = regression()
    for rate in (0.5, 1.0):
        DPSGDJoint(0.5, 1e-6, **bounds, steps=2, sampling_rate=rate).fit(features, outcomes)
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.get_rng_state(), state)


def noise_of_one_step(scale, rate):
    """Return, per entry, what one step of rows without signal does, in units of what it should."""
    n, d, l, clip, rated = 50, 40, 60, 0.3, 7.0
    step = Descent(
        noise_multiplier=2.5, learning_rate=rated, clip_norm=clip, steps=1, sampling_rate=rate
    )
    moved = descend(np.zeros((n, d)), np.zeros((n, l)), step, np.random.default_rng(8))
    return moved.ravel() / (scale * rated * 2.5 * clip / (rate * n))


@pytest.mark.parametrize("rate", [0.25, 1.0])
@pytest.mark.parametrize(("scale", "right"), [(1.0, True), (0.87, False), (1.15, False)])
def test_noise_of_one_step_has_the_scale_that_is_accounted(rate, scale, right):
    found = noise_of_one_step(scale, rate)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], len(found))
    assert (low < np.sum(found**2) < high) == right


@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_the_noise_of_a_fit_is_the_calibrated_one(rate):
    """From epsilon to the coefficients: rows without signal show the noise alone."""
    n, d, l = 60, 40, 60
    bounds = {"feature_bounds": 3.0, "outcome_bounds": 5.0}
    settings = PLAIN | {"clip_norm": 0.2, "sampling_rate": rate}
    rows = np.zeros((n, d)), np.zeros((n, l))
    joint = DPSGDJoint(0.5, 1e-5, **bounds, **settings, random_state=1).fit(*rows)
    z = noise_multiplier(0.5, 1e-5, rate=rate, steps=1)
    scaled = joint.coef_ / (z * 0.2 / (rate * n)) * (3.0 / 5.0)
    low, high = chi2.ppf([1e-6, 1 - 1e-6], d * l)
    assert low < np.sum(scaled**2) < high

    each = DPSGDEach(0.5, 1e-5, **bounds, **settings, outcome_limit=0.5, random_state=1)
    z = noise_multiplier_zcdp(0.5, 1e-5, rate=rate, steps=1, compositions=l)
    scaled = each.fit(*rows).coef_ / (z * 0.2 / (rate * n)) * (3.0 / 0.5)
    assert low < np.sum(scaled**2) < high


def test_no_row_moves_a_step_by_more_than_the_clip():
    """One row among rows of zeros: what it adds to the sum of gradients, without noise."""
    rng = np.random.default_rng(2)
    clip, n = 0.7, 10
    step = Descent(noise_multiplier=0.0, learning_rate=1.0, clip_norm=clip, steps=1)
    for size in (1e-3, 0.1, 1.0, 30.0, 1e4):
        features, outcomes = np.zeros((n, 6)), np.zeros((n, 4))
        features[3], outcomes[3] = size * rng.normal(size=6), size * rng.normal(size=4)
        gradient = np.outer(features[3], outcomes[3])
        found = n * descend(features, outcomes, step, rng)
        assert np.linalg.norm(found) <= clip * (1 + 1e-6)
        wanted = gradient * min(1.0, clip / np.linalg.norm(gradient))
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-9)


def test_divides_by_the_expected_number_of_rows_not_by_the_drawn_one():
    """Equal rows, hence equal gradients: the step counts the rows that were drawn."""
    n, rate = 200, 0.3
    features, outcomes = np.ones((n, 1)), np.full((n, 1), 0.1)
    step = Descent(
        noise_multiplier=0.0, learning_rate=1.0, clip_norm=1.0, steps=1, sampling_rate=rate
    )
    rng = np.random.default_rng(6)
    moves = [descend(features, outcomes, step, rng)[0, 0] for _ in range(300)]
    drawn = np.array(moves) * rate * n / 0.1
    np.testing.assert_allclose(drawn, np.round(drawn), atol=1e-3)
    deviation = math.sqrt(n * rate * (1 - rate))
    assert abs(drawn.mean() - n * rate) < 5 * deviation / math.sqrt(300)
    assert 0.75 * deviation < drawn.std() < 1.25 * deviation


def test_a_step_without_rows_is_noise_alone():
    step = Descent(
        noise_multiplier=1.0, learning_rate=1.0, clip_norm=1.0, steps=5, sampling_rate=1e-6
    )
    moved = descend(np.ones((3, 4)), np.ones((3, 2)), step, np.random.default_rng(0))
    assert np.isfinite(moved).all()
    assert np.abs(moved).min() > 0


def test_parts_of_a_step_make_the_same_step(monkeypatch):
    features, outcomes, _ = regression(n=101)
    for rate in (0.5, 1.0):
        step = Descent(
            noise_multiplier=1.0,
            learning_rate=0.1,
            clip_norm=1.0,
            steps=6,
            sampling_rate=rate,
            momentum=0.5,
        )
        found = []
        for held in (2**20, 3 * 10):
            monkeypatch.setattr(dpsgd, "_IN_MEMORY", held)
            found.append(descend(features, outcomes, step, np.random.default_rng(1)))
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_averages_the_last_steps():
    """Without momentum the average over all steps is the mean of the paths that end at each."""
    features, outcomes, _ = regression()
    common = {"noise_multiplier": 0.0, "learning_rate": 0.05, "clip_norm": 1.0}
    ends = [
        descend(features, outcomes, Descent(**common, steps=t), np.random.default_rng(0))
        for t in range(1, 7)
    ]
    for share, last in ((0.5, 3), (1.0, 6)):
        whole = Descent(**common, steps=6, averaging=share)
        found = descend(features, outcomes, whole, np.random.default_rng(0))
        np.testing.assert_allclose(found, np.mean(ends[-last:], axis=0), rtol=1e-4, atol=1e-6)


def test_agrees_with_plain_descent():
    """Two clipped steps written out by hand."""
    features, outcomes, _ = regression()
    step = Descent(noise_multiplier=0.0, learning_rate=0.3, clip_norm=2.0, steps=2)
    found = descend(features, outcomes, step, np.random.default_rng(0))
    slopes = np.zeros((5, 3))
    for _ in range(2):
        gradients = np.einsum("ij,ik->ijk", features, features @ slopes - outcomes)
        clipped = shortened(gradients.reshape(len(features), -1), 2.0)
        slopes -= 0.3 * clipped.mean(axis=0).reshape(5, 3)
    np.testing.assert_allclose(found, slopes, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", [DPSGDEach, DPSGDJoint])
def test_approaches_least_squares_where_privacy_is_weak(kind):
    features, outcomes, bounds = regression(n=2000)
    model = kind(
        100.0,
        1e-2,
        **bounds,
        learning_rate=3.0,
        clip_norm=1.0,
        steps=60,
        random_state=0,
    ).fit(features, outcomes)
    exact = np.linalg.lstsq(features, outcomes, rcond=None)[0]
    assert np.linalg.norm(model.coef_.T - exact) < 0.03 * np.linalg.norm(exact)


def test_approaches_least_squares_by_samples_of_rows():
    features, outcomes, _ = regression(n=2000)
    descent = Descent(
        noise_multiplier=0.0,
        learning_rate=0.2,
        clip_norm=1e3,
        steps=150,
        sampling_rate=0.5,
        averaging=0.6,
    )
    found = descend(features, outcomes, descent, np.random.default_rng(0))
    exact = np.linalg.lstsq(features, outcomes, rcond=None)[0]
    assert np.linalg.norm(found - exact) < 0.01 * np.linalg.norm(exact)


def test_guarantees():
    features, outcomes, bounds = regression()
    common = {**bounds, "steps": 5, "sampling_rate": 0.5, "random_state": 0}
    joint = DPSGDJoint(1.0, 1e-5, **common).fit(features, outcomes)
    assert 0.999 < joint.guarantee_.epsilon <= 1.0
    paper = DPSGDEach(1.0, 1e-5, **common).fit(features, outcomes)
    exact = DPSGDEach(1.0, 1e-5, **common, composition="pld").fit(features, outcomes)
    assert 0.999 < exact.guarantee_.epsilon <= 1.0
    assert paper.guarantee_.epsilon < 0.95
    assert paper.guarantee_.epsilon == true_epsilon(
        paper.noise_multiplier_, 1e-5, rate=0.5, steps=5, compositions=3
    )
    with pytest.raises(InputError, match="'rdp'"):
        DPSGDEach(1.0, 1e-5, **common, composition="rdp").fit(features, outcomes)


def test_some_outcomes_stand_for_all():
    features, outcomes, bounds = regression(l=20)
    common = {**bounds, "steps": 3, "random_state": 0}
    some = DPSGDEach(3.0, 1e-5, **common, fitted_outcomes=4).fit(features, outcomes)
    every = DPSGDEach(3.0, 1e-5, **common).fit(features, outcomes)
    assert len(some.fitted_outcomes_) == 4
    np.testing.assert_array_equal(np.flatnonzero(some.coef_.any(axis=1)), some.fitted_outcomes_)
    assert some.noise_multiplier_ == every.noise_multiplier_
    assert some.guarantee_ == every.guarantee_
    np.testing.assert_array_equal(every.fitted_outcomes_, np.arange(20))
    with pytest.raises(InputError, match="fitted_outcomes=0"):
        DPSGDEach(3.0, 1e-5, **common, fitted_outcomes=0).fit(features, outcomes)


@pytest.mark.statistical
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_the_worst_row_is_told_apart_as_well_as_the_budget_allows(rate):
    """A row whose gradient is at the clip in every step, or its opposite: (ε, δ) of many fits.

    In standard deviations the means are 2√T·q/√(z² + q(1-q)) apart, the sampling adding its own
    variance; with all rows in every step that is 2√T/z = μ.
    """
    n, steps, fits, clip = 20, 4, 400, 0.1
    ends = []
    for side in (-1, 1):
        features, outcomes = np.zeros((n, 1)), np.zeros((n, 1))
        features[0], outcomes[0] = 1.0, side
        settings = {"learning_rate": 1e-3, "clip_norm": clip, "steps": steps}
        models = [
            DPSGDJoint(10.0, 1e-3, **settings, sampling_rate=rate, random_state=seed)
            for seed in range(fits)
        ]
        ends.append([model.fit(features, outcomes).coef_[0, 0] for model in models])
    z = noise_multiplier(10.0, 1e-3, rate=rate, steps=steps)
    apart = (np.mean(ends[1]) - np.mean(ends[0])) / np.sqrt(np.mean(np.var(ends, axis=1)))
    wanted = 2 * math.sqrt(steps) * rate / math.sqrt(z**2 + rate * (1 - rate))
    assert 0.87 < apart / wanted < 1.15


@pytest.mark.parametrize(
    "options",
    [
        {"learning_rate": 3e38},
        {"clip_norm": 0.0},
        {"clip_norm": -1.0},
        {"sampling_rate": 1e-8},
        {"outcome_bounds": -1.0},
        {"feature_bounds": np.nan},
        {"outcome_bounds": np.inf},
    ],
    ids=str,
)
def test_what_could_break_the_guarantee_is_refused(options):
    rng = np.random.default_rng(0)
    model = DPSGDJoint(1.0, 1e-6, **options)
    with pytest.raises(InputError, match=next(iter(options))):
        model.fit(rng.normal(size=(20, 2)), rng.normal(size=(20, 1)))


def test_an_outcome_beyond_single_precision_stays_finite():
    """An infinity survives every clip, so one row could be told from another by NaN."""
    rng = np.random.default_rng(0)
    y = np.zeros((40, 2))
    y[0] = 1.0
    model = DPSGDEach(1.0, 1e-6, outcome_limit=1e-39, steps=3, random_state=1)
    assert np.isfinite(model.fit(rng.normal(size=(40, 2)), y).coef_).all()
