"""Private values stay where they are: known ones are planted, everything is made to fail, and
whatever anybody could see (output, logs, warnings, tracebacks, reprs) is searched for them."""

import gzip
import logging
import os
import re
import subprocess
import sys
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import primo
from primo.cli import main
from primo.ledger import create_ledger
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.budget import Budget
from primo.rows.person_tokens import sketch
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.arrays.zarr import open_zarr
from primo.rows.sources.genotypes.cohort import open_cohort
from primo.rows.sources.tabular.tables import open_table, table_source
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare, release_rows

WHO = "SENTINEL-PERSON-77"
SENTINELS = (WHO, "SENTINEL", "7654.321", "7654", "SENTI")


def without_digests(text):
    """Leave out random ids and digests: one in a few hundred holds the four digits by chance."""
    return re.sub(r"\b[0-9a-f]{32,}\b", "", text)


N = 40
PEOPLE = [f"p{i:02d}" for i in range(N)]
PEOPLE[17] = WHO


def values(columns=3):
    rng = np.random.default_rng(9)
    found = np.round(rng.uniform(-1, 1, size=(N, columns)), 3)
    found[17] = 7654.321
    return found


class Watch:
    """Everything that somebody could see while a block ran."""

    def __init__(self, capfd, caplog):
        self.capfd, self.caplog = capfd, caplog
        self.texts, self.errors = [], []

    @contextmanager
    def looking(self):
        self.caplog.set_level(logging.DEBUG)
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            try:
                yield self
            except (Exception, KeyboardInterrupt) as error:
                self.errors.append(error)
                self.texts.append("".join(traceback.format_exception(error)))
        self.texts += [str(warning.message) for warning in noticed]
        self.texts += [record.getMessage() for record in self.caplog.records]
        self.texts += [record.exc_text or "" for record in self.caplog.records]
        self.texts += list(self.capfd.readouterr())
        for text in self.texts:
            for word in SENTINELS:
                assert word not in without_digests(text), f"{word!r} leaked:\n{text}"


@pytest.fixture
def tmp_path(tmp_path_factory):
    """Give a folder whose name does not repeat the parameters of a test, as pytest's does."""
    return tmp_path_factory.mktemp("case")


@pytest.fixture
def watch(capfd, caplog):
    return Watch(capfd, caplog)


BOUNDS = {
    "feature_bounds": Bounds(lower=-1.0, upper=1.0),
    "outcome_bounds": Bounds(lower=-1.0, upper=1.0),
}


def fit(source):
    """Do all that is done with rows: look, charge by people, read, release; return what was made."""
    prepared = prepare(source, Settings(epsilon=1.0, delta=1e-6, **BOUNDS))
    return release_rows(source, prepared, bits=RandomBits.fresh())


# Tables in every format, whole ones and broken ones.


def frame(cell=None):
    table = pd.DataFrame(values(), columns=["x0", "x1", "y"])
    if cell is not None:
        table["x1"] = table["x1"].astype(object)
        table.loc[17, "x1"] = cell
    table.insert(0, "id", PEOPLE)
    return table


def write(folder, kind, table):
    path = folder / f"table.{kind}"
    if kind == "csv":
        table.to_csv(path, index=False)
    elif kind == "tsv":
        table.to_csv(path, index=False, sep="\t")
    elif kind == "csv.gz":
        path.write_bytes(gzip.compress(table.to_csv(index=False).encode()))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(table), path)
    elif kind == "feather":
        pyarrow.feather.write_feather(pa.Table.from_pandas(table), path, compression="uncompressed")
    return path


KINDS = ["csv", "tsv", "csv.gz", "parquet", "feather"]


def cut(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])


def garble(path, by=b"SENTINEL-\xff\xfe-77"):
    path.write_bytes(path.read_bytes().replace(WHO.encode(), by))


def break_table(path, way):
    text = path.read_bytes()
    if way == "ragged":
        path.write_bytes(text.replace(WHO.encode(), WHO.encode() + b",1,2,3\t4"))
    elif way == "quote":
        path.write_bytes(text.replace(WHO.encode(), b'"' + WHO.encode()))
    elif way == "utf8":
        garble(path)
    elif way == "nul":
        garble(path, by=b"SENTI\0NEL")
    elif way == "headless":
        path.write_bytes(text.split(b"\n", 18)[-1])
    elif way == "unicode number":
        path.write_bytes(text.replace(b"7654.321", b"7654\xc2\xb2"))
    elif way == "long number":
        path.write_bytes(text.replace(b"7654.321", b"7654.321" * 9000))
    elif way == "overflow":
        path.write_bytes(text.replace(b"7654.321", b"7654.321e999"))
    elif way == "cut":
        cut(path, 0.5)
    elif way == "cut late":
        cut(path, 0.97)


WAYS = ["ragged", "quote", "utf8", "nul", "headless", "unicode number", "long number", "overflow"]
WAYS += ["cut", "cut late"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_broken_tables(tmp_path, watch, kind, way):
    path = write(tmp_path, kind, frame())
    break_table(path, way)
    with watch.looking():
        source = table_source(path, features=["x0", "x1"], outcomes=["y"], id_column="id")
        repr(source)
        key = create_ledger(tmp_path / "l", limit=Budget(epsilon=1, delta=1e-6)).key
        repr(sketch(source, key))
        repr(fit(source))


@pytest.mark.parametrize("cell", [WHO, "7654.321x", None, "NA", [7654.321], b"7654.321"])
@pytest.mark.parametrize("kind", KINDS)
def test_cells_that_are_no_numbers(tmp_path, watch, kind, cell):
    if cell in (None, "NA"):
        table = frame()
        table.loc[17, "x1"] = np.nan
    else:
        table = frame(cell)
        table["x1"] = [str(value) if isinstance(cell, str) else value for value in table["x1"]]
    try:
        path = write(tmp_path, kind, table)
    except Exception:
        pytest.skip("the format does not hold such a column")
    with watch.looking():
        fit(table_source(path, features=["x0", "x1"], outcomes=["y"]))
    assert watch.errors


@pytest.mark.parametrize("make", [lambda t: t, polars.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("cell", [WHO, "7654.321x", np.nan])
def test_frames(watch, make, cell):
    table = frame(cell)
    if isinstance(cell, str):
        table["x1"] = table["x1"].astype(str)
    else:
        table["x1"] = table["x1"].astype(float)
    with watch.looking():
        fit(table_source(make(table), features=["x0", "x1"], outcomes=["y"], id_column="id"))
    assert watch.errors


def test_people_who_are_there_twice(tmp_path, watch):
    first, second = frame(), frame()[["id", "y"]].rename(columns={"y": "z"})
    second.loc[3, "id"] = WHO
    for name, table in (("a.csv", first), ("b.csv", second)):
        table.to_csv(tmp_path / name, index=False)
    with watch.looking():
        table_source(
            tmp_path / "a.csv",
            features=["x0"],
            outcomes=["z"],
            outcomes_table=tmp_path / "b.csv",
            id_column="id",
        )
    assert watch.errors


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("ids", ["float", "binary", "list"])
def test_ids_of_other_kinds(tmp_path, watch, kind, ids):
    labels = {
        "float": [7654.321] * N,
        "binary": [b"SENTINEL\xff"] * N,
        "list": [[WHO]] * N,
    }[ids]
    table = pa.table({"id": labels, "x": values()[:, 0], "y": values()[:, 1]})
    path = tmp_path / f"t.{kind}"
    (pq.write_table if kind == "parquet" else pyarrow.feather.write_feather)(table, path)
    with watch.looking():
        open_table(path, id_column="id").ids()
    assert watch.errors


# Genotypes.


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


# Faults in the middle, seen from outside.


class Breaking:
    """Rows that fail after some were read."""

    feature_names, outcome_names, n = ("x0", "x1"), ("y",), N

    def __init__(self, error):
        self.error = error

    def ids(self):
        return np.array(PEOPLE)

    def part(self, start, stop):
        raise self.error

    def blocks(self, rows):
        from primo.rows.sources.base import Block

        yield Block(features=values()[:20, :2], outcomes=values()[:20, 2:])
        raise self.error


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), MemoryError(), OSError(28, "No space left", "f")]
)
def test_interrupted_in_the_middle(watch, error):
    with watch.looking():
        fit(Breaking(error))
    assert watch.errors == [error]


def command(line, folder, script="", **environment):
    """Run the command line in a process of its own, as a user does."""
    code = f"{script}\nfrom primo.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *line.split()],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


INTERRUPT = """
import primo.rows.moments as m
def fold(*a, **k): raise KeyboardInterrupt
import primo.workflow.pipeline as p
p.fold = fold
"""
FOREIGN = """
import primo.workflow.pipeline as p
def fold(source, *a, **k):
    raise RuntimeError(next(iter(source.blocks(40))).features.tolist(), source.ids().tolist())
p.fold = fold
"""


@pytest.mark.parametrize("script", ["", INTERRUPT, FOREIGN], ids=["text", "interrupt", "foreign"])
def test_the_command_line_from_outside(tmp_path, script):
    frame(None if script else WHO).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "b.toml").write_text(
        "[features]\nlower=-1\nupper=1\n[outcomes]\nlower=-1\nupper=1\n"
    )
    line = "fit --table t.csv --features x* --outcomes y --id-column id --bounds b.toml --epsilon 1"
    line += " --delta 1e-6 --out r --ledger l"
    assert command("ledger init l --epsilon 5 --delta 1e-6", tmp_path).returncode == 0
    done = command(line, tmp_path, script)
    assert done.returncode in (1, 2)
    seen = done.stdout + done.stderr
    seen += "".join(p.name for p in tmp_path.rglob("*"))
    seen += (tmp_path / ".r.primo-partial" / "job.json").read_text()
    for word in SENTINELS:
        assert word not in without_digests(seen), seen


def test_predictions_and_reprs(tmp_path, watch):
    table = frame()
    table.to_csv(tmp_path / "t.csv", index=False)
    release = fit(
        table_source(tmp_path / "t.csv", features=["x0", "x1"], outcomes=["y"], id_column="id")
    )
    primo.write_bundle(release, tmp_path / "b")
    table.loc[17, "x0"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    line = f"predict {tmp_path}/b --table {tmp_path}/t.csv --id-column id --out {tmp_path}/p.tsv"
    with watch.looking():
        result = CliRunner().invoke(main, line.split())
        watch.texts.append(result.output)
        assert result.exit_code == 2
        ledger = create_ledger(tmp_path / "l", limit=Budget(epsilon=1, delta=1e-6))
        source = table_source(tmp_path / "t.csv", features=["x0"], outcomes=["y"], id_column="id")
        people = sketch(source, ledger.key)
        blocks = list(source.blocks(7))
        for thing in (
            source,
            source.columns,
            source.columns.store,
            people,
            ledger,
            blocks,
            release,
        ):
            watch.texts += [repr(thing), str(thing), f"{thing}"]
        watch.texts.append(repr(ledger.key))
        assert ledger.key.secret.hex() not in repr(ledger.key)
    assert not (Path(tmp_path) / "p.tsv").exists()
