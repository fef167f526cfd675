"""What rounds show of how residuals vary: their directions, and whether their lengths are normal."""

from __future__ import annotations

import numpy as np
import pytest

from primo.released.estimate.rounds import pool
from primo.released.estimate.rounds.lengths import clip_in_lengths, residual_lengths
from primo.released.estimate.rounds.normal import as_expected, clips_agree
from round_cases import make_plan, released, rows

N, D, LENGTH = 4000, 3, 0.7
START = 1e-9  # coefficients that are not 0, so that a round counts as one of residuals


def residuals(kind: str, l: int):
    """Residuals of root mean square length `LENGTH`: normal, or a few long ones among short ones."""
    rng = np.random.default_rng(6)
    r = rng.normal(size=(N, l))
    if kind == "rare":
        r *= np.where(rng.random(N) < 0.05, 4.0, 0.3)[:, None]
    return r * LENGTH / np.sqrt(np.mean(np.sum(r**2, axis=1)))


def rounds_with(plan, r, *clips, features=None):
    """A round of the outcomes, and one of residuals with each of the clips; without noise."""
    l = r.shape[1]
    if features is None:
        features = np.random.default_rng(7).normal(size=(N, D)) / 3
    starts = [np.zeros((D, l)), *(np.full((D, l), START) for _ in clips)]
    return [
        released(plan, t, features, r, start, clip)
        for t, (start, clip) in enumerate(zip(starts, (2.0, *clips), strict=True))
    ]


@pytest.mark.parametrize(
    ("kind", "l", "normal"), [("normal", 8, True), ("normal", 2, False), ("rare", 8, False)]
)
def test_lengths_of_normal_residuals_are_told_from_others(kind, l, normal):
    """Few directions tell too little: a yes or a no may look the same as a normal residual."""
    plan = make_plan(n=N, d=D, l=l, rounds=6)
    found = rounds_with(plan, residuals(kind, l), LENGTH * clip_in_lengths(l, normal=False))
    known = residual_lengths(plan, found)
    assert as_expected(plan, found, known, LENGTH**2) is normal
    assert not as_expected(plan, found, known, (1.2 * LENGTH) ** 2)
    assert not as_expected(plan, found, known, 0.01)  # not known well enough
    assert not as_expected(plan, found, known, -0.1)  # noise


@pytest.mark.parametrize(("kind", "normal"), [("normal", True), ("rare", False)])
def test_a_short_clip_and_a_long_one_agree_on_normal_residuals_only(kind, normal):
    l = 8
    plan = make_plan(n=N, d=D, l=l, rounds=6)
    long, short = (LENGTH * clip_in_lengths(l, normal=n) for n in (False, True))
    r = residuals(kind, l)
    before = rounds_with(plan, r, long)
    assert not clips_agree(plan, before, residual_lengths(plan, before))  # nothing to compare with
    found = rounds_with(plan, r, long, short)
    assert clips_agree(plan, found, residual_lengths(plan, found)) is normal


def test_a_short_clip_is_tried_where_nearly_all_rows_of_features_are_shortened():
    plan = make_plan(n=N, d=D, l=8, rounds=6)
    long = LENGTH * clip_in_lengths(8, normal=False)
    features = 2.0 + np.random.default_rng(7).normal(size=(N, D)) / 10
    found = rounds_with(plan, residuals("normal", 8), long, features=features)
    assert clips_agree(plan, found, residual_lengths(plan, found))


def test_directions_are_those_of_residuals_once_there_are_some():
    """What slopes explain may have one direction, and residuals many."""
    l = 20
    rng = np.random.default_rng(8)
    features = rng.normal(size=(N, D)) / 3
    slopes = np.zeros((D, l))
    slopes[:, 0] = 1.0
    outcomes = features @ slopes + 0.03 * rng.normal(size=(N, l))
    plan = make_plan(n=N, d=D, l=l, rounds=4)
    starts = [np.zeros((D, l)), slopes, slopes]
    found = [released(plan, t, features, outcomes, w, 2.0) for t, w in enumerate(starts)]
    # Without noise in the numbers there is none to take off: directions seem a few too many.
    assert residual_lengths(plan, found[:1]).directions < 2
    assert residual_lengths(plan, found).directions == pytest.approx(l, rel=0.05)


def test_noise_of_later_steps_is_not_taken_for_directions_of_outcomes():
    """Coefficients of later rounds hold the noise of the association that directions are judged by."""
    features, outcomes = rows(n=N, d=6, l=5)
    plan = make_plan(n=N, d=6, l=5, rounds=4)
    first = np.linalg.lstsq(features, outcomes, rcond=None)[0]
    noise = 0.1 * np.random.default_rng(9).normal(size=(6, 5))
    moments = []
    for later in (first, first + noise):
        starts = [np.zeros((6, 5)), first, later, later]
        found = [released(plan, t, features, outcomes, w, 2.0) for t, w in enumerate(starts)]
        moments.append(pool(plan, found).outcome_moments)
    along = first.T @ features.T @ features @ noise  # what WᵀAW takes in of it
    assert np.linalg.norm(moments[1] - moments[0]) < 0.2 * np.linalg.norm(along + along.T)
