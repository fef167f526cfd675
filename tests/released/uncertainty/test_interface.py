"""What the functions promise besides coverage: units, names, blocks, files, refusals."""

import ast
import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import false_discovery_control

import primo
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released import uncertainty
from primo.released.uncertainty import intervals as intervals_module


@pytest.fixture
def release(world):
    return world(3, 7)(np.random.default_rng(0))[0]


def in_other_units(release, *, feature_scale, outcome_scale, feature_centre, outcome_centre):
    """The same scaled numbers, from data in other units."""
    plan = release.plan
    features = dataclasses.replace(
        plan.features, scale=np.asarray(feature_scale), centre=np.asarray(feature_centre)
    )
    outcomes = dataclasses.replace(
        plan.outcomes, scale=np.asarray(outcome_scale), centre=np.asarray(outcome_centre)
    )
    plan = dataclasses.replace(plan, features=features, outcomes=outcomes)
    return dataclasses.replace(release, plan=plan)


@pytest.mark.parametrize("kind", ["confidence", "posterior"])
def test_intervals_are_in_the_units_of_the_data(release, kind):
    fx, fy = np.array([10.0, 0.1, 2.0]), np.linspace(1, 4, 7)
    cx, cy = np.array([5.0, -1.0, 0.5]), np.linspace(-2, 2, 7)
    other = in_other_units(
        release, feature_scale=fx, outcome_scale=fy, feature_centre=cx, outcome_centre=cy
    )
    before = uncertainty.coefficient_intervals(release, kind=kind)
    after = uncertainty.coefficient_intervals(other, kind=kind)
    factor = fy / fx[:, None]
    for name in ("estimate", "standard_error", "lower", "upper"):
        expected = getattr(before, name)[:3] * factor
        np.testing.assert_allclose(getattr(after, name)[:3], expected, rtol=1e-9)
    X = np.random.default_rng(1).standard_normal((4, 3))
    one = uncertainty.prediction_intervals(release, X, kind=kind)
    two = uncertainty.prediction_intervals(other, X * fx + cx, kind=kind)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name) * fy + cy, rtol=1e-8)
    first, second = (uncertainty.goodness_of_fit(r) for r in (release, other))
    np.testing.assert_allclose(first.r_squared, second.r_squared)


@pytest.mark.parametrize("kind", ["confidence", "posterior"])
def test_combinations_agree_with_each_other(release, kind):
    plan = release.plan
    other = in_other_units(
        release,
        feature_scale=[2.0, 3.0, 0.5],
        outcome_scale=np.ones(plan.l),
        feature_centre=[1.0, 2.0, 3.0],
        outcome_centre=np.arange(7.0),
    )
    made = uncertainty.coefficient_intervals(other, kind=kind)
    assert made.names == ("snp0", "snp1", "snp2", "(intercept)")
    single = uncertainty.contrasts(other, np.eye(3), kind=kind)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(getattr(single, name), getattr(made, name)[:3], rtol=1e-9)
    at_zero = uncertainty.prediction_intervals(other, np.zeros((1, 3)), kind=kind)
    for name in ("estimate", "lower", "upper"):
        np.testing.assert_allclose(
            getattr(at_zero, name)[0], getattr(made, name)[3], rtol=1e-8, atol=1e-10
        )
    difference = uncertainty.contrasts(other, [1.0, -1.0, 0.0], kind=kind, names=("d",))
    np.testing.assert_allclose(difference.estimate[0], made.estimate[0] - made.estimate[1])
    wider = uncertainty.prediction_intervals(other, np.zeros((1, 3)), kind=kind, new_rows=True)
    assert (wider.upper > at_zero.upper).all()


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize(("d", "l"), [(1, 1), (6, 1), (5, 40), (4, 600)])
def test_shrunk_estimates_are_those_of_coefficients(world, protection, d, l):
    release, _ = world(d, l, protection=protection, n=500)(np.random.default_rng(d + l))
    made = uncertainty.coefficient_intervals(release, kind="posterior")
    fitted = primo.coefficients(release)
    np.testing.assert_allclose(made.estimate[:-1], fitted.slopes, atol=1e-9)
    np.testing.assert_allclose(made.estimate[-1], fitted.intercept, atol=1e-9)


def test_blocks_make_no_difference(world, monkeypatch):
    release, _ = world(3, 50)(np.random.default_rng(2))
    whole = uncertainty.tidy(release)
    monkeypatch.setattr(intervals_module, "BLOCK_CELLS", 20)
    pd.testing.assert_frame_equal(uncertainty.tidy(release), whole, rtol=1e-9)


def test_tables_in_files_are_the_tidy_one(release, tmp_path):
    frame = uncertainty.tidy(release)
    assert list(frame["outcome"][:4]) == ["trait0", "trait0", "trait0", "trait1"]
    assert list(frame["feature"][:3]) == ["snp0", "snp1", "snp2"]
    parquet = pd.read_parquet(uncertainty.write_table(release, tmp_path / "t.parquet"))
    pd.testing.assert_frame_equal(parquet, frame, check_dtype=False)
    for name in ("t.tsv", "t.tsv.gz"):
        read = pd.read_csv(uncertainty.write_table(release, tmp_path / name), sep="\t")
        assert list(read.columns) == list(frame.columns)
        np.testing.assert_allclose(read["estimate"], frame["estimate"], rtol=1e-6)
        assert set(read["trusted"]) <= {0, 1}
    assert not list(tmp_path.glob("*.part"))
    with pytest.raises(primo.InputError, match="ends in"):
        uncertainty.write_table(release, tmp_path / "t.xlsx")


def test_many_outcomes_need_no_matrix_for_each(world):
    release, _ = world(5, 20_000, n=200)(np.random.default_rng(3))
    assert uncertainty.coefficient_intervals(release).estimate.shape == (6, 20_000)
    assert uncertainty.tests(release).p.shape == (5, 20_000)


def test_summary_reads_like_a_regression_table(release):
    text = uncertainty.summary(release, "trait2")
    for word in ("trait2", "snp1", "(intercept)", "R-squared", "P>|z|", "epsilon 2"):
        assert word in text
    assert uncertainty.summary(release, 2) == text == uncertainty.summary(release, -5)
    assert max(map(len, text.splitlines())) <= 100
    with pytest.raises(primo.InputError, match="no outcome is called 'height'"):
        uncertainty.summary(release, "height")
    with pytest.raises(primo.InputError, match="not one of the 7"):
        uncertainty.summary(release, 7)


def test_benjamini_hochberg_is_scipys():
    p = np.random.default_rng(4).random((7, 30)) ** 2
    expected = false_discovery_control(p.ravel()).reshape(p.shape)
    np.testing.assert_allclose(uncertainty.benjamini_hochberg(p), expected)
    p[0, 0] = np.nan
    assert np.isnan(uncertainty.benjamini_hochberg(p)[0, 0])


def test_cauchy_combination_extremes():
    combine = uncertainty.cauchy_combination
    assert combine(np.array([[0.03]]))[0] == pytest.approx(0.03)
    assert combine(np.array([[0.9]]))[0] == pytest.approx(0.9)
    assert combine(np.array([[1e-200, 0.5]]))[0] == pytest.approx(2e-200)
    assert combine(np.full((1, 5), 1.0))[0] < 1


def test_only_the_release_is_needed(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, size=(4000, 4)).astype(float)
    Y = X @ rng.normal(size=(4, 15)) + rng.normal(size=(4000, 15))
    theta = np.linalg.lstsq(np.column_stack([X, np.ones(4000)]), Y, rcond=None)[0]
    for protection in ("both", "features", "outcomes"):
        model = primo.PrimoRegressor(
            epsilon=5.0,
            delta=1e-6,
            protection=protection,
            feature_bounds=(0, 2),
            outcome_bounds=primo.Bounds(norm=40.0),
        ).fit(X, Y)
        path = primo.save_release(model.release_, tmp_path / protection)
        loaded = primo.load_release(path)
        made = uncertainty.coefficient_intervals(loaded, target="rows")
        hit = (made.lower <= theta) & (theta <= made.upper)
        assert hit.mean() > 0.8  # 75 cells that share the noise of one covariance
        assert uncertainty.goodness_of_fit(loaded).found.mean() > 0.8


def test_the_package_cannot_reach_rows():
    root = Path(uncertainty.__file__).parent
    for path in root.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                module = node.module or ""
                private = (
                    "primo.rows.sources",
                    "primo.rows.moments",
                    "primo.wall.noise",
                    "primo.workflow.pipeline",
                )
                assert not module.startswith(private), path.name


def test_refusals(release):
    with pytest.raises(primo.InputError, match="level"):
        uncertainty.coefficient_intervals(release, level=95)
    with pytest.raises(primo.InputError, match="level"):
        release.goodness_of_fit(level="0.9")
    with pytest.raises(primo.InputError, match="target"):
        uncertainty.coefficient_intervals(release, target="people")
    with pytest.raises(primo.InputError, match="kind"):
        uncertainty.coefficient_intervals(release, kind="credible")
    with pytest.raises(primo.InputError, match="contrast"):
        uncertainty.contrasts(release, [1.0, 2.0])
    with pytest.raises(primo.InputError, match="all weights 0"):
        uncertainty.contrasts(release, [0.0, 0.0, 0.0])
    with pytest.raises(primo.InputError, match="X has shape"):
        uncertainty.prediction_intervals(release, [[1.0, 2.0]])
    with pytest.raises(primo.InputError, match="draws"):
        uncertainty.bootstrap_intervals(release, draws=3)
    projected = dataclasses.replace(
        release, plan=dataclasses.replace(release.plan, association="projection")
    )
    with pytest.raises(primo.InputError, match="projected"):
        uncertainty.coefficient_intervals(projected)


def test_a_covariance_of_other_rows_is_flagged(release):
    plan = make_plan(
        Settings(
            epsilon=2.0,
            delta=1e-6,
            feature_bounds=Bounds(norm=5.0),
            outcome_bounds=Bounds(norm=11.0),
            outcome_moments="diagonal",
            public_covariance=True,
        ),
        n=3000,
        d=3,
        l=7,
    )
    other = dataclasses.replace(release, plan=plan)
    assert not uncertainty.coefficient_intervals(other).trusted.any()
    assert not uncertainty.goodness_of_fit(other).trusted.any()
    assert "reference panel" in uncertainty.summary(other)
