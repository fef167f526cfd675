"""Tables against independent readers, and what is refused, and what a refusal may say."""

import csv
import gzip
import pickle
import subprocess
import sys
import traceback
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from experiments.data import SHARED
from primo.errors import InputError, NotNumericError
from primo.rows.sources import ordered
from primo.rows.sources import spill as scratch
from primo.rows.sources.row_owners import check_rows_per_person as people_own
from primo.rows.sources.tabular import parquet, text
from primo.rows.sources.tabular.tables import open_table, table_source

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

REAL = SHARED / "social_multioutcome"
SECRET = "S3CRET"


def read(columns, order=None, rows=1000):
    order = range(columns.n) if order is None else order
    return np.concatenate(list(columns.blocks(order, rows))).astype(np.float64)


def refused(action, *, kind=InputError, secret=SECRET):
    """Return the message of a refusal, after checking that nothing private is in its traceback."""
    with pytest.raises(kind) as caught:
        action()
    shown = "".join(traceback.format_exception(caught.value))
    assert secret not in shown
    assert "Arrow" not in type(caught.value.__context__).__name__
    return str(caught.value)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


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


# -- text -------------------------------------------------------------------------------------------


def test_spellings_of_numbers_and_of_missing(tmp_path):
    path = write(
        tmp_path / "t.csv",
        'a,b\n1, 2.5\n"3",+4e1\nNA,-.5\n,nan\nNaN,null\n.,1e400\n',
    )
    expected = [[1, 2.5], [3, 40], [np.nan, -0.5], [np.nan] * 2, [np.nan] * 2, [np.nan, np.inf]]
    np.testing.assert_array_equal(read(open_table(path)), expected)


def test_numbers_that_mean_missing_do_so_in_any_spelling(tmp_path):
    path = write(tmp_path / "t.txt", "IID y z\nA -9 1\nB -9.0 NA\nC 9 -9.5\n")
    columns = text.open_text(path, id_column="IID", missing=text.PLINK_MISSING)
    expected = [[np.nan, 1], [np.nan, np.nan], [9, -9.5]]
    np.testing.assert_array_equal(read(columns), expected)
    frame = pd.DataFrame({"y": [-9, 2]})
    np.testing.assert_array_equal(read(open_table(frame, missing=["-9"])), [[np.nan], [2]])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("tail", ["", "end", "blank lines"])
def test_line_ends(tmp_path, end, tail):
    body = end.join(["a,b", "1,2", "", "3,4"]) + {"": "", "end": end, "blank lines": end * 3}[tail]
    columns = open_table(write(tmp_path / "t.csv", body))
    assert columns.n == 2
    np.testing.assert_array_equal(read(columns), [[1, 2], [3, 4]])


def test_separators(tmp_path):
    assert open_table(write(tmp_path / "a.tsv", "a\tb c\n1\t2\n")).names == ("a", "b c")
    assert open_table(write(tmp_path / "b.txt", "a\tb c\n1\t2\n")).names == ("a", "b c")
    assert open_table(write(tmp_path / "c.txt", "a  b c\n1 2\t3\n")).names == ("a", "b", "c")
    assert open_table(write(tmp_path / "d.dat", "a;b\n1;2\n"), separator=";").names == ("a", "b")
    assert open_table(write(tmp_path / "e.csv", "\ufeffa,b\n1,2\n")).names == ("a", "b")
    message = refused(lambda: open_table(write(tmp_path / "f.csv", "a;b\n1;2\n")))
    assert "separator=';'" in message


def test_a_missing_cell_in_a_blank_separated_file_is_refused_not_shifted(tmp_path):
    path = write(tmp_path / "t.txt", f"IID a b\n{SECRET} 1 2\n{SECRET}2 1\n")
    assert "3 cells" in refused(lambda: read(open_table(path, columns=["a", "b"])))


def test_a_cell_that_is_no_number_is_not_shown(tmp_path):
    path = write(tmp_path / "t.csv", f"id,a,b\np,1,2\nq,3,{SECRET}\n")
    message = refused(lambda: read(open_table(path, columns=["b"])), kind=NotNumericError)
    assert "'b'" in message
    assert "t.csv" in message
    np.testing.assert_array_equal(read(open_table(path, columns=["a"])), [[1], [3]])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("", "is empty"),
        ("a,b\n", "no rows"),
        ("\n1,2\n", "header"),
        (f"a,b\n1,2\n{SECRET},2,3\n", "2 cells"),
        (f"a,b\n1,2\n{SECRET}\n", "2 cells"),
        ("a,b,a\n1,2,3\n", "'a' is in t.csv more than once"),
        ("0.5,1,2\n1,2,3\n", "looks like a row"),
        (f"FAM,{SECRET},1.5,NA,x\nq,r,2,3,1\n", "looks like a row"),
        (f"{SECRET},NA,1,NA\nq,2,3,1\n", "looks like a row"),
        (f"{SECRET},0,1,0\nq,2,3,1\n", "looks like a row"),
        (b"a,b\xff\n1,2\n", "UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\0\0", "Excel"),
        ("a,b\nUTF8,2\n", "not a number"),
        ("a,b\r1,2\r", "carriage return"),
        (f'a,b\n1,"{SECRET}\n', "not closed"),
        (f'a,b\n1,"{SECRET}\nx"\n', "line break"),
    ],
)
def test_texts_that_are_refused(tmp_path, body, words):
    path = write(tmp_path / "t.csv", body)
    assert words in refused(lambda: read(open_table(path).select("a")))


def test_ids_must_be_text(tmp_path):
    path = write(tmp_path / "t.csv", b"id,a\n\xff\xfe" + SECRET.encode() + b",1\n")
    assert "UTF-8" in refused(open_table(path, id_column="id").ids)


def test_headers_of_whole_numbers_are_names(tmp_path):
    assert open_table(write(tmp_path / "t.csv", "0,1,2\n5,6,7\n")).names == ("0", "1", "2")


def test_truncated_and_mislabelled_gzip(tmp_path):
    packed = gzip.compress(b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(9999)))
    cut = write(tmp_path / "cut.csv.gz", packed[: len(packed) // 2])
    assert "truncated" in refused(lambda: open_table(cut))
    bad = bytearray(packed)
    bad[len(bad) // 2] ^= 255
    assert "damaged" in refused(lambda: open_table(write(tmp_path / "bad.csv.gz", bytes(bad))))
    plain = write(tmp_path / "plain.csv.gz", "a,b\n1,2\n")
    assert "gzip" in refused(lambda: open_table(plain))


def test_a_file_that_changed_is_refused(tmp_path):
    path = write(tmp_path / "t.csv", "a,b\n1,2\n")
    columns = open_table(path)
    write(path, "a,b\n1,2\n3,4\n")
    assert "changed" in refused(lambda: read(columns))


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "pandas", "polars"])
def test_blanks_around_an_id_make_no_other_person(tmp_path, kind):
    columns = {"id": ["a", " b", "c\u00a0", "B"], "x": [1.0, 2, 3, 4], "y": [1.0, 2, 3, 5]}

    def made(table, name):
        frame = pd.DataFrame(table)
        path = tmp_path / f"{name}.{kind}"
        if kind == "csv":
            frame.to_csv(path, index=False)
        elif kind == "parquet":
            frame.to_parquet(path)
        elif kind == "feather":
            frame.to_feather(path)
        else:
            return frame if kind == "pandas" else pl.DataFrame(table)
        return path

    chosen = {"features": "x", "outcomes": "y", "id_column": "id"}
    source = table_source(made(columns, "t"), **chosen)
    assert source.ids().tolist() == ["a", "b", "c", "B"]
    twice = made(columns | {"id": ["a", "b", "c", "a\t "]}, "twice")
    assert "at most one row" in refused(lambda: people_own(table_source(twice, **chosen), 1))
    people_own(table_source(twice, **chosen), 2)


def test_blanks_in_the_index_of_a_frame():
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["a ", "b"])
    assert open_table(frame).ids().tolist() == ["a", "b"]


@pytest.mark.parametrize("apart", [False, True])
def test_an_index_that_names_somebody_twice(apart):
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 4.0]}, index=[SECRET, f"{SECRET} "])
    other = {"outcomes_table": frame[["y"]], "same_order": True} if apart else {}
    source = table_source(frame, features="x", outcomes="y", **other)
    assert "at most one row" in refused(lambda: people_own(source, 1))


# -- typed files and frames -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_truncated_and_foreign_files(tmp_path, suffix):
    frame = pd.DataFrame({"a": np.arange(999.0), "who": [SECRET] * 999})
    path = tmp_path / f"t.{suffix}"
    getattr(frame, f"to_{suffix}")(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], whole[:20], b"a,b\n1,2\n", b"PAR1PAR1"):
        cut = write(tmp_path / f"cut.{suffix}", content)
        assert "file: it is" in refused(lambda cut=cut: open_table(cut))
    holes = bytearray(whole)
    holes[8:4000] = b"\xff" * 3992
    damaged = write(tmp_path / f"damaged.{suffix}", bytes(holes))
    assert "damaged" in refused(lambda: read(open_table(damaged, columns=["a"])))


@pytest.mark.parametrize("how", ["parquet", "feather", "pandas", "polars", "category"])
def test_columns_of_text_are_refused_by_their_type(tmp_path, how):
    frame = pd.DataFrame({"a": [1.0, 2.0], "t": [SECRET, "x"]})
    table = {
        "parquet": tmp_path / "t.parquet",
        "feather": tmp_path / "t.feather",
        "pandas": frame,
        "polars": pl.from_pandas(frame),
        "category": frame.astype({"t": "category"}),
    }[how]
    if isinstance(table, Path):
        getattr(frame, f"to_{how}")(table)
    message = refused(lambda: open_table(table, columns=["t"]), kind=NotNumericError)
    assert "'t'" in message
    np.testing.assert_array_equal(read(open_table(table, columns="a")), [[1], [2]])


def test_objects_that_are_no_numbers_name_their_column():
    frame = pd.DataFrame({"a": [1.0, 2.0], "o": pd.Series([1, {SECRET}], dtype=object)})
    assert "'o'" in refused(lambda: read(open_table(frame)), kind=NotNumericError)


def test_dates_are_no_numbers():
    frame = pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    assert "'when'" in refused(lambda: open_table(frame, columns=["when"]), kind=NotNumericError)


def test_ids_of_frames():
    frame = pd.DataFrame({"a": [1.0, 2.0], "k": [7, 8], "f": [0.5, 1.5]})
    assert open_table(frame).ids() is None
    assert open_table(frame, id_column="k").ids().tolist() == ["7", "8"]
    assert open_table(frame.set_index("k")).ids().tolist() == ["7", "8"]
    assert open_table(frame.iloc[::-1]).ids() is not None
    assert "whole numbers" in refused(open_table(frame, id_column="f").ids)


def test_blocks_are_no_views_of_the_frame():
    frame = pd.DataFrame(np.zeros((40, 2)), columns=["a", "b"])
    block = next(open_table(frame).blocks(range(40), 10))
    assert not np.shares_memory(block, frame.to_numpy())


def test_narrow_types_stay_narrow(tmp_path):
    table = pa.table({"a": pa.array([1, None], pa.int8()), "b": pa.array([0.5, 1], pa.float32())})
    pq.write_table(table, tmp_path / "t.parquet")
    assert next(open_table(tmp_path / "t.parquet").blocks(range(2), 2)).dtype == np.float32


@pytest.mark.parametrize("compression", ["uncompressed", "lz4"])
def test_large_groups_are_read_a_few_columns_at_a_time(tmp_path, monkeypatch, compression):
    monkeypatch.setattr(parquet, "_GROUP", 1000)
    values = np.random.default_rng(0).normal(size=(300, 37))
    frame = pd.DataFrame(values, columns=[f"v{i}" for i in range(37)])
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=90)
    feather.write_feather(frame, tmp_path / "t.feather", compression=compression, chunksize=90)
    order = np.sort(np.random.default_rng(1).permutation(300)[:70])
    for suffix in ("parquet", "feather"):
        columns = open_table(tmp_path / f"t.{suffix}")
        np.testing.assert_array_equal(read(columns, rows=17), values)
        np.testing.assert_array_equal(read(columns, order[::-1], rows=17), values[order[::-1]])


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
@pytest.mark.parametrize("writer", ["arrow", "polars"])
def test_compressed_arrow_files_are_told_apart(tmp_path, compression, writer):
    table = pa.table({"a": np.arange(99.0), "t": pa.array(["x"] * 99).dictionary_encode()})
    path = tmp_path / "t.feather"
    if writer == "arrow":
        feather.write_feather(table, path, compression=compression)
    else:
        pl.from_arrow(table).write_ipc(path, compression=compression)
    columns = open_table(path, columns="a")
    assert (columns.store.at_once == 1) == (compression != "uncompressed")
    np.testing.assert_array_equal(read(columns)[:, 0], np.arange(99.0))


def test_an_arrow_file_without_rows(tmp_path):
    with pa.ipc.new_file(tmp_path / "t.arrow", pa.schema([("a", pa.float64())])):
        pass
    assert "no rows" in refused(lambda: open_table(tmp_path / "t.arrow"))


def test_pieces_of_groups(tmp_path, monkeypatch):
    """A group that is larger than a piece is converted in several."""
    monkeypatch.setattr(parquet, "_PIECE", 100)
    values = np.random.default_rng(0).normal(size=(200, 3))
    frame = pd.DataFrame(values, columns=list("abc"))
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=90)
    feather.write_feather(frame, tmp_path / "t.feather", chunksize=90)
    order = np.sort(np.random.default_rng(1).permutation(200)[:70])
    for suffix in ("parquet", "feather"):
        columns = open_table(tmp_path / f"t.{suffix}")
        np.testing.assert_array_equal(read(columns, rows=17), values)
        np.testing.assert_array_equal(read(columns, order, rows=17), values[order])


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
    assert "list is no table" in refused(lambda: open_table([1, 2]))
    assert "no table" in refused(lambda: open_table(pd.Series([1.0])))
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
    """So that it is the narrow one that takes the detour over scratch."""
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
