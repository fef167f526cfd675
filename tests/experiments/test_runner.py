"""The runner: what is finished is kept, what is missing is run, what cannot be run is said."""

import math
from concurrent.futures import Future
from dataclasses import replace

import pytest
from rich.console import Console

from experiments.figures import methods, results, runner
from experiments.figures.__main__ import main
from experiments.figures.features import Data, source_of
from experiments.figures.grid import Figure, Run, Study
from experiments.figures.plot import draw_figure
from primo.errors import InputError

NAMES = ("ols", "primo", "gauss", "adassp")


def study(**changes):
    run = Run(
        features="gaussian",
        outcomes="linear",
        n=300,
        d=3,
        epsilon=5.0,
        l=(1, 4),
        repeats=2,
        methods=NAMES,
    )
    return Study(name="tiny", title="tiny", runs=(replace(run, **changes),), figures=())


def data(tmp_path):
    return Data(kg=None, dbgap=None, mnist=None, cache=tmp_path / "cache")


@pytest.fixture
def in_this_process(monkeypatch):
    """Run tasks here: monkeypatched methods are seen, and no interpreter is started."""

    class Pool:
        def __init__(self, *_, **__):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def submit(self, function, task):
            future = Future()
            try:
                future.set_result(function(task))
            except BaseException as error:
                future.set_exception(error)
            return future

        def shutdown(self, **_):
            pass

    monkeypatch.setattr(runner, "ProcessPoolExecutor", Pool)


def run(made, tmp_path, **options):
    console = Console(record=True, width=200)
    scores = runner.run_study(
        made, data=data(tmp_path), folder=tmp_path / "parts", workers=1, console=console, **options
    )
    return scores, console.export_text()


def test_scores_are_whole_and_repeatable(tmp_path, in_this_process):
    scores, _ = run(study(), tmp_path)
    assert len(scores) == 2 * 2 * len(NAMES)
    for score in scores:
        assert math.isfinite(score.r2)
        assert score.mse > 0
        assert score.time_ratio > 0
        assert score.delta_requested == 1 / 300**2
        assert score.version
        if score.method == "ols":
            assert score.log_ratio == 0
            assert score.epsilon_true == math.inf
        else:
            assert score.log_ratio > 0  # nothing beats least squares on its own rows
            assert score.epsilon_true <= 5.0 * (1 + 1e-9)
    again, _ = run(study(), tmp_path / "elsewhere")
    assert [(s.seed, s.r2) for s in scores] == [(s.seed, s.r2) for s in again]


def test_goes_on_where_it_was_interrupted(tmp_path, in_this_process, monkeypatch):
    calls = []
    true = methods.METHODS["primo"].fit

    def stopping(problem, *rest):
        calls.append(problem.l)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return true(problem, *rest)

    monkeypatch.setitem(methods.METHODS, "primo", replace(methods.METHODS["primo"], fit=stopping))
    with pytest.raises(KeyboardInterrupt):
        run(study(), tmp_path)
    _, text = run(study(), tmp_path)
    assert "3 of 4 units are done" in text
    assert len(calls) == 5  # four, of which one stopped, and that one again


def test_only_missing_methods_are_run(tmp_path, in_this_process, monkeypatch):
    first, _ = run(study(methods=("ols", "primo")), tmp_path)

    def never(*_):
        raise AssertionError("primo is done already")

    monkeypatch.setitem(methods.METHODS, "primo", replace(methods.METHODS["primo"], fit=never))
    scores, _ = run(study(), tmp_path)
    kept = [s for s in scores if s.method == "primo"]
    assert kept == [s for s in first if s.method == "primo"]
    assert {s.method for s in scores} == set(NAMES)


def test_what_cannot_be_run_is_said_and_tried_again(tmp_path, in_this_process, monkeypatch):
    def missing(*_):
        raise runner.MissingEnvironment("make diffprivlib")

    true = methods.METHODS["primo"]
    monkeypatch.setitem(methods.METHODS, "primo", replace(true, fit=missing))
    scores, text = run(study(), tmp_path)
    assert "make diffprivlib" in text
    skipped = [s for s in scores if s.skipped]
    assert {s.method for s in skipped} == {"primo"}
    assert all(math.isnan(s.r2) for s in skipped)
    monkeypatch.setitem(methods.METHODS, "primo", true)
    assert not [s for s in run(study(), tmp_path)[0] if s.skipped]


def test_an_error_names_method_and_cell(tmp_path, in_this_process, monkeypatch):
    def wrong(*_):
        raise ValueError("oh")

    monkeypatch.setitem(methods.METHODS, "primo", replace(methods.METHODS["primo"], fit=wrong))
    with pytest.raises(ValueError, match="oh") as caught:
        run(study(), tmp_path)
    assert "in primo on gaussian linear n=300" in caught.value.__notes__[0]


def test_results_come_back(tmp_path, in_this_process):
    scores, _ = run(study(l=(1,), repeats=1), tmp_path)
    results.write(scores, tmp_path / "deep" / "scores.parquet")
    assert results.read(tmp_path / "deep" / "scores.parquet") == scores


def test_figures_are_drawn_twice_the_same(tmp_path, in_this_process):
    scores, _ = run(study(), tmp_path)
    figure = Figure(
        name="0",
        title="tiny",
        metric="r2",
        methods=("ols", "primo"),
        l=(1, 4),
        outcomes="linear",
        n=300,
    )
    first = [path.read_bytes() for path in draw_figure(figure, scores, tmp_path / "a")]
    again = [path.read_bytes() for path in draw_figure(figure, scores, tmp_path / "b")]
    assert first == again
    assert b"primo" in first[0]


def test_results_of_one_file_are_not_those_of_another(tmp_path):
    cell = next(study().units())
    one, other = tmp_path / "one.vcf.gz", tmp_path / "other.vcf.gz"
    one.write_text("a")
    other.write_text("ab")
    seen = {
        results.part_path(tmp_path, "1kg", cell, source_of("1kg", Data(kg=path)))
        for path in (None, one, other)
    }
    assert len(seen) == 3
    one.write_text("changed")
    assert results.part_path(tmp_path, "1kg", cell, source_of("1kg", Data(kg=one))) not in seen
    assert source_of("gaussian", Data(kg=one)) == ""


@pytest.mark.parametrize(
    "options", [["--workers", "0"], ["--workers", "many"], ["--only", "2kg"]], ids=str
)
def test_bad_options_end_with_2(options, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["experiments.figures", "--quick", *options])
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert options[1] in "".join(capsys.readouterr())


def test_chosen_methods_are_run_again_and_all_others_are_taken_as_stored(
    tmp_path, in_this_process, monkeypatch
):
    options = {"data": data(tmp_path), "workers": 1, "console": Console(quiet=True)}
    first = runner.run_study(study(), folder=tmp_path / "a", **options)
    marked = [replace(score, version=f"of {score.method}") for score in first]
    ran = []
    whole = runner._run_method

    def watched(task, name, *rest):
        ran.append(name)
        return whole(task, name, *rest)

    monkeypatch.setattr(runner, "_run_method", watched)
    scores = runner.run_study(
        study(), folder=tmp_path / "b", again=("primo",), stored=marked, **options
    )
    assert set(ran) == {"primo"}
    assert {(s.method, s.l, s.repeat) for s in scores} == {(s.method, s.l, s.repeat) for s in first}
    assert {s.version for s in scores if s.method != "primo"} == {"of ols", "of gauss", "of adassp"}
    assert not any(s.version == "of primo" for s in scores)
    few = min(score.l for score in first)
    scores = runner.run_study(
        study(),
        folder=tmp_path / "c",
        again=("primo",),
        outcomes=(few,),
        stored=marked,
        **options,
    )
    kept = {(score.method, score.l) for score in scores if score.version.startswith("of ")}
    ran_again = {(score.method, score.l) for score in scores} - kept
    assert ran_again == {("primo", few)}
    assert len(scores) == len(first)
    with pytest.raises(InputError, match="no method 'prima'"):
        runner.run_study(study(), folder=tmp_path / "b", again=("prima",), **options)
