"""Products with nearly diagonal points leave zeros out, and give what the dense product gives."""

import numpy as np
import pytest

import primo
from primo.released.estimate.centring import reflect
from primo.released.uncertainty.posterior import projected
from primo.released.uncertainty.system import system_of

pytestmark = pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")


@pytest.mark.parametrize("filled", [1, 30])
def test_zeros_are_left_out(filled):
    rng = np.random.default_rng(0)
    vectors = np.linalg.qr(rng.normal(size=(60, 60)))[0]
    points = np.diag(rng.normal(size=60))
    points[:, :filled] = rng.normal(size=(60, filled))  # thick enough for the dense product at 30
    np.testing.assert_allclose(projected(vectors, points), vectors.T @ points, atol=1e-12)


def test_slopes_and_the_intercept_along_both_bases():
    rng = np.random.default_rng(1)
    x = rng.normal(3.0, 1.0, size=(400, 30))  # far from the centre: the reflection does something
    y = x[:, :2] + rng.normal(size=(400, 2))
    model = primo.PrimoRegressor(
        5, 1e-6, feature_bounds=(-6, 6), outcome_bounds=(-9, 9), random_state=1
    ).fit(x, y)
    system = system_of(model.release_)
    posterior = system.posterior
    dense = system.spectrum[1].T @ system.terms
    np.testing.assert_allclose(system.loadings(system.terms), dense, atol=1e-10)
    reflected = reflect(posterior.centred.axis, system.terms)[:-1]
    expected = (posterior.vectors.T @ reflected) ** 2
    np.testing.assert_allclose(posterior.loadings(system.terms), expected, atol=1e-10)
