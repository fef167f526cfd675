"""One id has one spelling, in every source."""

import traceback
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from primo.errors import InputError
from primo.rows.coerce import numeric
from primo.rows.sources.arrays.chunked import check_ids
from primo.rows.sources.canonical import canonical_id, canonical_ids
from primo.rows.sources.genotypes.people import read_fam
from primo.rows.sources.tabular.arrow import to_ids
from primo.rows.sources.tabular.frames import open_frame
from primo.rows.sources.tabular.index import index_labels
from primo.rows.sources.tabular.text import open_text

pd = pytest.importorskip("pandas")

SECRET = "secret-id-77"

SAME = {
    "7": [
        7,
        7.0,
        np.int8(7),
        np.float32(7),
        Decimal("7.00"),
        7 + 0j,
        "7",
        " 7\t",
        "7.0",
        "7.",
        b"7",
    ],
    "Zo\u00eb": [
        "Zo\u00eb",
        "Zoe\u0308",
        "\ufeffZo\u00eb",
        "Zo\u200be\u200d\u0308",
        "Zoe\u0308".encode(),
    ],
    str(2**70): [2**70, float(2**70), Decimal(2**70)],
    "": [None, np.nan, Decimal("nan"), pd.NA, pd.NaT, "", " ", "\u200b", b""],
}
REFUSED = [
    True,
    np.True_,
    0.5,
    Decimal("1.5"),
    1j,
    np.inf,
    ("a",),
    [SECRET],
    pd.Timestamp("1987-03-05"),
]
REFUSED += [f"\ud800{SECRET}", b"\xff" + SECRET.encode(), 10**5000, {SECRET}]


@pytest.mark.parametrize("spelling", SAME)
def test_one_spelling(spelling):
    assert {canonical_id(value) for value in SAME[spelling]} == {spelling}
    assert canonical_id(spelling) == spelling
    values = SAME[spelling]
    column = pd.Series(values, dtype=object)
    everywhere = [
        canonical_ids(values),
        check_ids("x.npy", values, len(values)),
        check_ids("x.npy", np.array(values, dtype=object), len(values)),
        index_labels(pd.Index(column, name="IID")),
        open_frame(pd.DataFrame({"k": column, "x": 1.0}), id_column="k").ids(),
    ]
    for found in everywhere:
        assert set(found.tolist()) == {spelling}


@pytest.mark.parametrize("other", ["007", "zo\u00eb", "7.1", "7.0.0", "v7.0", "7 0"])
def test_what_counts(other):
    """Case and leading zeros do, and only a whole number loses its decimals."""
    assert canonical_id(other) == other


@pytest.mark.parametrize("value", REFUSED, ids=[type(value).__name__ for value in REFUSED])
def test_other_things_are_refused_and_not_quoted(value):
    column = pd.Series(["a", value], dtype=object)
    frame = open_frame(pd.DataFrame({"k": column, "x": 1.0}), id_column="k")
    for ask in (
        lambda: canonical_id(value),
        lambda: check_ids("x.npy", ["a", value], 2),
        frame.ids,
    ):
        with pytest.raises(InputError, match="whole") as caught:
            ask()
        assert caught.value.__cause__ is caught.value.__context__ is None
        assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["7", "8.0", "\ufeff9"]),
        pa.array([7, 8, 9]),
        pa.array([b"7", b"8", b"9 "]),
        pa.array([Decimal("7.0"), Decimal("8.0"), Decimal("9.0")]),
        pa.array(["7.0", "8", "9"]).dictionary_encode(),
        pa.array(["7", "8", "9"], pa.large_string()),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_arrow(column):
    assert to_ids(pa.table({"k": column}), "t").tolist() == ["7", "8", "9"]


def test_files(tmp_path):
    (tmp_path / "a.csv").write_text("IID,x\n 7.0,1\nZoe\u0308,2\n", encoding="utf-8")
    assert open_text(tmp_path / "a.csv", id_column="IID").ids().tolist() == ["7", "Zo\u00eb"]
    (tmp_path / "a.fam").write_text("f Zoe\u0308 0 0 0 -9\nf 7\u200b 0 0 0 -9\n", encoding="utf-8")
    assert read_fam(tmp_path / "a.fam").iid.tolist() == ["Zo\u00eb", "7"]


def test_mixed_columns_of_a_frame_are_read_and_not_quoted():
    mixed = pd.DataFrame({"k": pd.Series([1, SECRET], dtype=object), "x": 1.0})
    assert open_frame(mixed, id_column="k").ids().tolist() == ["1", SECRET]


class Talks:
    """A cell whose conversion says what it holds."""

    def __float__(self):
        raise RuntimeError(SECRET)


@pytest.mark.parametrize("cell", [Talks(), 10**400], ids=["raises", "large"])
def test_cells_that_raise_say_nothing(cell):
    frame = pd.DataFrame({"a": pd.Series([1, cell], dtype=object)})
    for read in (
        lambda: list(open_frame(frame).blocks(range(2), 2)),
        lambda: numeric(frame, "features"),
        lambda: numeric([[1.0], [cell]], "features"),
    ):
        with pytest.raises(InputError, match="not a number") as caught:
            read()
        shown = "".join(traceback.format_exception(caught.value))
        assert f"RuntimeError: {SECRET}" not in shown
