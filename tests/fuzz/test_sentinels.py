"""Private values stay where they are: known ones are planted, everything is made to fail, and
whatever anybody could see (output, logs, warnings, tracebacks, reprs) is searched for them."""

import gzip

import numpy as np
import polars
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from primo.ledger import create_ledger
from primo.privacy.budget import Budget
from primo.rows.person_tokens import sketch
from primo.rows.sources.tabular.tables import open_table, table_source
from sentinels import WHO, N, fit, frame, values


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
