"""Coefficients from a covariance inside blocks: exact cases, simulated accuracy, and no signal."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from genome import linked, r_squared, simulate, symmetric
from primo.errors import InputError
from primo.released.blocks import ReleasedBlocks
from primo.released.estimate.blocks import BlockMoments, fit_blocks
from primo.released.estimate.blocks.diagonal import shrunk_variances
from primo.released.estimate.blocks.normal import fit_normal
from primo.released.estimate.blocks.problem import Centring
from primo.released.estimate.blocks.sparse import _bound, _Part, fit_sparse
from primo.released.estimate.blocks.spectra import decompose
from primo.released.estimate.signal import EXPLAINED, SHARE_PRIOR


def fitted(moments, prior="normal", j=0):
    directions = decompose(moments)
    return directions, fit_normal(
        directions,
        directions.rotate(moments.association)[:, j],
        variation=float(moments.variation[j]),
        rows=moments.n,
        noise=float(moments.noise_variance[j]),
    )


def test_normal_prior_is_the_average_of_ridges():
    """The posterior mean is that of ridge regressions in the features' own coordinates."""
    rng = np.random.default_rng(0)
    moments, _, linkage = simulate(rng, n=500, blocks=3, width=4, noise=30.0)
    directions, fit = fitted(moments)
    found = directions.restore(fit.along[:, None])[:, 0]
    a = moments.n * linkage
    whole = np.kron(np.eye(3), a)
    scores, means = [], []
    for share in EXPLAINED:
        tau = share * 500 / np.trace(whole)
        residual = 500 * (1 - share / 3) / 500
        spread = tau * whole @ whole + residual * whole + 900 * np.eye(12)
        scores.append(multivariate_normal(np.zeros(12), spread).logpdf(moments.association[:, 0]))
        means.append(tau * whole @ np.linalg.solve(spread, moments.association[:, 0]))
    weights = np.exp(np.array(scores) - max(scores) + SHARE_PRIOR)
    expected = np.array(means).T @ weights / weights.sum()
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=2e-3 * np.abs(expected).max())
    log = max(scores) + np.log(weights.sum() / np.exp(SHARE_PRIOR).sum()) - scores[0]
    assert fit.evidence == pytest.approx(log, abs=1e-6)


def test_blocks_of_different_widths_are_independent_of_their_order():
    rng = np.random.default_rng(1)
    parts = [simulate(rng, n=2000, blocks=b, width=w)[0] for b, w in ((4, 3), (2, 7), (5, 1))]

    def joined(order):
        chosen = [parts[i] for i in order]
        widths = np.concatenate([np.diff(part.starts) for part in chosen])
        return BlockMoments(
            n=2000,
            starts=np.append(0, np.cumsum(widths)),
            covariance=tuple(block for part in chosen for block in part.covariance),
            sigma=np.concatenate([part.sigma for part in chosen]),
            association=np.concatenate([part.association for part in chosen]),
            noise_variance=np.zeros(1),
            variation=np.array([2000.0]),
        )

    one = fit_blocks(joined([0, 1, 2])).coefficients
    other = fit_blocks(joined([2, 0, 1])).coefficients
    np.testing.assert_allclose(np.concatenate([one[26:], one[:26]]), other, atol=1e-10)


def test_units_do_not_matter():
    """Features counted in other units have other coefficients, and the same predictions."""
    rng = np.random.default_rng(2)
    moments, _, _ = simulate(rng, n=3000, blocks=20, width=5, sigma=200.0, noise=60.0)
    k = 7.0
    scaled = dataclasses.replace(
        moments,
        covariance=tuple(k**2 * part for part in moments.covariance),
        sigma=k**2 * moments.sigma,
        association=k * moments.association,
        noise_variance=k**2 * moments.noise_variance,
    )
    np.testing.assert_allclose(
        k * fit_blocks(scaled).coefficients, fit_blocks(moments).coefficients, rtol=1e-6, atol=1e-9
    )


@pytest.mark.parametrize("sigma", [100.0, 400.0])
def test_what_noisy_directions_truly_vary(sigma):
    """Mean of vᵀAv and vᵀA²v over noisy eigenvectors, near what the simulation has."""
    rng = np.random.default_rng(3)
    moments, _, linkage = simulate(rng, n=1000, blocks=200, width=20, sigma=sigma)
    (group,) = decompose(moments).groups
    true = 1000 * linkage
    turned = true @ group.vectors
    values = (group.vectors * turned).sum(axis=1).mean(axis=0)
    squares = (turned * turned).sum(axis=1).mean(axis=0)
    top = slice(-2, None)
    np.testing.assert_allclose(group.values.mean(axis=0)[top], values[top], rtol=0.06)
    np.testing.assert_allclose(group.squares.mean(axis=0)[top], squares[top], rtol=0.06)
    # The rest is lost in noise together: the signal seen there is that of A², not of nothing.
    assert group.squares[:, :10].mean() == pytest.approx(squares[:10].mean(), rel=0.35)
    assert group.values.sum() == pytest.approx(values.sum() * 200, rel=0.02)
    assert (group.squares >= group.values**2 * (1 - 1e-12)).all()
    # Along what is left the noise does not make variation out of nothing, or hide all of it.
    low = group.values.mean(axis=0)[:10].sum()
    assert 0.5 * values[:10].sum() < low < 1.5 * values[:10].sum()


def test_variances_of_features_are_known_together():
    rng = np.random.default_rng(4)
    expected = rng.uniform(0.1, 0.5, size=4000)
    true = 1000 * expected * rng.uniform(0.4, 1.6, size=4000)
    noise = np.full(4000, 150.0**2)
    raw = true + 150 * rng.standard_normal(4000)
    found, error = shrunk_variances(raw, noise, expected)
    off = np.std(found - true)
    assert off < 100 < np.std(raw - true)
    assert np.sqrt(error.mean()) == pytest.approx(off, rel=0.15)
    np.testing.assert_array_equal(shrunk_variances(raw, np.zeros(4000))[0], np.maximum(raw, 0))


@pytest.mark.parametrize("noise", [0.0, 300.0, 3000.0])
@pytest.mark.parametrize("prior", ["auto", "normal", "sparse"])
def test_no_signal_is_not_made_up(noise, prior):
    rng = np.random.default_rng(5)
    for n in (500, 20_000):
        moments, truth, linkage = simulate(
            rng, n=n, blocks=40, width=15, explained=0.0, sigma=3 * noise, noise=noise, l=4
        )
        found = fit_blocks(moments, prior=prior).coefficients
        assert r_squared(found, truth, linkage).min() > -0.05


def test_accuracy_is_near_that_of_the_exact_covariance():
    """Noise of the covariance, three times that of the association as in a release, costs little."""
    rng = np.random.default_rng(6)
    options = {"n": 50_000, "blocks": 100, "width": 30, "l": 3}
    noise = 4 * np.sqrt(50_000)
    moments, truth, linkage = simulate(rng, noise=noise, sigma=3 * noise, **options)
    exact = dataclasses.replace(moments, covariance=(50_000 * linkage,) * 100, sigma=np.zeros(100))
    noisy = r_squared(fit_blocks(moments).coefficients, truth, linkage)
    known = r_squared(fit_blocks(exact).coefficients, truth, linkage)
    assert ((known > 0.34) & (known < 0.5)).all()
    assert (noisy > known - 0.02).all()


def test_few_features_with_an_effect_are_found_out():
    rng = np.random.default_rng(7)
    sparse, truth, linkage = simulate(rng, n=5000, blocks=100, width=30, causal=0.01)
    fit = fit_blocks(sparse)
    assert fit.sparse[0] > 0.5
    assert 0.003 < fit.with_effect[0] < 0.03
    normal = fit_blocks(sparse, prior="normal")
    better = r_squared(fit.coefficients, truth, linkage)
    assert better[0] > r_squared(normal.coefficients, truth, linkage)[0] + 0.05
    dense = simulate(rng, n=5000, blocks=100, width=30, causal=1.0)[0]
    assert fit_blocks(dense).sparse[0] < 0.3


def test_bound_is_the_evidence_of_independent_features():
    """Without linkage the variational posterior is exact, and so is its bound."""
    rng = np.random.default_rng(8)
    moments, _, _ = simulate(rng, n=1000, blocks=50, width=1, noise=10.0)
    directions, normal = fitted(moments)
    z, beside = directions.rotate(moments.association)[:, 0], normal.beside
    fit = fit_sparse(directions, z, beside=beside, strength=normal.strength, begin=np.zeros(50))
    part = _Part(
        features=np.arange(50)[:, None],
        real=np.ones((50, 1)),
        inner=(directions.values**2 / beside)[None, :, None],
        right=(directions.values * z / beside)[:, None],
        chance=np.ones((50, 1)),
        mean=np.zeros((50, 1)),
        fitted=np.zeros((50, 1)),
    )
    assert np.isfinite(_bound(part, 0.1, 1.0))
    with_signal = beside + fit.slab * directions.values**2
    ratio = -0.5 * (z**2 / with_signal + np.log(with_signal) - z**2 / beside - np.log(beside))
    pi = fit.share_with_effect
    exact = np.log(1 - pi + pi * np.exp(ratio)).sum()
    assert fit.evidence == pytest.approx(exact, abs=0.5)
    assert fit.evidence <= exact + 1e-6


def test_means_are_taken_out():
    """Centred moments of rows far from the public centre are those of centred rows."""
    rng = np.random.default_rng(9)
    n, starts = 400, np.array([0, 2, 3])
    x, y = rng.normal(2.0, 1.0, size=(n, 3)), rng.normal(-1.0, 1.0, size=(n, 2))
    raw = x.T @ x
    blocks = ReleasedBlocks(
        starts=starts,
        covariance=(raw[:2, :2], raw[2:, 2:]),
        sigma=np.zeros(2),
        sums=x.sum(axis=0),
        sums_sigma=0.0,
    )
    centring = Centring.of(
        blocks,
        n=n,
        association=x.T @ y,
        association_sigma=0.0,
        outcome_sums=y.sum(axis=0),
        outcome_sums_sigma=0.0,
        variation=n * y.var(axis=0),
    )
    away = x - x.mean(axis=0)
    np.testing.assert_allclose(centring.moments.association, away.T @ y, atol=1e-9)
    np.testing.assert_allclose(centring.moments.covariance[0], (away.T @ away)[:2, :2], atol=1e-9)
    slopes = np.ones((3, 2))
    offset = centring.offset(slopes)
    np.testing.assert_allclose((x @ slopes + offset).mean(axis=0), y.mean(axis=0))


def test_noise_of_the_means_is_counted():
    """The association about the means has the noise that is stated for it."""
    rng = np.random.default_rng(10)
    n, d, sigma = 1000, 4000, 20.0
    outcome = 3.0
    blocks = ReleasedBlocks(
        starts=np.arange(d + 1),
        covariance=(np.full((1, 1), float(n)),) * d,
        sigma=np.zeros(d),
        sums=rng.normal(0.05 * n, 0.05 * n, size=d) + sigma * rng.standard_normal(d),
        sums_sigma=sigma,
    )
    centring = Centring.of(
        blocks,
        n=n,
        association=np.zeros((d, 1)),
        association_sigma=0.0,
        outcome_sums=np.array([outcome * n]),
        outcome_sums_sigma=0.0,
        variation=np.array([float(n)]),
    )
    stated = np.sqrt(centring.moments.noise_variance[0])
    assert stated == pytest.approx(outcome * sigma, rel=0.15)


def damaged(**changes):
    rng = np.random.default_rng(11)
    return dataclasses.replace(simulate(rng, n=100, blocks=2, width=3)[0], **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"starts": np.array([0, 3, 7])},
        {"starts": np.array([0, 4, 6])},
        {"starts": np.array([0, 3, 3, 6])},
        {"sigma": np.zeros(3)},
        {"sigma": np.array([0.0, -1.0])},
        {"noise_variance": np.zeros(2)},
        {"variation": np.array([np.nan])},
        {"covariance": (np.eye(3), np.full((3, 3), np.inf))},
    ],
)
def test_damaged_moments_are_refused(changes):
    with pytest.raises(InputError):
        damaged(**changes)


def test_symmetric_noise_of_the_helper():
    draws = np.stack([symmetric(np.random.default_rng(s), 3, 2.0) for s in range(4000)])
    assert draws[:, 0, 0].std() == pytest.approx(2.0, rel=0.05)
    assert draws[:, 0, 1].std() == pytest.approx(np.sqrt(2), rel=0.05)
    assert linked(3, 0.5)[0, 2] == 0.25
