"""Parquet, Feather and frames: types, groups, compression."""

from pathlib import Path

import numpy as np
import pytest

from primo.errors import NotNumericError
from primo.rows.sources.tabular import parquet
from primo.rows.sources.tabular.tables import open_table
from table_files import SECRET, read, refused, write

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")
pl = pytest.importorskip("polars")


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
