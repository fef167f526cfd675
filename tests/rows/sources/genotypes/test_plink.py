"""PLINK 1 files against bed-reader, plink2 and plink 1.9, and files that are broken."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.data import SHARED
from factories import read_columns as read
from primo.errors import InputError
from primo.rows.sources.genotypes import packed, people
from primo.rows.sources.genotypes.plink import open_bed

bed_reader = pytest.importorskip("bed_reader")
DATA = SHARED


def write(folder, values, *, sid=None, fid=None, iid=None, a1=None, a2=None, name="cohort"):
    n, d = values.shape
    properties = {
        "fid": fid or ["0"] * n,
        "iid": iid or [f"someone{i:04d}" for i in range(n)],
        "sid": sid or [f"rs{j}" for j in range(d)],
        "chromosome": ["1"] * d,
        "bp_position": [10 * (j + 1) for j in range(d)],
        "allele_1": a1 or ["A"] * d,
        "allele_2": a2 or ["C"] * d,
    }
    bed_reader.to_bed(folder / f"{name}.bed", values, properties=properties)
    return folder / name


def random_genotypes(n, d, missing=0.1, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 3, size=(n, d)).astype(np.float64)
    values[rng.random((n, d)) < missing] = np.nan
    return values


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 30, 1001])
def test_as_bed_reader_reads_it(tmp_path, n, monkeypatch):
    path = write(tmp_path, random_genotypes(n, 7))
    columns = open_bed(path)
    with bed_reader.open_bed(f"{path}.bed", num_threads=1) as theirs:
        expected = theirs.read(dtype="float32")
        assert columns.ids().tolist() == theirs.iid.tolist()
        assert columns.variants.counted == tuple(theirs.allele_1)
        assert columns.variants.other == tuple(theirs.allele_2)
        assert columns.variants.position.tolist() == theirs.bp_position.tolist()
    order = np.random.default_rng(1).permutation(n)
    for held, at_once in ((2**26, 2**24), (64, 16)):  # many small stretches too
        monkeypatch.setattr(packed, "_HELD", held)
        monkeypatch.setattr(packed, "_READ", at_once)
        for rows in (1, 3, 4, 7, 5000):
            np.testing.assert_array_equal(read(columns, rows=rows), expected)
            np.testing.assert_array_equal(read(columns, order, rows), expected[order])
            np.testing.assert_array_equal(read(columns, range(n // 3, n), rows), expected[n // 3 :])


def test_narrow_where_nothing_is_missing(tmp_path):
    values = random_genotypes(40, 5, missing=0)
    values[25, 3] = np.nan
    blocks = list(open_bed(write(tmp_path, values)).blocks(range(40), 10))
    assert [block.dtype for block in blocks] == [np.int8, np.int8, np.float32, np.int8]


def test_open_by_prefix_or_file(tmp_path):
    path = write(tmp_path, random_genotypes(10, 3), name="cohort.v2")
    for name in (path, str(path), f"{path}.bed", f"{path}.bim"):
        assert open_bed(name).path == tmp_path / "cohort.v2.bed"


def test_names_are_made_unique(tmp_path):
    values = random_genotypes(10, 4)
    path = write(tmp_path, values, sid=["rs1", ".", "rs2", "rs2"], a1=["A", "A", "A", "G"])
    assert open_bed(path).names == ("rs1", "1:20:C:A", "1:30:C:A", "1:40:C:G")


def tool(name):
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


def run(*words):
    subprocess.run([str(word) for word in words], check=True, capture_output=True)


def rows_of(path):
    lines = path.read_text().splitlines()
    return [dict(zip(lines[0].split(), line.split(), strict=True)) for line in lines[1:]]


@tool("plink2")
def test_counts_of_plink2(tmp_path):
    path = write(tmp_path, random_genotypes(201, 13))
    values = read(open_bed(path))
    run("plink2", "--bfile", path, "--freq", "counts", "--missing", "--out", tmp_path / "out")
    for row, column in zip(rows_of(tmp_path / "out.acount"), values.T, strict=True):
        assert row["ALT"] == "A"  # plink2 calls A1 the ALT allele
        assert int(row["ALT_CTS"]) == np.nansum(column)
        assert int(row["OBS_CT"]) == 2 * np.isfinite(column).sum()
    missing = [int(row["MISSING_CT"]) for row in rows_of(tmp_path / "out.smiss")]
    assert missing == np.isnan(values).sum(axis=1).tolist()


@tool("plink2")
def test_scores_of_plink2_count_the_same_allele(tmp_path):
    values = random_genotypes(50, 9, missing=0)
    columns = open_bed(write(tmp_path, values, a1=["A", "G", "T"] * 3))
    weights = np.round(np.random.default_rng(2).normal(size=9), 4)
    lines = zip(columns.names, columns.variants.counted, weights, strict=True)
    (tmp_path / "w.txt").write_text("".join(f"{name} {a} {w}\n" for name, a, w in lines))
    run(
        "plink2", "--bfile", tmp_path / "cohort", "--score", tmp_path / "w.txt",
        "no-mean-imputation", "cols=scoresums", "--out", tmp_path / "out",
    )  # fmt: skip
    found = [float(row["SCORE1_SUM"]) for row in rows_of(tmp_path / "out.sscore")]
    np.testing.assert_allclose(found, read(columns) @ weights, rtol=1e-4, atol=1e-4)


@tool("plink1.9")
def test_frequencies_of_plink19(tmp_path):
    path = write(tmp_path, random_genotypes(101, 6))
    run("plink1.9", "--bfile", path, "--keep-allele-order", "--freq", "--out", tmp_path / "out")
    found = [float(row["MAF"]) for row in rows_of(tmp_path / "out.frq")]
    expected = np.nanmean(read(open_bed(path)), axis=0) / 2
    np.testing.assert_allclose(found, expected, rtol=1e-3)


@pytest.mark.skipif(not DATA.exists(), reason="the shared data is not here")
@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("hapmap3_and_kg1_flashpca/hapmap3_957.npz", "G"),
        ("soynam/soynam_multi.npz", "X"),
    ],
)
def test_real_genotypes_written_and_read_back(tmp_path, file, key):
    values = np.load(DATA / file)[key][:, :800].astype(np.float32)
    values[values < 0] = np.nan
    columns = open_bed(write(tmp_path, values))
    np.testing.assert_array_equal(read(columns, rows=500), values)


def broken(tmp_path, name, content):
    path = write(tmp_path, random_genotypes(9, 4))
    target = tmp_path / name
    if content is None:
        target.unlink()
    else:
        target.write_bytes(content(target.read_bytes()))
    return path


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cohort.bed", None, "there is no file"),
        ("cohort.bim", None, "side by side"),
        ("cohort.fam", None, "side by side"),
        ("cohort.bed", lambda old: b"PK" + old[2:], "not a PLINK 1 .bed"),
        ("cohort.bed", lambda old: old[:2] + b"\x00" + old[3:], "--make-bed"),
        ("cohort.bed", lambda old: old[:-1], "truncated"),
        ("cohort.bed", lambda old: b"", "not a PLINK 1 .bed"),
        ("cohort.fam", lambda old: b"\n".join(old.splitlines()[:5]), "do not belong together"),
        ("cohort.bim", lambda old: b"\n".join(old.splitlines()[:2]), "do not belong together"),
        ("cohort.bim", lambda old: b"", "no variants"),
        ("cohort.bim", lambda old: old.replace(b"\t20\t", b"\tten\t"), "line 2 of .* position"),
        ("cohort.bim", lambda old: old.replace(b"\tC", b""), "six columns"),
        ("cohort.bim", lambda old: old.replace(b"rs1", b"rs0").replace(b"20", b"10"), "rm-dup"),
        ("cohort.fam", lambda old: b"", "lists no people"),
        ("cohort.fam", lambda old: b"\xff" + old, "not text"),
        ("cohort.fam", lambda old: b"someone0000\n" + old, "fewer than 2 columns"),
    ],
)
def test_broken_files(tmp_path, name, content, message):
    path = broken(tmp_path, name, content)
    with pytest.raises(InputError, match=message) as caught:
        open_bed(path)
    assert str(tmp_path) in str(caught.value)
    assert "someone" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_file_that_shrinks_after_opening(tmp_path):
    path = write(tmp_path, random_genotypes(9, 4))
    columns = open_bed(path)
    (tmp_path / "cohort.bed").write_bytes(b"\x6c\x1b\x01ab")
    with pytest.raises(InputError, match="was changed while it was being read"):
        read(columns)


def test_people_with_the_same_id(tmp_path):
    values = random_genotypes(4, 3)
    twice = ["someone1", "someone1", "someone2", "someone3"]
    families = open_bed(write(tmp_path, values, iid=twice, fid=list("abcd")))
    assert families.ids().tolist() == twice  # known, whoever else is in the file
    assert families.labels().tolist() == ["a someone1", "b someone1", "c someone2", "d someone3"]
    with pytest.raises(InputError, match="more than once") as caught:
        open_bed(write(tmp_path, values, iid=twice)).labels()
    assert "someone" not in str(caught.value)


WORDS = st.text('0pé\u00a0\x1c"', min_size=1, max_size=3)
LINES = st.lists(WORDS, min_size=3, max_size=3).flatmap(
    lambda words: st.sampled_from([" ", "\t", " \t", "\v"]).map(lambda blank: blank.join(words))
)


@given(
    st.lists(st.one_of(LINES, st.text('0p \t\r\v\f"', max_size=6)), max_size=4),
    st.sampled_from(["\n", "\r\n", " \n", "\n\n"]),
)
def test_people_are_the_same_whichever_way_their_words_are_found(lines, end):
    content = (end.join(lines) + end).encode()
    found = people._first_two(content)
    if found is not None:
        words = [line.split()[:2] for line in content.split(b"\n") if line.split()]
        assert [word.encode() for word in found] == [word for pair in words for word in pair]


def test_people_of_a_usual_file_are_found_the_fast_way():
    assert people._first_two(b"f1 p1 0 0 1 -9\r\n f2\tp2  0 0 2 -9\n") == ["f1", "p1", "f2", "p2"]


@settings(deadline=None)  # the first compiles
@given(st.integers(1, 9), st.integers(0, 3), st.integers(1, 30), st.data())
def test_two_bits_say_how_many_copies(width, first, count, data):
    length = -(-(first + count) // 4)
    codes = st.sampled_from([0x00, 0xFF, 0xAA, 0x01, 0x40, 0x55, 0x1B])
    raw = data.draw(st.lists(codes, min_size=length * width, max_size=length * width))
    transposed = np.array(raw, dtype=np.uint8).reshape(length, width)
    bits = np.stack([transposed >> shift & 3 for shift in (0, 2, 4, 6)], axis=1).reshape(-1, width)
    expected = np.array([2, np.nan, 1, 0])[bits[first : first + count]]
    for unpack in (packed._unpack, packed._unpack_for(packed._MANY)):  # the same without numba
        found = unpack(transposed, first, first + count)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == (np.float32 if np.isnan(expected).any() else np.int8)


def test_files_are_read_alike_with_and_without_positions(tmp_path, monkeypatch):
    """Where the system has no call that reads at a position."""
    columns = open_bed(write(tmp_path, random_genotypes(50, 7)))
    usual = read(columns, rows=9)
    monkeypatch.delattr(os, "preadv", raising=False)
    np.testing.assert_array_equal(read(columns, rows=9), usual)


def test_more_is_held_at_once_where_variants_are_many(tmp_path, monkeypatch):
    """So that little of a variant is not read many times; never more than four times as much."""
    columns = open_bed(write(tmp_path, random_genotypes(1001, 7)))
    sizes = []
    gather = packed.Packed._gather
    monkeypatch.setattr(
        packed.Packed,
        "_gather",
        lambda self, people: sizes.append(len(people)) or gather(self, people),
    )
    monkeypatch.setattr(packed, "_HELD", 700)
    for stretch, expected in ((1, 400), (200, 800), (10**6, 1001)):
        sizes.clear()
        monkeypatch.setattr(packed, "_STRETCH", stretch)
        read(columns, rows=4)
        assert sizes[0] == expected
