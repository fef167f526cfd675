"""BGEN files: what plink2 and the package's writer make of the same people."""

import logging
import shutil
import subprocess

import numpy as np
import pytest

from factories import read_columns
from primo.errors import InputError
from primo.rows.sources.genotypes.bgen import open_bgen
from primo.rows.sources.genotypes.cohort import frequencies_of_panel, open_cohort

bgen = pytest.importorskip("bgen")

N = 7
WHO = [f"SENTINEL{i}" for i in range(N)]
CALLS = np.random.default_rng(2).integers(0, 3, size=(N, 4))


def write(path, *, samples=WHO, variants=None, **options):
    with bgen.BgenWriter(str(path), n_samples=N, samples=list(samples), **options) as writer:
        for j, fields in enumerate(variants or [{} for _ in range(4)]):
            fields = {
                "varid": f"v{j}",
                "rsid": f"rs{j}",
                "chrom": "1",
                "pos": j + 1,
                "alleles": ["C", "A"],
                "genotypes": np.eye(3)[CALLS[:, j]],
                **fields,
            }
            writer.add_variant(**fields)
    return path


def write_sample(path, who=WHO, families=None):
    rows = zip(families or who, who, strict=True)
    text = "".join(f"{family} {name} 0 NA\n" for family, name in rows)
    path.write_text("ID_1 ID_2 missing sex\n0 0 0 D\n" + text)
    return path


def test_the_second_allele_is_counted(tmp_path):
    columns = open_bgen(write(tmp_path / "c.bgen"))
    np.testing.assert_array_equal(read_columns(columns), CALLS)
    assert columns.variants.counted == ("A",) * 4
    assert columns.variants.other == ("C",) * 4
    assert columns.variants.names == ("rs0", "rs1", "rs2", "rs3")
    assert columns.ids().tolist() == WHO


def test_plink2_writes_what_is_read(tmp_path):
    """PLINK's own export, with people named in the file and by a .sample file, in 8 and 16 bits."""
    plink = shutil.which("plink2")
    if plink is None:
        pytest.skip("needs plink2 (Debian package plink2)")
    to_bed = pytest.importorskip("bed_reader").to_bed
    values = CALLS.astype(float)
    values[2, 1] = np.nan
    properties = {"fid": ["0"] * N, "iid": WHO, "sid": ["a", "b", "c", "d"]}
    properties |= {"chromosome": ["1"] * 4, "bp_position": [1, 2, 3, 4]}
    properties |= {"allele_1": ["A"] * 4, "allele_2": ["C"] * 4}
    to_bed(tmp_path / "c.bed", values, properties=properties)
    for bits in (8, 16):
        command = [
            plink,
            "--bfile",
            tmp_path / "c",
            "--out",
            tmp_path / f"out{bits}",
            "--threads",
            "1",
        ]
        command += ["--export", "bgen-1.2", f"bits={bits}"]
        subprocess.run(command, check=True, capture_output=True)
        columns = open_bgen(tmp_path / f"out{bits}.bgen")
        alleles = [columns.variants.counted[0] == "A" for _ in range(4)]
        expected = np.where(alleles, values, 2 - values)
        np.testing.assert_allclose(read_columns(columns), expected, atol=1e-6)
        given = open_bgen(tmp_path / f"out{bits}.bgen", sample=tmp_path / f"out{bits}.sample")
        assert given.ids().tolist() == WHO
        np.testing.assert_array_equal(read_columns(given), read_columns(columns))


def test_missing_phased_and_haploid_genotypes(tmp_path):
    three = np.eye(3)[[0, 1, 2, 2, 1, 0, 0]]
    three[3] = np.nan
    phased = np.array([[1, 0, 0, 1]] * N, dtype=float)  # 0|1
    phased[0] = [0, 1, 0, 1]
    ploidy = np.array([2, 1, 1, 2, 2, 2, 2], dtype=np.uint8)
    some = three.copy()
    some[1], some[2] = [1, 0, np.nan], [0, 1, np.nan]
    variants = [
        {"genotypes": three},
        {"genotypes": phased, "phased": True},
        {"genotypes": some, "ploidy": ploidy, "chrom": "X"},
    ]
    found = read_columns(open_bgen(write(tmp_path / "c.bgen", variants=variants)))
    nan = np.nan
    np.testing.assert_array_equal(found[:, 0], [0, 1, 2, nan, 1, 0, 0])
    np.testing.assert_array_equal(found[:, 1], [2, 1, 1, 1, 1, 1, 1])
    # A man's one copy counts twice, as PLINK stores it.
    np.testing.assert_array_equal(found[:, 2], [0, 0, 2, nan, 1, 0, 0])


def test_other_numbers_of_copies_are_refused(tmp_path):
    triploid = {"genotypes": np.eye(4)[[0] * N], "ploidy": 3}
    columns = open_bgen(write(tmp_path / "c.bgen", variants=[{}, triploid]))
    with pytest.raises(
        InputError, match=r"variant rs1 has genotypes of neither one nor two copies.*exclude"
    ):
        read_columns(columns)
    np.testing.assert_array_equal(read_columns(columns.select([0]))[:, 0], CALLS[:, 0])


def test_several_alleles_are_refused_or_skipped(tmp_path):
    many = {"alleles": ["C", "A", "T"], "genotypes": np.eye(6)[[0] * N]}
    path = write(tmp_path / "c.bgen", variants=[{}, many])
    (tmp_path / "y").write_text("IID y\n" + "".join(f"{who} 1\n" for who in WHO))
    with pytest.raises(InputError, match="rs1 has several ALT alleles"):
        open_cohort(bgen=path, pheno=tmp_path / "y")
    cohort = open_cohort(bgen=path, pheno=tmp_path / "y", multiallelic="skip")
    assert cohort.variants.names == ("rs0",)


def test_the_order_of_the_sample_file_is_checked(tmp_path):
    path = write(tmp_path / "c.bgen")
    right = open_bgen(path, sample=write_sample(tmp_path / "right.sample"))
    assert right.ids().tolist() == WHO
    joined = [f"F_{who}" for who in WHO]
    named = open_bgen(
        write(tmp_path / "j.bgen", samples=joined),
        sample=write_sample(tmp_path / "f.sample", families=["F"] * N),
    )
    assert named.ids().tolist() == WHO
    assert named.other_ids().tolist() == joined
    swapped = open_bgen(path, sample=write_sample(tmp_path / "swapped.sample", who=WHO[::-1]))
    with pytest.raises(InputError, match="in the order of that file") as refused:
        swapped.ids()
    short = write_sample(tmp_path / "short.sample", who=WHO[1:])
    with pytest.raises(InputError, match="in the order of that file") as fewer:
        open_bgen(path, sample=short)
    for error in (refused.value, fewer.value):
        assert "SENTINEL" not in str(error)
        assert not {"6", "7"} & set(str(error).replace(str(tmp_path), "").split())


def test_the_sample_file_beside_it_is_found(tmp_path):
    path = write(tmp_path / "c.bgen", samples=())
    with pytest.raises(InputError, match=r"does not name its people.*c\.sample.*sample"):
        open_bgen(path)
    write_sample(tmp_path / "c.sample")
    assert open_bgen(path).ids().tolist() == WHO
    (tmp_path / "q.sample").write_text("ID sex\n0 D\n" + "".join(f"{who} 1\n" for who in WHO))
    assert open_bgen(path, sample=tmp_path / "q.sample").people().fid is None
    (tmp_path / "bad.sample").write_text("".join(f"{who} {who}\n" for who in WHO))
    with pytest.raises(InputError, match=r"is not a \.sample file") as refused:
        open_bgen(path, sample=tmp_path / "bad.sample")
    assert "SENTINEL" not in str(refused.value)


def test_an_index_beside_the_file_is_not_read(tmp_path):
    """The writer makes one; a false one would give other variants' genotypes."""
    path = write(tmp_path / "c.bgen")
    (tmp_path / "c.bgen.bgi").write_bytes(b"no index at all")
    np.testing.assert_array_equal(read_columns(open_bgen(path)), CALLS)


def test_old_versions_and_broken_files_are_refused(tmp_path):
    old = write(tmp_path / "old.bgen", layout=1, samples=(), compression="zlib")
    with pytest.raises(InputError, match=r"version 1\.1 or older.*bgen-1\.2"):
        open_bgen(old)
    (tmp_path / "text.bgen").write_text("this is no bgen file, but some text of some length")
    with pytest.raises(InputError, match="not a BGEN file"):
        open_bgen(tmp_path / "text.bgen")
    with pytest.raises(InputError, match="there is no file"):
        open_bgen(tmp_path / "none.bgen")
    content = write(tmp_path / "c.bgen").read_bytes()
    (tmp_path / "cut.bgen").write_bytes(content[:-30])
    with pytest.raises(InputError, match="truncated or corrupt"):
        read_columns(open_bgen(tmp_path / "cut.bgen"))


def test_the_package_logs_nothing_about_people(tmp_path, caplog):
    """Probabilities that sum to more than one make the package log which variant has them."""
    path = write(tmp_path / "c.bgen", compression=None, variants=[{}])
    content = bytearray(path.read_bytes())
    content[-2:] = b"\xff\xff"  # both stored probabilities of the last person
    (tmp_path / "bad.bgen").write_bytes(bytes(content))
    with caplog.at_level(logging.DEBUG):
        loud = [v.alt_dosage for v in bgen.BgenReader(str(tmp_path / "bad.bgen"))]
        assert "rs0" in caplog.text  # so the test can fail
        caplog.clear()
        found = read_columns(open_bgen(tmp_path / "bad.bgen"))
    np.testing.assert_array_equal(found[:, 0], loud[0])
    assert not caplog.text
    with caplog.at_level(logging.DEBUG):
        logging.getLogger().warning("others may log")
    assert "others may log" in caplog.text


def test_a_bgen_can_be_a_public_panel(tmp_path):
    found = frequencies_of_panel(write(tmp_path / "c.bgen"))
    np.testing.assert_allclose(found.frequency, CALLS.mean(axis=0) / 2)
