"""Tables as text: shortest numbers for what is released, a fixed width for what is private."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from primo._util import writers
from primo._util.writers import open_table, unescaped

SCHEMA = {"name": "text", "place": "whole", "x": "number", "flag": "flag"}


def written(block, schema=SCHEMA, name="t.tsv", **how):
    file = io.BytesIO()
    with open_table(file, name, schema, **how) as write:
        write(block)
        write(block)
    return file.getvalue()


def block():
    return {
        "name": np.array(['a "b"', "a\tb", "back\\slash", "2\nlines", "é", None], dtype=object),
        "place": np.array([1, None, -3, 4, 5, 6], dtype=object),
        "x": np.array([0.186, -np.inf, np.nan, 1e-300, 1 / 3, 3.0]),
        "flag": np.array([True, False, True, True, False, True]),
    }


@pytest.mark.parametrize("at_a_time", [1, 4, 1 << 22])
def test_cells_of_every_kind(monkeypatch, at_a_time):
    monkeypatch.setattr(writers, "LARGEST_TEXT", at_a_time)
    header, *lines = written(block()).decode().removesuffix("\n").split("\n")
    assert header == "name\tplace\tx\tflag"
    assert lines[:6] == lines[6:]
    cells = [line.split("\t") for line in lines[:6]]
    assert [unescaped(c[0]) for c in cells] == [n or "" for n in block()["name"]]
    assert [c[1] for c in cells] == ["1", "", "-3", "4", "5", "6"]
    assert [c[2] for c in cells[:4]] == ["0.186", "-inf", "NaN", "1e-300"]
    assert [c[3] for c in cells] == list("101101")
    assert gzip.decompress(written(block(), name="t.tsv.gz")) == written(block())


def test_numbers_read_back_exactly():
    rng = np.random.default_rng(0)
    values = rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, size=2000)
    text = written({"x": values}, {"x": "number"}).decode().split("\n")[1:2001]
    np.testing.assert_array_equal([float(cell) for cell in text], values)
    assert "+0" not in "".join(text)


def test_the_size_of_private_numbers_is_fixed():
    sizes = {
        len(written({"x": np.array(values)}, {"x": "number"}, private=True))
        for values in ([0.0, 1.0], [-1 / 3, 1e99], [1e-250, -12345.678], [-0.0, 5e-324])
    }
    assert len(sizes) == 1
    text = written({"x": np.array([0.186])}, {"x": "number"}, private=True).decode()
    assert text.split("\n")[1] == "+1.860000000e-01"


def test_no_lines_and_unknown_endings():
    nothing = {name: values[:0] for name, values in block().items()}
    assert written(nothing) == b"name\tplace\tx\tflag\n"
    with pytest.raises(writers.InputError, match="ends in"):
        written(block(), name="t.xlsx")
