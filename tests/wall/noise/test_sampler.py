"""The sampler's parts, exactly, and its law on a small scale; seeds are fixed."""

from __future__ import annotations

from collections import Counter

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from primo.wall.noise import CHUNK, RandomBits, discrete_gaussian
from primo.wall.noise.sampler import (
    Sampler,
    Scratch,
    _alias,
    _below,
    _exp_bounds,
    _exp_series,
    sampler_for,
)

VARIANCES = [0, 1, 2, 3, 8, 12, 79, 80, 115, 116]


def draw(size: int, *, seed: int = 1, variance_bits: int = 80, label: str = "test"):
    bits = RandomBits.seeded(seed)
    return discrete_gaussian(size, variance_bits=variance_bits, bits=bits, label=label)


def draw_with(sampler: Sampler, size: int, *, seed: int = 1):
    """Draw from tables that are not the usual ones."""
    bits, scratch = RandomBits.seeded(seed), Scratch(CHUNK)
    out = np.empty(size, dtype=np.int64)
    for chunk, start in enumerate(range(0, size, CHUNK)):
        sampler.fill(out[start : start + CHUNK], bits.stream("test", chunk), scratch)
    return out


def mass(variance_bits: int, reach: int):
    """P(v) for |v| ≤ reach, to float precision."""
    v, far = np.arange(-reach, reach + 1), np.arange(-2000, 2001)
    weight, total = (np.exp(-(x**2) / 2.0 ** (variance_bits + 1)) for x in (v, far))
    return v, weight / total.sum()


def p_value(draws, variance_bits: int) -> float:
    """Pearson's test on every integer that expects 10 draws or more, the rest pooled."""
    v, p = mass(variance_bits, 8 * 2 ** -(-variance_bits // 2))
    keep = p * draws.size >= 10
    v, p = v[keep], p[keep]
    counts = np.bincount(draws[np.abs(draws) <= v[-1]] - v[0], minlength=v.size)
    observed = np.append(counts, draws.size - counts.sum())
    expected = np.append(p, 1 - p.sum()) * draws.size
    return float(chi2.sf(((observed - expected) ** 2 / expected).sum(), v.size))


class FixedStream:
    """A stream of words that a test writes down."""

    def __init__(self, words):
        self._words = list(words)

    def word(self) -> int:
        return self._words.pop(0)


class ScriptedStream:
    """One batch of words that a test writes down; after that uniforms of nearly zero."""

    def __init__(self, batch):
        self._batch = np.array(batch, dtype=np.uint64)

    def words(self, count: int, buffer=None):
        batch, self._batch = self._batch, np.zeros(0, dtype=np.uint64)
        return batch if batch.size else np.zeros(count, dtype=np.uint64)

    def word(self) -> int:
        return 1


class TestExactArithmetic:
    @settings(max_examples=200, deadline=None)
    @given(st.integers(0, 2**70), st.integers(0, 120), st.sampled_from([16, 64, 128, 300]))
    def test_exp_bounds_enclose_and_are_tight(self, numerator, shift, precision):
        numerator = min(numerator, 2000 << shift)
        low, high = _exp_bounds(numerator, shift, precision)
        with mpmath.workprec(4000):
            true = mpmath.ldexp(mpmath.exp(-mpmath.mpf(numerator) / 2**shift), precision)
            assert low <= true <= high
        assert high - low <= 2

    def test_comparison_agrees_with_mpmath(self):
        rng = np.random.default_rng(0)
        for _ in range(300):
            v, prefix = int(rng.integers(0, 200)), int(rng.integers(0, 2**64, dtype=np.uint64))
            floor, span, scale = (int(x) for x in rng.integers(1, 2**40, size=3))
            got = _below(
                FixedStream([]), prefix, v=v, variance_bits=10, scale=scale, span=span, floor=floor
            )
            with mpmath.workprec(500):
                u = mpmath.mpf(prefix) / 2**64
                assert got == (floor + span * u < scale * mpmath.exp(-mpmath.mpf(v * v) / 2**11))

    @pytest.mark.parametrize(("last", "expected"), [(-1, True), (+1, False)])
    def test_comparison_draws_as_many_bits_as_it_needs(self, last, expected):
        # U follows exp(−1/8) for 256 bits and leaves it in the fifth word.
        with mpmath.workprec(1000):
            target = int(mpmath.floor(mpmath.exp(-mpmath.mpf(1) / 8) * 2**320))
        words = [(target >> (64 * k)) % 2**64 for k in range(4, -1, -1)]
        words[-1] += last * 2**40
        assert 0 <= words[-1] < 2**64
        stream = FixedStream(words[1:])
        assert _below(stream, words[0], v=1, variance_bits=2, scale=2**50, span=2**50) is expected
        assert stream._words == []

    @settings(max_examples=100, deadline=None)
    @given(st.integers(1, 6), st.data())
    def test_alias_table_has_exactly_the_weights(self, bits, data):
        n, column = 2**bits, 1000
        cuts = data.draw(
            st.lists(st.integers(0, n * column), min_size=n - 1, max_size=n - 1).map(sorted)
        )
        weights = [b - a for a, b in zip([0, *cuts], [*cuts, n * column], strict=True)]
        share, other = _alias(weights, column)
        got = Counter()
        for k in range(n):
            assert 0 <= share[k] < column
            got[k] += share[k]
            got[other[k]] += column - share[k]
        assert [got[k] for k in range(n)] == weights


class TestTables:
    @pytest.mark.parametrize("variance_bits", VARIANCES)
    def test_table_masses_are_the_weights(self, variance_bits):
        t = sampler_for(variance_bits)
        columns = t.cut.size
        size = 2**t.column_shift
        assert columns * size == 2**64 == sum(t.weights)
        got = Counter()
        for k in range(columns):
            share = int(t.cut[k]) - k * size
            assert 0 <= share < size
            got[int(t.entry[2 * k])] += share
            got[int(t.entry[2 * k + 1])] += size - share
        assert [got[k] for k in range(len(t.weights))] == list(t.weights)

    @pytest.mark.parametrize("variance_bits", VARIANCES)
    def test_envelope_encloses_the_target(self, variance_bits):
        t = sampler_for(variance_bits)
        with mpmath.workprec(400):
            rho = [
                t.scale
                * mpmath.exp(-(mpmath.mpf(i << t.place_bits) ** 2) / 2 ** (variance_bits + 1))
                for i in range(t.buckets + 1)
            ]
            for i in range(t.buckets):
                assert rho[i + 1] - 1 <= t.low[i] <= rho[i + 1]
                assert rho[i] <= t.high[i] <= rho[i] + 1
                assert abs(t.floor[i] - t.low[i] / rho[i]) <= 2**-53
                assert abs(t.span[i] - (t.high[i] - t.low[i]) / rho[i]) <= 2**-53
            assert rho[-1] <= t.high[-1] <= rho[-1] + 1
        m = t.buckets
        assert list(t.weights[:m]) == list(t.low)
        assert [a + b for a, b in zip(t.weights[:m], t.weights[m : 2 * m], strict=True)] == list(
            t.high[:m]
        )
        assert t.weights[2 * m] == 2 * t.high[m] * 2 ** (t.unit_bits - t.place_bits)
        assert not any(t.weights[2 * m + 2 :])

    @pytest.mark.parametrize("variance_bits", VARIANCES)
    def test_codes_are_places_and_flags(self, variance_bits):
        t = sampler_for(variance_bits)
        for entry, code in zip(t.entry.tolist(), t.code.tolist(), strict=True):
            assert (code >> 63 == 0) == (entry < t.buckets)
            if entry < 2 * t.buckets:
                place = (entry % t.buckets) << t.place_bits
                assert code % 2**63 == place

    @pytest.mark.parametrize("variance_bits", VARIANCES)
    def test_every_cut_is_made_at_the_right_word(self, variance_bits):
        t = sampler_for(variance_bits)
        cuts = t.cut.tolist()
        inside = [k for k, cut in enumerate(cuts) if cut > k << t.column_shift]
        choice = [*cuts, *(cuts[k] - 1 for k in inside)]
        entry = np.append(t.entry[1::2], t.entry[0::2][inside])
        out = np.empty(len(choice), dtype=np.int64)
        stream = ScriptedStream([*choice, *[0] * len(choice)])
        rejected = t._propose(out, stream, Scratch(out.size))
        assert np.array_equal(rejected, np.flatnonzero(entry == 2 * t.buckets + 1))
        bucket = np.where(entry == 2 * t.buckets, t.buckets, entry % t.buckets)
        kept = np.delete(np.arange(out.size), rejected)
        assert np.array_equal(out[kept], bucket[kept] << t.place_bits)

    @pytest.mark.parametrize(("variance_bits", "tail"), [(80, 2**-45), (79, 2**-22)])
    def test_rare_paths_are_rare(self, variance_bits, tail):
        t = sampler_for(variance_bits)
        assert t.weights[2 * t.buckets] < 2**64 * tail
        assert t.band < 2**-45
        assert sum(t.low) > 0.98 * 2**64

    def test_tables_are_read_only(self):
        t = sampler_for(80)
        for table in (t.cut, t.entry, t.code, t.floor, t.span):
            assert not table.flags.writeable

    def test_tail_must_begin_where_the_proof_holds(self):
        for buckets in (31, 129):
            with pytest.raises(ValueError, match="between 2τ and 8τ"):
                Sampler.build(20, fine=4, buckets=buckets)

    @pytest.mark.parametrize("variance_bits", [6, 7, 8, 12, 79, 80, 115, 116])
    def test_float_comparison_keeps_its_proven_error(self, variance_bits):
        t = sampler_for(variance_bits)
        rng = np.random.default_rng(1)
        step = t.place_bits
        bucket = np.append(rng.integers(0, t.buckets, 300), [0, t.buckets - 1])
        place = np.append(rng.integers(0, 2**step, 300), [2**step - 1] * 2)
        y, z = (place + 1) * 0.5**t.unit_bits, bucket * 0.5 ** (t.unit_bits - step)
        series = _exp_series(y * (z + 0.5 * y) * 0.5 ** (variance_bits % 2))
        with mpmath.workprec(300):
            for i, r, got in zip(bucket.tolist(), place.tolist(), series, strict=True):
                v, start = (i << step) + r + 1, i << step
                true = mpmath.exp(-mpmath.mpf(v * v - start * start) / 2 ** (variance_bits + 1))
                assert abs(got - true) < t.band - 2**-48  # which is left for the other side


class TestLaw:
    """p-values of fixed seeds; a right sampler would miss 0.001 once in a thousand new seeds."""

    @pytest.mark.parametrize("variance_bits", [0, 1, 2, 3, 4, 7, 8, 9])
    def test_every_integer_has_its_mass(self, variance_bits):
        size = 30_000 if variance_bits < 2 else 400_000  # σ = 1 decides all wedges exactly: slow
        draws = draw(size, variance_bits=variance_bits)
        assert p_value(draws, variance_bits) > 0.001
        v, p = mass(variance_bits, 0)
        assert abs((draws == v[0]).sum() - size * p[0]) < 4 * np.sqrt(size * p[0] * (1 - p[0]))

    def test_the_test_has_power(self):
        # Rounding a continuous Gaussian is not the discrete Gaussian, nor is a scale 1 % off.
        draws = draw(400_000, variance_bits=8)
        assert p_value((draws * 1.0 + np.sign(draws)).astype(np.int64), 8) < 1e-6
        wrong = np.rint(np.random.default_rng(0).normal(0, 16 * 1.01, 400_000)).astype(np.int64)
        assert p_value(wrong, 8) < 1e-6
        assert p_value(np.where(draws < 0, draws + 1, draws), 8) < 1e-6

    def test_signs_are_symmetric(self):
        draws = draw(400_000, variance_bits=8)
        positive, negative = (draws > 0).sum(), (draws < 0).sum()
        assert abs(positive - negative) < 4 * np.sqrt(positive + negative)
        draws = draw(400_000, variance_bits=80)
        assert abs((draws >= 0).mean() - 0.5) < 4 * 0.5 / np.sqrt(400_000)

    @pytest.mark.parametrize("variance_bits", [8, 9, 79, 80, 116])
    def test_float_decisions_are_the_exact_decisions(self, variance_bits):
        # With the band wide open every wedge is decided in exact arithmetic, from the same bits.
        exact = Sampler.build(variance_bits, band=10.0)
        usual = Sampler.build(variance_bits)
        assert np.array_equal(draw_with(exact, 40_000), draw_with(usual, 40_000))

    @pytest.mark.parametrize("variance_bits", [7, 8])
    @pytest.mark.parametrize("fine", [2, 3])
    def test_early_tail_and_coarse_buckets_have_the_same_law(self, variance_bits, fine):
        sampler = Sampler.build(variance_bits, fine=fine, buckets=2 ** (fine + 1), band=0.01)
        draws = draw_with(sampler, 60_000)
        assert (np.abs(draws) > 2 * 2**sampler.unit_bits).mean() > 0.03
        assert p_value(draws, variance_bits) > 0.001

    @pytest.mark.parametrize("variance_bits", [79, 80])
    def test_early_tail_at_a_large_scale(self, variance_bits):
        sampler = Sampler.build(variance_bits, buckets=128)  # from 2τ on
        z = draw_with(sampler, 100_000) / 2.0 ** (variance_bits / 2)
        edges = np.array([-3, -2.5, -2.2, -2, -1.7, -1.4, 0, 1.4, 1.7, 2, 2.2, 2.5, 3])
        p = np.diff([0, *(float(mpmath.ncdf(e)) for e in edges), 1])
        counts = np.bincount(np.searchsorted(edges, z), minlength=p.size)
        statistic = ((counts - z.size * p) ** 2 / (z.size * p)).sum()
        assert chi2.sf(statistic, p.size - 1) > 0.001

    def test_tail_values_cover_both_signs_and_wrap_into_int64(self):
        t = sampler_for(116)
        start = t.buckets << t.place_bits
        # Block 0, place 5; a uniform of zero is always accepted.
        assert t._tail(5, FixedStream([1, 0])) == start + 5
        assert t._tail(5 | 1 << 63, FixedStream([1, 0])) == -1 - (start + 5)
        assert t._tail(0, FixedStream([1, 2**64 - 1])) is None
        assert t._tail(7, FixedStream([0, 1, 0, *[0] * 100])) == start + (64 << 58) + 7
