"""Tables of text: spellings, separators, ids, and what is refused."""

import gzip

import numpy as np
import pytest

from primo.errors import NotNumericError
from primo.rows.sources.row_owners import check_rows_per_person as people_own
from primo.rows.sources.tabular import text
from primo.rows.sources.tabular.tables import open_table, table_source
from table_files import SECRET, read, refused, write

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")


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
