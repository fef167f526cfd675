"""Figures show the numbers of the release, and ask for matplotlib by name where it is missing."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest

import primo
from primo.released import uncertainty

mpl.use("Agg")

from matplotlib import pyplot


@pytest.fixture(scope="module")
def release():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(20_000, 4))
    Y = X @ np.array([[1.0, 0, 0.5], [0, 1, 0], [0.5, 0, 0], [0, 0, 0]])
    Y += rng.normal(size=Y.shape) * 0.3
    model = primo.PrimoRegressor(
        epsilon=5,
        delta=1e-8,
        feature_bounds=(-1, 1),
        outcome_bounds=(-3, 3),
        rounds=1,
        random_state=1,
    )
    with pytest.warns(primo.ReproducibleNoiseWarning):
        return model.fit(X, Y).release_


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


def test_coefficients_and_their_intervals_are_drawn(release):
    axes = primo.plots.coefficients(release, "y1")
    found = uncertainty.coefficient_intervals(release)
    points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    spans = [line.get_xdata() for line in axes.lines if len(line.get_xdata()) == 2][:4]
    np.testing.assert_allclose(points[::-1], found.estimate[:4, 1])
    np.testing.assert_allclose([s[0] for s in spans[::-1]], found.lower[:4, 1])
    np.testing.assert_allclose([s[1] for s in spans[::-1]], found.upper[:4, 1])
    assert [label.get_text() for label in axes.get_yticklabels()][::-1] == [*release.feature_names]


def test_the_features_with_the_most_evidence_are_kept(release):
    axes = primo.plots.coefficients(release, 0, kind="posterior", most=2)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x2", "x0"]


def test_r_squared_is_sorted_and_undetermined_outcomes_are_counted(release):
    axes = primo.plots.r_squared(release)
    fit = uncertainty.goodness_of_fit(release)
    drawn = np.concatenate([line.lines[0].get_ydata() for line in axes.containers])
    np.testing.assert_allclose(np.sort(drawn), np.sort(fit.r_squared[fit.trusted]))
    assert f"{fit.trusted.sum()} of 3 outcomes" in axes.get_xlabel()


def test_a_figure_without_points_says_why():
    rng = np.random.default_rng(2)
    model = primo.PrimoRegressor(
        epsilon=0.05, delta=1e-8, feature_bounds=(-1, 1), outcome_bounds=(-3, 3)
    )
    poor = model.fit(rng.uniform(-1, 1, size=(300, 4)), rng.normal(size=(300, 2))).release_
    axes = primo.plots.r_squared(poor)
    assert not poor.goodness_of_fit().trusted.any()
    assert "determined for none of the outcomes" in axes.texts[0].get_text()


def test_the_chosen_budget_lies_on_the_curve(release):
    axes = primo.plots.accuracy_against_epsilon(release)
    curve, _, chosen = axes.lines
    at = list(curve.get_xdata()).index(5)
    assert chosen.get_xdata()[0] == 5
    assert chosen.get_ydata()[0] == curve.get_ydata()[at]
    assert curve.get_ydata()[0] < curve.get_ydata()[-1]


def test_it_is_drawn_before_there_is_data():
    axes = primo.plots.accuracy_against_epsilon(n=5000, d=3, l=4, epsilon=1)
    assert axes.lines[2].get_xdata()[0] == 1
    with pytest.raises(primo.InputError, match="l is missing"):
        primo.plots.accuracy_against_epsilon(n=5000, d=3, epsilon=1)
    with pytest.raises(primo.InputError, match="unknown 'rows'"):
        primo.plots.accuracy_against_epsilon(rows=5000)


def test_noise_has_length_one(release):
    axes = primo.plots.noise_and_signal(release)
    ends = [bar.get_x() + bar.get_width() for bar in axes.patches]
    np.testing.assert_allclose(ends[1::2], 1.0)
    assert all(end > 1 for end in ends[::2])


def test_given_axes_are_used(release):
    _, axes = pyplot.subplots()
    assert primo.plots.r_squared(release, ax=axes) is axes


@pytest.mark.parametrize("draw", ["coefficients", "r_squared", "noise_and_signal"])
def test_what_is_no_release_is_refused(draw):
    with pytest.raises(primo.InputError, match="expected a release"):
        getattr(primo.plots, draw)("release/")


def test_matplotlib_is_loaded_when_a_figure_is_drawn():
    script = "import sys, primo; primo.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_without_matplotlib_the_extra_is_named(release, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(primo.InputError, match=r"primo-dp\[plots\]"):
        primo.plots.r_squared(release)


class TestNotebooks:
    def test_a_release_is_a_table_of_its_statement(self, release):
        html = release._repr_html_()
        for word in ("Privacy statement: 3 regressions", "Guarantee", "epsilon = 5", "Fit"):
            assert word in html
        assert html.count("<tr>") == release.statement().count("\n") - _continued(
            release
        ) + 1 + len(release.doubts())

    def test_names_cannot_become_markup(self, release):
        from primo._util.html import facts, grid, plain

        bad = "<script>alert(1)</script>"
        for html in (facts(bad, [(bad, bad)]), grid(bad, [bad], [[bad]], notes=[bad]), plain(bad)):
            assert "<script>" not in html

    def test_a_plan_shows_its_guarantee(self, release):
        html = release.plan._repr_html_()
        assert repr(release.plan.epsilon) in html
        assert "20000 rows, 4 features, 3 outcomes" in html

    def test_a_summary_is_a_text_with_columns(self, release):
        text = release.summary("y0")
        assert isinstance(text, str)
        assert text.startswith(" ")
        assert "Private linear regression" in text._repr_html_()
        assert repr(text) == str(text)

    def test_a_comparison_marks_what_it_recommends(self):
        table = primo.compare_plans(n=2000, d=2, l=2, epsilon=5, protection="both")
        html = table._repr_html_()
        assert "font-weight:bold" in html
        assert f"{table.recommended.predicted_r2:.3f}" in html
        assert "Recommended: protection=" in html


def _continued(release):
    """Lines of a statement that continue the one above."""
    return sum(line.startswith(" " * 14) for line in release.statement().splitlines())
