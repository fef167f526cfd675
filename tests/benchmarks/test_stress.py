"""The stress suite itself: cells are what they say, and a planted failure is noticed."""

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import primo
from benchmarks.stress import checks, real, score, tradeoff
from benchmarks.stress.cells import CELLS
from benchmarks.stress.designs import at_level, collinear, genotypes, indicators
from benchmarks.stress.page import page, report
from benchmarks.stress.problem import Cell
from benchmarks.stress.results import Result
from benchmarks.stress.rules import centred, from_zero, plain, ranged, without_offset
from benchmarks.stress.runner import run
from benchmarks.stress.score import Draw, Score, make_release, r_squared, released_means, score_draw
from benchmarks.stress.simulated import Simulated, mixed
from benchmarks.stress.verdicts import judge
from experiments.figures.features import MissingData

TINY = Cell(family="tests", name="tiny", epsilon=3.0, problem=Simulated(n=200, d=3, l=2, held=300))


@pytest.fixture(scope="module")
def draw() -> Draw:
    return score_draw(TINY, 0)


def good(draw: Draw) -> Draw:
    """A draw with which every verdict is content."""
    scores = {
        name: Score(median=value, mean=value, pooled=value)
        for name, value in (("auto", 0.4), ("ridge", 0.4), ("filter", 0.39), ("mean only", 0.0))
    }
    fit = checks.Fit(outcomes=100, intervals=100, covered=95, broken=0, published=0.41)
    return replace(draw, scores=scores, fit=fit, forecast=0.42)


def with_score(draw: Draw, method: str, **values: float) -> Draw:
    changed = replace(draw.scores[method], **values)
    return replace(draw, scores={**draw.scores, method: changed})


def missed(*draws: Draw) -> list[str]:
    verdicts = judge([Result(cell=TINY, draws=draws)])
    return [verdict.asked for verdict in verdicts if not verdict.met]


def test_a_draw_scores_every_method_on_one_release(draw):
    assert set(draw.scores) == {*score.METHODS, "true mean"}
    assert draw.shape == (200, 3, 2)
    assert 0.0 < draw.scores["auto"].pooled < 0.5
    assert abs(draw.scores["true mean"].pooled) < 0.05
    assert draw.forecast is not None


def test_a_draw_is_the_same_when_it_is_run_again(draw):
    again = score_draw(TINY, 0)
    assert asdict(again) == asdict(draw)
    assert asdict(score_draw(TINY, 1)) != asdict(draw)
    assert Draw.from_json(asdict(draw)) == draw


def test_what_is_good_is_called_good(draw):
    assert missed(*[good(draw)] * 20) == []


@pytest.mark.parametrize(
    ("method", "values", "words"),
    [
        ("auto", {"median": -0.06}, "no draw below R² = -0.05 for the median outcome"),
        ("auto", {"pooled": -0.2}, "no draw below R² = -0.1 for all outcomes pooled"),
        ("ridge", {"pooled": 0.7}, "mean R² (pooled) never more"),
        ("filter", {"median": 0.99}, "mean R² (median) never more"),
    ],
)
def test_one_bad_draw_of_twenty_is_noticed(draw, method, values, words):
    fine = good(draw)
    found = missed(*[fine] * 19, with_score(fine, method, **values))
    assert any(words in asked for asked in found), found


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        ({"broken": 1}, "no interval of R² without its estimate"),
        ({"covered": 80}, "intervals of R² cover"),
        ({"covered": 100}, "intervals of R² cover"),
        ({"published": 1.02}, "estimated R² of what is published"),
    ],
)
def test_a_wrong_goodness_of_fit_is_noticed(draw, fit, words):
    fine = good(draw)
    (found,) = missed(replace(fine, fit=replace(fine.fit, **fit)))
    assert words in found


def test_a_wrong_forecast_is_noticed_and_an_untrusted_estimate_is_not_counted(draw):
    fine = good(draw)
    (found,) = missed(replace(fine, forecast=0.6))
    assert "forecast" in found
    assert missed(replace(fine, fit=replace(fine.fit, published=None))) == []


def test_an_interval_without_its_estimate_is_counted(monkeypatch, draw):
    rng = TINY.rng(0)
    problem = TINY.problem(rng)
    release = score.make_release(TINY, problem, 1)
    made = release.goodness_of_fit(target="population")
    outside = replace(made, r_squared=np.zeros(2), lower=np.ones(2), upper=np.ones(2))
    monkeypatch.setattr(type(release), "goodness_of_fit", lambda self, **how: outside)
    fit = checks.check_fit(release, problem, judged=False)
    assert (fit.broken, fit.covered) == (2, 0)


def test_r_squared_of_the_held_out_mean_is_zero_and_pooling_is_in_scaled_units():
    problem = TINY.problem(TINY.rng(0))
    means = problem.held_outcomes.mean(axis=0)
    scale = np.array([1.0, 1e3])
    assert r_squared(problem, means, scale).pooled == pytest.approx(0.0)
    off = r_squared(problem, means + np.array([0.0, 1.0]), scale)
    assert off.pooled == pytest.approx(
        0.0, abs=1e-3
    )  # the bad outcome counts little in these units
    assert off.median == pytest.approx(-0.5, rel=0.2)


@pytest.mark.parametrize("intercept", [True, False])
def test_the_mean_only_predictor_is_the_released_mean(intercept):
    how = Simulated(n=5000, d=2, l=2, means=(3.0, -1.0), outcomes=ranged(-6, 8), held=300)
    cell = Cell(family="tests", name="means", epsilon=10.0, intercept=intercept, problem=how)
    release = score.make_release(cell, cell.problem(cell.rng(0)), 1)
    # Noise of a mean: 2·norm·√(d + 1)/(μn) half-widths, about 0.01 here.
    expected = [3.0, -1.0] if intercept else [1.0, 1.0]
    assert released_means(release) == pytest.approx(expected, abs=0.15)


def test_rules_read_the_panel_as_they_say():
    panel = 8.0 + np.random.default_rng(0).standard_normal((4000, 25))
    assert ranged(0, 12, 1.0)(panel).norm == pytest.approx(np.sqrt(25 * (1 + 4)) / 6, rel=0.02)
    assert without_offset(0, 12)(panel).norm == pytest.approx(1.2 * 5 / 6, rel=0.02)
    assert centred()(panel).norm == pytest.approx(1.35 * 5)
    assert centred(1.0, off=2.0)(panel).norm == pytest.approx(5 * np.sqrt(5))
    assert from_zero(1.0)(panel).norm == pytest.approx(5 * np.sqrt(65), rel=0.05)
    assert plain(1.0)(panel).norm == pytest.approx(5 * np.sqrt(65), rel=0.05)


def test_designs_are_what_they_say():
    rng = np.random.default_rng(1)
    values = np.linalg.eigvalsh(np.cov(collinear(1e5)(20_000, 6, rng).T))
    assert values[-1] / values[0] == pytest.approx(1e5, rel=0.2)
    assert set(np.unique(genotypes()(500, 20, rng))) == {0.0, 1.0, 2.0}
    assert at_level(900.0, 10.0)(500, 1, rng).mean() == pytest.approx(900, abs=3)
    assert (indicators(100, 7, rng).sum(axis=1) == 1).all()


def test_simulated_outcomes_have_the_stated_means_and_signal():
    how = Simulated(n=20_000, d=4, l=20, far=(16.0, 23.5), effects=mixed, r2=0.5)
    problem = how(np.random.default_rng(2))
    assert problem.outcomes.mean(axis=0)[:3] == pytest.approx([16.0, 23.5, 0.0], abs=0.05)
    assert problem.outcomes.std(axis=0) == pytest.approx(np.ones(20), abs=0.05)
    assert (problem.explained > 0).sum() == 2
    assert checks.least_squares(problem) == pytest.approx(problem.explained, abs=0.03)


def test_the_suite_covers_what_it_is_to_cover():
    assert len(CELLS) >= 60
    assert len({cell.title for cell in CELLS}) == len(CELLS)
    simulated = [c.problem for c in CELLS if isinstance(c.problem, Simulated)]
    assert {1, 5, 50, 1000} <= {how.l for how in simulated}
    assert {1, 1000} <= {how.d for how in simulated}
    assert {150, 20_000} <= {how.n for how in simulated}
    assert {0.3, 10} <= {cell.epsilon for cell in CELLS}
    assert {cell.protection for cell in CELLS} == {"both", "features", "outcomes"}
    assert {cell.intercept for cell in CELLS} == {True, False}
    tables = {c.problem.table for c in CELLS if isinstance(c.problem, real.Real)}
    assert tables == set(real.TABLES)
    assert 10 <= sum(cell.quick for cell in CELLS) <= 25


def test_rules_see_no_fitted_row():
    seen = []

    def rule(panel):
        seen.append(panel)
        return centred()(panel)

    problem = Simulated(n=50, d=3, features=rule, outcomes=rule)(np.random.default_rng(0))
    assert np.array_equal(seen[0], problem.held_features)
    assert np.array_equal(seen[1], problem.held_outcomes)


def test_real_cells_without_their_data_are_skipped_with_a_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(real, "_folder", tmp_path)
    real.load.cache_clear()
    cell = next(cell for cell in CELLS if cell.family == "real: 1000 Genomes")
    with pytest.raises(MissingData, match="kg_hap5008"):
        cell.problem(cell.rng(0))
    result = Result(cell=cell, draws=(), skipped="not here")
    assert all(verdict.met for verdict in judge([result]))
    assert "skipped: not here" in page([result], judge([result]), 20)


def test_a_run_goes_on_from_the_draws_that_were_kept(tmp_path: Path, capsys):
    cell = next(cell for cell in CELLS if cell.title == "sizes, signals, bounds: few rows")
    keep = tmp_path / "draws.jsonl"
    (first,) = run([cell], draws=2, jobs=1, data=tmp_path, keep=keep)
    lines = keep.read_text().splitlines()
    assert len(lines) == 2
    keep.write_text(lines[0] + "\n" + lines[1][:40])  # broken off in the middle of a line
    (again,) = run([cell], draws=2, jobs=1, data=tmp_path, keep=keep)
    assert again.draws == first.draws
    assert "1/1" in capsys.readouterr().err.split("\n")[-2]


def test_page_and_report_name_every_cell_and_every_miss(draw):
    bad = with_score(good(draw), "auto", pooled=-0.2, median=-0.2)
    results = [Result(cell=TINY, draws=(bad,))]
    verdicts = judge(results)
    written, said = page(results, verdicts, 1), report(results, verdicts)
    assert "| tiny | 200 | 3 | 2 | 3 | -0.200 |" in written
    assert "tests: tiny (-0.200)" in written
    assert "MISSED no draw below" in said
    assert all(line.count("|") == 18 for line in written.splitlines() if line.startswith("| tiny"))


def test_a_cliff_is_missed_in_every_run(draw):
    """A handful of draws, as in CI, is enough to see one; a slip that luck explains is not one."""
    fallen = with_score(good(draw), "auto", pooled=-0.3)
    slipped = with_score(good(draw), "auto", pooled=-0.12)
    for found, cliff in ((fallen, True), (slipped, False)):
        verdicts = judge([Result(cell=TINY, draws=(good(draw),) * 9 + (found,))])
        assert any(v.every_run and not v.met for v in verdicts) is cliff
        assert any("no draw below R² = -0.1" in v.asked and not v.met for v in verdicts)


def test_rounds_are_judged_against_one_round_and_rivals(draw):
    found = score_draw(TINY, 0, "auto")
    assert set(found.scores) == {*score.METHODS, "true mean", "one round", "AdaSSP", "IHM"}
    assert found.scores["one round"] == draw.scores["auto"]
    assert found.scores["AdaSSP"].pooled < 0.5  # what the features explain
    told = report([Result(cell=TINY, draws=(found,))], judge([Result(cell=TINY, draws=(found,))]))
    assert "AdaSSP" in told.splitlines()[0]
    ahead = Score(median=0.5, mean=0.5, pooled=0.5)
    fine = good(draw)
    fine = replace(
        fine,
        scores={**fine.scores, "one round": fine.scores["auto"], "AdaSSP": fine.scores["ridge"]},
    )
    assert not missed(fine)
    for name, words in (("AdaSSP", "best of ridge, AdaSSP and IHM"), ("one round", "one round")):
        late = replace(fine, scores={**fine.scores, name: ahead})
        assert any(words in asked for asked in missed(late))
    low = with_score(fine, "auto", pooled=-0.06)
    assert "rounds: no draw below R² = -0.05, pooled" in missed(low)


def test_kept_draws_of_other_rounds_are_not_used(tmp_path: Path, capsys):
    cell = next(cell for cell in CELLS if cell.title == "sizes, signals, bounds: few rows")
    keep = tmp_path / "draws.jsonl"
    run([cell], draws=1, jobs=1, data=tmp_path, keep=keep)
    (again,) = run([cell], draws=1, jobs=1, data=tmp_path, keep=keep, rounds="auto")
    assert again.rivals
    assert len(keep.read_text().splitlines()) == 2
    capsys.readouterr()


def test_guards_against_slopes_are_compared_on_matched_releases():
    found = {share: tradeoff.draws_of(share, 2) for share in (0.0, 0.8)}
    for draw in (d for draws in found.values() for d in draws):
        assert 0 < draw.nothing < 1
        assert draw.r_squared(0.0) < 0.02  # a constant explains nothing
        assert set(draw.others) == {"ridge", "filter", "mean only"}
    compared = tradeoff.compare(found)
    behind, costs = compared["none"]
    assert costs == {0.8: 0.0}
    best = max(np.mean([d.others[name] for d in found[0.0]]) for name in found[0.0][0].others)
    assert behind == pytest.approx(best - np.mean([d.r_squared(1.0) for d in found[0.0]]))
    slopes = compared["slopes times 0.6"][1][0.8]
    expected = [d.r_squared(1.0) - d.r_squared(0.6) for d in found[0.8]]
    assert slopes == pytest.approx(np.mean(expected))
    assert "slopes times 0.6" in tradeoff.table(compared, 2)


def test_r_squared_of_all_slopes_is_that_of_the_default():
    """The quadratic in the share that is kept, against predictions."""
    cell = tradeoff.sibling(0.6)
    rng = cell.rng(tradeoff.FIRST)
    problem = cell.problem(rng)
    release = make_release(cell, problem, int(rng.integers(2**31)))
    predicted = primo.coefficients(release).predict(problem.held_features)
    (draw,) = tradeoff.draws_of(0.6, 1)
    held = problem.held_outcomes
    assert draw.r_squared(1.0) == pytest.approx(1 - np.mean((held - predicted) ** 2) / held.var())
