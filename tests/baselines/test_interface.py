"""Every baseline is a scikit-learn estimator with the attributes of `PrimoRegressor`."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict

from baselines import diffprivlib
from baselines.adassp import AdaSSP
from baselines.base import ExactMoments, MomentBaseline
from baselines.boosted_adassp import BoostedAdaSSP
from baselines.diffprivlib import DiffprivlibRegression
from baselines.hessian_mixing import HessianMixing
from baselines.least_squares import LeastSquares, Ridge
from baselines.ssp import COMPOSITIONS, ComposedSSP
from primo.errors import InputError

BOUNDS = {"feature_bounds": 2.0, "outcome_bounds": 4.0}
PRIVATE = [
    *(ComposedSSP(5.0, 1e-6, composition=name, **BOUNDS) for name in COMPOSITIONS),
    ComposedSSP(5.0, 1e-6, joint=True, ridge="none", outcome_limit=2.0, **BOUNDS),
    AdaSSP(5.0, 1e-6, **BOUNDS),
    BoostedAdaSSP(5.0, 1e-6, rounds=7, **BOUNDS),
    HessianMixing(5.0, 1e-6, **BOUNDS),
    DiffprivlibRegression(5.0, 1e-6, **BOUNDS),
]
ALL = [LeastSquares(), Ridge(), *PRIVATE]


@pytest.fixture(autouse=True)
def _no_subprocess(monkeypatch):
    # The library itself is in test_diffprivlib.py; here it is only what wraps it.
    def run(*, features, outcomes, seed, **_):
        return np.random.default_rng(seed).normal(size=(outcomes.shape[1], features.shape[1]))

    monkeypatch.setattr(diffprivlib, "_run", run)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_shapes_of_a_fit(model, rows):
    features, outcomes = rows
    model = clone(model).fit(features, outcomes)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    assert not model.intercept_.any()
    assert model.n_features_in_ == 4
    assert model.predict(features[:5]).shape == (5, 3)
    np.testing.assert_allclose(model.predict(features), features @ model.coef_.T)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_one_dimensional_outcomes(model, rows):
    features, outcomes = rows
    model = clone(model).fit(features, outcomes[:, 0])
    assert model.coef_.shape == (4,)
    assert model.intercept_ == 0.0
    assert model.predict(features[:5]).shape == (5,)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_clone_keeps_every_parameter(model):
    parameters = model.get_params()
    assert clone(model).get_params() == parameters
    assert type(model)(**parameters).get_params() == parameters


@pytest.mark.parametrize("model", [LeastSquares(), Ridge(), AdaSSP(5.0, 1e-6)], ids=str)
def test_works_inside_cross_validation(model, rows):
    features, outcomes = rows
    assert cross_val_predict(clone(model), features, outcomes, cv=3).shape == outcomes.shape


@pytest.mark.parametrize("model", PRIVATE, ids=str)
def test_a_seed_repeats_a_fit_and_another_does_not(model, rows):
    first, again, other = (
        clone(model).set_params(random_state=seed).fit(*rows).coef_ for seed in (1, 1, 2)
    )
    np.testing.assert_allclose(first, again, rtol=1e-7, atol=1e-10)
    assert not np.allclose(first, other)


@pytest.mark.parametrize("model", [m for m in ALL if isinstance(m, MomentBaseline)], ids=str)
def test_moments_give_the_fit_of_their_rows(model, rows):
    features, outcomes = rows
    if "random_state" in model.get_params():
        model = clone(model).set_params(random_state=3)
    moments = ExactMoments.of(features, outcomes, full=True)
    np.testing.assert_allclose(
        clone(model).fit_moments(moments).coef_, clone(model).fit(features, outcomes).coef_
    )


@pytest.mark.parametrize("model", PRIVATE, ids=str)
def test_private_fits_state_what_they_cost(model, rows):
    guarantee = clone(model).fit(*rows).guarantee_
    assert 0 < guarantee.epsilon <= 5.0
    assert guarantee.protection == "both"
    assert guarantee.how


@pytest.mark.parametrize("model", [LeastSquares(), Ridge()], ids=str)
def test_the_others_promise_nothing(model, rows):
    assert model.fit(*rows).guarantee_ is None


@pytest.mark.parametrize(
    "model",
    [
        ComposedSSP(composition="wrong"),
        ComposedSSP(composition="advanced", joint=True),
        ComposedSSP(ridge="wrong"),
        ComposedSSP(ridge=0.0),
        ComposedSSP(epsilon=-1.0),
        AdaSSP(failure=1.0),
        Ridge(penalty=-1.0),
        Ridge(penalty="wrong"),
        DiffprivlibRegression(accounting="wrong"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused(model, rows):
    with pytest.raises(InputError):
        model.fit(*rows)
