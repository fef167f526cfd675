"""Named features: stand-ins, the user's own files, and data that are absent."""

import gzip

import numpy as np
import pytest

from experiments.data import SHARED, mnist_images
from experiments.figures import features as module
from experiments.figures.features import Data, MissingData, draw_features, prepare, rows_of
from experiments.figures.files import common_snps
from experiments.figures.packed import PackedSnps
from primo.errors import InputError


def quiet(message):
    pass


def drawn(name, data, *, n=20, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return draw_features(name, n=n, d=d, data=data, rng=rng, tell=quiet)


def calls(snps=40, people=15, seed=1):
    """Phased calls (snps, people, 2); the first ten SNPs are rare."""
    rng = np.random.default_rng(seed)
    frequency = rng.uniform(0.2, 0.8, size=(snps, 1, 1))
    values = (rng.random((snps, people, 2)) < frequency).astype(np.int8)
    values[:10] = 0
    values[:10, 0, 0] = 1
    return values


def haplotypes(values):
    return values.transpose(1, 2, 0).reshape(-1, len(values))


def vcf(folder, values, name="cohort.vcf.gz", extra=()):
    header = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=1>",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "\t".join(
            ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
            + [f"someone{i}" for i in range(values.shape[1])]
        ),
    ]
    lines = [
        "\t".join(
            ["1", str(10 * (j + 1)), f"rs{j}", "A", "C", ".", ".", ".", "GT"]
            + ["|".join("." if x < 0 else str(x) for x in pair) for pair in snp]
        )
        for j, snp in enumerate(values)
    ]
    path = folder / name
    content = "\n".join([*header, *lines, *extra]) + "\n"
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(content.encode()))
    else:
        path.write_text(content)
    return path


def check_haplotypes(path, values, cache):
    snps = common_snps(path, cache=cache, tell=quiet)
    assert (snps.n, snps.snps, snps.copies) == (30, 30, 1)
    np.testing.assert_array_equal(snps.columns(slice(None)), haplotypes(values)[:, 10:])


def test_haplotypes_of_a_vcf(tmp_path):
    pytest.importorskip("cyvcf2")
    values = calls()
    several = "\t".join(["1", "990", "rs99", "A", "C,G", ".", ".", ".", "GT"] + ["0|2"] * 15)
    path = vcf(tmp_path, values, extra=[several])
    check_haplotypes(path, values, tmp_path / "cache")
    data = Data(kg=path, cache=tmp_path / "cache")
    assert rows_of("1kg", data) == 30
    rows = drawn("1kg", data, n=30, d=30)
    expected = haplotypes(values)[:, 10:]
    np.testing.assert_allclose(rows, expected - expected.mean(axis=0))


def test_haplotypes_of_a_zarr_store(tmp_path):
    zarr = pytest.importorskip("zarr")
    values = calls()
    path = tmp_path / "cohort.vcz"
    group = zarr.create_group(path)
    group.create_array("call_genotype", data=values, chunks=(7, 4, 2))
    group.create_array("variant_contig", data=np.zeros(40, dtype=np.int8))
    group.create_array("variant_position", data=np.arange(1, 41, dtype=np.int32))
    texts = {
        "variant_allele": np.array([["A", "C"]] * 40),
        "contig_id": np.array(["1"]),
        "sample_id": np.array([f"someone{i}" for i in range(15)]),
    }
    for name, text in texts.items():
        group.create_array(name, shape=text.shape, dtype=str)[...] = text.astype(object)
    check_haplotypes(path, values, tmp_path / "cache")


def test_genotypes_of_a_plink_fileset(tmp_path):
    bed_reader = pytest.importorskip("bed_reader")
    values = calls().sum(axis=2).T.astype(np.float64)  # (people, snps)
    values[3, 12] = np.nan
    bed_reader.to_bed(tmp_path / "cohort.bed", values)
    messages = []
    prefix, cache = tmp_path / "cohort", tmp_path / "cache"
    snps = common_snps(prefix, cache=cache, tell=messages.append)
    assert (snps.n, snps.snps, snps.copies) == (15, 30, 2)
    assert any("its rows are people" in message for message in messages)
    known = values[~np.isnan(values[:, 12]), 12]
    values[3, 12] = np.argmax(np.bincount(known.astype(int)))
    np.testing.assert_array_equal(snps.columns(slice(None)), values[:, 10:])
    np.testing.assert_allclose(snps.frequencies(), values[:, 10:].mean(axis=0) / 2)
    rows = drawn("dbgap", Data(dbgap=prefix, cache=cache), n=15, d=30)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    assert np.ptp(rows, axis=0).max() == 2


def test_blocks_of_rows_do_not_matter(tmp_path, monkeypatch):
    pytest.importorskip("cyvcf2")
    monkeypatch.setattr("experiments.figures.files._CELLS", 240)  # eight rows at a time
    check_haplotypes(vcf(tmp_path, calls()), calls(), tmp_path / "cache")


def test_a_file_that_is_written_anew_is_read_anew(tmp_path):
    pytest.importorskip("cyvcf2")
    for seed in (1, 2):
        values = calls(seed=seed)
        check_haplotypes(vcf(tmp_path, values, "cohort.vcf"), values, tmp_path / "cache")


def test_missing_and_rare(tmp_path):
    pytest.importorskip("cyvcf2")
    with pytest.raises(InputError, match="no VCF, BCF, VCF Zarr store"):
        common_snps(tmp_path / "absent.vcf", cache=tmp_path, tell=quiet)
    with pytest.raises(InputError, match=r"no file .*absent\.bed"):
        common_snps(tmp_path / "absent", cache=tmp_path, tell=quiet)
    path = vcf(tmp_path, calls()[:10])
    with pytest.raises(InputError, match=r"no SNP of .* at least 0\.05"):
        common_snps(path, cache=tmp_path, tell=quiet)


@pytest.fixture
def stand_in(monkeypatch):
    """Stand in for the stand-ins, which take a while."""
    rng = np.random.default_rng(0)
    bits = (rng.random((50, 64)) < 0.3).astype(np.uint8)
    snps = PackedSnps(
        n=64,
        planes=np.packbits(bits, axis=1)[None],
        contig=np.zeros(50, dtype=np.int32),
        position=np.arange(50),
    )
    for name in ("kg_like", "dbgap_like"):
        monkeypatch.setattr(module, name, lambda cache, tell: snps)
    return bits.T


@pytest.mark.parametrize("name", ["1kg", "dbgap"])
def test_columns_and_rows_are_chosen_at_random(stand_in, name):
    data = Data()
    rows = drawn(name, data)
    assert rows.shape == (20, 4)
    assert rows.dtype == np.float64
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    assert all(len(np.unique(column)) == 2 for column in rows.T)
    np.testing.assert_array_equal(rows, drawn(name, data))
    assert (drawn(name, data, seed=1) != rows).any()
    everything = drawn(name, data, n=64, d=50)
    np.testing.assert_allclose(everything, stand_in - stand_in.mean(axis=0), atol=1e-12)
    with pytest.raises(InputError, match="65 rows were asked for, but there are only 64"):
        drawn(name, data, n=65)
    with pytest.raises(InputError, match="51 SNPs were asked for"):
        drawn(name, data, d=51)
    assert rows_of(name, data) == 64
    prepare(name, data=data)


def test_gaussian_features():
    rows = drawn("gaussian", Data(), n=40_000, d=3)
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(np.cov(rows.T), np.eye(3), atol=0.03)
    assert rows_of("gaussian", Data()) is None
    prepare("gaussian", data=Data())


def test_unknown_features():
    with pytest.raises(InputError, match="'hapmap' are unknown; known are 1kg, 1kg-real"):
        drawn("hapmap", Data())


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "train-images.idx3-ubyte.gz"])
def test_the_users_mnist(tmp_path, name):
    pixels = np.random.default_rng(0).integers(0, 256, size=(30, 784)).astype(np.uint8)
    content = np.array([0x0803, 30, 28, 28], dtype=">u4").tobytes() + pixels.tobytes()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    data = Data(mnist=tmp_path)
    rows = drawn("mnist", data, n=30, d=784)
    np.testing.assert_allclose(rows, (pixels - pixels.mean(axis=0)) / 255, atol=1e-12)
    assert drawn("mnist", data, n=5, d=10).shape == (5, 10)
    assert rows_of("mnist", data) == 30


def test_a_broken_mnist(tmp_path):
    with pytest.raises(InputError, match="has no train-images-idx3-ubyte"):
        mnist_images(tmp_path)
    for content in (b"", b"\0\0\x08\x01" + bytes(30), b"\0\0\x08\x03" + bytes(11) + b"\1"):
        (tmp_path / "train-images-idx3-ubyte").write_bytes(content)
        with pytest.raises(InputError, match="not a whole IDX file"):
            mnist_images(tmp_path)


def test_absent_data_are_a_reason_to_skip(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARED", tmp_path)
    module._real_haplotypes.cache_clear()
    with pytest.raises(MissingData, match=r"1000 Genomes are not at .*kg_haplotypes_5008"):
        drawn("1kg-real", Data())
    with pytest.raises(MissingData, match=r"MNIST is not at .* give a folder of its IDX files"):
        drawn("mnist", Data())


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")
def test_real_haplotypes_and_digits():
    rows = drawn("1kg-real", Data(), n=5008, d=25)
    spread = rows.max(axis=0) - rows.min(axis=0)
    np.testing.assert_allclose(spread, 1)
    frequency = -rows.min(axis=0)
    assert ((frequency >= 0.05) & (frequency <= 0.95)).all()
    digits = drawn("mnist", Data(), n=200, d=784)
    assert digits.shape == (200, 784)
    assert 40 < np.sum(digits**2, axis=1).mean() < 65
