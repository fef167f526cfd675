"""PLINK 2 files against pgenlib's writer and plink2."""

import shutil
import subprocess

import numpy as np
import pytest

from factories import read_columns as read
from primo.errors import InputError
from primo.rows.sources.genotypes import pgen
from primo.rows.sources.genotypes.pgen import open_pgen

pgenlib = pytest.importorskip("pgenlib")
needs_plink2 = pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")

VCF = """##fileformat=VCFv4.2
##contig=<ID=1>
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DS,Number=A,Type=Float,Description="Dosage">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tann\tbob\tcem\tdot
1\t10\trs1\tA\tG\t.\t.\t.\tGT\t0|0\t0|1\t1|1\t.|.
1\t20\trs2\tA\tG,T\t.\t.\t.\tGT\t0|0\t0|2\t1|1\t.|.
1\t30\t.\tA\t.\t.\t.\t.\tGT\t0|0\t0|0\t0|0\t./.
1\t40\trs4\tA\tC\t.\t.\t.\tGT:DS\t0|0:0.1\t0|1:1.25\t1|1:1.9\t0|0:.
"""


def write(folder, values):
    n, d = values.shape
    with pgenlib.PgenWriter(
        str(folder / "cohort.pgen").encode(), n, variant_ct=d, nonref_flags=False
    ) as writer:
        for column in np.where(np.isnan(values), -9, values).astype(np.int8).T:
            writer.append_biallelic(np.ascontiguousarray(column))
    lines = [f"1\t{j + 1}\trs{j}\tC\tA\n" for j in range(d)]
    (folder / "cohort.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n" + "".join(lines))
    people = "".join(f"someone{i}\n" for i in range(n))
    (folder / "cohort.psam").write_text("#IID\n" + people)
    return folder / "cohort"


def random_genotypes(n, d, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.binomial(2, rng.uniform(0.001, 0.5, d), size=(n, d)).astype(np.float64)
    values[rng.random((n, d)) < 0.05] = np.nan
    return values


def test_what_pgenlib_wrote(tmp_path, monkeypatch):
    values = random_genotypes(301, 20)
    columns = open_pgen(write(tmp_path, values))
    order = np.random.default_rng(1).permutation(301)
    for held in (2**26, 1000):
        monkeypatch.setattr(pgen, "_HELD", held)
        np.testing.assert_array_equal(read(columns, rows=17), values)
        np.testing.assert_array_equal(read(columns, order, 17), values[order])
    some = columns.select([19, 0, 5])
    assert some.names == ("rs19", "rs0", "rs5")
    np.testing.assert_array_equal(read(some), values[:, [19, 0, 5]])


@needs_plink2
def test_counts_of_plink2(tmp_path):
    path = write(tmp_path, random_genotypes(201, 13))
    columns = open_pgen(path)
    values = read(columns)
    subprocess.run(
        ["plink2", "--pfile", path, "--freq", "counts", "--out", tmp_path / "out"],
        check=True,
        capture_output=True,
    )
    lines = [line.split() for line in (tmp_path / "out.acount").read_text().splitlines()]
    for words, column, counted in zip(lines[1:], values.T, columns.variants.counted, strict=True):
        row = dict(zip(lines[0], words, strict=True))
        assert row["ALT"] == counted
        assert int(row["ALT_CTS"]) == np.nansum(column)
        assert int(row["OBS_CT"]) == 2 * np.isfinite(column).sum()


def from_vcf(folder, lines, *dosage):
    """Let plink2 make a fileset of some lines of the VCF."""
    (folder / "x.vcf").write_text("".join(lines))
    words = ["plink2", "--vcf", folder / "x.vcf", *dosage, "--make-pgen", "--out", folder / "x"]
    subprocess.run(words, check=True, capture_output=True)
    return folder / "x"


@needs_plink2
def test_several_alleles_are_refused_until_left_out(tmp_path):
    columns = open_pgen(from_vcf(tmp_path, VCF))
    assert columns.names == ("rs1", "rs2", "1:30:A:.", "rs4")
    assert columns.variants.counted == ("G", "G,T", ".", "C")
    with pytest.raises(InputError, match=r"rs2 has several ALT alleles.*skip"):
        read(columns)
    nan = np.nan
    expected = [[0, 0, 0], [1, 0, 1], [2, 0, 2], [nan, nan, 0]]
    np.testing.assert_array_equal(read(columns.select([0, 2, 3])), expected)
    assert columns.ids().tolist() == ["ann", "bob", "cem", "dot"]


@needs_plink2
def test_dosages(tmp_path):
    biallelic = [line for line in VCF.splitlines(keepends=True) if "rs2" not in line]
    path = from_vcf(tmp_path, biallelic, "dosage=DS")
    expected = [[0, 0.1], [1, 1.25], [2, 1.9], [np.nan, 0]]
    found = read(open_pgen(path, dosages=True).select([0, 2]))
    np.testing.assert_allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cohort.pgen", None, "there is no file"),
        ("cohort.pvar", None, "side by side"),
        ("cohort.psam", None, "side by side"),
        ("cohort.pgen", lambda old: b"PK" + old[2:], "cannot be opened"),
        ("cohort.pgen", lambda old: old[:15], "cannot be opened|truncated"),
        ("cohort.pgen", lambda old: old[: len(old) - 20], "truncated"),
        ("cohort.psam", lambda old: b"\n".join(old.splitlines()[:5]), "people of its .psam"),
        ("cohort.pvar", lambda old: b"\n".join(old.splitlines()[:5]), "variants of its .pvar"),
        ("cohort.pvar", lambda old: b"", "cannot read|no variants"),
        ("cohort.psam", lambda old: b"#IID\n", "lists no people"),
        ("cohort.psam", lambda old: old.replace(b"#IID", b"#NAME"), "without the column IID"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    path = write(tmp_path, random_genotypes(60, 12))
    target = tmp_path / name
    if content is None:
        target.unlink()
    else:
        target.write_bytes(content(target.read_bytes()))
    with pytest.raises(InputError, match=message) as caught:
        read(open_pgen(path))
    assert str(tmp_path) in str(caught.value)
    assert "someone" not in str(caught.value)
