"""Run what a study still lacks: resumable, in parallel, with an estimate of the time left.

Each unit of work (one repeat of one cell) is written when it is done, so an interrupted run loses at
most the units in flight. A unit whose file lacks a method is drawn again from the same seed and only the
missing methods are run.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import subprocess
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

import primo
from baselines.diffprivlib import MissingEnvironment
from experiments.figures import results
from experiments.figures.features import Data, MissingData, prepare, source_of
from experiments.figures.grid import Study, Unit
from experiments.figures.methods import METHODS, Fit
from experiments.figures.outcomes import IN_BLOCKS, draw
from experiments.figures.problem import Problem
from experiments.figures.results import Score
from primo.errors import InputError

__all__ = ["run_study"]

_EVERY = 20.0  # seconds between lines where there is no terminal


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a worker process is sent."""

    study: str
    unit: Unit
    data: Data
    path: Path
    commit: str


def run_study(
    study: Study,
    *,
    data: Data,
    folder: Path,
    workers: int,
    console: Console,
    again: Sequence[str] = (),
    outcomes: Sequence[int] = (),
    stored: Sequence[Score] = (),
) -> list[Score]:
    """Run what is missing and return all scores of the study, in the order of its grid.

    With `again`, only these methods are run: all others are taken from `stored`, the scores of an
    earlier run of the whole study, and what was neither stored nor named stays out. With `outcomes`,
    so are all scores of cells with other numbers of outcomes.
    """

    def named(unit: Unit) -> Sequence[str]:
        return again if not outcomes or unit.cell.l in outcomes else ()

    units = list(study.units())
    if again:
        units = _only(units, again, named, stored)
        folder = folder / "again" / "+".join([*sorted(again), *map(str, sorted(outcomes))])
    commit = _commit()
    tasks = []
    paths = {
        unit: results.part_path(folder, study.name, unit, source_of(unit.cell.features, data))
        for unit in units
    }
    for unit, path in paths.items():
        if again and not path.exists():
            results.write(_kept(unit, named(unit), stored), path)
        missing = _missing(unit, path)
        if missing:
            todo = Unit(cell=unit.cell, repeat=unit.repeat, methods=missing)
            tasks.append(Task(study=study.name, unit=todo, data=data, path=path, commit=commit))
    if len(tasks) < len(units):
        console.print(f"{study.name}: {len(units) - len(tasks)} of {len(units)} units are done")
    for features in sorted({task.unit.cell.features for task in tasks}):
        with suppress(MissingData):  # said of each unit later
            prepare(features, data=data)  # once, not by every worker
    _run_all(study, tasks, workers=workers, console=console)
    scores: list[Score] = []
    for unit in units:
        wanted = set(unit.methods)
        found = results.read(paths[unit])
        scores.extend(score for score in found if score.method in wanted)
    return scores


def _kept(unit: Unit, again: Sequence[str], stored: Sequence[Score]) -> list[Score]:
    """Return the stored scores of a unit, without those of the methods that are run again."""
    key = (unit.cell.features, unit.cell.outcomes, unit.cell.n, unit.cell.l, unit.repeat)
    return [
        score
        for score in stored
        if (score.features, score.outcomes, score.n, score.l, score.repeat) == key
        and score.method in unit.methods
        and score.method not in again
    ]


def _only(
    units: Sequence[Unit],
    again: Sequence[str],
    named: Callable[[Unit], Sequence[str]],
    stored: Sequence[Score],
) -> list[Unit]:
    """Return the units with the methods that are stored or run again (`named` of each unit)."""
    for name in again:
        if name not in METHODS:
            raise InputError(f"no method {name!r}; there are: {', '.join(METHODS)}")
    chosen = []
    for unit in units:
        kept = {score.method for score in _kept(unit, named(unit), stored) if not score.skipped}
        names = tuple(name for name in unit.methods if name in kept or name in named(unit))
        if names:
            chosen.append(Unit(cell=unit.cell, repeat=unit.repeat, methods=names))
    return chosen


def _missing(unit: Unit, path: Path) -> tuple[str, ...]:
    """Return the methods that a unit lacks; a skipped one is tried again."""
    if not path.exists():
        return unit.methods
    done = {score.method for score in results.read(path) if not score.skipped}
    return tuple(name for name in unit.methods if name not in done)


def _run_all(study: Study, tasks: list[Task], *, workers: int, console: Console) -> None:
    if not tasks:
        return
    # Large problems first, so that none of them is left for the end.
    tasks = sorted(tasks, key=_effort, reverse=True)
    # Fresh interpreters with one BLAS thread each; inherited by spawn.
    os.environ["OMP_NUM_THREADS"] = "1"
    context = multiprocessing.get_context("spawn")
    with (
        ProcessPoolExecutor(workers, mp_context=context) as pool,
        _progress(study.name, sum(map(_effort, tasks)), console) as advance,
    ):
        futures = {pool.submit(run_task, task): task for task in tasks}
        try:
            for future in as_completed(futures):
                for reason in future.result():
                    console.print(f"  skipped: {reason}", highlight=False)
                advance(_effort(futures[future]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def run_task(task: Task) -> list[str]:
    """Draw the data once, run every method on them, and write the scores; return what was skipped."""
    cell = task.unit.cell
    seed = _seed(str(cell), task.unit.repeat)
    earlier = results.read(task.path) if task.path.exists() else []
    names = task.unit.methods
    try:
        problem = draw(cell, data=task.data, rng=np.random.default_rng(seed))
    except MissingData as problem_with_data:
        fresh = [_score(task, name, seed, skipped=str(problem_with_data)) for name in names]
    else:
        reference = METHODS["ols"].fit(problem, cell.epsilon, cell.delta, seed)
        fresh = [_run_method(task, name, problem, reference, seed) for name in names]
    kept = [score for score in earlier if score.method not in names]
    results.write([*kept, *fresh], task.path)
    return sorted({f"{cell}: {s.method}: {s.skipped}" for s in fresh if s.skipped})


def _run_method(task: Task, name: str, problem: Problem, reference: Fit, seed: int) -> Score:
    cell, method = task.unit.cell, METHODS[name]
    if method.needs_rows and problem.rows is None:
        reason = f"needs rows, and {cell.n} × {cell.l} outcomes are not held"
        return _score(task, name, seed, skipped=reason)
    try:
        fit = method.fit(problem, cell.epsilon, cell.delta, _seed(name, seed))
    except MissingEnvironment as missing:
        return _score(task, name, seed, skipped=str(missing))
    except Exception as error:
        error.add_note(f"in {name} on {cell}, repeat {task.unit.repeat}")
        raise
    return _score(task, name, seed, problem=problem, fit=fit, reference=reference)


def _score(
    task: Task,
    name: str,
    seed: int,
    *,
    problem: Problem | None = None,
    fit: Fit | None = None,
    reference: Fit | None = None,
    skipped: str = "",
) -> Score:
    cell = task.unit.cell
    sizes = problem or cell  # a user's file may have fewer rows than the paper's
    r2 = mse = log_ratio = time_ratio = epsilon = delta = math.nan
    fitted = 0
    if problem is not None and fit is not None and reference is not None:
        truth, least = problem.truth, reference.slopes
        if fit.chosen is not None:
            truth, least = truth.of_outcomes(fit.chosen), least[:, fit.chosen]
        fitted = fit.slopes.shape[1]
        r2 = truth.r_squared(fit.slopes)
        error = truth.squared_error(fit.slopes)
        mse = error / (problem.n * fitted)
        log_ratio = math.log(error / truth.squared_error(least))
        time_ratio = fit.seconds / reference.seconds
        epsilon, delta = fit.epsilon, fit.delta
    return Score(
        study=task.study,
        features=cell.features,
        outcomes=cell.outcomes,
        n=sizes.n,
        d=sizes.d,
        l=sizes.l,
        repeat=task.unit.repeat,
        seed=seed,
        method=name,
        protection=METHODS[name].protection,
        epsilon_requested=cell.epsilon,
        delta_requested=cell.delta,
        epsilon_true=epsilon,
        delta_true=delta,
        r2=r2,
        mse=mse,
        log_ratio=log_ratio,
        time_ratio=time_ratio,
        fitted_outcomes=fitted,
        from_moments=problem is not None and problem.rows is None,
        skipped=skipped,
        version=primo.__version__,
        commit=task.commit,
    )


def _seed(text: str, number: int) -> int:
    """Return a seed that does not depend on the order or the set of what is run."""
    sequence = np.random.SeedSequence([zlib.crc32(text.encode()), number])
    return int(sequence.generate_state(1)[0])


def _effort(task: Task) -> float:
    """Guess the seconds of a unit: for the order of work and the time left."""
    cell, names = task.unit.cell, task.unit.methods
    n, d, l = cell.n, cell.d, cell.l
    drawing = 5e-7 * n * d + 4e-8 * min(n * l, IN_BLOCKS) + 1e-9 * n * d**2
    composed = 3e-7 * l * d**2 * sum(name.startswith("ssp") for name in names)
    descents = (2 + 3e-8 * n * l * d) * sum(name.startswith("dpsgd") for name in names)
    apart = 3 * sum(name.startswith("diffprivlib") for name in names)
    return 0.5 + drawing + composed + descents + apart + 0.05 * len(names)


@contextmanager
def _progress(name: str, total: float, console: Console) -> Iterator[Callable[[float], None]]:
    """Yield a function that is told what was done; a bar on a terminal, lines elsewhere."""
    if console.is_terminal:
        columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console) as bar:
            task = bar.add_task(name, total=total)
            yield lambda effort: bar.advance(task, effort)
        return
    start = last = time.monotonic()
    done = 0.0

    def advance(effort: float) -> None:
        nonlocal done, last
        done += effort
        now = time.monotonic()
        if now - last > _EVERY or done >= total:
            last = now
            left = (now - start) * (total - done) / done / 60
            console.print(f"{name}: {done / total:.0%} done, about {left:.1f} minutes left")

    yield advance


def _commit() -> str:
    """Return the commit that is run, or "" outside of a repository."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip()
