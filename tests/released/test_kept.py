"""What takes a decomposition is made once for a release, and left behind by copies of it."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest

import primo
from primo.released import uncertainty
from primo.released.estimate import risk
from primo.released.kept import hand_over
from primo.released.moments import KEPT
from primo.released.uncertainty import published, system
from primo.released.uncertainty.system import system_of


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(4000, 30))
    y = x @ rng.uniform(-1, 1, size=(30, 8)) / 3 + rng.uniform(-1, 1, size=(4000, 8))
    model = primo.PrimoRegressor(
        8, 1e-6, feature_bounds=3.5, outcome_bounds=3.5, random_state=1, fit_intercept=True
    )
    with pytest.warns(primo.ReproducibleNoiseWarning):
        return model.fit(x, y).release_


def test_the_covariance_is_decomposed_once(made, monkeypatch):
    release, counted = dataclasses.replace(made), []
    eigh = np.linalg.eigh

    def counting(matrix, *args, **how):
        if np.shape(matrix) in ((30, 30), (31, 31)):
            counted.append(np.shape(matrix))
        return eigh(matrix, *args, **how)

    monkeypatch.setattr(np.linalg, "eigh", counting)
    primo.coefficients(release)
    assert len(counted) == 1
    first = system_of(release)
    uncertainty.goodness_of_fit(release)
    uncertainty.tests(release)
    list(uncertainty.table.table_blocks(release, level=0.95, target="population"))
    total = len(counted)
    assert total <= 4  # z, Â, the centred covariance, and that of the joint tests
    uncertainty.goodness_of_fit(release)
    uncertainty.tests(release)
    primo.coefficients(release)
    assert len(counted) == total
    assert system_of(release) is first


def test_copies_leave_it_behind(made):
    release = dataclasses.replace(made)
    primo.coefficients(release)
    assert KEPT in release.__dict__
    assert KEPT not in dataclasses.replace(release).__dict__
    loaded = pickle.loads(pickle.dumps(release))
    assert KEPT not in loaded.__dict__
    np.testing.assert_array_equal(loaded.covariance, release.covariance)
    hand_over(release, loaded)
    assert loaded.__dict__[KEPT] is release.__dict__[KEPT]
    other = dataclasses.replace(release, association=release.association + 1)
    hand_over(release, other)
    assert KEPT not in other.__dict__


def test_held_out_r2_in_closed_form(made, monkeypatch):
    """Responses by a formula and by runs of the estimator agree within the error of both."""
    runs = uncertainty.published_r_squared(dataclasses.replace(made))
    for module in (published, risk, system):
        monkeypatch.setattr(module, "LARGE", 20)
    formula = uncertainty.published_r_squared(dataclasses.replace(made))
    assert 0.1 < runs.pooled < 0.9
    assert formula.pooled == pytest.approx(runs.pooled, abs=0.03)
    np.testing.assert_allclose(formula.r_squared, runs.r_squared, atol=0.05)
    assert formula.pooled_error == pytest.approx(runs.pooled_error, rel=0.5)
