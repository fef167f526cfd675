"""Tables: text, Parquet, Arrow, frames."""

import gzip

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from primo.rows.sources.tabular import text
from primo.rows.sources.tabular.tables import open_table, table_source

N = 53
NAMES = ("a", "b", "c", "d e")


def cells():
    rng = np.random.default_rng(11)
    values = rng.normal(size=(N, len(NAMES))) * 3
    values[:, 1] = rng.integers(0, 3, N)
    values[rng.random(values.shape) < 0.1] = np.nan
    return values


def people():
    return [f"P{i:04d}" for i in np.random.default_rng(4).permutation(N)]


def lines(separator, missing="NA", names=NAMES):
    """Write the table as text, with numbers that read back to the same bits."""
    yield separator.join(["id", *(name.replace(" ", "_") for name in names)])
    for name, row in zip(people(), cells(), strict=True):
        yield separator.join([name, *(missing if np.isnan(c) else repr(float(c)) for c in row)])


def open_in_chunks(path, size):
    """Open a text table so that it is read in many chunks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "_CHUNK", size)
        columns = open_table(path, id_column="id")
    assert len(columns.store.starts) > 5
    return columns


def csv_file(folder):
    path = folder / "cohort.csv"
    path.write_text("\n".join(lines(",")) + "\n")
    return open_table(path, id_column="id"), cells(), people()


def csv_in_many_chunks(folder):
    path = folder / "cohort.csv"
    path.write_text("\r\n".join(lines(",", missing="")) + "\r\n\r\n")
    return open_in_chunks(path, 200), cells(), people()


def tsv_gz_in_many_chunks(folder):
    path = folder / "cohort.tsv.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(lines("\t", missing=".")))
    return open_in_chunks(path, 150), cells(), people()


def blanks_with_plink_codes(folder):
    path = folder / "cohort.pheno"
    header, *rows = lines("  ", missing="-9")
    body = [f" 0\t {row} " for row in rows]
    path.write_text("\n".join([f"#FID {header}", *body, "", ""]))
    columns = text.open_text(path, id_column=("FID", "id"), missing=text.PLINK_MISSING)
    return columns, cells(), [f"0\t{name}" for name in people()]


def some_columns_in_another_order(folder):
    path = folder / "cohort.csv"
    path.write_text("\n".join(lines(",")) + "\n")
    return open_table(path, columns=["c", "a*"]), cells()[:, [2, 0]], None


def _arrow_table():
    columns = {"id": people()}
    for j, name in enumerate(NAMES):
        columns[name] = pa.array(cells()[:, j], from_pandas=True)
    return pa.table(columns)


def parquet_in_groups(folder):
    parquet.write_table(_arrow_table(), folder / "cohort.parquet", row_group_size=10)
    return open_table(folder / "cohort.parquet", id_column="id"), cells(), people()


def parquet_of_narrow_types(folder):
    rng = np.random.default_rng(1)
    counts = pa.array(rng.integers(0, 3, N), pa.int8(), mask=rng.random(N) < 0.2)
    flags, halves = pa.array(rng.random(N) < 0.5), pa.array(rng.normal(size=N).astype(np.float32))
    table = pa.table({"counts": counts, "flags": flags, "halves": halves})
    parquet.write_table(table, folder / "narrow.parquet", row_group_size=7)
    expected = table.to_pandas().to_numpy(dtype=np.float64, na_value=np.nan)
    return open_table(folder / "narrow.parquet"), expected, None


def _feather(folder, compression):
    path = folder / "cohort.feather"
    feather.write_feather(_arrow_table(), path, compression=compression, chunksize=9)
    return open_table(path, id_column="id"), cells(), people()


def feather_mapped(folder):
    return _feather(folder, "uncompressed")


def feather_packed(folder):
    return _feather(folder, "lz4")


def arrow_table(folder):
    return open_table(_arrow_table(), id_column="id"), cells(), people()


def pandas_frame(folder):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(cells(), columns=NAMES, index=people())
    return open_table(frame), cells(), people()


def pandas_frame_of_mixed_types(folder):
    pd = pytest.importorskip("pandas")
    values = cells()
    frame = pd.DataFrame({"who": people(), "whole": pd.array(values[:, 1], dtype="Int64")})
    frame["truth"] = np.arange(N) % 3 == 0
    frame["object"] = pd.Series([None if np.isnan(x) else x for x in values[:, 0]], dtype=object)
    expected = np.column_stack([values[:, 1], np.arange(N) % 3 == 0, values[:, 0]])
    return open_table(frame, id_column="who"), expected, people()


def pandas_frame_of_small_integers(folder):
    pd = pytest.importorskip("pandas")
    counts = np.random.default_rng(8).integers(0, 3, size=(N, 3)).astype(np.int8)
    frame = pd.DataFrame(counts, columns=["s", "t", "u"])
    return open_table(frame, columns=["u", "s"]), counts[:, [2, 0]], None


def polars_frame(folder):
    pl = pytest.importorskip("polars")
    frame = pl.from_arrow(_arrow_table())
    return open_table(frame, id_column="id"), cells(), people()


COLUMNS = [
    csv_file,
    csv_in_many_chunks,
    tsv_gz_in_many_chunks,
    blanks_with_plink_codes,
    some_columns_in_another_order,
    parquet_in_groups,
    parquet_of_narrow_types,
    feather_mapped,
    feather_packed,
    arrow_table,
    pandas_frame,
    pandas_frame_of_mixed_types,
    pandas_frame_of_small_integers,
    polars_frame,
]


def one_csv(folder):
    path = folder / "cohort.csv"
    path.write_text("\n".join(lines(",")) + "\n")
    source = table_source(path, features=["c", "a"], outcomes="[bd]*", id_column="id")
    return source, cells()[:, [2, 0]], cells()[:, [1, 3]], people()


def csv_joined_with_parquet(folder):
    """The outcomes are of other people too, in another order."""
    path = folder / "features.csv"
    path.write_text("\n".join(lines(",")) + "\n")
    rng = np.random.default_rng(3)
    names = [*people()[5:], "P9998", "P9999"]
    order = rng.permutation(len(names))
    y = rng.normal(size=(len(names), 2))
    table = pa.table({"id": names, "y1": y[:, 0], "y2": y[:, 1]}).take(order)
    parquet.write_table(table, folder / "outcomes.parquet", row_group_size=8)
    source = table_source(
        path,
        features="*",
        outcomes=["y2", "y1"],
        outcomes_table=folder / "outcomes.parquet",
        id_column="id",
    )
    return source, cells()[5:], y[:-2, ::-1], people()[5:]


SOURCES = [one_csv, csv_joined_with_parquet]
