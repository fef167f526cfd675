from __future__ import annotations

import numpy as np
import pytest

from primo.released.estimate.large import LargeReplicas
from primo.released.estimate.risk import FilterRisk, Replicas, _hats, simulate
from primo.released.estimate.spectrum import denoised_spectrum, expected_spectrum, symmetric_noise


def test_symmetric_noise_has_the_stated_law():
    noise = symmetric_noise(np.random.default_rng(0), copies=4000, d=4, sigma=3.0)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    assert np.var(noise[:, 0, 0]) == pytest.approx(9.0, rel=0.1)
    assert np.var(noise[:, 0, 1]) == pytest.approx(4.5, rel=0.1)


def test_analytic_excess_equals_simulated_excess():
    rng = np.random.default_rng(1)
    d, sigma2, strength = 5, 6.0, 0.7
    truth = np.array([1.0, 2.0, 5.0, 9.0, 20.0])
    shape = truth**0.5
    _, basis = np.linalg.eigh(np.diag(truth) + symmetric_noise(rng, copies=1, d=d, sigma=1.5)[0])
    g = rng.uniform(0.02, 0.3, d)
    risk = FilterRisk.build(Replicas(truths=truth[None], bases=basis[None]), shape[None, None])
    w = np.sqrt(strength * shape)[:, None] * rng.standard_normal((d, 200_000))
    noisy = truth[:, None] * w + sigma2 * rng.standard_normal(w.shape)
    error = basis @ (g[:, None] * (basis.T @ noisy)) - w
    simulated = float(np.mean(np.sum(truth[:, None] * error**2, axis=0)))
    analytic = risk.excess(g[:, None], np.array([[strength]]), np.array([sigma2**2]))
    np.testing.assert_allclose(analytic, simulated, rtol=0.01)


@pytest.mark.parametrize("sigma", [0.0, 1.5])
@pytest.mark.parametrize("d", [1, 6, 60])
def test_no_filter_beats_the_best_one(d, sigma):
    rng = np.random.default_rng(2)
    values = np.sort(rng.uniform(1, 30, d))
    replicas = simulate(values, sigma)
    shapes = np.stack([np.ones_like(replicas.truths), replicas.truths / values.max()])
    risk = FilterRisk.build(replicas, shapes)
    strength, noise = np.array([[0.2, 1.0, 0.0], [0.0, 0.5, 3.0]]), np.array([4.0, 4.0, 8.0])
    g = risk.best_filter(strength, noise)
    least = risk.excess(g, strength, noise)
    smooth = g * (_hats(d, 32) @ rng.uniform(0.8, 1.2, (min(d, 32), 1))) if d <= 32 else g * 1.05
    assert (risk.excess(smooth, strength, noise) >= least).all()
    assert (risk.excess(np.zeros_like(g), strength, noise) >= least).all()
    ridges = 1 / (values[:, None] + np.array([0.1, 1.0, 10.0]))
    assert (risk.excess(ridges, strength, noise) >= least * (1 - 1e-3)).all()
    assert (least >= 0).all()


def test_exact_covariance_gives_the_textbook_filter():
    truth, tau2, sigma2 = np.array([0.0, 1.0, 4.0, 30.0]), 0.5, 3.0
    risk = FilterRisk.build(Replicas(truths=truth[None], bases=None), np.ones((1, 1, 4)))
    g = risk.best_filter(np.array([[tau2]]), np.array([sigma2**2]))[:, 0]
    np.testing.assert_allclose(g, truth / (truth**2 + sigma2**2 / tau2))


def test_an_eigenvalue_that_the_noise_may_have_made_is_not_divided_by():
    """However strong the prior says the signal is: 1/a would be 100 times the limit here."""
    for d in (1, 5):
        values = np.append(np.full(d - 1, 500.0), 0.01)
        values.sort()
        replicas = simulate(values, 1.0)
        risk = FilterRisk.build(replicas, np.ones((1, *replicas.truths.shape)))
        g = risk.best_filter(np.array([[1e6]]), np.array([1e-6]))[:, 0]
        assert 0 < g[0] < 2.0
        np.testing.assert_allclose(g[1:], 1 / 500, rtol=0.05)


def test_possible_eigenvalues_follow_the_noise():
    replicas = simulate(np.array([-3.0, 50.0, 400.0]), 10.0, copies=4000)
    assert (replicas.truths >= 0).all()
    np.testing.assert_allclose(np.mean(replicas.truths[:, 2]), 400, atol=1)
    np.testing.assert_allclose(np.std(replicas.truths[:, 2]), 10, rtol=0.1)
    assert np.mean(replicas.truths[:, 0]) < 10


def test_hats_add_up_to_one():
    for d in (1, 32, 33, 500):
        hats = _hats(d, 32)
        np.testing.assert_allclose(hats.sum(axis=1), 1.0)
        assert np.linalg.matrix_rank(hats) == hats.shape[1]


def test_spectrum_is_recovered_from_its_noisy_version():
    rng = np.random.default_rng(3)
    truth = np.sort(rng.uniform(0, 100, 60) * (rng.uniform(size=60) < 0.4))
    released = np.linalg.eigvalsh(
        np.diag(truth) + symmetric_noise(rng, copies=1, d=60, sigma=5.0)[0]
    )
    noise = symmetric_noise(rng, copies=4, d=60, sigma=5.0)
    found, _ = denoised_spectrum(released, noise, 5.0)
    assert (found >= 0).all()
    assert np.mean((found - truth) ** 2) < 0.25 * np.mean((released - truth) ** 2)


def test_expected_spectrum_of_pure_noise_is_flat():
    rng = np.random.default_rng(4)
    noise = symmetric_noise(rng, copies=1, d=200, sigma=1.0)[0]
    values = np.linalg.eigvalsh(50 * np.eye(200) + noise)
    assert np.std(expected_spectrum(values, 1.0)) < 0.15 * np.std(values)
    np.testing.assert_array_equal(expected_spectrum(np.array([-1.0, 2.0]), 0.0), [0.0, 2.0])


@pytest.mark.parametrize("d", [150, 500])  # drawn as they are; in bins of many features
def test_hidden_eigenvalues_add_up_to_a_possible_trace(d):
    """They came out at 2.4 times the released trace where all of them are lost in noise."""
    sigma = 10.0
    rng = np.random.default_rng(3)
    square = rng.standard_normal((d, d))
    values = np.linalg.eigvalsh(4.0 * np.eye(d) + (square + square.T) * sigma / 2)
    found = simulate(values, sigma)
    sizes = found.bins.sizes if isinstance(found, LargeReplicas) else np.ones(d)
    assert (found.truths @ sizes).mean() <= max(values.sum(), 0.0) + 3.01 * sigma * np.sqrt(d)


def test_an_eigenvalue_that_stands_out_is_not_lowered_with_the_hidden_ones():
    d, sigma = 150, 10.0
    rng = np.random.default_rng(3)
    square = rng.standard_normal((d, d))
    true = np.append(np.full(d - 1, 0.5), 2000.0)
    values = np.linalg.eigvalsh(np.diag(true) + (square + square.T) * sigma / 2)
    assert abs(simulate(values, sigma).truths[:, -1].mean() / values[-1] - 1) < 0.02


def test_a_filter_is_never_worse_than_none():
    """Without its negative entry, the first one would be forty times too large."""
    risk = FilterRisk(
        constant=np.array([1.0]),
        linear=np.array([[1.0, 0.2]]),
        signal=np.array([[[1.0, 0.99], [0.99, 1.0]]]),
        noise=np.full(2, 1e-6),
        sampling=np.zeros((2, 2)),
        rank=2.0,
    )
    one = np.ones(1)
    found = risk.best_filter(one[None, :], one)
    assert (found >= 0).all()
    assert float(risk.excess(found, one[None, :], one)[0]) <= 1.0
