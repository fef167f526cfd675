"""Columns of categories: codes, indicators, and bounds that hold exactly."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest

import primo
from primo.levels import Levels, levels_for
from primo.planning.bounds_file import block_bounds, read_bounds_file, stated_levels


@pytest.mark.parametrize("k", [2, 3, 4, 7, 30])
def test_the_norm_is_the_longest_row_of_indicators_and_no_longer(k):
    """A factor √2 in either direction would be seen: some level has exactly the norm."""
    levels = Levels.of([f"l{i}" for i in range(k)], "x")
    rows = levels.expand(np.arange(k, dtype=float))
    clip = primo.Bounds.from_levels(levels.values).clip(k - 1, "features")
    scaled = (rows - clip.centre) / clip.scale
    assert np.abs(scaled).max() <= 1  # nothing is cut by the range
    assert clip.norm == 1.0
    assert np.linalg.norm(scaled, axis=1).max() == pytest.approx(1.0, rel=1e-12)
    assert (np.linalg.norm(scaled, axis=1) <= 1 + 1e-12).all()


def test_two_levels_are_the_range_of_zeros_and_ones():
    clip = primo.Bounds.from_levels(["no", "yes"]).clip(1, "features")
    assert (clip.centre[0], clip.scale[0], clip.box) == (0.5, 0.5, True)


def test_beside_other_columns_the_indicators_count_as_one():
    both = primo.Bounds.beside(
        [(primo.Bounds(lower=18, upper=90), 1), (primo.Bounds.from_levels(list("abcd")), 3)]
    )
    clip = both.clip(4, "features")
    assert clip.box
    assert clip.norm == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("cell", "code"),
    [
        ("F", 0),
        (" M ", 1),
        ("m", None),
        ("", None),
        (None, None),
        (math.nan, None),
        ("F ", 0),
        (1, None),
    ],
)
def test_codes_of_text(cell, code):
    found = Levels.of(["F", "M"], "sex").code(cell)
    assert math.isnan(found) if code is None else found == code


@pytest.mark.parametrize("cell", [1, 1.0, "1", "1.0", "01", np.int8(1), np.float32(1)])
def test_one_number_is_one_level_however_it_is_written(cell):
    assert Levels.of([2, 1], "status").code(cell) == 1


def test_a_flag_is_not_the_number_one():
    assert math.isnan(Levels.of([0, 1], "x").code(True))
    assert Levels.of([False, True], "x").code(True) == 1
    assert Levels.of(["false", "true"], "x").codes([True, False, 1]).tolist()[:2] == [1, 0]


@pytest.mark.parametrize(
    "bad", ["no,yes", ["one"], ["a", "a"], [1, "1.0"], ["", "b"], [None, "b"], 3]
)
def test_levels_that_make_no_sense(bad):
    with pytest.raises(primo.InputError, match="level"):
        Levels.of(bad, "x")


def test_names_before_patterns_and_clashes():
    stated = {"q*": ["no", "yes"], "q2": ["a", "b", "c"]}
    found = levels_for(stated, ["q1", "q2", "age"])
    assert {name: len(levels) for name, levels in found.items()} == {"q1": 2, "q2": 3}
    with pytest.raises(primo.InputError, match="'q1=yes'"):
        levels_for(stated, ["q1", "q1=yes"])


class TestBoundsFile:
    def bounds(self, tmp_path, text, names, **options):
        (tmp_path / "b.toml").write_text(text)
        spec = read_bounds_file(tmp_path / "b.toml")
        return block_bounds(spec.get("features"), names, block="features", **options)

    TEXT = """
[features.columns.sex]
levels = ["F", "M"]
[features.columns.region]
levels = ["n", "s", "w"]
"""

    def test_exact_norm(self, tmp_path):
        text = self.TEXT + "[features.columns.age]\nlower = 18\nupper = 90\n"
        names = ("sex=M", "region=s", "region=w", "age")
        clip = self.bounds(tmp_path, text, names).clip(4, "features")
        assert clip.norm == pytest.approx(math.sqrt(3))  # one for each column that was asked for
        assert clip.scale[:3] == pytest.approx([0.5, math.sqrt(5) / 3, math.sqrt(5) / 3])
        rows = [
            [sex, *region, age]
            for sex, region, age in itertools.product((0, 1), ((0, 0), (1, 0), (0, 1)), (18, 90))
        ]
        lengths = np.linalg.norm((np.array(rows) - clip.centre) / clip.scale, axis=1)
        assert lengths.max() == pytest.approx(clip.norm)

    def test_a_stated_norm_and_auto_stand(self, tmp_path):
        names = ("sex=M", "region=s", "region=w")
        assert self.bounds(tmp_path, "[features]\nnorm = 0.7\n" + self.TEXT, names).norm == 0.7
        auto = '[features]\nnorm = "auto"\n' + self.TEXT
        assert self.bounds(tmp_path, auto, names).norm == "auto"

    def test_one_indicator_of_two_columns_by_a_pattern(self, tmp_path):
        text = '[features.columns."q*"]\nlevels = ["no", "yes"]\n'
        clip = self.bounds(tmp_path, text, ("q1=yes", "q2=yes")).clip(2, "features")
        assert clip.norm == pytest.approx(math.sqrt(2))

    @pytest.mark.parametrize(
        ("text", "match"),
        [
            ('[features.columns.sex]\nlevels = ["F"]\n', "at least two"),
            ('[features.columns.sex]\nlevels = "F"\n', "must be a list"),
            ('[features.columns.sex]\nlevels = ["F", "M"]\nlower = 0\n', "no other bounds"),
            ('[features.columns.Sex]\nlevels = ["F", "M"]\n', "did you mean"),
            ('[features]\nlevels = ["F", "M"]\n', "'levels' is not known"),
        ],
    )
    def test_refusals(self, tmp_path, text, match):
        with pytest.raises(primo.PrimoError, match=match):
            self.bounds(tmp_path, text, ("sex=M",))

    def test_stated(self, tmp_path):
        (tmp_path / "b.toml").write_text(
            self.TEXT
            + "[outcomes.columns.smokes]\nlevels = [1, 2]\n[outcomes.columns.y]\nlower=0\nupper=1\n"
        )
        spec = read_bounds_file(tmp_path / "b.toml")
        assert stated_levels(spec, "features") == {"sex": ["F", "M"], "region": ["n", "s", "w"]}
        assert stated_levels(spec, "outcomes") == {"smokes": [1, 2]}


LEVELS = {"sex": ["F", "M"], "region": ["n", "s", "w"]}


class TestFrames:
    def frame(self, n=3000):
        rng = np.random.default_rng(0)
        sex, region = rng.choice(["F", "M"], n), rng.choice(["n", "s", "w"], n)
        y = (sex == "M") * 1.0 - (region == "s") + 2.0 * (region == "w") + rng.normal(size=n) * 0.3
        frame = pd.DataFrame(
            {"sex": pd.Categorical(sex), "region": region, "age": rng.uniform(20, 80, n)}
        )
        return frame, y

    def test_a_fit_of_categoricals(self):
        frame, y = self.frame()
        X = primo.indicators(frame, LEVELS)
        assert list(X.columns) == ["sex=M", "region=s", "region=w", "age"]
        bounds = primo.Bounds.beside(
            [
                (primo.Bounds.from_levels(LEVELS["sex"]), 1),
                (primo.Bounds.from_levels(LEVELS["region"]), 2),
                (primo.Bounds(lower=18, upper=90), 1),
            ]
        )
        model = primo.PrimoRegressor(
            epsilon=5, delta=1e-6, feature_bounds=bounds, outcome_bounds=(-4, 4), random_state=1
        )
        with pytest.warns(primo.ReproducibleNoiseWarning):
            model.fit(X, y)
        np.testing.assert_allclose(model.coef_, [1, -1, 2, 0], atol=0.25)
        new = pd.DataFrame({"sex": ["M", "F"], "region": ["w", "n"], "age": [50.0, 50.0]})
        assert np.diff(model.predict(primo.indicators(new, LEVELS)))[0] == pytest.approx(
            -3, abs=0.4
        )

    def test_a_level_is_read_from_its_cell_alone(self):
        frame, _ = self.frame(50)
        whole = primo.indicators(frame, LEVELS)
        alone = pd.concat([primo.indicators(frame.iloc[[i]], LEVELS) for i in range(50)])
        pd.testing.assert_frame_equal(whole, alone)

    def test_other_values_are_missing_and_unnamed(self):
        frame = pd.DataFrame({"sex": ["F", "secret", None], "age": [1.0, 2.0, 3.0]})
        found = primo.indicators(frame, {"sex": ["F", "M"]})
        assert found["sex=M"].isna().tolist() == [False, True, True]
        model = primo.PrimoRegressor(
            epsilon=1, delta=1e-3, feature_bounds=(0, 9), outcome_bounds=(0, 1)
        )
        with pytest.raises(primo.InputError) as caught:
            model.fit(found, [0.0, 1.0, 0.0])
        assert "secret" not in str(caught.value)

    def test_declared_categories_are_refused_by_name(self):
        frame, y = self.frame(30)
        model = primo.PrimoRegressor(
            epsilon=1, delta=1e-3, feature_bounds=(0, 9), outcome_bounds=(0, 1)
        )
        with pytest.raises(primo.NotNumericError, match=r"'sex'.*primo\.indicators"):
            model.fit(frame[["sex", "age"]], y)

    def test_a_column_that_is_not_there(self):
        with pytest.raises(primo.InputError, match="did you mean 'sex'"):
            primo.indicators(self.frame(3)[0], {"Sex": ["F", "M"]})

    def test_cells_that_raise(self):
        class Odd:
            def __hash__(self):
                raise RuntimeError("secret")

        frame = pd.DataFrame({"sex": [Odd(), Odd()]})
        with pytest.raises(primo.NotNumericError) as caught:
            primo.indicators(frame, {"sex": ["F", "M"]})
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None
