"""The law of the noise on tens of millions of draws.

Seeds are fixed, so the tests are deterministic. LEVEL is the chance that a right sampler fails one
of them under a new seed; the tests that accept the right law also reject wrong ones. A scale off by
a factor 1 + e moves the mean of Pearson's statistic by 2·e²·draws, against a spread of √(2·bins):
that decides how fine a factor a test can reject. The sum of squares sees the finest.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from primo.wall.noise import CHUNK, RandomBits, add_noise, discrete_gaussian

pytestmark = pytest.mark.statistical

LEVEL = 1e-4
SIZE = 24_000_000


def draw(size: int, *, variance_bits: int, seed: int, label: str = "law"):
    values = np.zeros(size, dtype=np.int64)
    bits = RandomBits.seeded(seed)
    add_noise(values, variance_bits=variance_bits, bits=bits, label=label, threads=2)
    return values


@pytest.fixture(scope="module")
def small():
    return draw(SIZE, variance_bits=8, seed=101)


@pytest.fixture(scope="module")
def large():
    """Draws at σ = 2**40 in units of σ; the conversion to float moves none by more than 2⁻⁵⁰."""
    return draw(SIZE, variance_bits=80, seed=102) * 0.5**40


def pearson(observed, probability) -> float:
    expected = probability * observed.sum()
    return float(stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), observed.size - 1))


def binned(z, scale: float = 1.0, bins: int = 4000) -> float:
    """p-value of bins between ±4.5 and two tails; the lattice shows only at order 2⁻⁴⁰."""
    edges = np.linspace(-4.5, 4.5, bins + 1)
    inner = np.histogram(z, edges)[0]
    counts = np.concatenate([[(z < -4.5).sum()], inner, [(z > 4.5).sum()]])
    cdf = np.concatenate([[0.0], special.ndtr(edges / scale), [1.0]])
    return pearson(counts, np.diff(cdf))


def every_integer(draws, sigma: float = 16.0) -> float:
    """p-value of every integer that expects more than 7 draws, and the two tails."""
    v = np.arange(-1000, 1001)
    p = np.exp(-(v**2) / (2 * sigma**2))
    p /= p.sum()
    reach = int(v[p * draws.size > 7].max())
    p = p[np.abs(v) <= reach]
    counts = np.bincount(np.clip(draws, -reach - 1, reach + 1) + reach + 1, minlength=p.size + 2)
    tail = (1 - p.sum()) / 2
    return pearson(counts, np.concatenate([[tail], p, [tail]]))


def test_mass_of_every_integer(small):
    assert every_integer(small) > LEVEL


@pytest.mark.parametrize("factor", [0.87, 0.998, 1.002, 1.15])
def test_mass_of_every_integer_rejects_a_wrong_scale(small, factor):
    assert every_integer(small, 16.0 * factor) < 1e-9


def test_rounded_continuous_gaussian_is_told_apart():
    # Rounding adds a twelfth to the variance: at σ = 2 the law is visibly another one.
    size = 4_000_000
    assert every_integer(draw(size, variance_bits=2, seed=105), 2.0) > LEVEL
    rounded = np.rint(np.random.default_rng(0).normal(0, 2.0, size)).astype(np.int64)
    assert every_integer(rounded, 2.0) < 1e-9


@pytest.mark.parametrize("variance_bits", [3, 7])
def test_mass_of_every_integer_at_odd_variances(variance_bits):
    draws = draw(8_000_000, variance_bits=variance_bits, seed=106)
    sigma = 2 ** (variance_bits / 2)
    assert every_integer(draws, sigma) > LEVEL
    for factor in (0.87, 0.995, 1.005, 1.15):
        assert every_integer(draws, sigma * factor) < 1e-9


def test_bins_and_tails_at_an_odd_variance():
    # The tail proper begins at 4√2·σ: 24 million draws hold a few of its values.
    z = draw(SIZE, variance_bits=79, seed=107) * 2**-39.5
    assert binned(z) > LEVEL
    for reach in (4.0, 5.0, np.sqrt(32) * 127.75 / 128):
        count = int((np.abs(z) > reach).sum())
        low, high = stats.binom.ppf([LEVEL / 2, 1 - LEVEL / 2], SIZE, 2 * special.ndtr(-reach))
        assert low <= count <= high


def test_bins_at_a_large_scale(large):
    assert binned(large) > LEVEL


@pytest.mark.parametrize("factor", [0.87, 0.995, 1.005, 1.15])
def test_bins_reject_a_wrong_scale(large, factor):
    assert binned(large, factor) < 1e-9


@pytest.mark.parametrize("variance_bits", [8, 80])
def test_scale_from_both_sides(small, large, variance_bits):
    z = small / 16.0 if variance_bits == 8 else large
    total = float(np.sum(z**2))  # χ² with SIZE degrees of freedom (σ = 16 is continuous to 10⁻¹⁰⁰)

    def accepted(factor: float) -> bool:
        below = stats.chi2.cdf(total / factor**2, SIZE)
        return bool(min(below, 1 - below) > LEVEL / 2)

    assert accepted(1.0)
    for factor in (0.87, 0.99, 0.999, 1.001, 1.01, 1.15):
        assert not accepted(factor)


@pytest.mark.parametrize("order", [1, 3, 4, 6])
def test_moments(large, order):
    true = 0.0 if order % 2 else float(special.factorial2(order - 1))
    spread = np.sqrt((special.factorial2(2 * order - 1) - true**2) / SIZE)
    assert abs(np.mean(large**order) - true) < stats.norm.isf(LEVEL / 2) * spread


@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("reach", [3.0, 4.0, 4.5, 5.0])
def test_tails(large, side, reach):
    count = int((side * large > reach).sum())
    p = special.ndtr(-reach)
    low, high = stats.binom.ppf([LEVEL / 2, 1 - LEVEL / 2], SIZE, p)
    assert low <= count <= high
    if reach < 5:  # beyond 5σ seven draws are expected: too few to reject anything
        for factor in (0.87, 1.15):
            low, high = stats.binom.ppf([1e-6, 1 - 1e-6], SIZE, special.ndtr(-reach / factor))
            assert not low <= count <= high


def test_low_bits_are_uniform():
    draws = draw(2_000_000, variance_bits=80, seed=103)
    for shift in (0, 8, 16, 24):
        counts = np.bincount((draws >> shift) & 255, minlength=256)
        assert pearson(counts, np.full(256, 1 / 256)) > LEVEL


def uncorrelated(a, b) -> bool:
    """Correlation of the values and of their squares, each within a two-sided bound of LEVEL/2."""
    limit = stats.norm.isf(LEVEL / 4) / np.sqrt(a.size)
    pairs = [(a, b), (a**2 - 1, b**2 - 1)]
    return all(abs(np.mean(x * y) / (x.std() * y.std())) < limit for x, y in pairs)


@pytest.mark.parametrize("lag", [1, 2, 3, 8, 64, CHUNK // 2, CHUNK - 1, CHUNK, 2 * CHUNK])
def test_draws_at_a_distance_are_independent(large, lag):
    assert uncorrelated(large[:-lag], large[lag:])


def test_labels_and_seeds_are_independent(large):
    a = large[:4_000_000]
    label = draw(a.size, variance_bits=80, seed=102, label="law2") * 0.5**40
    seed = draw(a.size, variance_bits=80, seed=104) * 0.5**40
    assert uncorrelated(a, label)
    assert uncorrelated(a, seed)
    assert uncorrelated(label, seed)


def test_correlation_would_be_seen(large):
    a, b = large[:4_000_000], large[4_000_000:8_000_000]
    assert not uncorrelated(a, (b + 0.005 * a) / np.sqrt(1 + 0.005**2))


def test_fresh_bits_have_the_law_too():
    # Not seeded: fails by chance once in 10⁹ runs.
    z = discrete_gaussian(2_000_000, variance_bits=80, bits=RandomBits.fresh(), label="a") * 0.5**40
    assert binned(z, bins=400) > 1e-9


@pytest.mark.parametrize("variance_bits", [8, 80])
def test_agrees_with_opendp(small, large, variance_bits):
    # OpenDP cannot be seeded: fails by chance once in 10⁸ runs. It is slow, hence the sizes.
    pytest.importorskip("opendp")
    size = 200_000
    theirs = discrete_gaussian(
        size, variance_bits=variance_bits, bits=RandomBits.fresh(), label="a", backend="opendp"
    ) * 0.5 ** (variance_bits // 2)
    ours = (small[:2_000_000] / 16.0) if variance_bits == 8 else large[:2_000_000]
    edges = np.arange(-40.5, 41.5, 1.0) / 16
    table = [
        np.bincount(np.searchsorted(edges, z), minlength=edges.size + 1) for z in (ours, theirs)
    ]
    assert stats.chi2_contingency(table).pvalue > 1e-8
    for factor in (0.87, 1.15):
        table[1] = np.bincount(np.searchsorted(edges, factor * theirs), minlength=edges.size + 1)
        assert stats.chi2_contingency(table).pvalue < 1e-9
