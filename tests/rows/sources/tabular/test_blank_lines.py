"""Blank lines: a missing cell if a table has one column, and skipped if it has several."""

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from primo._util.jit import load
from primo.errors import InputError
from primo.rows.sources.tabular import text
from primo.rows.sources.tabular.tables import open_table, table_source

COMPILED = load("primo.rows.sources.tabular.compiled")
compiled_or_not = pytest.mark.parametrize(
    "loops",
    [
        None,
        pytest.param(
            COMPILED,
            marks=pytest.mark.skipif(COMPILED is None, reason="needs numba"),
            id="compiled",
        ),
    ],
)


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write a file and return its numbers as a list."""

    def read(body, loops=None, *, name="t.csv", rows=2, **options):
        monkeypatch.setattr(text, "compiled_for", lambda *_, **__: loops)
        path = tmp_path / name
        path.write_bytes(gzip.compress(body) if name.endswith(".gz") else body)
        table = open_table(path, **options)
        found = np.concatenate(list(table.blocks(range(table.n), rows)))
        assert len(found) == table.n
        return found[:, 0].tolist() if found.shape[1] == 1 else found.tolist()

    return read


@compiled_or_not
@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.pheno", "t.csv.gz"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([b"1", b"", b"3"], [1, np.nan, 3]),
        ([b"", b"2"], [np.nan, 2]),
        ([b"1", b"", b"", b"4", b""], [1, np.nan, np.nan, 4, np.nan]),
        ([b"", b""], [np.nan, np.nan]),
        ([b"1", b'""', b"NA", b"4"], [1, np.nan, np.nan, 4]),
    ],
)
def test_a_blank_line_of_one_column_is_a_missing_cell(read, lines, expected, end, name, loops):
    body = end.join([b"a", *lines]) + end
    np.testing.assert_equal(read(body, loops, name=name), expected)


@compiled_or_not
@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_the_end_of_the_last_line_begins_no_row(read, name, loops):
    assert read(b"a\n1\n2\n", loops, name=name) == [1, 2]
    assert read(b"a\n1\n2", loops, name=name) == [1, 2]
    np.testing.assert_equal(read(b"a\n1\n2\n\n", loops, name=name), [1, 2, np.nan])


@compiled_or_not
@pytest.mark.parametrize("blank", [b" ", b"\t", b" \t  ", b"  \r"])
def test_a_line_of_blanks_is_blank_where_blanks_separate(read, blank, loops):
    expected = [1, np.nan, 3, np.nan]
    for end in (b"\n", b""):
        body = b"\n".join([b" a", b" 1 ", blank, b"3", blank]) + end
        np.testing.assert_equal(read(body, loops, name="t.txt"), expected)


@compiled_or_not
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.sampled_from(["", "1", "-2.5", "NA", '""', "1e3"]), min_size=1, max_size=30),
    size=st.integers(1, 12),
    end=st.sampled_from(["\n", "\r\n"]),
    name=st.sampled_from(["t.csv", "t.txt"]),
)
def test_wherever_chunks_end(read, monkeypatch, loops, cells, size, end, name):
    monkeypatch.setattr(text, "_CHUNK", size)
    body = "".join(cell + end for cell in ["a", *cells])
    expected = [np.nan if cell in ("", "NA", '""') else float(cell) for cell in cells]
    np.testing.assert_equal(read(body.encode(), loops, name=name), expected)


@compiled_or_not
def test_blank_lines_of_several_columns_are_no_rows(read, loops):
    assert read(b"a,b\n1,2\n\n3,4\n\n", loops) == [[1, 2], [3, 4]]
    assert read(b"a b\n1 2\n  \n3 4\n ", loops, name="t.txt") == [[1, 2], [3, 4]]
    np.testing.assert_equal(read(b"a,b\n1,2\n,\n", loops), [[1, 2], [np.nan, np.nan]])


def paired(folder, features, outcomes, **how):
    (folder / "x.csv").write_text(features)
    (folder / "y.csv").write_text(outcomes)
    return table_source(
        folder / "x.csv", features="x*", outcomes="y*", outcomes_table=folder / "y.csv", **how
    )


def test_two_tables_of_one_column_pair_the_right_people(tmp_path):
    """Before, 87 of 99 rows joined one person's feature to another person's outcome."""
    people = [str(i) for i in range(100)]
    x, y = people.copy(), people.copy()
    x[3], y[90] = "", ""
    source = paired(tmp_path, "\n".join(["x", *x, ""]), "\n".join(["y", *y, ""]), same_order=True)
    assert source.n == 100
    (block,) = source.blocks(100)
    both = np.hstack([block.features, block.outcomes])
    expected = np.arange(100.0)
    assert np.isnan(both[3, 0])
    assert np.isnan(both[90, 1])
    np.testing.assert_array_equal(np.nanmax(both, axis=1), expected)
    np.testing.assert_array_equal(np.nanmin(both, axis=1), expected)


@pytest.mark.parametrize("tail", ["", "\n", "\n5,6\n"])
def test_skipped_lines_and_the_same_order_do_not_go_together(tmp_path, tail):
    """A blank line may be a person without any cell; who comes after is then another row."""
    features, outcomes = "x1,x2\n1,2\n\n3,4\n" + tail, "y\n1\n2\n"
    if tail.strip():
        outcomes += "3\n"
    with pytest.raises(InputError, match=r"x\.csv has blank lines") as caught:
        paired(tmp_path, features, outcomes, same_order=True)
    assert "NA" in str(caught.value)
    with pytest.raises(InputError, match="blank lines"):
        paired(tmp_path, outcomes.replace("y", "x"), features.replace("x", "y"), same_order=True)
    whole = features.replace("\n\n", "\n")
    assert paired(tmp_path, whole, outcomes, same_order=True).n == outcomes.count("\n") - 1


def test_tables_that_are_joined_by_ids_may_have_blank_lines(tmp_path):
    features, outcomes = "id,x\na,1\n\nb,2\n", "id,y\nb,20\n\n\na,10\n"
    source = paired(tmp_path, features, outcomes, id_column="id")
    (block,) = source.blocks(2)
    np.testing.assert_array_equal(block.outcomes, 10 * block.features)
