"""Categories in files of every format become the same indicators."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from primo.errors import InputError, NotNumericError
from primo.rows.sources.paired import one_block
from primo.rows.sources.tabular.tables import open_table, table_source

N = 300
LEVELS = {"sex": ["F", "M"], "region": ["north", "south", "west"], "status": [1, 2]}
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "id": [f"p{i}" for i in range(N)],
        "sex": RNG.choice(["F", "M"], N),
        "region": RNG.choice(["north", "south", "west", "odd", ""], N),
        "status": RNG.choice([1, 2, -9], N),
        "age": RNG.integers(0, 3, N).astype(float),
    }
)
NAMES = ("sex=M", "region=south", "region=west", "status=2", "age")
KNOWN = FRAME["region"].isin(LEVELS["region"])
EXPECTED = np.column_stack(
    [
        (FRAME["sex"] == "M").astype(float),
        np.where(KNOWN, FRAME["region"] == "south", np.nan),
        np.where(KNOWN, FRAME["region"] == "west", np.nan),
        np.where(FRAME["status"] == -9, np.nan, FRAME["status"] == 2),
        np.where(FRAME["age"] == 0, np.nan, FRAME["age"]),
    ]
)


def write(kind):
    if kind == "csv":
        FRAME.to_csv("t.csv", index=False)
    elif kind == "txt":
        FRAME.replace({"region": {"": "x"}}).to_csv("t.txt", index=False, sep=" ")
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pandas(FRAME), "t.parquet", row_group_size=70)
    elif kind == "dictionary.parquet":
        pq.write_table(pa.Table.from_pandas(FRAME.astype({"region": "category"})), f"t.{kind}")
    elif kind.startswith("feather"):
        how = "uncompressed" if kind == "feather" else "lz4"
        pa.feather.write_feather(pa.Table.from_pandas(FRAME), "t.feather", compression=how)
        return "t.feather"
    elif kind == "pandas":
        return FRAME
    elif kind == "categorical":
        return FRAME.astype({"sex": "category", "region": "category", "status": "category"})
    elif kind == "arrow":
        return pa.Table.from_pandas(FRAME)
    return f"t.{kind}"


KINDS = ["csv", "txt", "parquet", "dictionary.parquet", "feather", "feather packed"]
KINDS += ["pandas", "categorical", "arrow"]


@pytest.fixture(params=KINDS)
def table(request, tmp_path, monkeypatch):
    """0 means a missing value, and is also an indicator's value: only the first is replaced."""
    monkeypatch.chdir(tmp_path)
    return open_table(
        write(request.param),
        columns="sex,region,status,age",
        id_column="id",
        levels=LEVELS,
        missing=["0"],
    )


def test_the_same_numbers_from_every_format(table):
    assert table.names == NAMES
    for rows in (1000, 7):
        found = np.vstack(list(table.blocks(range(N), rows)))
        np.testing.assert_array_equal(found, EXPECTED)
    order = np.array([5, 3, 200, 4])
    found = np.vstack(list(table.blocks(order, 2)))
    np.testing.assert_array_equal(found, EXPECTED[order])
    assert table.ids().tolist() == FRAME["id"].tolist()


def test_single_indicators_and_one_block(table):
    chosen = table.select(["age", "region=west"])
    found = np.vstack(list(chosen.blocks(range(N), 100)))
    np.testing.assert_array_equal(found, EXPECTED[:, [4, 2]])
    source = table_source(table, features="sex,age", outcomes="region")
    assert source.feature_names == ("sex=M", "age")
    assert source.outcome_names == ("region=south", "region=west")
    part = np.vstack(list(one_block(source, "outcomes", 64)))
    np.testing.assert_array_equal(part, EXPECTED[:, 1:3])


def test_levels_hold_for_their_block_alone(tmp_path, monkeypatch):
    """A pattern of the outcomes must not catch a feature, in the same table or in two."""
    monkeypatch.chdir(tmp_path)
    write("csv")
    for more in ({}, {"outcomes_table": "t.csv", "id_column": "id"}):
        source = table_source(
            "t.csv",
            features="sex,age",
            outcomes="region",
            levels={"sex": LEVELS["sex"]},
            outcome_levels={"*": LEVELS["region"]},
            **more,
        )
        assert source.feature_names == ("sex=M", "age")
        assert source.outcome_names == ("region=south", "region=west")
        block = next(iter(source.blocks(N)))
        np.testing.assert_array_equal(block.features[:, 0], EXPECTED[:, 0])
        np.testing.assert_array_equal(block.outcomes, EXPECTED[:, 1:3])
    with pytest.raises(InputError, match="as features and as outcomes"):
        table_source(
            "t.csv",
            features="status",
            outcomes="status",
            levels={"status": LEVELS["status"]},
            outcome_levels={},
        )


def test_all_columns_by_default_and_by_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    levels = {"sex": LEVELS["sex"], "re*": LEVELS["region"]}
    assert open_table(write("csv"), id_column="id", levels=levels).names == (
        *NAMES[:3],
        "status",
        "age",
    )
    assert (
        open_table("t.csv", columns="*", levels={**levels, "id": ["p1", "p2"]}).names[0] == "id=p2"
    )


def test_text_columns_of_typed_files_are_refused_on_opening_and_told_how(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for kind in ("parquet", "feather", "arrow"):
        with pytest.raises(NotNumericError, match=r"'sex' .* holds text.*levels=\{'sex'"):
            open_table(write(kind), columns="sex")


def test_text_cells_of_a_text_file_name_the_column_and_the_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    columns = open_table(write("csv"), columns="sex")
    with pytest.raises(NotNumericError, match=r"'sex'.*levels=\{'sex'.*decimal=\",\"") as caught:
        list(columns.blocks(range(N), 100))
    assert "'M'" not in str(caught.value)


@pytest.mark.parametrize("ending", ["csv", "txt"])
def test_decimal_commas(tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    Path(f"t.{ending}").write_text(
        "a;b\n12,5;-1\n0,25;1,5e2\n;3\n".replace(";", ";" if ending == "csv" else "\t")
    )
    separator = ";" if ending == "csv" else None
    columns = open_table(f"t.{ending}", separator=separator, decimal=",")
    found = np.vstack(list(columns.blocks(range(3), 10)))
    np.testing.assert_array_equal(found, [[12.5, -1], [0.25, 150], [np.nan, 3]])


def test_a_decimal_comma_needs_another_separator(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match='separator=";"'):
        open_table("t.csv", decimal=",")
    with pytest.raises(InputError, match="must be"):
        open_table("t.csv", decimal="'")


def test_a_row_is_read_alone(tmp_path, monkeypatch):
    """Which other levels a chunk holds must not change a row."""
    monkeypatch.chdir(tmp_path)
    write("csv")
    lines = Path("t.csv").read_text().splitlines(keepends=True)
    for i in (1, 17, 120):
        Path("one.csv").write_text(lines[0] + lines[i])
        alone = open_table("one.csv", columns="sex,region,status", levels=LEVELS)
        found = next(alone.blocks(range(1), 1))
        np.testing.assert_array_equal(found[0], EXPECTED[i - 1, :4])
