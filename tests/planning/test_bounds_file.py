"""Bounds in a TOML file: what a column is, what its name says, what holds for the block."""

import numpy as np
import pytest

from primo.errors import BoundsError, InputError
from primo.planning.bounds_file import Limit, block_bounds, read_bounds_file


def written(folder, text):
    path = folder / "bounds.toml"
    path.write_text(text)
    return read_bounds_file(path)


def test_a_range_for_the_block_and_one_for_a_column(tmp_path):
    spec = written(
        tmp_path,
        "[features]\nlower = 0\nupper = 2\nnorm = 1.5\n[features.columns.age]\nlower = 18\nupper = 90\n",
    )
    bounds = block_bounds(spec["features"], ["rs1", "age"], block="features")
    np.testing.assert_allclose(bounds.lower, [0, 18])
    np.testing.assert_allclose(bounds.upper, [2, 90])
    assert bounds.norm == 1.5


def test_a_name_wins_over_a_pattern_over_the_kind_over_the_block():
    spec = {
        "lower": -9,
        "upper": 9,
        "columns": {"a*": {"lower": -1, "upper": 1}, "ab": {"lower": -2, "upper": 2}},
    }
    known = {"snp": Limit.of_range(0, 2)}
    bounds = block_bounds(spec, ["ab", "ac", "snp", "z"], block="features", known=known)
    np.testing.assert_allclose(bounds.upper, [2, 1, 2, 9])


def test_frequencies_and_a_range_need_a_norm():
    known = {"snp": Limit(centre=0.4, scale=0.5, box=False)}
    spec = {"columns": {"age": {"lower": 20, "upper": 80}}}
    with pytest.raises(BoundsError, match="norm"):
        block_bounds(spec, ["snp", "age"], block="features", known=known)
    bounds = block_bounds(spec, ["snp", "age"], block="features", known=known, norm=3.0)
    np.testing.assert_allclose(bounds.centre, [0.4, 50])
    np.testing.assert_allclose(bounds.scale, [0.5, 30])


def test_nothing_said_is_no_bounds_and_a_norm_alone_is_one():
    assert block_bounds(None, ["a"], block="outcomes") is None
    assert block_bounds({"norm": 3}, ["a"], block="outcomes").norm == 3


def test_a_column_without_bounds_is_named_with_what_to_write():
    spec = {"columns": {"a": {"lower": 0, "upper": 1}}}
    with pytest.raises(BoundsError, match=r'1 of the outcomes .* \[outcomes.columns."b c"\]|b c'):
        block_bounds(spec, ["a", "b c"], block="outcomes")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("features = 3", "section"),
        ("[feature]\nlower = 1", "not known"),
        ("[features]\nlow = 1", "not known"),
        ("[features.columns]\nage = 3", "section"),
        ("[features.columns.age]\nmin = 3", "not known"),
        ("[features", "not TOML"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, text, match):
    with pytest.raises(InputError, match=match):
        written(tmp_path, text)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read_bounds_file(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ({"lower": 2, "upper": 1}, "not below"),
        ({"lower": 1}, "needs lower and upper"),
        ({"centre": 0, "scale": 0}, "positive"),
        ({"centre": 0, "scale": 1}, "norm"),
        ({"lower": "a", "upper": 1}, "must be a finite number"),
        ({"lower": 0, "upper": 1, "centre": 0}, "needs lower and upper"),
        ({"lower": 0, "upper": 1, "norm": -1}, "positive"),
        ({"lower": 0, "upper": float("inf")}, "upper = inf must be a finite number"),
        ({"lower": float("nan"), "upper": 1}, "lower = nan must be a finite number"),
    ],
)
def test_wrong_limits_are_refused(spec, match):
    with pytest.raises(BoundsError, match=match):
        block_bounds(spec, ["a"], block="features")


def test_a_pattern_that_fits_nothing_is_refused():
    with pytest.raises(InputError, match="matches no column"):
        block_bounds({"columns": {"x*": {"lower": 0, "upper": 1}}}, ["a"], block="features")


@pytest.mark.parametrize(("stated", "norm"), [({}, 2**0.5), ({"norm": "auto"}, "auto")])
def test_the_norm_of_categories_is_not_looked_for_unless_the_file_says_so(stated, norm):
    """`--norms auto` is for what is not known: two columns of categories are √2 long, exactly."""
    columns = {"sex": {"levels": ["F", "M"]}, "region": {"levels": ["n", "e", "s"]}}
    names = ["sex=M", "region=e", "region=s"]
    found = block_bounds({"columns": columns, **stated}, names, block="features", norm="auto")
    assert found.norm == (norm if norm == "auto" else pytest.approx(norm))
    mixed = {"columns": {**columns, "age": {"lower": 0, "upper": 99}}}
    assert block_bounds(mixed, [*names, "age"], block="features", norm="auto").norm == "auto"
