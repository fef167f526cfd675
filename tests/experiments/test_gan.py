"""The GAN of haplotypes: what it draws, and a check that a broken one does not pass."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from experiments.figures.gan import QUICK, load_or_train, match_of
from experiments.figures.gan.check import LOOSE, check, compare
from experiments.figures.gan.settings import digest, split

torch = pytest.importorskip("torch", reason="the GAN needs the experiments extra")

from experiments.figures.gan import train as training  # noqa: E402
from experiments.figures.gan.model import Generator, flip, neighbours, spread  # noqa: E402

TINY = replace(
    QUICK, window=16, local=6, hidden=48, patch=48, stride=24, critic_hidden=(48, 24), steps=350
)


def mosaics(rows: int, snps: int, seed: int = 0) -> np.ndarray:
    """Rows that copy six founders piece by piece, with a few mutations: LD decays with distance."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.15, 0.85, snps)
    founders = rng.random((6, snps)) < frequency
    switch = rng.random((rows, snps)) < 0.04
    switch[:, 0] = True
    picks = rng.integers(6, size=(rows, snps))
    last = np.maximum.accumulate(np.where(switch, np.arange(snps), 0), axis=1)
    source = np.take_along_axis(picks, last, axis=1)
    copied = founders[source, np.arange(snps)]
    return (copied ^ (rng.random((rows, snps)) < 0.03)).astype(np.int8)


@pytest.fixture(scope="module")
def haplotypes():
    return mosaics(3000, 150)[:1500]  # 150 is no multiple of a window or a patch


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("gan")


@pytest.fixture(scope="module")
def sampler(haplotypes, cache):
    return training.load_or_train(haplotypes, TINY, cache=cache)


def whole(sampler):
    return lambda n: sampler.draw(np.arange(sampler.snps), n, np.random.default_rng(3))


def found_by(haplotypes, drawn):
    return compare(haplotypes, drawn, whole(training.untrained(haplotypes, TINY)), limits=LOOSE)


class TestDraw:
    def test_rows_of_zeros_and_ones(self, sampler):
        drawn = sampler.draw(np.array([3, 149, 70]), 1000, np.random.default_rng(0))
        assert drawn.shape == (1000, 3)
        assert drawn.dtype == np.int8
        assert set(np.unique(drawn)) == {0, 1}
        assert sampler.snps == 150

    def test_same_people_whichever_snps_are_asked_for(self, sampler):
        columns = np.array([149, 3, 16, 15, 3, 80])  # out of order, across a border, one twice
        everything = sampler.draw(np.arange(150), 500, np.random.default_rng(7))
        some = sampler.draw(columns, 500, np.random.default_rng(7))
        # Products of other shapes may round otherwise, next to a coin's edge.
        assert np.mean(some != everything[:, columns]) < 1e-3

    def test_batches_do_not_matter(self, sampler):
        columns = np.array([5, 6, 120])
        at_once = sampler.draw(columns, 1000, np.random.default_rng(1))
        in_parts = sampler.draw(columns, 1000, np.random.default_rng(1), batch=77)
        # Products of other shapes may round otherwise, next to a coin's edge.
        assert np.mean(at_once != in_parts) < 1e-3

    def test_other_seeds_and_later_draws_are_other_people(self, sampler):
        rng = np.random.default_rng(1)
        columns = np.arange(150)
        first, second = sampler.draw(columns, 200, rng), sampler.draw(columns, 200, rng)
        assert np.mean(first == second) < 0.7

    def test_no_rows_and_no_columns(self, sampler):
        rng = np.random.default_rng(1)
        assert sampler.draw(np.arange(4), 0, rng).shape == (0, 4)
        assert sampler.draw(np.array([], dtype=np.int64), 5, rng).shape == (5, 0)

    @pytest.mark.parametrize("column", [-1, 150])
    def test_unknown_snp(self, sampler, column):
        with pytest.raises(IndexError, match="0 to 149"):
            sampler.draw(np.array([column]), 5, np.random.default_rng(1))

    def test_arrays_compute_what_torch_trained(self, haplotypes):
        rng = torch.Generator().manual_seed(1)
        generator = Generator(torch.full((150,), 0.3), TINY, rng)
        local = torch.randn(generator.windows + 2, 40, TINY.local, generator=rng)
        shared = torch.randn(40, TINY.shared, generator=rng)
        expected = generator.logits(local, shared).detach().numpy()

        class Given:
            """Streams that hold the latents; a coin of 1/2 shows the sign of a logit."""

            def __init__(self, *, key):
                pass

            def normal(self, kind, number, shape):
                return (local[number] if kind == 1 else shared).numpy()

            def uniform(self, kind, number, rows):
                return np.full(rows, 0.5, dtype=np.float32)

        from experiments.figures.gan import sampler as module

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_Streams", Given)
            drawn = module.Sampler(snps=150, weights=generator.arrays()).draw(
                np.arange(150), 40, np.random.default_rng(0)
            )
        clear = np.abs(expected) > 1e-4
        assert clear.mean() > 0.99
        np.testing.assert_array_equal(drawn[clear], expected[clear] > 0)


class TestCheck:
    def test_trained_gan_passes_and_untrained_does_not(self, haplotypes, sampler):
        match = found_by(haplotypes, whole(sampler))
        assert match.failures == ()
        assert match.passes
        match.require()
        assert match.run_error < 0.6 * match.run_error_untrained
        before = found_by(haplotypes, whole(training.untrained(haplotypes, TINY)))
        assert any("correlation of r" in failure for failure in before.failures)

    def test_rows_without_ld_fail_by_ld(self, haplotypes, sampler):
        def shuffled(n):
            return np.random.default_rng(0).permuted(whole(sampler)(n), axis=0)

        match = found_by(haplotypes, shuffled)
        assert not match.passes
        assert any("slope of r" in failure for failure in match.failures)
        assert not any("frequenc" in failure for failure in match.failures)
        with pytest.raises(ValueError, match="slope of r"):
            match.require()

    def test_ld_of_distant_snps_that_is_not_real_fails(self, haplotypes, sampler):
        def of_two_kinds(n):
            rng = np.random.default_rng(0)
            kind = rng.integers(2, size=(n, 1))
            replaced = rng.random((n, 150)) < 0.4
            return np.where(replaced, kind, whole(sampler)(n)).astype(np.int8)

        failures = found_by(haplotypes, of_two_kinds).failures
        assert any("excess of mean r², SNPs 60 to" in failure for failure in failures)

    def test_wrong_frequencies_fail(self, haplotypes, sampler):
        def flipped(n):
            drawn = whole(sampler)(n)
            drawn[:, ::5] = 1 - drawn[:, ::5]
            return drawn

        failures = found_by(haplotypes, flipped).failures
        assert any("correlation of allele frequencies" in failure for failure in failures)

    def test_too_many_ones_fail(self, haplotypes, sampler):
        def more(n):
            extra = np.random.default_rng(0).random((n, 150)) < 0.1
            return whole(sampler)(n) | extra.astype(np.int8)

        failures = found_by(haplotypes, more).failures
        assert any("mean error of allele frequencies" in failure for failure in failures)

    def test_copied_rows_fail_though_all_statistics_fit(self, haplotypes):
        kept, _ = split(len(haplotypes))
        match = found_by(haplotypes, lambda n: haplotypes[kept][:n])
        assert match.failures
        assert all("nearest" in f or "smallest" in f for f in match.failures)

    def test_few_people_again_and_again_fail(self, haplotypes, sampler):
        match = found_by(haplotypes, lambda n: np.resize(whole(sampler)(100), (n, 150)))
        assert any("between generated rows" in failure for failure in match.failures)

    def test_fresh_real_rows_pass(self, haplotypes):
        fresh = mosaics(3000, 150)[1500:]  # the same founders, other rows
        assert found_by(haplotypes, lambda n: fresh[:n]).failures == ()

    def test_table_is_written(self, haplotypes, sampler, cache):
        import pyarrow.parquet as pq

        match = check(haplotypes, TINY, cache=cache)
        path = training.checkpoint(haplotypes, TINY, cache=cache)
        written = json.loads(path.with_suffix(".json").read_text())
        assert written["passes"] is match.passes
        assert written["frequency"]["correlation"] == match.frequency.correlation
        table = pq.read_table(path.with_suffix(".parquet")).to_pylist()
        assert [row["slope"] for row in table] == [found.slope for found in match.ld]
        assert not list(cache.glob("*.part"))


class TestTraining:
    def test_same_seed_same_weights(self, haplotypes):
        short = replace(TINY, steps=3)
        first, again = (training.train(haplotypes, short) for _ in range(2))
        other = training.train(haplotypes, replace(short, seed=9))
        for name, value in first.weights.items():
            np.testing.assert_allclose(value, again.weights[name], rtol=1e-4, atol=1e-5)
        assert not np.allclose(first.weights["out"], other.weights["out"], rtol=1e-3, atol=1e-3)

    def test_global_randomness_and_threads_are_left_alone(self, haplotypes):
        torch.manual_seed(0)
        expected, threads = torch.rand(1).item(), torch.get_num_threads()
        torch.manual_seed(0)
        torch.set_num_threads(2)
        try:
            training.train(haplotypes, replace(TINY, steps=1, threads=1))
            assert torch.get_num_threads() == 2
        finally:
            torch.set_num_threads(threads)
        assert torch.rand(1).item() == expected

    def test_trained_once(self, haplotypes, sampler, cache, monkeypatch):
        def again(*args, **options):
            raise AssertionError("trained twice")

        monkeypatch.setattr(training, "train", again)
        loaded = training.load_or_train(haplotypes, TINY, cache=cache)
        np.testing.assert_array_equal(loaded.weights["out"], sampler.weights["out"])
        with pytest.raises(AssertionError):
            training.load_or_train(1 - haplotypes, TINY, cache=cache)

    def test_key_knows_rows_settings_and_engine(self, haplotypes):
        other = haplotypes.copy()
        other[5, 5] ^= 1
        keys = {
            digest(haplotypes, TINY, "2"),
            digest(other, TINY, "2"),
            digest(haplotypes, replace(TINY, seed=1), "2"),
            digest(haplotypes, TINY, "3"),
        }
        assert len(keys) == 4

    def test_held_out_rows_are_not_learned_from(self, haplotypes):
        _, left = split(len(haplotypes))
        other = haplotypes.copy()
        other[left] = 0
        short = replace(TINY, steps=2)
        first, second = (training.train(rows, short) for rows in (haplotypes, other))
        np.testing.assert_allclose(
            first.weights["out"], second.weights["out"], rtol=1e-4, atol=1e-5
        )

    def test_quick_learns_the_first_snps(self, haplotypes, cache, monkeypatch):
        import experiments.figures.gan as package

        monkeypatch.setattr(package, "QUICK", replace(TINY, snps=40, steps=2))
        assert load_or_train(haplotypes, cache=cache, quick=True, progress=False).snps == 40
        match = match_of(haplotypes, cache=cache, quick=True, progress=False)
        assert match.snps == 40
        assert not match.passes

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (np.full((100, 9), 2, dtype=np.int8), "range from 2 to 2"),
            (np.zeros((3, 9), dtype=np.int8), "50 rows"),
        ],
    )
    def test_no_haplotypes(self, rows, message, cache):
        with pytest.raises(ValueError, match=message):
            load_or_train(rows, cache=cache)

    def test_without_torch_the_error_names_the_extra(self, haplotypes, cache, monkeypatch):
        monkeypatch.setitem(sys.modules, "torch", None)
        monkeypatch.delitem(sys.modules, "experiments.figures.gan.train")
        with pytest.raises(ImportError, match=r"primo-dp\[experiments\]"):
            load_or_train(haplotypes, cache=cache)


class TestNetworks:
    def test_patches_cover_every_snp(self):
        rows = torch.arange(1, 151, dtype=torch.float32)[None]
        for seen in (neighbours(rows, 48, 24), spread(rows, 48)):
            assert set(seen.unique().tolist()) - {0.0} == set(range(1, 151))
        assert neighbours(rows[:, :48], 48, 24).shape == (1, 1, 48)
        assert spread(rows[:, :48], 48).shape == (1, 1, 48)
        assert spread(rows, 48)[1, 0, :3].tolist() == [2.0, 6.0, 10.0]

    def test_coins_are_hard_and_fair_and_have_a_gradient(self):
        rng = torch.Generator().manual_seed(0)
        logits = torch.tensor([-2.0, 0.0, 1.0]).repeat(40_000, 1).requires_grad_(True)
        coins = flip(logits, 0.7, rng)
        assert torch.all((coins - coins.round()).abs() < 1e-6)
        shares = coins.detach().mean(dim=0)
        # Four standard errors of 40 000 coins are 0.01.
        torch.testing.assert_close(shares, torch.sigmoid(logits[0].detach()), atol=0.01, rtol=0)
        coins.sum().backward()
        assert torch.all(logits.grad >= 0)
        assert logits.grad.mean() > 0.05
