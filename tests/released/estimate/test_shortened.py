"""Rows of features that were all shortened: their slopes are too steep for new rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import primo
from primo.released.estimate.shortened import LEAST, share_of_slopes

N, D = 4000, 20
LENGTH = D**0.5  # of a usual row, in units of the stated scale


def rows(seed: int = 0, l: int = 3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = 5 + 2 * rng.standard_normal((N, D))
    return x, (x - 5) @ rng.standard_normal((D, l)) / 5 + rng.standard_normal((N, l))


def release_of(
    x: np.ndarray, y: np.ndarray, features: primo.Bounds, **how: object
) -> primo.Release:
    bounds = how.pop("outcome_bounds", primo.Bounds(centre=0, scale=2, norm=5.0))
    model = primo.PrimoRegressor(
        5.0,
        1e-7,
        feature_bounds=features,
        outcome_bounds=bounds,
        random_state=1,
        **{"rounds": 1, **how},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        release: primo.Release = model.fit(x, y).release_
    return release


def stated(times: float) -> primo.Bounds:
    return primo.Bounds(centre=5, scale=2, norm=times * LENGTH)


def test_slopes_of_rows_half_as_long_are_twice_too_steep() -> None:
    """Without it R² on new rows is near 0; the fit without privacy has 0.76."""
    x, y = rows()
    release = release_of(x[:2000], y[:2000], stated(0.5))
    assert share_of_slopes(release) == LEAST
    found = release.coefficients().predict(x[2000:])
    held = y[2000:]
    assert 1 - np.mean((held - found) ** 2) / held.var(axis=0).mean() > 0.4


@pytest.mark.parametrize("times", [1.2, 1.5])
def test_rows_within_their_norm_keep_their_slopes(times: float) -> None:
    assert share_of_slopes(release_of(*rows(), stated(times))) == 1


def test_outcomes_that_are_shortened_as_well_keep_their_slopes() -> None:
    short = primo.Bounds(centre=0, scale=2, norm=0.4)
    assert share_of_slopes(release_of(*rows(), stated(0.3), outcome_bounds=short)) == 1


def test_unit_vectors_and_columns_of_ones_are_not_taken_for_shortened_rows() -> None:
    x, y = rows()
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    assert share_of_slopes(release_of(unit, y, primo.Bounds(norm=1.0))) == 1
    signs = np.where(x > 5, 1.0, -1.0)
    assert share_of_slopes(release_of(signs, y, primo.Bounds(lower=-1, upper=1))) == 1


def test_found_norms_and_rounds_keep_their_slopes() -> None:
    found = primo.Bounds(centre=5, scale=2, norm="auto")
    assert share_of_slopes(release_of(*rows(), found)) == 1
    assert share_of_slopes(release_of(*rows(), stated(0.5), rounds=3)) == 1
