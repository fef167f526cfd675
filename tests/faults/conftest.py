"""Runs of the program that something happens to, and what has to be true afterwards.

A zygote, a process that has loaded everything, forks once for each run: a run starts in milliseconds,
with its own working folder, and can be killed at any moment.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from primo.ledger import open_ledger
from primo.released.bundle import read_bundle

ZYGOTE = """
import json, os, signal, sys, time
from primo.cli import main
for name in main.list_commands(None):
    main.get_command(None, name)
import primo.released.bundle, primo.workflow.fit, primo.ledger, primo.workflow.publish
import primo.rows.sources.tabular.tables
import pyarrow.csv, pyarrow.parquet, pyarrow.compute, scipy.special, sqlite3
import jinja2, jsonschema
import primo.released.uncertainty.published as published
published.MOST_RUNS = 6  # as tests/conftest.py has it: what is killed here writes files
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        os.chdir(job["folder"])
        said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1), os.dup2(said, 2)
        code = 99
        try:
            exec(job["hook"])
            main(job["line"].split())
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    if job["kill_after"] is not None:
        time.sleep(job["kill_after"])
        os.kill(child, signal.SIGKILL)
    began = time.monotonic()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(json.dumps([status, time.monotonic() - began]), flush=True)
"""


class Program:
    """The command line, in a folder of its own with a small cohort and a ledger."""

    fit_line = (
        "fit --table rows.csv --features x* --outcomes y* --id-column id --bounds bounds.toml "
        "--epsilon 2 --delta 1e-6 --out out/release --ledger {ledger} --purpose faults --threads 1"
    )

    def __init__(self, zygote, folder, *, ledger="books.ledger", said=None, key=None):
        self.zygote, self.folder, self.ledger = zygote, folder, ledger
        self.output = said or folder / "said.txt"
        self.environment = {} if key is None else {"PRIMO_LEDGER_KEY_FILE": str(key)}
        (folder / "out").mkdir()
        rng = np.random.default_rng(1)
        table = rng.uniform(-1, 1, size=(400, 6))
        rows = (f"p{i}," + ",".join(f"{v:.4f}" for v in row) for i, row in enumerate(table))
        (folder / "rows.csv").write_text("id,x0,x1,x2,y0,y1,y2\n" + "\n".join(rows) + "\n")
        limits = "lower = -1\nupper = 1\n"
        (folder / "bounds.toml").write_text(f"[features]\n{limits}[outcomes]\n{limits}")
        assert self.run(f"ledger init {ledger} --epsilon 9 --delta 1e-5")[0] == 0, self.said

    @property
    def said(self):
        return self.output.read_text()

    def run(self, line, *, hook="", kill_after=None):
        """Return the exit code (minus the signal, if killed) and how long it took."""
        self.start(line, hook=hook, kill_after=kill_after)
        return self.wait()

    def start(self, line, *, hook="", kill_after=None):
        hook = f"os.environ.update({self.environment})\n{hook}"
        places = {"folder": str(self.folder), "said": str(self.output)}
        job = {"line": line, "hook": hook, "kill_after": kill_after, **places}
        self.zygote.stdin.write(json.dumps(job) + "\n")
        self.zygote.stdin.flush()

    def wait(self):
        return tuple(json.loads(self.zygote.stdout.readline()))

    def fit(self, **how):
        return self.run(self.fit_line.format(ledger=self.ledger), **how)

    def resume(self, *, options="", **how):
        return self.run(f"fit --resume --out out/release --ledger {self.ledger} {options}", **how)

    @property
    def partial(self):
        return self.folder / "out" / ".release.primo-partial"

    def staged(self):
        """Return the released numbers that are on the disk, finished or not."""
        found = []
        for path in (self.folder / "out").rglob("moments.npz"):
            try:
                with np.load(path) as stored:
                    found.append(numbers_of(stored))
            except Exception:
                continue  # half of it
        return found

    def finish(self):
        """What a user does after a fault: resume; if nothing was begun, start again."""
        begun = (self.partial / "job.json").exists()
        if begun:
            assert self.resume()[0] == 0, self.said
        elif not (self.folder / "out" / "release").exists():
            assert self.fit()[0] == 0, self.said
        elif self.partial.exists():  # done but for the last bit of cleaning up
            assert self.resume()[0] == 2, self.said

    def check(self, staged=()):
        """One charge, one bundle, the noise that was staged, nothing half-written, no secret."""
        bundle = read_bundle(self.folder / "out" / "release")
        with np.load(self.folder / "out" / "release" / "moments.npz") as stored:
            published = numbers_of(stored)
        for numbers in staged:
            assert numbers == published
        history = open_ledger(self.where, readonly=True).history()
        assert [entry.kind for entry in history] == ["created", "dataset", "charge", "finish"]
        assert history[-1].digest == bundle.digest
        assert history[-2].release_id == bundle.manifest["release_id"]
        assert [path.name for path in (self.folder / "out").iterdir()] == ["release"]
        assert not list(self.folder.rglob("secret"))

    @property
    def where(self):
        return self.ledger if "://" in self.ledger else self.folder / self.ledger


def numbers_of(stored):
    """Return the associations of a file of moments, of all rounds, as bytes."""
    return {name: stored[name].tobytes() for name in stored.files if name.endswith("association")}


@pytest.fixture(scope="session")
def zygote():
    process = subprocess.Popen(
        [sys.executable, "-c", ZYGOTE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    yield process
    process.stdin.close()
    process.wait(timeout=30)


@pytest.fixture
def program(zygote, tmp_path):
    return Program(zygote, tmp_path)


@pytest.fixture
def make_program(zygote, tmp_path_factory):
    def made(folder=None, **how):
        return Program(zygote, folder or tmp_path_factory.mktemp("run"), **how)

    return made


@pytest.fixture(scope="session")
def server():
    """The PostgreSQL server of the ledger's tests."""
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    path = Path(__file__).parents[1] / "ledger" / "conftest.py"
    spec = importlib.util.spec_from_file_location("ledger_conftest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.postgres_folder() is None:
        pytest.skip("PostgreSQL is not installed (Debian package postgresql)")
    running = module.Server()
    yield running
    running.stop()
    subprocess.run(["rm", "-rf", running.folder], check=False)
