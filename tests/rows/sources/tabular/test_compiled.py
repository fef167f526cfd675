"""The compiled loops: the same bits and errors as Arrow and NumPy, or they leave the work to them."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather

from primo._util import jit
from primo.errors import InputError
from primo.rows.sources.tabular import fast, parquet, text
from primo.rows.sources.tabular.arrow import to_floats
from primo.rows.sources.tabular.assembled import ColumnPortion, RowPortion, assemble
from primo.rows.sources.tabular.cells import _breaks, count_lines, doubled, first_cells
from primo.rows.sources.tabular.parquet import open_feather, open_parquet

compiled = jit.load("primo.rows.sources.tabular.compiled")
if compiled is None:
    reason = "needs compiled loops: numba (primo-dp[fast]), and NUMBA_DISABLE_JIT not set"
    pytest.skip(reason, allow_module_level=True)

MANY_FILES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
NUMBERS = st.one_of(
    st.none(),
    st.sampled_from([-9.0, 0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e308]),
    st.floats(width=32),
)
WHOLE = st.one_of(st.none(), st.sampled_from([-9, 0, 127]), st.integers(-128, 127))
TYPES = {
    "float64": (pa.float64(), NUMBERS),
    "float32": (pa.float32(), st.one_of(NUMBERS.filter(lambda x: x is None or abs(x) < 1e30))),
    "int8": (pa.int8(), WHOLE),
    "int64": (pa.int64(), st.one_of(WHOLE, st.sampled_from([2**53 + 1, -(2**63)]))),
    "bool": (pa.bool_(), st.one_of(st.none(), st.booleans())),
    "null": (pa.null(), st.none()),
}


def same_bits(a, b):
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.view(f"u{a.itemsize}"), b.view(f"u{b.itemsize}"))


@st.composite
def batches(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=5))
    rows = draw(st.integers(1, 70))
    columns = [
        pa.array(draw(st.lists(TYPES[k][1], min_size=rows, max_size=rows)), TYPES[k][0])
        for k in kinds
    ]
    batch = pa.RecordBatch.from_arrays(columns, names=[f"c{i}" for i in range(len(columns))])
    skipped = draw(st.integers(0, rows - 1))
    return batch.slice(skipped, draw(st.integers(1, rows - skipped)))


@MANY_FILES
@given(
    batches(),
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from([(), (-9.0,), (-9.0, 0.0)]),
    st.data(),
)
def test_columns_become_the_rows_that_arrow_makes(batch, dtype, missing, data):
    dtype = np.dtype(dtype)
    expected = np.array(to_floats(batch, dtype))
    expected = np.where(np.isin(expected, missing), np.nan, expected).astype(dtype)
    start = data.draw(st.integers(0, len(batch) - 1))
    stop = data.draw(st.integers(start + 1, len(batch)))
    for loops in (None, compiled):
        out = np.full((stop - start, batch.num_columns), 7.0, dtype)
        ColumnPortion(batch, dtype, missing, loops).write(start, out)
        same_bits(out, expected[start:stop])


def test_wide_batches_are_transposed_in_tiles():
    values = np.random.default_rng(0).normal(size=(100, 150))
    values[3, 140] = -9
    batch = pa.RecordBatch.from_arrays(
        [pa.array(column, mask=column > 2) for column in values.T.copy()],
        names=[str(i) for i in range(150)],
    )
    portion = ColumnPortion(batch, np.dtype(np.float64), (-9.0,), compiled)
    assert "private" in repr(portion)
    out = np.empty((90, 150))
    portion.write(10, out)
    np.testing.assert_array_equal(out, np.where(values > 2, np.nan, values)[10:])
    out = np.empty((150, 100)).T  # not for the loop
    portion.write(0, out)
    assert np.isnan(out[3, 140])


def test_pieces_end_where_blocks_do():
    values = np.arange(40.0).reshape(20, 2)
    cuts = [(0, 3), (3, 4), (4, 11), (13, 20)]
    portions = [(a, RowPortion(values[a:b])) for a, b in cuts]
    assert "private" in repr(portions[0][1])
    made = list(assemble(iter(portions), rows=5, origin=2, width=2, dtype=np.dtype(np.float64)))
    assert [(a, a + len(piece)) for a, piece in made] == [
        (0, 2),
        (2, 7),
        (7, 11),
        (13, 17),
        (17, 20),
    ]
    for first, piece in made:
        np.testing.assert_array_equal(piece, values[first : first + len(piece)])


# -- text -------------------------------------------------------------------------------------------

CELLS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=5, allow_nan=False).map(str),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(r"-?[0-9]{0,20}\.?[0-9]{0,9}([eE][-+]?[0-9]{0,4})?", fullmatch=True),
    st.sampled_from(
        ["", "NA", "nan", ".", "-9", "-9.0", "-9e0", "-", "+1", "1.", ".5", "0x1", "inf"]
    ),
    st.sampled_from([" 1", "1 ", '"1"', "1_0", "٣", "9007199254740993", "1e22", "1e23", "-0", "é"]),
)


def outcome(path, loops, monkeypatch, order, rows):
    """Return the numbers in a file, or what is said of it, with and without the loops."""
    monkeypatch.setattr(text, "compiled_for", lambda *_, **__: loops)
    try:
        table = text.open_text(path, id_column="id", missing=text.PLINK_MISSING)
        chosen = table.select([*table.names[::-1]])
        return table.ids().tolist(), np.concatenate(list(chosen.blocks(order(table.n), rows)))
    except InputError as error:
        return str(error)


@MANY_FILES
@given(
    st.lists(st.tuples(CELLS, CELLS, CELLS), min_size=1, max_size=12),
    st.sampled_from([",", "\t", " "]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["whole", "no end", "blank line", "short line", "long line", "quoted id"]),
    st.integers(1, 7),
)
def test_text_becomes_what_arrow_makes_of_it(tmp_path, monkeypatch, rows, cut, end, kind, size):
    monkeypatch.setattr(text, "_CHUNK", 60)
    lines = [cut.join([f"p{i}", *row]) for i, row in enumerate(rows)]
    middle = len(lines) // 2
    odd = {"blank line": "", "short line": f"q{cut}1", "long line": cut.join("q1111")}
    odd["quoted id"] = cut.join(['"q"', "1", "2", "3"])
    if kind in odd:
        lines.insert(middle, odd[kind])
    body = end.join([cut.join(["id", "a", "b", "c"]), *lines]) + ("" if kind == "no end" else end)
    path = tmp_path / "t.txt"
    path.write_bytes(body.encode())
    for order in (range, lambda n: np.arange(n)[::-2]):
        plain = outcome(path, None, monkeypatch, order, size)
        fast_one = outcome(path, compiled, monkeypatch, order, size)
        if isinstance(plain, str):
            assert fast_one == plain
        else:
            assert fast_one[0] == plain[0]
            same_bits(fast_one[1], plain[1])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_plain_text_is_not_parsed_by_arrow(tmp_path, monkeypatch, end):
    """Else nothing would be gained, and no test would notice."""
    values = np.round(np.random.default_rng(0).normal(size=(50, 4)), 5)
    values[0] = [1e-7, 1.25e-5, -9, 0]
    cells = [[f"p{i}", *map(repr, row)] for i, row in enumerate(values.tolist())]
    cells[7][2] = "NA"
    body = end.join("\t".join(line) for line in [["id", *"abcd"], *cells])
    (tmp_path / "t.tsv").write_bytes(body.encode())
    table = text.open_text(tmp_path / "t.tsv", id_column="id", missing=text.PLINK_MISSING)
    monkeypatch.setattr(text, "compiled_for", lambda *_, **__: compiled)
    monkeypatch.setattr(text.TextFile, "_parsed", None)
    found = np.concatenate(list(table.blocks(range(50), 8)))
    values[0, 2] = values[7, 1] = np.nan
    np.testing.assert_array_equal(found, values)


def read_number(cell):
    """Return a cell as the loop reads it, or None where it leaves it to Arrow."""
    letters = np.frombuffer(f"{cell}\n".encode(), dtype=np.uint8)
    nothing, out = np.zeros(0, dtype=np.int64), np.empty((1, 1))
    target = np.zeros(1, dtype=np.int64)
    words = np.zeros(0, dtype=np.uint8)
    place = compiled.parse_rows(letters, 9, 34, target, words, nothing, np.zeros(0), out)
    return None if place < 0 else out[0, 0]


@st.composite
def near_the_middle(draw):
    """Spell numbers about halfway between two neighbouring floats, with up to 18 digits."""
    low = draw(st.floats(1e-9, 1e17))
    middle = (Fraction(low) + Fraction(float(np.nextafter(low, np.inf)))) / 2
    places = draw(st.integers(0, 26))
    digits = round(middle * 10**places) + draw(st.integers(-1, 1))
    spelt = str(digits).rjust(places + 1, "0")
    return f"{spelt[: len(spelt) - places]}.{spelt[len(spelt) - places :]}0"


@settings(max_examples=2000, deadline=None)
@given(
    st.one_of(
        st.floats(-1e30, 1e30).map(repr),
        st.floats(-1e9, 1e9).map(lambda x: f"{x:.15g}"),
        st.floats(-1e9, 1e9).map(lambda x: f"{x:.17g}"),
        st.tuples(st.integers(0, 10**18), st.integers(-45, 45)).map(lambda t: f"{t[0]}e{t[1]}"),
        near_the_middle(),
    )
)
def test_numbers_are_rounded_once(cell):
    found = read_number(cell)
    assert found is None or np.array(found).tobytes() == np.array(float(cell)).tobytes()


@pytest.mark.parametrize(
    "cell",
    [
        "0.000123456789012345",  # what R writes
        "0.30000000000000004",  # what pandas writes
        "1.2345678901234567e-07",
        "-1.2345678901234567e+30",
        "123456789012345678",
        "0.00000000000000000000",
        "9007199254740993e-1",
    ],
)
def test_long_numbers_are_read_without_arrow(cell):
    assert read_number(cell) == float(cell)


@pytest.mark.parametrize("cell", ["9007199254740993", "1234567890123456789", "1e45", "1.", "1e"])
def test_what_is_too_close_or_too_long_is_left_to_arrow(cell):
    assert read_number(cell) is None


@pytest.mark.parametrize("separator", ["5", ".", "-", "e", "§"])
def test_odd_separators_are_left_to_arrow(tmp_path, monkeypatch, separator):
    monkeypatch.setattr(text, "compiled_for", lambda *_, **__: compiled)
    path = tmp_path / "t.txt"
    path.write_text(f"a{separator}b\n1{separator}2\n", encoding="utf-8")
    if separator == "§":  # Arrow separates by one byte
        with pytest.raises(InputError):
            list(text.open_text(path, separator=separator).blocks(range(1), 1))
    else:
        found = next(text.open_text(path, separator=separator).blocks(range(1), 1))
        np.testing.assert_array_equal(found, [[1, 2]])


@settings(deadline=None)
@given(st.text("a\t\n", max_size=30), st.integers(1, 3), st.integers(1, 3))
def test_ids_are_cut_off_or_left_to_the_parser(body, cells, first):
    raw = body.encode()
    cut = [first_cells(raw, "\t", cells, first, loops) for loops in (None, compiled)]
    assert cut[0] == cut[1]
    lines = body.removesuffix("\n").split("\n")
    if cut[0] is not None:
        heads = ["\t".join(line.split("\t")[:first]) + "\n" for line in lines]
        assert cut[0].decode() == "".join(heads)
        assert all(line.count("\t") == cells - 1 for line in lines)
    assert doubled(raw, 10) == ("\n\n" in body)


@given(st.text("a\r\n", max_size=12))
@pytest.mark.parametrize("loops", [None, compiled])
def test_lines_and_blank_ones_are_counted(loops, body):
    lines = body.encode().splitlines()
    assert count_lines(body.encode(), loops) == (len(lines), lines.count(b""))


@MANY_FILES
@given(
    st.text("ab,\t \r\n", max_size=40),
    st.sampled_from([",", "\t", " "]),
    st.integers(1, 9),
    st.sampled_from([None, compiled]),
)
def test_rows_are_counted_alike_wherever_chunks_end(
    tmp_path, monkeypatch, body, separator, size, loops
):
    monkeypatch.setattr(text, "compiled_for", lambda *_, **__: loops)
    path = tmp_path / "t.txt"
    path.write_bytes(body.encode())
    counts = []
    for chunk in (size, 2**20):
        monkeypatch.setattr(text, "_CHUNK", chunk)
        with path.open("rb") as file:
            counts.append([int(found.sum()) for found in text._scan(file, separator, path)])
    assert counts[0] == counts[1]
    lines = body.encode().splitlines()
    if separator == " ":
        lines = [line.strip() for line in body.replace("\r", " ").encode().splitlines()]
    assert counts[1] == [len(lines), lines.count(b""), len(body.encode())]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 257, 1000])
def test_line_breaks_are_found(size):
    letters = np.random.default_rng(size).integers(9, 12, size, dtype=np.uint8)
    breaks = np.flatnonzero(letters == 10)
    places = np.empty(max(len(breaks), 2), dtype=np.intp)
    assert compiled.find_breaks(letters, places) == len(breaks)
    np.testing.assert_array_equal(places[: len(breaks)], breaks)
    assert compiled.find_breaks(letters, places[:1]) == len(breaks)  # and writes no further
    np.testing.assert_array_equal(_breaks(letters, compiled), breaks)


def test_an_empty_id_is_still_a_row(tmp_path):
    (tmp_path / "t.tsv").write_text("id\ta\np\t1\n\t2\n")
    assert text.open_text(tmp_path / "t.tsv", id_column="id").ids().tolist() == ["p", ""]


# -- files of columns, genotypes, and when the loops are loaded --------------------------------------


@pytest.mark.parametrize("loops", [None, compiled])
@pytest.mark.parametrize("at_once", [1000, 2**25])
def test_missing_numbers_in_files_of_columns(tmp_path, monkeypatch, loops, at_once):
    monkeypatch.setattr(parquet, "compiled_for", lambda *_, **__: loops)
    monkeypatch.setattr(parquet, "_GROUP", at_once)
    rng = np.random.default_rng(0)
    values = rng.integers(-10, -7, size=(300, 37)).astype(np.float64)
    values[rng.random(values.shape) < 0.1] = np.nan
    table = pa.table({f"v{j}": pa.array(values[:, j], from_pandas=True) for j in range(37)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=90)
    feather.write_feather(table, tmp_path / "t.feather", compression="uncompressed", chunksize=90)
    expected = np.where(values == -9, np.nan, values)
    order = np.sort(rng.permutation(300)[:70])
    for opened in (
        open_parquet(tmp_path / "t.parquet", missing=["-9"]),
        open_feather(tmp_path / "t.feather", missing=["-9"]),
    ):
        for rows in (17, 100, 5000):
            for part in (range(300), range(95, 210), range(0, 300, 7), order, order[::-1]):
                found = np.concatenate(list(opened.blocks(part, rows)))
                np.testing.assert_array_equal(found, expected[part])


def test_loops_are_loaded_where_that_pays(monkeypatch):
    monkeypatch.setattr(fast, "sys", type("sys", (), {"modules": {}}))
    assert fast.compiled_for(9, many=10) is None
    assert fast.compiled_for(10, many=10) is compiled
    monkeypatch.setattr(fast, "sys", type("sys", (), {"modules": {"numba": None}}))
    assert fast.compiled_for(0, many=10) is compiled
    fast._load.cache_clear()
    monkeypatch.setattr(jit, "import_module", lambda _: (_ for _ in ()).throw(ImportError))
    assert fast.compiled_for(10, many=10) is None
    fast._load.cache_clear()
