"""Planted secrets stay hidden when a fit breaks in the middle, seen from outside."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import primo
from primo.cli import main
from primo.ledger import create_ledger
from primo.privacy.budget import Budget
from primo.rows.person_tokens import sketch
from primo.rows.sources.tabular.tables import table_source
from sentinels import PEOPLE, SENTINELS, WHO, N, fit, frame, values, without_digests


class Breaking:
    """Rows that fail after some were read."""

    feature_names, outcome_names, n = ("x0", "x1"), ("y",), N

    def __init__(self, error):
        self.error = error

    def ids(self):
        return np.array(PEOPLE)

    def part(self, start, stop):
        raise self.error

    def blocks(self, rows):
        from primo.rows.sources.base import Block

        yield Block(features=values()[:20, :2], outcomes=values()[:20, 2:])
        raise self.error


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), MemoryError(), OSError(28, "No space left", "f")]
)
def test_interrupted_in_the_middle(watch, error):
    with watch.looking():
        fit(Breaking(error))
    assert watch.errors == [error]


def command(line, folder, script="", **environment):
    """Run the command line in a process of its own, as a user does."""
    code = f"{script}\nfrom primo.cli import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", code, *line.split()],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )


INTERRUPT = """
import primo.rows.moments as m
def fold(*a, **k): raise KeyboardInterrupt
import primo.workflow.pipeline as p
p.fold = fold
"""
FOREIGN = """
import primo.workflow.pipeline as p
def fold(source, *a, **k):
    raise RuntimeError(next(iter(source.blocks(40))).features.tolist(), source.ids().tolist())
p.fold = fold
"""


@pytest.mark.parametrize("script", ["", INTERRUPT, FOREIGN], ids=["text", "interrupt", "foreign"])
def test_the_command_line_from_outside(tmp_path, script):
    frame(None if script else WHO).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "b.toml").write_text(
        "[features]\nlower=-1\nupper=1\n[outcomes]\nlower=-1\nupper=1\n"
    )
    line = "fit --table t.csv --features x* --outcomes y --id-column id --bounds b.toml --epsilon 1"
    line += " --delta 1e-6 --out r --ledger l"
    assert command("ledger init l --epsilon 5 --delta 1e-6", tmp_path).returncode == 0
    done = command(line, tmp_path, script)
    assert done.returncode in (1, 2)
    seen = done.stdout + done.stderr
    seen += "".join(p.name for p in tmp_path.rglob("*"))
    seen += (tmp_path / ".r.primo-partial" / "job.json").read_text()
    for word in SENTINELS:
        assert word not in without_digests(seen), seen


def test_predictions_and_reprs(tmp_path, watch):
    table = frame()
    table.to_csv(tmp_path / "t.csv", index=False)
    release = fit(
        table_source(tmp_path / "t.csv", features=["x0", "x1"], outcomes=["y"], id_column="id")
    )
    primo.write_bundle(release, tmp_path / "b")
    table.loc[17, "x0"] = np.nan
    table.to_csv(tmp_path / "t.csv", index=False)
    line = f"predict {tmp_path}/b --table {tmp_path}/t.csv --id-column id --out {tmp_path}/p.tsv"
    with watch.looking():
        result = CliRunner().invoke(main, line.split())
        watch.texts.append(result.output)
        assert result.exit_code == 2
        ledger = create_ledger(tmp_path / "l", limit=Budget(epsilon=1, delta=1e-6))
        source = table_source(tmp_path / "t.csv", features=["x0"], outcomes=["y"], id_column="id")
        people = sketch(source, ledger.key)
        blocks = list(source.blocks(7))
        for thing in (
            source,
            source.columns,
            source.columns.store,
            people,
            ledger,
            blocks,
            release,
        ):
            watch.texts += [repr(thing), str(thing), f"{thing}"]
        watch.texts.append(repr(ledger.key))
        assert ledger.key.secret.hex() not in repr(ledger.key)
    assert not (Path(tmp_path) / "p.tsv").exists()
