"""Predictions do not reach far beyond the fitted rows where norms were found without ranges."""

import numpy as np
import pytest

import primo
from primo.privacy.clip import Clip
from primo.released.reach import FARTHEST, reach_of, within_reach


def fitted(bounds):
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.normal(size=5000), np.exp(rng.normal(size=5000) * 2)])
    y = x[:, :1] + rng.normal(size=(5000, 1))
    with pytest.warns(primo.ReproducibleNoiseWarning):
        return primo.PrimoRegressor(
            epsilon=3, delta=1e-7, feature_bounds=bounds, outcome_bounds=bounds, random_state=1
        ).fit(x, y)


def test_only_far_rows_are_shortened_each_by_itself():
    clip = Clip(centre=np.array([1.0, 0.0]), scale=np.array([2.0, 1.0]), norm=3.0, box=False)
    rows = np.array([[1.0, 0.5], [1.0, 6.0], [13.0, 0.0]])
    found = within_reach(rows, clip)
    assert found == pytest.approx(np.array([[1.0, 0.5], [1.0, 3.0], [7.0, 0.0]]))
    alone = [within_reach(row[None], clip)[0] for row in rows]
    assert found == pytest.approx(np.array(alone))
    assert within_reach(rows, None) is rows


def test_rows_are_shortened_where_nothing_is_stated_of_their_columns():
    plan = fitted(primo.Bounds(norm="auto")).release_.plan
    assert reach_of(plan).norm == FARTHEST * plan.features.norm


def test_a_prediction_for_a_far_row_stays_near():
    model = fitted(primo.Bounds(norm="auto"))
    near, far = np.array([[0.5, 1.0]]), np.array([[0.5, 1e9]])
    assert model.predict(near) == pytest.approx(near @ model.coef_.T + model.intercept_)
    assert np.abs(model.predict(far)).max() < 100
    released = primo.coefficients(model.release_)
    assert released.predict(far) == pytest.approx(model.predict(far))


@pytest.mark.parametrize(
    "bounds", [primo.Bounds(norm=5.0), primo.Bounds(centre=0.5, scale=2.0, norm="auto")]
)
def test_stated_bounds_leave_predictions_linear(bounds):
    model = fitted(bounds)
    far = np.array([[0.5, 1e6]])
    assert model.predict(far) == pytest.approx(far @ model.coef_.T + model.intercept_)
