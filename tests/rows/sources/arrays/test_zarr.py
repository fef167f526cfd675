"""Zarr arrays and VCF Zarr stores."""

import shutil
import traceback

import numpy as np
import pytest

from primo.errors import InputError, NotNumericError
from primo.rows.sources.arrays import chunked
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.vcf_zarr import open_vcf_zarr

zarr = pytest.importorskip("zarr")


def stored(path, values, chunks=(10, 3), **options):
    array = zarr.create_array(
        path, shape=values.shape, chunks=chunks, dtype=values.dtype, **options
    )
    array[:] = values
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
@pytest.mark.parametrize("columns_first", [True, False])
def test_chunks_are_opened_once_in_stored_order(tmp_path, monkeypatch, zarr_format, columns_first):
    values = np.random.default_rng(0).normal(size=(95, 7))
    monkeypatch.setattr(chunked, "STRETCH_BYTES", 25 * 7 * 8)  # two chunks of rows at a time
    array = values.T if columns_first else values
    chunks = (3, 10) if columns_first else (10, 3)
    path = stored(tmp_path / "t.zarr", array, chunks, zarr_format=zarr_format)
    asked = []
    select = zarr.Array.__getitem__
    monkeypatch.setattr(
        zarr.Array, "__getitem__", lambda self, key: asked.append(key) or select(self, key)
    )
    columns = open_zarr(path, columns_first=columns_first)
    found = np.vstack(list(columns.blocks(range(95), 13)))
    np.testing.assert_array_equal(found, values)
    starts = [key[1].start if columns_first else key.start for key in asked]
    assert sorted(set(starts)) == [0, 20, 40, 60, 80]
    assert len(asked) == (15 if columns_first else 5)


def test_an_array_in_a_group(tmp_path):
    group = zarr.create_group(tmp_path / "g.zarr")
    group.create_array("x", data=np.ones((4, 2)))
    group.create_array("deep/y", data=np.ones((4, 1)))
    assert open_zarr(tmp_path / "g.zarr", "x").names == ("x_0", "x_1")
    assert open_zarr(tmp_path / "g.zarr", "deep/y").names == ("y_0",)
    with pytest.raises(InputError, match=r"group of arrays \(x\)"):
        open_zarr(tmp_path / "g.zarr")
    with pytest.raises(InputError, match="no array 'z'"):
        open_zarr(tmp_path / "g.zarr", "z")


@pytest.mark.parametrize(
    ("values", "kind", "message"),
    [
        (np.zeros(3), InputError, "1 axes"),
        (np.zeros((3, 2, 2)), InputError, "3 axes"),
        (np.zeros((3, 2), dtype=complex), NotNumericError, "complex"),
        (np.zeros((3, 2), dtype="U3"), NotNumericError, "U3"),
    ],
)
def test_what_is_no_table_of_numbers_is_refused(tmp_path, values, kind, message):
    path = stored(tmp_path / "t.zarr", values, chunks=values.shape, zarr_format=2)
    with pytest.raises(kind, match=message):
        open_zarr(path)


def test_missing_foreign_and_damaged_stores(tmp_path):
    with pytest.raises(InputError, match=r"no Zarr store .*absent\.zarr"):
        open_zarr(tmp_path / "absent.zarr")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("no store")
    for name in ("folder", "file"):
        with pytest.raises(InputError, match=f"no Zarr array or group at .*{name}"):
            open_zarr(tmp_path / name)
    path = stored(tmp_path / "t.zarr", np.ones((30, 3)))
    columns = open_zarr(path)
    (path / "c" / "1" / "0").write_bytes(b"rubbish")
    with pytest.raises(InputError, match="a chunk is damaged") as caught:
        list(columns.blocks(range(30), 10))
    assert caught.value.__context__ is None
    (path / "zarr.json").write_text("{")
    with pytest.raises(InputError, match="damaged"):
        open_zarr(path)


def test_without_zarr_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "zarr", None)
    with pytest.raises(InputError, match=r"primo-dp\[genomics\]"):
        open_zarr(tmp_path)


FIELDS = {
    "call_genotype": np.array(
        [
            [[0, 0], [0, 1], [1, 1], [1, 0]],
            [[0, 1], [-1, -1], [1, -1], [0, 0]],
            [[1, -2], [0, -2], [1, 1], [0, 1]],
        ],
        dtype=np.int8,
    ),
    "variant_contig": np.array([0, 0, 1], dtype=np.int8),
    "variant_position": np.array([100, 100, 7], dtype=np.int32),
    "variant_allele": np.array([["A", "C", ""], ["A", "G", ""], ["GT", "G", ""]]),
    "variant_id": np.array(["rs1", ".", "rs3"]),
    "contig_id": np.array(["chr1", "chrX"]),
    "sample_id": np.array(["anna", "bert", "carl", "dora"]),
}


def vcf_store(path, zarr_format=2, **changes):
    """Write a store as bio2zarr does: strings of any length, dimensions named."""
    group = zarr.create_group(path, zarr_format=zarr_format)
    for name, values in {**FIELDS, **changes}.items():
        if values is None:
            continue
        if values.dtype.kind == "U":
            array = group.create_array(name, shape=values.shape, dtype=str)
            array[...] = values.astype(object)
        else:
            group.create_array(name, data=values, chunks=(2, *values.shape[1:]))
    return path


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_variants_and_genotypes(tmp_path, zarr_format):
    columns = open_vcf_zarr(vcf_store(tmp_path / "c.vcz", zarr_format))
    variants = columns.variants
    assert variants.names == columns.names == ("rs1", "chr1:100:A:G", "rs3")
    assert variants.chromosome == ("chr1", "chr1", "chrX")
    assert variants.position.tolist() == [100, 100, 7]
    assert variants.counted == ("C", "G", "G")
    assert variants.other == ("A", "A", "GT")
    assert variants.copies == 2
    assert columns.ids().tolist() == ["anna", "bert", "carl", "dora"]
    assert len(columns.people()) == 4
    (block,) = columns.blocks(range(4), 10)
    nan = np.nan
    # A haploid call counts twice; a call of which half is missing is missing.
    np.testing.assert_array_equal(block, [[0, 1, 2], [1, nan, 0], [2, nan, 2], [1, 0, 1]])


def test_blocks_without_missing_calls_stay_narrow(tmp_path):
    columns = open_vcf_zarr(vcf_store(tmp_path / "c.vcz"))
    kinds = [block.dtype.name for block in columns.blocks(range(4), 1)]
    assert kinds == ["int8", "float32", "float32", "int8"]
    assert {b.dtype.name for b in columns.select([2, 0]).blocks(range(4), 3)} == {"int8"}


def test_haplotypes(tmp_path):
    calls = np.random.default_rng(0).integers(0, 2, size=(3, 4, 2)).astype(np.int8)
    calls[1, 2, 0] = -1
    path = vcf_store(tmp_path / "c.vcz", call_genotype=calls)
    columns = open_vcf_zarr(path, haplotypes=True)
    assert columns.n == 8
    assert columns.variants.copies == 1
    assert columns.ids()[:3].tolist() == ["anna", "anna", "bert"]
    expected = calls.transpose(1, 2, 0).reshape(8, 3).astype(float)
    expected[4, 1] = np.nan
    np.testing.assert_array_equal(np.vstack(list(columns.blocks(range(1, 8), 3))), expected[1:])
    odd = np.array([6, 1, 3])
    np.testing.assert_array_equal(np.vstack(list(columns.blocks(odd, 2))), expected[odd])


def test_haplotypes_need_two_phased_alleles(tmp_path):
    with pytest.raises(InputError, match="haploid calls"):
        list(open_vcf_zarr(vcf_store(tmp_path / "a.vcz"), haplotypes=True).blocks(range(8), 8))
    calls = np.array([[[0, 1], [1, 1], [0, 0], [1, 1]]] * 3, dtype=np.int8)
    phased = np.zeros((3, 4), dtype=bool)
    phased[:, 0] = True
    path = vcf_store(tmp_path / "b.vcz", call_genotype=calls, call_genotype_phased=phased)
    assert list(open_vcf_zarr(path, haplotypes=True).blocks(range(8), 8))
    zarr.open(path / "call_genotype_phased")[1, 0] = False
    with pytest.raises(InputError, match="unphased"):
        list(open_vcf_zarr(path, haplotypes=True).blocks(range(8), 8))
    path = vcf_store(tmp_path / "c.vcz", call_genotype=calls[:, :, :1])
    with pytest.raises(InputError, match="a haplotype already"):
        open_vcf_zarr(path, haplotypes=True)


def test_several_alternative_alleles_are_refused_when_they_are_read(tmp_path):
    alleles = FIELDS["variant_allele"].copy()
    alleles[1, 2] = "T"
    columns = open_vcf_zarr(vcf_store(tmp_path / "c.vcz", variant_allele=alleles))
    assert columns.variants.counted[1] == "G,T"
    with pytest.raises(InputError, match="several ALT alleles"):
        list(columns.blocks(range(4), 4))
    assert list(columns.select([0, 2]).blocks(range(4), 4))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"call_genotype": None}, "no array 'call_genotype'"),
        ({"sample_id": None}, "no array 'sample_id'"),
        ({"variant_allele": None}, "no array 'variant_allele'"),
        ({"call_genotype": np.zeros((3, 4), dtype=np.int8)}, "2 axes; VCF Zarr has 3"),
        ({"call_genotype": np.zeros((3, 4, 2))}, "type float64"),
        ({"call_genotype": np.zeros((3, 4, 3), dtype=np.int8)}, r"shape \(3, 4, 3\)"),
        ({"call_genotype": np.zeros((3, 5, 2), dtype=np.int8)}, "number of samples"),
        ({"call_genotype": np.zeros((2, 4, 2), dtype=np.int8)}, "differ in length"),
        ({"variant_contig": np.array([0, 0, 2], dtype=np.int8)}, "outside contig_id"),
        ({"sample_id": np.array(["anna", "bert", "anna", "dora"])}, "more than once"),
        ({"variant_id": np.array(["rs1", "rs1", "rs1"])}, None),
        ({"variant_id": None}, None),
    ],
)
def test_layouts(tmp_path, changes, message):
    path = vcf_store(tmp_path / "c.vcz", **changes)
    if message is None:
        assert open_vcf_zarr(path).names[0] == "chr1:100:A:C"
        return
    with pytest.raises(InputError, match=message) as caught:
        open_vcf_zarr(path)
    assert "anna" not in str(caught.value)


def test_an_array_is_no_vcf_store(tmp_path):
    with pytest.raises(InputError, match="no array 'call_genotype'"):
        open_vcf_zarr(stored(tmp_path / "t.zarr", np.ones((4, 4))))


def test_a_damaged_chunk_of_calls(tmp_path):
    path = vcf_store(tmp_path / "c.vcz")
    columns = open_vcf_zarr(path)
    (path / "call_genotype" / "1.0.0").write_bytes(b"x")
    with pytest.raises(InputError, match="damaged") as caught:
        list(columns.blocks(range(4), 4))
    assert "anna" not in "".join(traceback.format_exception(caught.value))
    shutil.rmtree(path)
    with pytest.raises(InputError, match="there is no file"):
        list(columns.blocks(range(4), 4))
