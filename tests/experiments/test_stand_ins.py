"""Simulated stand-ins, the cache, and the demography that they share with the demo."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.cohort import continents, simulate_haplotypes
from experiments.figures import packed, stand_ins
from experiments.figures.packed import PackedSnps, cached
from experiments.figures.stand_ins import DBGAP, KG, make_stand_in

pytest.importorskip("msprime")


def small(recipe, **changes):
    given = {"people": tuple((name, 30) for name, _ in recipe.people), "snps": 150}
    return replace(recipe, **(given | {"megabases": 0.05} | changes))


def quiet(message):
    pass


def made(recipe, cache):
    packed._load.cache_clear()
    return make_stand_in(recipe, cache, tell=quiet)


def test_sizes_are_the_papers():
    assert (KG.n, KG.snps) == (5008, 79_000)
    assert (DBGAP.n, DBGAP.snps) == (6042, 16_721)
    assert [name for name, _ in DBGAP.people] == ["EUR"]
    assert sum(continents(2504).values()) == 2504


@pytest.mark.parametrize("recipe", [KG, DBGAP])
def test_common_snps_in_order(tmp_path, recipe):
    recipe = small(recipe)
    snps = made(recipe, tmp_path)
    values = snps.columns(slice(None))
    assert values.shape == (recipe.n, 150)
    assert set(np.unique(values)) == {0, 1}
    frequency = values.mean(axis=0)
    np.testing.assert_allclose(snps.frequencies(), frequency)
    assert frequency.min() >= 0.05
    assert frequency.max() <= 0.95
    assert np.minimum(frequency, 1 - frequency).min() < 0.1  # the rare end is not cut off
    assert snps.contig.min() == 1
    assert snps.contig.max() > 1
    steps = np.diff(snps.position)[np.diff(snps.contig) == 0]
    assert (steps > 0).all()
    np.testing.assert_array_equal(snps.columns(np.array([7, 3])), values[:, [7, 3]])


def test_neighbours_are_correlated_and_contigs_are_not(tmp_path):
    snps = made(small(DBGAP, people=(("EUR", 200),), snps=400, megabases=0.2), tmp_path)
    r = np.corrcoef(snps.columns(slice(None)).T) ** 2
    first, second = np.triu_indices(400, 1)
    same = snps.contig[first] == snps.contig[second]
    distance = np.abs(snps.position[first] - snps.position[second])
    pairs = r[first, second]
    assert pairs[same & (distance < 10_000)].mean() > 0.1
    assert pairs[~same].mean() < 3 / 400  # 1/(n - 1) if independent


def test_rows_are_mixed_and_keep_their_population(tmp_path):
    """The populations of a row are the same in every contig, and do not show in the order."""
    snps = made(small(KG, snps=3000), tmp_path)
    values = snps.columns(slice(None)).astype(float)
    values -= values.mean(axis=0)
    halves = [values[:, snps.contig % 2 == odd] for odd in (0, 1)]
    scores = [np.linalg.svd(half, full_matrices=False)[0][:, 0] for half in halves]
    assert abs(np.corrcoef(*scores)[0, 1]) > 0.6
    assert abs(np.corrcoef(scores[0], np.arange(snps.n))[0, 1]) < 0.4


def test_an_array_has_one_snp_in_a_window(tmp_path):
    sparse = made(small(DBGAP), tmp_path)
    windows = sparse.contig * 10**9 + sparse.position // DBGAP.spacing
    assert len(np.unique(windows)) == 150
    assert made(small(DBGAP, spacing=None), tmp_path).contig.max() < sparse.contig.max()


def test_the_same_recipe_gives_the_same_snps(tmp_path):
    one, two = (made(small(KG), tmp_path / name) for name in ("a", "b"))
    np.testing.assert_array_equal(one.planes, two.planes)
    other = made(small(KG, seed=5), tmp_path / "a")
    assert (other.planes != one.planes).any()


def test_the_cache_is_used_and_never_stale(tmp_path, monkeypatch):
    first = made(small(KG), tmp_path)
    calls = []
    monkeypatch.setattr(stand_ins, "_simulate", lambda *given: calls.append(given) or first)
    made(small(KG), tmp_path)
    assert calls == []
    for changes in ({"seed": 2}, {"snps": 151}, {"maf": 0.1}, {"megabases": 0.06}):
        made(small(KG, **changes), tmp_path)
    assert len(calls) == 4
    monkeypatch.setattr(stand_ins, "version", lambda name: "99")
    made(small(KG), tmp_path)
    assert len(calls) == 5
    assert len(list(tmp_path.iterdir())) == 6


def test_a_cache_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    def broken(file, **arrays):
        file.write(b"half")
        raise OSError("no room")

    snps = PackedSnps(
        n=8,
        planes=np.zeros((1, 1, 1), dtype=np.uint8),
        contig=np.zeros(1, dtype=np.int32),
        position=np.zeros(1, dtype=np.int64),
    )
    monkeypatch.setattr(packed.np, "savez", broken)
    with pytest.raises(OSError, match="no room"):
        cached("x", {}, lambda: snps, cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_progress_is_told(tmp_path):
    messages = []
    packed._load.cache_clear()
    make_stand_in(small(KG), tmp_path, tell=messages.append)
    assert messages[0] == "simulating kg-like: 180 haplotypes × 150 SNPs (once)"
    assert messages[-1].endswith("150 of 150 SNPs")


def test_the_demography_of_the_demo():
    people = simulate_haplotypes(n=100, panel=50, megabases=0.1, seed=4)
    assert people.cohort.shape[0] == 100
    assert people.panel.shape[0] == 50
    assert people.panel.mean(axis=0).min() >= 0.05
