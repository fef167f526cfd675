from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primo.errors import InputError
from primo.released.estimate import estimate
from primo.released.estimate.reuse_cov import (
    SOLVERS,
    adassp_lambda,
    gauss_error,
    projection_error,
    reuse_cov,
    theorem_lambda,
)
from primo.released.projection import project_onto_features


def symmetric(rng, d):
    square = rng.standard_normal((d, d))
    return (square + square.T) / 2


@settings(deadline=None)
@given(
    d=st.integers(1, 12),
    l=st.integers(1, 6),
    ridge=st.floats(0, 1e3),
    size=st.floats(-4, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_all_solvers_agree(d, l, ridge, size, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((8 * d + 20, d))
    unit = 10.0**size
    A, G = unit * X.T @ X, unit * rng.standard_normal((d, l))
    fits = [
        reuse_cov(A, G, n=len(X), ridge_lambda=unit * ridge, solver=solver) for solver in SOLVERS
    ]
    exact = np.linalg.solve(A + unit * ridge * np.eye(d), G)
    for fit in fits:
        np.testing.assert_allclose(fit, exact, rtol=1e-10, atol=1e-10 * np.abs(exact).max())


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_is_the_ridge_of_the_library(make_moments, solver):
    moments, _, _ = make_moments(20, 30, sigmas=(5.0, 30.0, 1.0))
    expected = estimate(moments, estimator="ridge", ridge_lambda=40.0).coefficients
    fit = reuse_cov(
        moments.covariance, moments.association, n=moments.n, ridge_lambda=40.0, solver=solver
    )
    np.testing.assert_allclose(fit, expected, rtol=1e-10, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("d", [60, 200])
def test_conjugate_gradients_on_a_wide_spectrum(d):
    rng = np.random.default_rng(d)
    q, _ = np.linalg.qr(rng.standard_normal((d, d)))
    A, G = (q * np.geomspace(1, 1e4, d)) @ q.T, rng.standard_normal((d, 8))
    A = (A + A.T) / 2
    qr, cg = (reuse_cov(A, G, n=10, ridge_lambda=0.0, solver=s) for s in ("qr", "cg"))
    np.testing.assert_allclose(cg, qr, atol=1e-10 * np.abs(qr).max())


def test_an_outcome_without_association_gets_zeros():
    G = np.array([[1.0, 0.0], [2.0, 0.0]])
    for solver in SOLVERS:
        fit = reuse_cov(np.diag([3.0, 4.0]), G, n=5, ridge_lambda=1.0, solver=solver)
        np.testing.assert_allclose(fit, [[0.25, 0.0], [0.4, 0.0]])


def test_an_indefinite_covariance():
    """QR follows the paper wherever it leads; the gradients refuse; the library sets −1 to 0."""
    A, G = np.diag([2.0, -1.0]), np.ones((2, 1))
    np.testing.assert_allclose(reuse_cov(A, G, n=3, ridge_lambda=0.5), [[0.4], [-2.0]])
    fast = reuse_cov(A, G, n=3, ridge_lambda=0.5, solver="fast")
    np.testing.assert_allclose(fast, [[0.4], [2.0]])
    with pytest.raises(InputError, match="positive definite"):
        reuse_cov(A, G, n=3, ridge_lambda=0.5, solver="cg")


def test_refusals():
    A, G = np.diag([1.0, 0.0]), np.ones((2, 1))
    with pytest.raises(InputError, match="singular"):
        reuse_cov(A, G, n=3, ridge_lambda=0.0)
    with pytest.raises(InputError, match="positive definite"):
        reuse_cov(-np.eye(2), G, n=3, ridge_lambda=0.0, solver="cg")
    with pytest.raises(InputError, match="unknown solver 'lu'"):
        reuse_cov(A, G, n=3, ridge_lambda=1.0, solver="lu")
    with pytest.raises(InputError, match="not -1"):
        reuse_cov(A, G, n=3, ridge_lambda=-1.0)
    with pytest.raises(InputError, match="shape"):
        reuse_cov(np.eye(3), G, n=3, ridge_lambda=1.0)
    with pytest.raises(InputError, match="coefficient_norm"):
        theorem_lambda(d=2, coefficient_norm=0.0, covariance_sigma=1.0, association_error=1.0)
    with pytest.raises(InputError, match="failure"):
        gauss_error(d=2, association_sigma=1.0, failure=1.0)


@settings(deadline=None)
@given(
    d=st.integers(1, 500),
    norm=st.floats(1e-3, 1e3),
    sigma1=st.floats(1e-3, 1e3),
    sigma2=st.floats(1e-3, 1e3),
)
def test_the_theorems_lambda_minimises_the_bound(d, norm, sigma1, sigma2):
    log = math.log(2 * d**2 / 0.05)
    error = gauss_error(d=d, association_sigma=sigma2)
    best = theorem_lambda(
        d=d, coefficient_norm=norm, covariance_sigma=sigma1, association_error=error
    )

    def bound(lam):
        return (d * sigma1**2 * log * norm**2 + d * sigma2**2 * log) / lam + lam * norm**2

    np.testing.assert_allclose(best, math.sqrt(d * log * (sigma1**2 + (sigma2 / norm) ** 2)))
    assert bound(best) <= min(bound(0.99 * best), bound(1.01 * best))


@pytest.mark.parametrize(("n", "d", "l", "sigma"), [(50, 4, 30, 20.0), (400, 30, 200, 100.0)])
def test_the_projected_error_stays_below_its_bound(n, d, l, sigma):
    rng = np.random.default_rng(n)
    X, Y = rng.standard_normal((n, d)), rng.standard_normal((n, l))
    radius = float(np.linalg.norm(Y))
    bound = projection_error(
        d=d,
        l=l,
        association_sigma=sigma,
        radius=radius,
        public_norm=float(np.linalg.norm(X)),
        private_width=l,
    )
    assert bound < gauss_error(d=d, association_sigma=sigma)  # else this tests nothing
    G = X.T @ Y
    errors = [
        np.linalg.norm(
            project_onto_features(
                G + sigma * rng.standard_normal((d, l)), X.T @ X, radius=radius
            ).association
            - G
        )
        ** 2
        / l
        for _ in range(20)
    ]
    assert bound / 40 < max(errors) < bound


def test_a_projection_is_never_worse_than_none():
    shared = {"d": 25, "association_sigma": 2.0}
    projected = projection_error(l=10, radius=1e9, public_norm=1e9, private_width=10, **shared)
    assert projected == gauss_error(**shared)


def test_adassp_adds_no_ridge_to_a_strong_covariance():
    assert adassp_lambda(1e6 * np.eye(5), covariance_sigma=1.0) == 0
    assert adassp_lambda(np.eye(5), covariance_sigma=0.0) == 0
    weak = adassp_lambda(-np.eye(5), covariance_sigma=2.0)
    np.testing.assert_allclose(weak, 2 * math.sqrt(5 * math.log(50 / 0.05)))


@pytest.mark.parametrize("spectrum", [np.full(30, 40.0), np.geomspace(5, 500, 30)])
def test_adassp_bounds_the_smallest_eigenvalue_from_below(spectrum):
    """λ̃_min ≤ λ_min with probability 1 − ρ, so λ + λ_min reaches what AdaSSP wants as often."""
    rng = np.random.default_rng(7)
    wanted = math.sqrt(30 * math.log(2 * 30**2 / 0.2))
    reached = [
        adassp_lambda(np.diag(spectrum) + symmetric(rng, 30), covariance_sigma=1.0, failure=0.2)
        + spectrum.min()
        >= wanted
        for _ in range(300)
    ]
    assert np.mean(reached) > 0.8 - 3 * math.sqrt(0.2 * 0.8 / 300)
