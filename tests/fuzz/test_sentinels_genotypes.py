"""Planted secrets in genotypes and arrays never reach a message, a warning or a log."""

import numpy as np
import pytest

import primo
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.cohort import open_cohort
from sentinels import BOUNDS, WHO, N, fit, values


def write_cohort(folder):
    """Write PLINK, VCF, PGEN (with pgenlib) files and phenotypes of the same people."""
    from primo.cli.demo import _write_bed

    rng = np.random.default_rng(1)
    genotypes = rng.integers(0, 3, size=(5000, 30)).astype(np.int8)  # the size of the demo's writer
    people = [f"p{i}" for i in range(5000)]
    people[77] = WHO
    (folder / "c.fam").write_text("".join(f"{who} {who} 0 0 0 -9\n" for who in people))
    (folder / "c.bim").write_text("".join(f"1 rs{j} 0 {j + 1} A G\n" for j in range(30)))
    _write_bed(folder / "c.bed", genotypes)
    outcomes = [7654.321 if who == WHO else i % 7 for i, who in enumerate(people)]
    rows = "".join(f"{who} {who} {y} 1\n" for who, y in zip(people, outcomes, strict=True))
    (folder / "c.pheno").write_text("FID IID y z\n" + rows)
    fixed = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT"]
    lines = [
        "##fileformat=VCFv4.2",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "\t".join([*fixed, *people[:100]]),
    ]
    for j, column in enumerate(genotypes[:100, :5].T):
        calls = [("0|0", "0|1", "1|1")[count] for count in column]
        lines.append("\t".join(["1", str(j + 1), f"rs{j}", "A", "G", ".", ".", ".", "GT", *calls]))
    (folder / "c.vcf").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort")
    write_cohort(folder)
    return folder


def copied(cohort, folder):
    for path in cohort.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("c.fam", WHO.encode(), b"p5"),
        ("c.fam", WHO.encode(), b"SENTINEL\xff\n"),
        ("c.fam", f"\n{WHO}".encode(), f"\n{WHO}\n{WHO}".encode()),
        ("c.pheno", f"{WHO} {WHO}".encode(), f"{WHO}".encode()),
        ("c.pheno", b"7654.321", b"7654.321.2"),
        ("c.pheno", b"7654.321", b"-9"),
        ("c.pheno", b"7654.321", WHO.encode()),
        ("c.pheno", b"7654.321", b"7654.321\xff"),
        ("c.pheno", WHO.encode(), b"p5"),
        ("c.pheno", b"FID IID y z\n", b""),
        ("c.pheno", b"FID IID y z\n", f"{WHO} {WHO} 7654.321 1\n".encode()),
    ],
)
def test_broken_plink_files(cohort, tmp_path, watch, name, old, new):
    folder = copied(cohort, tmp_path)
    content = (folder / name).read_bytes()
    assert old in content
    (folder / name).write_bytes(content.replace(old, new))
    with watch.looking():
        found = open_cohort(bfile=folder / "c", pheno=folder / "c.pheno")
        repr(found)
        fit(found.source)
    assert watch.errors


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\t1\trs0", b"\tSENTINEL-PERSON-77\trs0"),  # a position that is none
        (b"0|1", b"SENTINEL"),
        (b"0|1", b"7654|321"),
        (b"0|1", b"0|1\tSENTINEL"),
        (WHO.encode(), b"p5"),
        (WHO.encode(), b"SENTI\0NEL"),
        (WHO.encode(), b"SENTINEL\xff"),
        (WHO.encode(), b"SENTINEL\nSENTINEL-2\tSENTINEL"),
        (b"\tGT\t", b"\tSENTINEL\t"),
        (b"##FORMAT", b"##FORMAT=<SENTINEL"),
        (b"\t.\t.\t.\tGT", b"\tSENTINEL\tSENTINEL\tSENTINEL=7654\tGT"),
    ],
)
def test_broken_vcf(cohort, tmp_path, watch, old, new):
    pytest.importorskip("cyvcf2")
    folder = copied(cohort, tmp_path)
    content = (folder / "c.vcf").read_bytes()
    assert old in content
    (folder / "c.vcf").write_bytes(content.replace(old, new))
    with watch.looking():
        columns = open_cohort(vcf=folder / "c.vcf", pheno=folder / "c.pheno").source.features
        repr(columns)
        for _ in columns.blocks(range(columns.n), 7):
            pass


# Arrays.


def test_arrays(tmp_path, watch):
    zarr = pytest.importorskip("zarr")
    table = values()
    table[17, 1] = np.nan
    np.save(tmp_path / "x.npy", table)
    np.save(tmp_path / "text.npy", np.array([[WHO, "7654.321"]] * N))
    stored = zarr.create_array(tmp_path / "x.zarr", shape=table.shape, chunks=(7, 3), dtype="f8")
    stored[:] = table
    chunk = next(
        path for path in (tmp_path / "x.zarr").rglob("*") if path.name == "0" and path.is_file()
    )
    for opener, name in ((open_npy, "x.npy"), (open_npy, "text.npy"), (open_zarr, "x.zarr")):
        with watch.looking():
            columns = opener(tmp_path / name)
            repr(columns)
            list(columns.blocks(range(N), 7))
            primo.PrimoRegressor(epsilon=1.0, delta=1e-6, **BOUNDS).fit(table, table)
    chunk.write_bytes(b"7654.321 SENTINEL")
    with watch.looking():
        list(open_zarr(tmp_path / "x.zarr").blocks(range(N), 7))
    assert len(watch.errors) >= 4
