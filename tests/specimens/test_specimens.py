"""Files that an earlier version wrote are read, and seeded releases keep their numbers."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

import primo

HERE = Path(__file__).parent
OLD = HERE / "v0.1"

_spec = importlib.util.spec_from_file_location("primo_specimens", HERE / "make.py")
make = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(make)

#: Released sums are integers times a step: equal to the last bit. What eigh and solve make is not.
EXACT = ("covariance", "association", "outcome_moments")


@pytest.fixture(scope="module")
def found():
    return make.golden()


@pytest.fixture(scope="module")
def expected():
    with np.load(OLD / "golden.npz") as file:
        return dict(file)


def test_the_same_cases(found, expected):
    assert found.keys() == expected.keys()


def test_released_numbers_are_the_same_bits(found, expected):
    for name, value in expected.items():
        if name.endswith(EXACT):
            np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_estimates_are_the_same_up_to_rounding(found, expected):
    for name, value in expected.items():
        if not name.endswith(EXACT):
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-8, err_msg=name)


def test_a_release_file_is_read():
    release = primo.load_release(OLD / "release.npz")
    assert release.plan.n == make.N
    assert release.association.shape == (make.D + 1, make.L)


def test_a_bundle_is_read():
    bundle = primo.read_bundle(OLD / "bundle.zip")
    assert bundle.release.plan.l == make.L
    assert np.isfinite(primo.coefficients(bundle.release).slopes).all()


def test_a_ledger_is_read_and_charged_further(tmp_path):
    for name in ("specimen.ledger", "specimen.ledger.key"):
        shutil.copy(OLD / name, tmp_path / name)
        (tmp_path / name).chmod(0o600)  # git keeps no modes
    ledger = primo.open_ledger(tmp_path / "specimen.ledger")
    assert [entry.kind for entry in ledger.history()][-1] == "charge"
    features, outcomes = make.rows()
    model = primo.PrimoRegressor(
        1, 1e-6, feature_bounds=make.FEATURES, outcome_bounds=make.OUTCOMES
    )
    model.fit(features, outcomes, account=primo.Account(ledger=ledger, purpose="once more"))
    again = primo.PrimoRegressor(
        9, 1e-6, feature_bounds=make.FEATURES, outcome_bounds=make.OUTCOMES
    )
    with pytest.raises(primo.BudgetError):  # the old charge counts
        again.fit(features, outcomes, account=primo.Account(ledger=ledger, purpose="too much"))
