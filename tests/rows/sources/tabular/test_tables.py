"""Tables against independent readers, and what is refused, and what a refusal may say."""

import csv
import gzip
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from primo.errors import InputError
from primo.rows.sources import ordered
from primo.rows.sources import spill as scratch
from primo.rows.sources.row_owners import check_rows_per_person as people_own
from primo.rows.sources.tabular.tables import open_table, table_source
from table_files import REAL, SECRET, read, refused, write

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")


# -- against independent readers ------------------------------------------------------------------


def real(name):
    if not (REAL / name).exists():
        pytest.skip("the shared data are not here")
    return REAL / name


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("ACSmobility_train.csv.gz", None),
        ("spi.csv.gz", None),
        ("CommViolPredUnnormalizedData.csv.gz", ["?"]),
        ("california_housing.csv.gz", None),
    ],
)
def test_real_files_agree_with_pandas(name, missing, tmp_path):
    path = real(name)
    frame = pd.read_csv(path, na_values=missing)
    numeric = list(frame.select_dtypes("number").columns)
    columns = open_table(path, columns=numeric, missing=missing)
    assert columns.n == len(frame)
    expected = frame[numeric].to_numpy(dtype=np.float64)
    # Some versions of pandas read the last bit of a decimal number otherwise.
    np.testing.assert_allclose(read(columns), expected, rtol=1e-15)
    order = np.random.default_rng(0).permutation(len(frame))[:500]
    np.testing.assert_array_equal(read(columns, order), read(columns)[order])
    frame.to_parquet(tmp_path / "same.parquet", row_group_size=777)
    frame.to_feather(tmp_path / "same.feather")
    for again in (
        tmp_path / "same.parquet",
        tmp_path / "same.feather",
        frame,
        pl.from_pandas(frame),
    ):
        np.testing.assert_array_equal(read(open_table(again, columns=numeric)), expected)


def test_a_real_file_agrees_with_the_csv_module():
    path = real("california_housing.csv.gz")
    with gzip.open(path, "rt", newline="") as file:
        rows = [row[:9] for row in csv.reader(file)]
    expected = [[float(cell) if cell else np.nan for cell in row] for row in rows[1:]]
    columns = open_table(path, columns=rows[0])
    np.testing.assert_array_equal(read(columns), np.array(expected))


# -- opening ----------------------------------------------------------------------------------------


def test_what_cannot_be_opened(tmp_path):
    assert "there is no file" in refused(lambda: open_table(tmp_path / "none.csv"))
    (tmp_path / "folder.parquet").mkdir()
    assert "folder" in refused(lambda: open_table(tmp_path / "folder.parquet"))
    for name in ("t.xlsx", "noending", "t.parquet.gz"):
        message = refused(lambda name=name: open_table(write(tmp_path / name, "x")))
        assert ".parquet" in message
        assert ".csv" in message
    assert "lazy" in refused(lambda: open_table(pl.DataFrame({"a": [1]}).lazy()))
    assert "expected a table, got list" in refused(lambda: open_table([1, 2]))
    assert "expected a table" in refused(lambda: open_table(pd.Series([1.0])))
    assert "no rows" in refused(lambda: open_table(pd.DataFrame({"a": []})))
    assert "more than once" in refused(
        lambda: open_table(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    )


def test_one_table(tmp_path):
    path = write(tmp_path / "t.csv", f"id,x1,x2,y\n{SECRET},1,2,3\nq,4,5,6\n")
    source = table_source(path, features="x*", outcomes="y", id_column="id")
    assert (source.feature_names, source.outcome_names) == (("x1", "x2"), ("y",))
    assert source.ids().tolist() == [SECRET, "q"]
    assert table_source(path, features="x*", outcomes="y").ids() is None
    overlap = refused(lambda: table_source(path, features=["x1", "y"], outcomes="y"))
    assert "'y'" in overlap
    assert "id columns" in refused(
        lambda: table_source(path, features="x*", outcomes="y", id_column="iid")
    )
    twice = write(tmp_path / "twice.csv", f"id,x,y\n{SECRET},1,2\n{SECRET},4,5\n")
    source = table_source(twice, features="x", outcomes="y", id_column="id")
    assert "at most one row" in refused(lambda: people_own(source, 1))


def test_two_tables(tmp_path):
    x = write(tmp_path / "x.csv", f"id,a,b\n{SECRET},1,2\nq,4,5\nr,7,8\n")
    y = write(tmp_path / "y.tsv", f"id\ty\nr\t70\n{SECRET}\t10\nother\t0\n")
    both = {"features": ["a", "b"], "outcomes": "y", "outcomes_table": y}
    source = table_source(x, **both, id_column="id")
    assert source.n == 2
    block = next(pickle.loads(pickle.dumps(source)).blocks(10))
    np.testing.assert_array_equal(block.features, [[1, 2], [7, 8]])
    np.testing.assert_array_equal(block.outcomes, [[10], [70]])
    assert "same_order" in refused(lambda: table_source(x, **both))
    plain = table_source(x, **both, same_order=True)
    np.testing.assert_array_equal(next(plain.blocks(10)).outcomes, [[70], [10], [0]])
    assert "not both" in refused(lambda: table_source(x, **both, id_column="id", same_order=True))
    short = {**both, "outcomes_table": write(tmp_path / "s.csv", "id,y\nr,1\n")}
    assert "3 rows" in refused(lambda: table_source(x, **short, same_order=True))
    named = open_table(write(tmp_path / "n.csv", f"eid,y\n{SECRET},5\n"), id_column="eid")
    left = open_table(x, id_column="id")
    assert table_source(left, features="a", outcomes="y", outcomes_table=named).n == 1


def test_the_wider_table_leads(tmp_path):
    """So that the narrow one goes through scratch."""
    x = write(tmp_path / "x.csv", "id,a\np,1\nq,2\nr,3\n")
    y = write(tmp_path / "y.csv", "id,y,z\nr,1,1\np,2,2\nq,3,3\n")
    source = table_source(x, features="a", outcomes=["y", "z"], outcomes_table=y, id_column="id")
    assert source.outcome_rows == range(3)
    assert not ordered.is_increasing(source.feature_rows)


# -- scratch and memory -----------------------------------------------------------------------------


def test_scratch_on_disk_has_no_name_and_gives_back_what_it_got(tmp_path, monkeypatch):
    monkeypatch.setattr(scratch, "MEMORY", 4096)
    values = np.random.default_rng(0).normal(size=(3000, 4))
    path = tmp_path / "t.csv"
    pd.DataFrame(values, columns=list("abcd")).to_csv(path, index=False)
    folder = tmp_path / "scratch"
    folder.mkdir()
    order = np.random.default_rng(1).permutation(3000)
    columns = open_table(path, scratch=folder)
    walk = columns.blocks(order, 100)
    blocks = [next(walk)]
    assert list(folder.iterdir()) == []
    blocks += walk
    np.testing.assert_array_equal(np.concatenate(blocks), values[order])


def test_scratch_without_room_says_how_much(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"9313\.23 GB of scratch space in .*TMPDIR"):
        scratch.Scratch((10**9, 1250), np.float64, tmp_path)
    with pytest.raises(InputError, match="another folder"):
        scratch.Scratch((10**5, 100), np.float64, tmp_path / "absent")
    assert "(private)" in repr(scratch.Scratch((2, 2), np.float64))


PEAK = """
import sys
from primo.rows.sources.tabular.fast import compiled_for
from primo.rows.sources.tabular.tables import open_table

def peak():  # of this program alone; getrusage would begin with the peak of its parent
    status = open("/proc/self/status").read()
    return int(status.split("VmHWM:")[1].split()[0])

compiled_for(1, many=1)  # which takes as much memory for any number of rows
columns = open_table(sys.argv[1], scratch=sys.argv[2])
before = peak()
for order in (range(columns.n), range(columns.n - 1, -1, -1)):
    assert sum(len(block) for block in columns.blocks(order, 500)) == columns.n
print(peak() - before)
"""


def grown(path):
    """Return by how many MB a walk forwards and one backwards raise the peak of a process."""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs Linux to measure memory")
    command = [sys.executable, "-c", PEAK, path, path.parent]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stdout) / 1024


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["text", "small groups", "one group", "one batch"])
def test_memory_does_not_grow_with_the_rows(tmp_path, kind):
    """Five times the rows (48 and 240 MB of numbers) take the same memory, give or take 100 MB.

    Groups and batches read with all their columns at once would take all the rows' more.
    """
    names = [f"v{i}" for i in range(100)]
    peaks = []
    for n in (60_000, 300_000):
        path = tmp_path / f"{n}.{'csv' if kind == 'text' else 'parquet'}"
        if kind == "text":
            row = ",".join(f"{i / 7:.6f}" for i in range(100)) + "\n"
            with path.open("w") as file:
                file.write(",".join(names) + "\n")
                file.writelines(row * 1000 for _ in range(n // 1000))
        else:
            rng = np.random.default_rng(0)
            table = pa.table({name: rng.normal(size=n) for name in names})
            if kind == "one batch":
                path = path.with_suffix(".feather")
                feather.write_feather(table, path, compression="lz4", chunksize=n)
            else:
                pq.write_table(table, path, row_group_size=15_000 if kind == "small groups" else n)
        peaks.append(grown(path))
        path.unlink()
    assert peaks[1] < peaks[0] + 100, peaks
