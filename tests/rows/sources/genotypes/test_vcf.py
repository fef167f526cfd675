"""VCF and BCF files: odd calls, broken files, and real ones against bcftools and a second copy."""

import gzip
import shutil
import subprocess

import numpy as np
import pytest

from experiments.data import SHARED
from factories import read_columns
from primo.errors import InputError
from primo.rows.sources.genotypes.vcf import open_vcf

pytest.importorskip("cyvcf2")
REAL = SHARED / "kg_haplotypes_5008"
needs_data = pytest.mark.skipif(not REAL.exists(), reason="the shared data is not here")
needs_bcftools = pytest.mark.skipif(
    shutil.which("bcftools") is None, reason="bcftools is not installed"
)

HEADER = """##fileformat=VCFv4.2
##contig=<ID=1>
##contig=<ID=X>
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Depth">
#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\tsomeone1\tsomeone2\tsomeone3\tsomeone4
"""


def write(folder, *records, header=HEADER):
    path = folder / "cohort.vcf"
    lines = ("\t".join(record.split()) + "\n" for record in records)
    path.write_text(header + "".join(lines))
    return path


def read(columns, rows=3):
    return read_columns(columns, rows=rows)


def test_calls_of_every_kind(tmp_path):
    columns = open_vcf(
        write(
            tmp_path,
            "1 10 rs1 A G . . . GT    0|0 0/1 1|1 .|.",
            "1 20 .   A G . . . GT    0/0 ./1 1/. ./.",
            "1 30 .   A . . . . GT    0/0 0/0 0/0 ./.",
            "X 40 rs4 A C . . . GT:DP 0:1 1:1 0|1 .",
            "X 50 rs5 A C . . . GT    0 1 1 .",
        )
    )
    nan = np.nan
    assert columns.names == ("rs1", "1:20:A:G", "1:30:A:.", "rs4", "rs5")
    assert columns.variants.counted == ("G", "G", ".", "C", "C")
    # A haploid call counts twice, as in PLINK: a man's X is homozygous.
    expected = [[0, 0, 0, 0, 0], [1, nan, 0, 2, 2], [2, nan, 0, 1, 2], [nan] * 5]
    np.testing.assert_array_equal(read(columns), expected)
    some = columns.select([3, 0])
    np.testing.assert_array_equal(read(some), np.array(expected)[:, [3, 0]])


def test_haplotypes(tmp_path):
    path = write(
        tmp_path,
        "1 10 rs1 A G . . . GT 0|0 0|1 1|0 .|.",
        "1 20 rs2 A G . . . GT 1|1 0|0 1|1 0/0",
    )
    columns = open_vcf(path, haplotypes=True)
    assert columns.variants.copies == 1
    assert columns.ids().tolist()[:3] == ["someone1", "someone1", "someone2"]
    first = [0, 0, 0, 1, 1, 0, np.nan, np.nan]
    np.testing.assert_array_equal(read(columns).T, [first, [1, 1, 0, 0, 1, 1, 0, 0]])


@pytest.mark.parametrize(
    ("record", "haplotypes", "message"),
    [
        ("1 10 rs1 A G . . . GT 0/1 0|1 1|0 0|0", True, "rs1 has unphased calls"),
        ("1 10 rs1 A G . . . GT 0|1 0 1|0 0|0", True, "rs1 has haploid calls"),
        ("1 10 rs1 A G,T . . . GT 0|1 0|2 1|0 0|0", False, "rs1 has several ALT alleles"),
        ("1 10 rs1 A G . . . GT 0/1/1 0/0/0 1/0/0 ./.", False, "more than two alleles"),
        ("1 10 rs1 A G . . . DP 1 2 3 4", False, r"rs1 has no genotypes \(field GT\)"),
    ],
)
def test_calls_that_cannot_be_counted(tmp_path, record, haplotypes, message):
    columns = open_vcf(write(tmp_path, record), haplotypes=haplotypes)
    with pytest.raises(InputError, match=message) as caught:
        read(columns)
    assert "someone" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


RECORD = "1 10 rs1 A G . . . GT 0|0 0/1 1|1 .|."


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.replace("##fileformat=VCFv4.2\n", ""), "not a VCF"),
        (HEADER.replace("someone2", "someone1"), "more than once"),
        ("\n".join(line for line in HEADER.split("\n") if "ID=GT" not in line), "field GT"),
        (HEADER.replace("\tFORMAT", "").replace("\tsomeone", "\tx")[:0], "not a VCF"),
    ],
)
def test_broken_headers(tmp_path, header, message):
    with pytest.raises(InputError, match=message) as caught:
        open_vcf(write(tmp_path, RECORD, header=header))
    assert "someone" not in str(caught.value)


def test_nothing_there(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        open_vcf(tmp_path / "none.vcf")
    with pytest.raises(InputError, match="holds no variants"):
        open_vcf(write(tmp_path))
    sites = HEADER.partition("\tFORMAT")[0] + "\n"
    with pytest.raises(InputError, match="lists variants only"):
        open_vcf(write(tmp_path, "1 10 rs1 A G . . .", header=sites))


def test_variants_that_are_there_twice(tmp_path):
    with pytest.raises(InputError, match="1:10:A:G appears more than once"):
        open_vcf(write(tmp_path, RECORD, RECORD))


def test_cut_off_files(tmp_path):
    plain = write(tmp_path, *[RECORD.replace("10 rs1", f"{i} rs{i}") for i in range(1, 2000)])
    packed = tmp_path / "cohort.vcf.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert len(open_vcf(packed).names) == 1999
    packed.write_bytes(packed.read_bytes()[:-200])
    with pytest.raises(InputError, match="truncated or corrupt"):
        open_vcf(packed)
    columns = open_vcf(plain)
    plain.write_text("".join(plain.read_text().splitlines(keepends=True)[:100]))
    with pytest.raises(InputError, match="was changed"):
        read(columns)


def test_blanks_around_a_sample_make_no_other_person(tmp_path):
    blank = HEADER.replace("someone2", " someone2 ")
    assert open_vcf(write(tmp_path, RECORD, header=blank)).ids().tolist()[1] == "someone2"
    twice = HEADER.replace("someone2", "someone1 ")
    with pytest.raises(InputError, match="more than once") as caught:
        open_vcf(write(tmp_path, RECORD, header=twice))
    assert "someone" not in str(caught.value)


@needs_bcftools
def test_bcf_and_bgzip(tmp_path):
    path = write(tmp_path, RECORD, RECORD.replace("10 rs1", "20 rs2"))
    for kind, name in (("b", "x.bcf"), ("u", "y.bcf"), ("z", "x.vcf.gz")):
        target = tmp_path / name
        subprocess.run(["bcftools", "view", "-O", kind, "-o", target, path], check=True)
        found = open_vcf(target)
        np.testing.assert_array_equal(read(found), read(open_vcf(path)))
        assert found.ids().tolist() == open_vcf(path).ids().tolist()
        if kind != "u":
            target.write_bytes(target.read_bytes()[:-28])
            with pytest.raises(InputError, match="truncated: the block that ends"):
                open_vcf(target)


def as_packed_array():
    """Return the second copy of the real files: haplotypes by chromosome, position and alleles."""
    copy = np.load(REAL / "kg_hap5008.npz")
    keys = zip(copy["chrom"].tolist(), copy["pos"].tolist(), copy["ref"], copy["alt"], strict=True)
    places = {(str(c), int(p), str(r)[:20], str(a)[:20]): i for i, (c, p, r, a) in enumerate(keys)}
    return np.unpackbits(copy["packed"], axis=1)[:, :5008], places, copy["sample"]


@needs_data
@pytest.mark.parametrize(
    ("name", "shared"),
    [
        pytest.param("VariantSpark_hipster.vcf.bgz", 10000, marks=pytest.mark.statistical),
        ("opencga_10k.chr22.phase3.vcf.gz", 9000),
    ],
)
def test_real_haplotypes(name, shared):
    expected, places, samples = as_packed_array()
    columns = open_vcf(REAL / name, haplotypes=True)
    variants = columns.variants
    keys = [
        (chromosome, int(position), other[:20], counted[:20])
        for chromosome, position, other, counted in zip(
            variants.chromosome, variants.position, variants.other, variants.counted, strict=True
        )
    ]
    both = [(j, places[key]) for j, key in enumerate(keys) if key in places]
    assert len(both) > shared
    both = both[::4]
    columns = columns.select([j for j, _ in both])
    np.testing.assert_array_equal(read(columns, 1000), expected[[i for _, i in both]].T)
    assert columns.people().iid.tolist() == [str(name) for name in samples]


@needs_data
@needs_bcftools
def test_real_genotypes_as_bcftools_counts_them(tmp_path):
    path = tmp_path / "some.vcf.gz"
    with gzip.open(REAL / "opencga_10k.chr22.phase3.vcf.gz", "rt") as file:
        whole = file.read(3_000_000)
    path.write_bytes(gzip.compress(whole[: whole.rindex("\n") + 1].encode()))
    words = ["bcftools", "query", "-f", "%POS\t%REF\t%ALT[\t%GT]\n", path]
    lines = subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()
    columns = open_vcf(path)
    assert len(lines) == len(columns.names) > 100
    simple = [j for j, line in enumerate(lines) if "," not in line.split("\t", 3)[2]]
    counts = [lines[j].split("\t", 3)[3].count("1") for j in simple]
    found = columns.select(simple)
    assert read(found).sum(axis=0).tolist() == counts
