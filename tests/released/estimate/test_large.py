"""Averages over noisy covariances, computed from the spectrum, against simulated ones."""

from __future__ import annotations

import numpy as np
import pytest

from primo.released.estimate import risk
from primo.released.estimate.large import Bins, LargeReplicas, _noisy
from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.risk import FilterRisk, Replicas, simulate
from primo.released.estimate.selection import fit_filter
from primo.released.estimate.spectrum import symmetric_noise

D, SIGMA = 300, 1.0
SPECTRA = {
    "decay": np.sort(100 * np.exp(-4 * np.arange(D) / D)),
    "spiked": np.sort(np.append(60 * np.exp(-3 * np.arange(D - 3) / D), [200.0, 500.0, 1e5])),
    "low rank": np.append(np.zeros(D // 2), np.linspace(20, 80, D - D // 2)),
}


@pytest.fixture(scope="module", params=SPECTRA)
def pair(request):
    """The same true eigenvalues seen through twelve simulated matrices, and through none."""
    truth = SPECTRA[request.param]
    noise = symmetric_noise(np.random.default_rng(3), copies=12, d=D, sigma=SIGMA)
    decomposed = np.linalg.eigh(noise + np.diag(truth))
    simulated = Replicas(truths=np.repeat(truth[None], 12, axis=0), bases=decomposed.eigenvectors)
    bins = Bins.of(D)
    seen, looks_like = _noisy(bins.means(truth), bins.sizes, SIGMA**2 / 2)
    computed = LargeReplicas(
        bins=bins, truths=bins.means(truth)[None], seen=seen, off_variance=SIGMA**2 / 2
    )
    return simulated, computed, decomposed.eigenvalues.mean(axis=0), looks_like


def test_bins_hold_every_rank_once_and_the_largest_alone():
    for d in (2, 5, 300, 20_000):
        bins = Bins.of(d)
        assert bins.edges[0] == 0
        assert bins.edges[-1] == d == bins.sizes.sum()
        assert (bins.sizes > 0).all()
        assert len(bins.sizes) <= 200
        assert (bins.sizes[-min(10, len(bins.sizes)) :] == 1).all() or d > 300
        ranks = np.arange(d, dtype=float)
        np.testing.assert_allclose(bins.spread(bins.means(ranks))[1:-1], ranks[1:-1], atol=d / 60)
    values = np.random.default_rng(0).random((300, 2))
    bins = Bins.of(300)
    np.testing.assert_allclose(bins.sums(values).sum(axis=0), values.sum(axis=0))


def test_noisy_eigenvalues(pair):
    _, computed, noisy, looks_like = pair
    binned = computed.average(noisy)
    width = noisy[-4] - noisy[0]
    assert np.sqrt(np.mean((looks_like - binned) ** 2)) < 0.01 * width


def test_averages_along_noisy_eigenvectors(pair):
    simulated, computed, _, _ = pair
    truths = simulated.truths[0]
    np.testing.assert_allclose(computed.overlaps.sum(axis=0), 1.0)
    for power in (1, 2):
        expected = simulated.along(simulated.truths[:, :, None] ** power)[:, 0]
        found = computed.spread(computed.along(computed.truths[:, :, None] ** power))[:, 0]
        bulk = slice(0, D - 3)
        scale = np.sqrt(np.mean(expected[bulk] ** 2))
        assert np.sqrt(np.mean((found - expected)[bulk] ** 2)) < 0.05 * scale
        np.testing.assert_allclose(found[-1], expected[-1], rtol=0.05)
        assert found.sum() == pytest.approx((truths**power).sum(), rel=0.03)


def test_the_risk_of_filters(pair):
    """The whole quadratic form, off-diagonal terms included: 0.87 and 1.15 times it are rejected."""
    simulated, computed, noisy, _ = pair
    many = np.stack([np.ones((12, D)), simulated.truths / simulated.truths.max()])
    few = np.stack([np.ones_like(computed.truths), computed.truths / simulated.truths.max()])
    one, two = FilterRisk.build(simulated, many), FilterRisk.build(computed, few)
    strength, quiet = np.eye(2), np.full(2, 1e-12)
    np.testing.assert_allclose(two.constant, one.constant, rtol=1e-3)
    for damping in (5.0, 20.0, 80.0):
        g = np.repeat((1 / (np.maximum(noisy, 0) + damping))[:, None], 2, axis=1)
        h = computed.average(g)
        for noise, residual in ((quiet, 0.0), (np.ones(2), 0.0), (quiet, np.ones(2))):
            expected = one.excess(g, strength, noise, residual)
            np.testing.assert_allclose(
                two.excess(h, strength, noise, residual), expected, rtol=0.08
            )
    # The off-diagonal part alone.
    off = one.sampling - np.diag(np.diag(one.sampling))
    mine = two.sampling - np.diag(computed.sizes * computed.mean_values() ** 2)
    assert mine.sum() == pytest.approx(off.sum(), rel=0.06)


@pytest.mark.parametrize("spectrum", ["decay", "low rank"])
def test_the_fitted_filter_predicts_as_well(spectrum, monkeypatch):
    """The error of the coefficients, known here, is that of the simulated filter within 3 %."""
    truth, l = SPECTRA[spectrum], 60
    rng = np.random.default_rng(5)
    weights = rng.standard_normal((D, l))
    moments = NoisyMoments(
        n=5000,
        covariance=np.diag(truth) + symmetric_noise(rng, copies=1, d=D, sigma=SIGMA)[0],
        association=truth[:, None] * weights + 20 * rng.standard_normal((D, l)),
        outcome_moments=np.full(l, 3 * truth.sum()),
        covariance_sigma=SIGMA,
        association_sigma=20.0,
        outcome_sigma=0.0,
    )

    def error():
        fitted = fit_filter(moments)
        wrong = fitted.estimate(moments).coefficients - weights
        return float(truth @ (wrong**2).sum(axis=1)), fitted

    simulated, before = error()
    monkeypatch.setattr(risk, "LARGE", D - 1)
    computed, fitted = error()
    assert isinstance(fitted.replicas, LargeReplicas)
    assert computed == pytest.approx(simulated, rel=0.03)
    foretold = [float(f.groups.counts @ f.excess) for f in (before, fitted)]
    assert foretold[1] == pytest.approx(foretold[0], rel=0.1)


def test_true_eigenvalues_are_found(monkeypatch):
    truth = SPECTRA["spiked"]
    noise = symmetric_noise(np.random.default_rng(8), copies=1, d=D, sigma=SIGMA)[0]
    values = np.linalg.eigvalsh(np.diag(truth) + noise)
    monkeypatch.setattr(risk, "LARGE", D - 1)
    found = simulate(values, SIGMA)
    assert isinstance(found, LargeReplicas)
    assert found.top == pytest.approx(1e5, rel=1e-3)
    np.testing.assert_allclose(found.truths[0][-3:-1], [200, 500], atol=3)
    assert found.truths.min() >= 0
    off = found.truths[0] - found.average(truth)
    assert np.sqrt(np.mean(off[:-3] ** 2)) < 2 * SIGMA
    again = simulate(values, SIGMA)
    np.testing.assert_array_equal(found.truths, again.truths)


def test_few_features_are_simulated_as_ever():
    assert isinstance(simulate(np.linspace(0, 10, 400), 1.0), Replicas)
    assert isinstance(simulate(np.linspace(0, 10, 401), 1.0), LargeReplicas)
    exact = simulate(np.linspace(0, 10, 401), 0.0)
    assert isinstance(exact, Replicas)
    assert exact.bases is None
