"""Every reader on damaged files: an error of ours, or what an independent reader reads; nothing else."""

import csv
import gzip
import io
import subprocess

import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from factories import bed_properties
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import ZarrColumns, open_zarr
from primo.rows.sources.genotypes.bgen import open_bgen
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.phenotypes import open_phenotypes
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.rows.sources.genotypes.vcf_zarr import VcfZarrColumns, open_vcf_zarr
from primo.rows.sources.tabular.tables import open_table

PEOPLE, COLUMNS = 13, 5
PROFILE = settings(settings.get_profile("fuzz"))
NAMES = [f"column{j}" for j in range(COLUMNS)]
WHO = [f"SENTINEL-{i:02d}" for i in range(PEOPLE)]
SENTINEL = "SENTINEL"


def counts():
    rng = np.random.default_rng(3)
    return rng.integers(0, 3, size=(PEOPLE, COLUMNS))


def numbers():
    rng = np.random.default_rng(4)
    return np.round(rng.normal(size=(PEOPLE, COLUMNS)), 3)


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def bed(folder):
    from bed_reader import to_bed

    properties = bed_properties(WHO, WHO, COLUMNS)
    to_bed(folder / "cohort.bed", counts().astype(float), properties=properties)


def pgen(folder):
    import pgenlib

    with pgenlib.PgenWriter(
        str(folder / "cohort.pgen").encode(), PEOPLE, variant_ct=COLUMNS, nonref_flags=False
    ) as writer:
        for column in counts().T:
            writer.append_biallelic(np.ascontiguousarray(column, dtype=np.int8))
    lines = [f"1\t{j + 1}\trs{j}\tC\tA\n" for j in range(COLUMNS)]
    (folder / "cohort.pvar").write_text("#CHROM\tPOS\tID\tREF\tALT\n" + "".join(lines))
    (folder / "cohort.psam").write_text("#IID\tSEX\n" + "".join(f"{i}\tNA\n" for i in WHO))


def vcf_text():
    lines = [
        "##fileformat=VCFv4.2",
        "##contig=<ID=1>",
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        "#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t" + "\t".join(WHO),
    ]
    for j, column in enumerate(counts().T):
        calls = [("0|0", "0|1", "1|1")[count] for count in column]
        lines.append("\t".join(["1", str(j + 1), f"rs{j}", "C", "A", ".", ".", ".", "GT", *calls]))
    return "\n".join(lines) + "\n"


def vcf(folder):
    (folder / "cohort.vcf").write_text(vcf_text())


def vcf_fields(folder):
    text = vcf_text().replace(
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        '##FORMAT=<ID=DS,Number=A,Type=Float,Description="d">\n'
        '##FORMAT=<ID=GP,Number=G,Type=Float,Description="p">',
    )
    text = text.replace("\tGT\t", "\tDS:GP\t")
    for call, cell in {"0|0": "0:1,0,0", "0|1": "1:0,1,0", "1|1": "2:0,0,1"}.items():
        text = text.replace(call, cell)
    (folder / "cohort.vcf").write_text(text)


def bgen(folder):
    from bgen import BgenWriter

    with BgenWriter(str(folder / "cohort.bgen"), n_samples=PEOPLE, samples=WHO) as writer:
        for j, column in enumerate(counts().T):
            writer.add_variant(f"v{j}", f"rs{j}", "1", j + 1, ["C", "A"], np.eye(3)[column])


def bgen_sample(folder):
    from bgen import BgenWriter

    path = str(folder / "cohort.bgen")
    with BgenWriter(path, n_samples=PEOPLE, compression="zlib") as writer:
        for j, column in enumerate(counts().T):
            writer.add_variant(f"v{j}", f"rs{j}", "1", j + 1, ["C", "A"], np.eye(3)[column])
    rows = "".join(f"{who} {who} 0\n" for who in WHO)
    (folder / "cohort.sample").write_text("ID_1 ID_2 missing\n0 0 0\n" + rows)


def vcf_gz(folder):
    (folder / "cohort.vcf.gz").write_bytes(gzip.compress(vcf_text().encode(), mtime=0))


def bcf(folder):
    if not _has_bcftools():
        pytest.skip("bcftools is not installed")
    command = ["bcftools", "view", "-Ob", "-o", folder / "cohort.bcf", "-"]
    subprocess.run(command, input=vcf_text().encode(), check=True, capture_output=True)


def _has_bcftools():
    import shutil

    return shutil.which("bcftools") is not None


def table():
    columns = {"id": WHO} | {name: numbers()[:, j] for j, name in enumerate(NAMES)}
    return pa.table(columns)


def csv_file(folder):
    pyarrow.csv.write_csv(table(), folder / "table.csv")


def csv_gz(folder):
    csv_file(folder)
    content = (folder / "table.csv").read_bytes()
    (folder / "table.csv").unlink()
    (folder / "table.csv.gz").write_bytes(gzip.compress(content, mtime=0))


def tsv(folder):
    options = pyarrow.csv.WriteOptions(delimiter="\t", quoting_style="none")
    pyarrow.csv.write_csv(table(), folder / "table.tsv", options)


def parquet(folder):
    pq.write_table(table(), folder / "table.parquet", row_group_size=5, compression="none")


def parquet_packed(folder):
    pq.write_table(table(), folder / "table.parquet", compression="snappy")


def feather(folder):
    pyarrow.feather.write_feather(table(), folder / "table.feather", compression="uncompressed")


def feather_packed(folder):
    pyarrow.feather.write_feather(table(), folder / "table.feather", compression="lz4")


def phenotypes(folder):
    head = "FID IID " + " ".join(NAMES)
    rows = (f"0 {who} {' '.join(map(str, row))}" for who, row in zip(WHO, numbers(), strict=True))
    (folder / "table.pheno").write_text("\n".join([head, *rows]) + "\n")


def npy(folder):
    np.save(folder / "table.npy", numbers())


def npy_fortran(folder):
    np.save(folder / "table.npy", np.asfortranarray(counts().astype(np.int8)))


def zarr_store(folder):
    import zarr

    array = zarr.create_array(
        folder / "table.zarr", shape=(PEOPLE, COLUMNS), chunks=(5, 3), dtype="f8", zarr_format=3
    )
    array[:] = numbers()


def zarr_2(folder):
    import zarr

    array = zarr.create_array(
        folder / "table.zarr", shape=(PEOPLE, COLUMNS), chunks=(5, 3), dtype="f8", zarr_format=2
    )
    array[:] = numbers()


def vcf_zarr(folder):
    import zarr

    group = zarr.open_group(folder / "cohort.vcz", mode="w", zarr_format=2)
    second = counts().T // 2
    calls = np.stack([counts().T - second, second], axis=2).astype(np.int8)
    fields = {
        "call_genotype": calls,
        "variant_contig": np.zeros(COLUMNS, dtype=np.int8),
        "variant_position": np.arange(1, COLUMNS + 1, dtype=np.int32),
        "contig_id": np.array([b"1"]),
        "sample_id": np.array([who.encode() for who in WHO]),
        "variant_id": np.array([f"rs{j}".encode() for j in range(COLUMNS)]),
        "variant_allele": np.array([[b"C", b"A"]] * COLUMNS),
    }
    for name, values in fields.items():
        group.create_array(name, data=values)


def read(columns):
    """Walk all rows and the ids."""
    if type(columns) in (ZarrColumns, VcfZarrColumns):  # an absent chunk is a chunk of zeros there
        assume(columns.n < 10**4)
    assert columns.n < 10**5, "a small file announces a huge number of rows"
    assert "private" in repr(columns)
    ids = columns.ids()
    assert ids is None or len(ids) == columns.n
    blocks = list(columns.blocks(range(columns.n), 4))
    values = np.concatenate(blocks).astype(np.float64)
    assert values.shape == (columns.n, len(columns.names))
    return values


def read_backwards(columns):
    return np.concatenate(list(columns.blocks(range(columns.n - 1, -1, -1), 4)))[::-1]


# What independent readers say; None where they refuse.


def bed_oracle(folder):
    from bed_reader import open_bed as other

    lines = (folder / "cohort.fam").read_bytes().removesuffix(b"\n").split(b"\n")
    if not all(line.strip() for line in lines):
        return None  # PLINK passes over empty lines and bed-reader counts them
    try:
        with other(folder / "cohort.bed", num_threads=1) as file:
            return file.read(dtype="float64")
    except Exception:
        return None


def csv_oracle(folder):
    path = next(folder.glob("table.*"))
    content = path.read_bytes()
    if path.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except Exception:
            return None
    cut = "\t" if ".tsv" in path.name else ","
    try:
        text = content.decode("utf-8-sig")
        lines = io.StringIO(text, newline="")
        rows = [row for row in csv.reader(lines, delimiter=cut, strict=True) if row]
        keep = [i for i, name in enumerate(rows[0]) if name.strip() not in ("", "id")]
        return np.array([[_cell(row[i]) for i in keep] for row in rows[1:]])
    except (ValueError, csv.Error, IndexError):
        return None


def _cell(text):
    if text in ("", "NA", "NaN", "nan", "null", "."):
        return np.nan
    if "_" in text:
        raise ValueError("Python reads 1_0, and nobody else does")
    return float(text)


def phenotype_oracle(folder):
    try:
        content = (folder / "table.pheno").read_bytes().removeprefix(b"\xef\xbb\xbf")
        lines = [[cell.decode() for cell in line.split()] for line in content.split(b"\n")]
        rows = [line for line in lines if line]
        keep = [i for i, name in enumerate(rows[0]) if name.lstrip("#") not in ("FID", "IID")]
        found = np.array([[_cell(row[i]) for i in keep] for row in rows[1:]])
    except (ValueError, IndexError):
        return None
    found[found == -9] = np.nan
    return found


def polars_oracle(folder):
    path = next(folder.glob("table.*"))
    try:
        if path.suffix == ".parquet":
            frame = polars.read_parquet(path)
        else:
            frame = polars.read_ipc(path.read_bytes())
        return frame.drop("id").cast(polars.Float64).fill_null(np.nan).to_numpy()
    except BaseException as error:  # a panic in Rust is a BaseException
        if isinstance(error, KeyboardInterrupt):
            raise
        return None


def npy_oracle(folder):
    try:
        return np.load(folder / "table.npy", allow_pickle=False).astype(np.float64)
    except Exception:
        return None


def zarr_oracle(folder):
    import zarr

    try:
        return zarr.open_array(folder / "table.zarr", mode="r")[:].astype(np.float64)
    except Exception:
        return None


def vcf_oracle(folder):
    """Count alleles in the text itself; None where a line is not as the format says."""
    content = next(folder.glob("cohort.vcf*")).read_bytes()
    try:
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        lines = content.decode().split("\n")
        head = next(line for line in lines if line.startswith("#CHROM"))
        width = len(head.split("\t"))
        rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
        if any(len(row) != width for row in rows):
            return None
        return np.array([_calls(row) for row in rows], dtype=np.float64).T
    except Exception:
        return None


def _calls(row):
    place = row[8].split(":").index("GT")
    found = []
    for cell in row[9:]:
        alleles = cell.split(":")[place].replace("|", "/").split("/")
        known = [np.nan if allele == "." else int(allele) for allele in alleles]
        found.append(sum(known) * (2 if len(known) == 1 else 1))
    return found


def vcf_zarr_oracle(folder):
    import zarr

    try:
        calls = zarr.open_group(folder / "cohort.vcz", mode="r")["call_genotype"][:].astype(float)
    except Exception:
        return None
    calls = np.where(calls == -2, calls[:, :, :1], calls)
    return np.where((calls < 0).any(axis=2), np.nan, calls.sum(axis=2)).T


CASES = {
    # name: (writer, opener, independent reader)
    "bed": (bed, lambda f: open_bed(f / "cohort"), bed_oracle),
    "pgen": (pgen, lambda f: open_pgen(f / "cohort"), None),
    "pgen-dosages": (pgen, lambda f: open_pgen(f / "cohort", dosages=True), None),
    "vcf": (vcf, lambda f: open_vcf(f / "cohort.vcf"), vcf_oracle),
    "vcf-haplotypes": (vcf, lambda f: open_vcf(f / "cohort.vcf", haplotypes=True), None),
    "vcf-gz": (vcf_gz, lambda f: open_vcf(f / "cohort.vcf.gz"), vcf_oracle),
    "vcf-ds": (vcf_fields, lambda f: open_vcf(f / "cohort.vcf", field="DS"), None),
    "vcf-gp": (vcf_fields, lambda f: open_vcf(f / "cohort.vcf", field="GP"), None),
    "bgen": (bgen, lambda f: open_bgen(f / "cohort.bgen"), None),
    "bgen-sample": (bgen_sample, lambda f: open_bgen(f / "cohort.bgen"), None),
    "bcf": (bcf, lambda f: open_vcf(f / "cohort.bcf"), None),
    "csv": (csv_file, lambda f: open_table(f / "table.csv", id_column="id"), csv_oracle),
    "csv-gz": (csv_gz, lambda f: open_table(f / "table.csv.gz", id_column="id"), csv_oracle),
    "tsv": (tsv, lambda f: open_table(f / "table.tsv", id_column="id"), csv_oracle),
    "parquet": (parquet, lambda f: open_table(f / "table.parquet", id_column="id"), polars_oracle),
    "parquet-snappy": (
        parquet_packed,
        lambda f: open_table(f / "table.parquet", id_column="id"),
        polars_oracle,
    ),
    "feather": (feather, lambda f: open_table(f / "table.feather", id_column="id"), polars_oracle),
    "feather-lz4": (
        feather_packed,
        lambda f: open_table(f / "table.feather", id_column="id"),
        polars_oracle,
    ),
    "phenotypes": (phenotypes, lambda f: open_phenotypes(f / "table.pheno"), phenotype_oracle),
    "npy": (npy, lambda f: open_npy(f / "table.npy"), npy_oracle),
    "npy-fortran": (npy_fortran, lambda f: open_npy(f / "table.npy"), npy_oracle),
    "zarr": (zarr_store, lambda f: open_zarr(f / "table.zarr"), zarr_oracle),
    "zarr-2": (zarr_2, lambda f: open_zarr(f / "table.zarr"), zarr_oracle),
    "vcf-zarr": (vcf_zarr, lambda f: open_vcf_zarr(f / "cohort.vcz"), vcf_zarr_oracle),
}


@pytest.fixture(scope="session", params=CASES)
def case(request, tmp_path_factory):
    write, opener, oracle = CASES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    write(folder)
    return contents(folder), opener, oracle


@PROFILE
@given(data=st.data())
def test_a_damaged_file(fuzz, case, data):
    files, opener, oracle = case
    name = data.draw(st.sampled_from(sorted(files)))
    content = fuzz.damaged(files[name], data.draw(fuzz.edits))
    with fuzz.folder({**files, name: content}) as folder:
        found = None
        with fuzz.guarded(forbidden=[SENTINEL]):
            columns = opener(folder)
            found = read(columns)
            np.testing.assert_array_equal(found, read_backwards(columns))
        if found is not None and oracle is not None:
            expected = oracle(folder)
            if expected is not None:
                np.testing.assert_array_equal(found, expected)
