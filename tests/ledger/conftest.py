"""Ledgers in both kinds of place, and a PostgreSQL server of our own."""

import itertools
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import primo.rows.person_tokens
from primo.ledger import create_ledger
from primo.privacy.budget import Budget

COUNTER = itertools.count()


def postgres_folder():
    """Return the folder of initdb, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    path = found[-1] if found else shutil.which("initdb")
    return None if path is None else Path(path).parent


class Server:
    """A PostgreSQL server in a temporary folder, on a socket only, run without privileges."""

    def __init__(self):
        self.bin = postgres_folder()
        self.user = None
        if os.geteuid() == 0:
            names = {entry.pw_name for entry in pwd.getpwall()}
            self.user = "postgres" if "postgres" in names else "nobody"
        self.folder = Path(tempfile.mkdtemp(prefix="primo-pg-", dir="/tmp"))
        if self.user:
            shutil.chown(self.folder, self.user)
        self.data = self.folder / "data"
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "steward", "--no-sync")
        self.start()

    def run(self, program, *arguments, timeout=60):
        group = pwd.getpwnam(self.user).pw_gid if self.user else None
        return subprocess.run(
            [self.bin / program, *map(str, arguments)],
            user=self.user,
            group=group,
            extra_groups=[] if self.user else None,
            cwd="/",
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=timeout,
        )

    def start(self):
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=60 -c fsync=off"
        self.run("pg_ctl", "-D", self.data, "-w", "-o", options, "-l", self.folder / "log", "start")

    def stop(self, mode="immediate"):
        self.run("pg_ctl", "-D", self.data, "-w", "-m", mode, "stop")

    def url(self, schema="public", user="steward", database="postgres"):
        path = f"options=-csearch_path%3D{schema}"
        return f"postgresql://{user}:secret@/{database}?host={self.folder}&{path}"

    def execute(self, statement, schema="public", user="steward"):
        import psycopg

        with psycopg.connect(self.url(schema, user), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else None

    def new_schema(self):
        name = f"cohort{next(COUNTER)}"
        self.execute(f"CREATE SCHEMA {name}")
        return name


@pytest.fixture(scope="session")
def server():
    pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")
    if postgres_folder() is None:
        pytest.skip("PostgreSQL is not installed (Debian package postgresql)")
    running = Server()
    yield running
    running.stop()
    shutil.rmtree(running.folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request, tmp_path, monkeypatch):
    """Return where a ledger can be made; its key goes to a file of the environment."""
    monkeypatch.setenv("PRIMO_LEDGER_KEY_FILE", str(tmp_path / "key"))
    if request.param == "sqlite":
        return str(tmp_path / "cohort.ledger")
    running = request.getfixturevalue("server")
    return running.url(running.new_schema())


@pytest.fixture
def ledger(place):
    return create_ledger(place, limit=Budget(epsilon=5, delta=1e-6))


class Cohort:
    """A source of people; nobody reads its rows where it has ids."""

    def __init__(self, ids=None, features=None):
        self._ids = None if ids is None else np.asarray(ids, dtype=np.str_)
        self.id_names = None if ids is None else ("IID",)
        self.features = features
        self.n = len(ids if ids is not None else features)
        self.feature_names = tuple(f"x{i}" for i in range(features.shape[1] if ids is None else 1))
        self.outcome_names = ("y",)

    def ids(self):
        return self._ids

    def blocks(self, rows):
        from primo.rows.sources.base import Block

        for start in range(0, self.n, rows):
            part = self.features[start : start + rows]
            yield Block(features=part, outcomes=np.zeros((len(part), 1)))


@pytest.fixture
def people(ledger):
    """Return a function from ids to a sketch under the key of the ledger."""
    return lambda ids: primo.rows.person_tokens.sketch(Cohort(ids=list(ids)), ledger.key)
