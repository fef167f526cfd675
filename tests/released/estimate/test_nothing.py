"""Outcomes that are lost in noise: no noise is published in place of a mean or of slopes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import primo
from primo.released.estimate.means import shrunk_means
from primo.released.estimate.nothing import LOST, LOST_AS_STATED, nothing_to_see


def release_of(bounds: primo.Bounds, *, seed: int, n: int = 300, l: int = 1) -> primo.Release:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 3))
    y = x @ rng.standard_normal((3, l)) + rng.standard_normal((n, l))
    model = primo.PrimoRegressor(
        1.0, 1e-6, feature_bounds=5.0, outcome_bounds=bounds, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        warnings.simplefilter("ignore", primo.WeakGuaranteeWarning)
        release: primo.Release = model.fit(x, y).release_
    return release


@pytest.mark.parametrize("l", [1, 5])
def test_bounds_a_thousand_times_too_wide_publish_the_centre(l: int) -> None:
    """Predictions were hundreds of standard deviations off; 2 of 20 may still show chance evidence."""
    far = 0
    for seed in range(20):
        release = release_of(primo.Bounds(lower=-2000, upper=2000), seed=seed, l=l)
        predicted = release.coefficients().predict(np.zeros((1, 3)))
        far += bool(np.abs(predicted).max() > 1)
    assert far <= 2


def test_a_mean_lies_within_its_bounds() -> None:
    shrunk, _ = shrunk_means(np.array([40.0, -3.0]), 10.0, most=1.0)
    assert np.abs(shrunk).max() <= 1
    # Noise ten times as wide as the range: next to nothing is kept, whatever was released.
    assert np.abs(shrunk[0]) < 0.02 * 40


def test_a_single_mean_needs_evidence_where_in_doubt() -> None:
    for z, kept in ((2.5, False), (6.0, True)):
        (certain,), _ = shrunk_means(np.array([z]), 1.0)
        (doubted,), _ = shrunk_means(np.array([z]), 1.0, doubt=LOST)
        assert certain > 0
        assert (doubted > 0) == kept


def test_many_means_off_their_centres_speak_for_each_other() -> None:
    alone, _ = shrunk_means(np.array([2.5]), 1.0, doubt=LOST)
    together, _ = shrunk_means(np.full(30, 2.5), 1.0, doubt=LOST)
    assert alone[0] == 0
    assert together.min() > 1.5


def test_doubt_follows_what_is_resolved_and_what_was_stated() -> None:
    lost, stated = (
        nothing_to_see(release_of(bounds, seed=3, n=60))[1]
        for bounds in (
            primo.Bounds(lower=-2000, upper=2000),
            primo.Bounds(centre=0.0, scale=2.0, norm=2.0),
        )
    )
    assert lost > LOST / 10
    assert stated <= LOST_AS_STATED
    resolved = release_of(primo.Bounds(lower=-6, upper=6), seed=3, n=20_000)
    means, slopes = nothing_to_see(resolved)
    assert slopes < 1e-6
    assert means.max() < 1e-6
