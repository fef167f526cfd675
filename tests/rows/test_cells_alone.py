"""What a cell becomes in float64 is a function of that cell alone, in lists, arrays and frames."""

import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pytest

from primo.errors import InputError
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.coerce import numeric
from primo.rows.moments import fold
from primo.rows.quantise import feature_quantiser
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.tabular.frames import open_frame

NARROW = np.float32(0.1)  # spelled "0.1", but another number

#: Cells, and what each of them is, if it is not refused. Those in the second half are not in float64.
CELLS = {
    "float16": (np.float16(0.1), 0.0999755859375),
    "float32": (NARROW, 0.10000000149011612),
    "float64": (np.float64(0.1), 0.1),
    "Python float": (0.1, 0.1),
    "array of one": (np.array(NARROW), 0.10000000149011612),
    "int8": (np.int8(3), 3.0),
    "Python int": (3, 3.0),
    "bool": (True, 1.0),
    "text": ("0.1", 0.1),
    "text in bytes": (b"0.1", 0.1),
    "None": (None, np.nan),
    "NaN": (np.nan, np.nan),
    "longdouble": (np.longdouble(1) / np.longdouble(10), 0.1),
    "a longdouble between float64s": (np.longdouble(1) + np.longdouble(2) ** -60, 1.0),
    "int64": (np.int64(2**60 + 129), 2.0**60 + 256),
    "uint64": (np.uint64(2**63 + 1025), 2.0**63 + 2048),
    "63 bits": (2**62 + 257, 2.0**62),
    "71 bits": (2**70 + 2**17 + 1, 2.0**70 + 2**18),
    "Decimal": (Decimal("0.1"), 0.1),
    "Fraction": (Fraction(1, 10), 0.1),
    "date": (datetime.date(2020, 1, 1), None),
    "complex": (1j, None),
    "word": ("secret", None),
}


def objects(cells):
    found = np.empty((len(cells), 1), dtype=object)
    for i, cell in enumerate(cells):
        found[i, 0] = cell
    return found


def read_frame(frame):
    table = open_frame(frame, columns="a")
    return np.vstack([block.astype(np.float64) for block in table.blocks(range(table.n), 1000)])


def as_floats(table):
    return numeric(table, "outcomes").astype(np.float64)


TABLES = {
    "list of lists": lambda cells: as_floats([[cell] for cell in cells]),
    "tuple of tuples": lambda cells: as_floats(tuple((cell,) for cell in cells)),
    "list": lambda cells: as_floats(list(cells)),
    "list of arrays": lambda cells: as_floats([np.array([cell]) for cell in cells]),
    "array of objects": lambda cells: as_floats(objects(cells)),
    "frame": lambda cells: as_floats(pd.DataFrame({"a": list(cells)})),
    "frame of objects": lambda cells: as_floats(pd.DataFrame(objects(cells), columns=["a"])),
    "text beside": lambda cells: as_floats(pd.DataFrame({"a": list(cells), "b": "1"}))[:, 0],
    "series": lambda cells: as_floats(pd.Series(list(cells))),
    "opened frame": lambda cells: read_frame(pd.DataFrame({"a": list(cells)})),
    "opened frame of objects": lambda cells: read_frame(
        pd.DataFrame({"a": pd.Series(list(cells), dtype=object)})
    ),
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("name", CELLS)
def test_a_cell_is_the_same_number_beside_every_other(name, make):
    cell, expected = CELLS[name]
    read = 0
    for other, _ in CELLS.values():
        for cells, place in (([cell, other], 0), ([other, other, cell], -1)):
            try:
                found = make(cells).ravel()[place]
            except InputError:  # a table may be refused for any of its cells
                continue
            assert expected is not None, "it is no number"
            np.testing.assert_equal(float(found), expected)
            read += 1
    assert expected is None or read >= len(CELLS), "most tables can be read"


def test_a_string_in_a_list_does_not_move_other_people():
    """From a list to integer moments: replacing one person changes that person's part only."""
    plan = make_plan(
        Settings(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=Bounds(lower=0, upper=1),
            outcome_bounds=Bounds(norm=1.0),
        ),
        n=50,
        d=4,
        l=1,
    )

    # Numbers that their spelling moves to another integer.
    found = np.random.default_rng(0).random((20_000, 4)).astype(np.float32)
    spelled = np.array([[float(str(value)) for value in row] for row in found])
    integers = np.empty((2, *found.shape[:1], plan.width))
    for rows, out in zip((found, spelled), integers, strict=True):
        feature_quantiser(plan)(rows, out)
    people = [list(row) for row in found[(integers[0] != integers[1]).any(axis=1)][:49]]
    assert len(people) == 49

    def moments(rows):
        source = ArraySource(
            features=numeric(rows, "features"),
            outcomes=np.ones((len(rows), 1)),
            feature_names=tuple("abcd"),
            outcome_names=("y",),
        )
        return fold(source, plan)

    others = moments(people)
    for last in ([0.5] * 4, ["0.5", "0.5", "0.5", "0.5"], [0.5, np.longdouble(0.5), 1, True]):
        whole, alone = moments([*people, last]), moments([last])
        for part in ("covariance", "association", "outcome"):
            rest = getattr(whole, part) - getattr(alone, part)
            np.testing.assert_array_equal(rest, getattr(others, part))


@pytest.mark.parametrize("one", ["float16", "float32", "float64", "longdouble", "int64", "uint64"])
def test_rows_of_other_types_do_not_round_a_row(one):
    rng = np.random.default_rng(1)
    row = (rng.random(5) * (2.0**14 if one == "float16" else 2.0**62)).astype(one)
    expected = row.astype(np.float64)
    for other in ("bool", "int8", "uint64", "int64", "float16", "float32", "float64", "longdouble"):
        found = as_floats([row, np.ones(5).astype(other)])
        np.testing.assert_array_equal(found[0], expected)
        np.testing.assert_array_equal(as_floats([list(row), list(np.ones(5, other))])[0], expected)


@pytest.mark.parametrize(
    ("other", "message"),
    [(pd.to_datetime(["2020-01-01"]), "not a number"), ([1 + 2j], "not a number")],
)
def test_dates_and_complex_numbers_beside_text_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        numeric(pd.DataFrame({"a": ["1"], "b": other}), "features")


def test_nullable_columns_hold_the_same_numbers_with_and_without_gaps():
    """Pandas chooses another type for a column with gaps."""
    for kind, value in product(["Int64", "UInt64", "Float32", "boolean"], [1, 2**60 + 129]):
        if kind == "boolean" and value > 1:
            continue
        for others in ([1], [None], [None, 1]):
            column = pd.array([value, *others], dtype=kind)
            expected = float(np.float32(value)) if kind == "Float32" else float(value)
            for frame in (pd.DataFrame({"a": column}), pd.DataFrame({"a": column, "b": 0.5})):
                assert as_floats(frame)[0, 0] == expected
                assert read_frame(frame)[0, 0] == expected


@pytest.mark.parametrize("make", [np.array, list], ids=["array", "list"])
def test_a_number_beyond_float64_is_infinite_and_warns_of_nothing(make, recwarn):
    large = np.longdouble(10) ** 400
    if np.isinf(large):
        pytest.skip("long doubles are no longer than others here")
    assert as_floats(make([large, np.longdouble(1)])).tolist() == [np.inf, 1.0]
    assert not recwarn
