"""Files that are written anew while they are read in parts."""

import os
import pickle
import shutil

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather as arrow_feather
from pyarrow import parquet as arrow_parquet

from primo.errors import InputError
from primo.rows.sources import unchanged
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.rows.sources.tabular.tables import open_table, table_source

N = 40
VALUES = np.random.default_rng(0).integers(0, 3, size=(N, 2)).astype(np.float64)
IDS = [f"p{i:02}" for i in range(N)]


def text(folder):
    path = folder / "t.csv"
    path.write_text("a,b\n" + "".join(f"{a:g},{b:g}\n" for a, b in VALUES))
    return open_table(path), [path]


def frame(folder, suffix):
    table = pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1]})
    path = folder / f"t.{suffix}"
    if suffix == "parquet":
        arrow_parquet.write_table(table, path)
    else:
        arrow_feather.write_feather(table, str(path))
    return open_table(path), [path]


def parquet(folder):
    return frame(folder, "parquet")


def feather(folder):
    return frame(folder, "feather")


def npy(folder):
    path = folder / "t.npy"
    np.save(path, VALUES)
    return open_npy(path), [path]


def npy_by_columns(folder):
    path = folder / "t.npy"
    np.save(path, np.asfortranarray(VALUES))
    return open_npy(path), [path]


def bed(folder):
    path = folder / "c.bed"
    bed_reader = pytest.importorskip("bed_reader")
    bed_reader.to_bed(path, VALUES, properties={"iid": IDS, "sid": ["rs1", "rs2"]})
    return open_bed(path), [path, folder / "c.fam", folder / "c.bim"]


def pgen(folder):
    pgenlib = pytest.importorskip("pgenlib")
    path = folder / "c.pgen"
    with pgenlib.PgenWriter(str(path).encode(), N, variant_ct=2, nonref_flags=False) as writer:
        for column in VALUES.astype(np.int8).T:
            writer.append_biallelic(np.ascontiguousarray(column))
    (folder / "c.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n1\t1\trs1\tC\tA\n1\t2\trs2\tC\tA\n")
    (folder / "c.psam").write_text("#IID\n" + "\n".join(IDS) + "\n")
    return open_pgen(path), [path, folder / "c.psam", folder / "c.pvar"]


def vcf(folder):
    pytest.importorskip("cyvcf2")
    path = folder / "c.vcf"
    header = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *IDS]
    rows = [
        ["1", str(j + 1), f"rs{j}", "C", "A", ".", ".", ".", "GT"]
        + [("0|0", "0|1", "1|1")[int(v)] for v in VALUES[:, j]]
        for j in range(2)
    ]
    path.write_text(
        "##fileformat=VCFv4.2\n##contig=<ID=1>\n"
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">\n'
        + "".join("\t".join(row) + "\n" for row in [header, *rows])
    )
    return open_vcf(path), [path]


def zarr(folder):
    library = pytest.importorskip("zarr")
    path = folder / "t.zarr"
    library.save_array(str(path), VALUES)
    return open_zarr(path), [file for file in path.iterdir() if file.is_file()]


STORES = [text, parquet, feather, npy, npy_by_columns, bed, pgen, vcf, zarr]


def later(path):
    """Let a file be written anew, with the same bytes."""
    now = path.stat()
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns + 10**9))


@pytest.mark.parametrize("store", STORES)
def test_a_file_written_anew_is_refused(tmp_path, store):
    columns, files = store(tmp_path)
    assert files
    copy = pickle.loads(pickle.dumps(columns))  # as a worker gets it
    np.testing.assert_array_equal(np.vstack(list(copy.blocks(range(N), 7))), VALUES)
    for file in files:
        before = file.stat()
        later(file)
        with pytest.raises(InputError, match="was changed while it was being read"):
            list(copy.blocks(range(N // 2, N), 7))
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(np.vstack(list(columns.blocks(range(N), 7)))) == N


@pytest.mark.parametrize("store", STORES)
def test_a_block_is_no_view_of_the_file(tmp_path, store):
    """It is used by another thread, perhaps after the walk has ended and the file was checked."""
    columns, files = store(tmp_path)
    block = next(columns.blocks(range(N), N))
    for file in files:
        with file.open("r+b") as stream:
            stream.write(bytes(file.stat().st_size))
    np.testing.assert_array_equal(block, VALUES)


@pytest.mark.parametrize("store", STORES)
def test_a_change_in_the_middle_of_a_walk_shows_at_its_end(tmp_path, store):
    columns, files = store(tmp_path)
    walk = columns.blocks(range(N), 30)
    next(walk)
    later(files[0])
    with pytest.raises(InputError, match="was changed"):
        list(walk)


def test_sorted_anew_between_two_parts(tmp_path):
    """A person's row must not be read twice, in the part of one worker and in that of another."""
    path = tmp_path / "t.csv"
    lines = [f"{name},1,2\n" for name in IDS]
    path.write_text("id,a,y\n" + "".join(lines))
    source = table_source(path, features="a", outcomes="y", id_column="id")
    list(source.part(0, N // 2).blocks(10))
    path.write_text("id,a,y\n" + "".join(lines[::-1]))
    later(path)  # tests are faster than the clock of some file systems
    with pytest.raises(InputError, match="was changed"):
        list(source.part(N // 2, N).blocks(10))


def test_on_another_machine(tmp_path, monkeypatch):
    path = tmp_path / "t"
    path.write_text("1234")
    noted = unchanged.remember(path)
    monkeypatch.setattr(unchanged.socket, "gethostname", lambda: "elsewhere")
    noted.check()
    later(path)
    with pytest.raises(InputError, match="was changed"):  # the same file, on a shared disk
        noted.check()
    shutil.copy(path, tmp_path / "copy")
    (tmp_path / "copy").replace(path)
    noted.check()  # a copy on a local disk has a time of its own
    path.write_text("12345")
    with pytest.raises(InputError, match="was changed"):
        noted.check()
    path.unlink()
    with pytest.raises(InputError, match="there is no file"):
        noted.check()
    assert str(path) in repr(noted)
