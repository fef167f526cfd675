"""Run draws of many cells in several processes; results can be stored so that a run can be resumed."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from benchmarks.stress import real
from benchmarks.stress.cells import CELLS
from benchmarks.stress.problem import Cell
from benchmarks.stress.results import Result
from benchmarks.stress.score import Draw, score_draw
from experiments.figures.features import MissingData

__all__ = ["run"]

_BY_TITLE = {cell.title: cell for cell in CELLS}


def run(
    cells: Sequence[Cell],
    *,
    draws: int,
    jobs: int,
    data: Path,
    keep: Path | None = None,
    rounds: int | str = 1,
) -> list[Result]:
    """Run `draws` draws of every cell, or take them from the file of an earlier run."""
    titles = {cell.title for cell in cells}
    made = {key: found for key, found in _kept(keep, rounds) if key[0] in titles and key[1] < draws}
    skipped: dict[str, str] = {}
    wanted = [(c.title, k) for c in cells for k in range(draws) if (c.title, k) not in made]
    # One thread of BLAS per process: a process has a core. Workers read this when they start.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Spawned, not forked: a fork would inherit BLAS threads that are at work.
    with ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=real.use_folder, initargs=(data,)
    ) as pool:
        waiting = {pool.submit(_one, title, draw, rounds): (title, draw) for title, draw in wanted}
        for count, done in enumerate(as_completed(waiting), 1):
            title, draw = waiting[done]
            found = _result(done, title, draw)
            _say(f"{count}/{len(wanted)} {title}")
            if isinstance(found, str):
                skipped[title] = found
                continue
            made[title, draw] = found
            if keep is not None:
                with keep.open("a") as file:
                    line = {"cell": title, "draw": draw, "rounds": rounds}
                    file.write(json.dumps(line | {"found": asdict(found)}) + "\n")
    _say("", end="\n")
    return [
        Result(
            cell=cell,
            draws=tuple(made[cell.title, k] for k in range(draws) if (cell.title, k) in made),
            skipped=skipped.get(cell.title),
        )
        for cell in cells
    ]


def _one(title: str, draw: int, rounds: int | str) -> Draw | str:
    """Run one draw in a worker; a cell whose data are absent says so."""
    try:
        return score_draw(_BY_TITLE[title], draw, rounds)
    except MissingData as reason:
        return str(reason)


def _result(done: Future[Draw | str], title: str, draw: int) -> Draw | str:
    try:
        return done.result()
    except Exception as error:
        raise RuntimeError(f"draw {draw} of {title!r} failed") from error


def _kept(keep: Path | None, rounds: int | str) -> Iterator[tuple[tuple[str, int], Draw]]:
    if keep is None or not keep.exists():
        return
    whole = [line for line in keep.read_text().splitlines(keepends=True) if line.endswith("\n")]
    keep.write_text("".join(whole))  # an incomplete line is computed again
    for line in whole:
        found = json.loads(line)
        if found.get("rounds", 1) != rounds:
            continue
        yield (found["cell"], found["draw"]), Draw.from_json(found["found"])


def _say(text: str, end: str = "") -> None:
    print(f"\r{text:<79}", end=end, file=sys.stderr, flush=True)
