"""The ledger in one SQLite file.

It uses the rollback journal and not the write-ahead log, so that a commit is in the one file that a
steward copies. `synchronous=EXTRA` also syncs the folder, so that a commit followed by a power cut stays
a commit: a lost commit would be spending that is not counted.

The file holds a token of every person, so only its owner may read it: mode 0600, and SQLite gives its
journal the same. A file, or a journal next to it, that somebody else made could undo entries.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from primo._util.ownership import create_ours, why_not_ours
from primo.errors import Advice, InputError, LedgerError, Message, PrimoError, PrivacyError
from primo.ledger.chain import Row
from primo.ledger.store import LOCK_TIMEOUT, Writer

__all__ = ["SqliteStore"]

T = TypeVar("T")

_APPLICATION = 0x7072696D  # "prim", in the header of the file

# An insert must continue the numbers: "INSERT OR REPLACE" would otherwise get around the triggers.
_SCHEMA = """
CREATE TABLE entries (
  number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL, seal TEXT NOT NULL
);
CREATE TABLE people (dataset INTEGER PRIMARY KEY, tokens BLOB NOT NULL);
CREATE TRIGGER entries_in_order BEFORE INSERT ON entries
  WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries)
  BEGIN SELECT RAISE(ABORT, 'entries are appended in order'); END;
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
  BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END;
CREATE TRIGGER people_new BEFORE INSERT ON people
  WHEN EXISTS (SELECT 1 FROM people WHERE dataset = NEW.dataset)
  BEGIN SELECT RAISE(ABORT, 'people are never replaced'); END;
CREATE TRIGGER people_stay BEFORE UPDATE ON people
  BEGIN SELECT RAISE(ABORT, 'people are never changed'); END;
CREATE TRIGGER people_remain BEFORE DELETE ON people
  BEGIN SELECT RAISE(ABORT, 'people are never removed'); END;
"""

_REMEDIES = {
    "SQLITE_BUSY": "another process has been writing to it for too long; try again, and see with "
    "`fuser` who holds it",
    "SQLITE_FULL": "the disk is full; free some space and run it again",
    "SQLITE_READONLY": "the file or its folder may not be written to; ask its owner for permission",
    "SQLITE_CANTOPEN": "the file or its folder may not be opened; look at their permissions",
    "SQLITE_PERM": "the file may not be opened; look at its permissions",
    "SQLITE_AUTH": "the file may not be opened; look at its permissions",
    "SQLITE_IOERR": "the disk reports an error; run it again with the same release once the disk works: "
    "a release is never charged twice",
    "SQLITE_CORRUPT": "the file is damaged; restore it from a copy",
    "SQLITE_NOTADB": "this is not a ledger that primo made, or it is damaged",
    "SQLITE_CONSTRAINT": "an entry would have broken the order; restore it from a copy",
}


@dataclass(frozen=True, kw_only=True)
class SqliteStore:
    """A ledger in a file."""

    path: Path
    readonly: bool = False

    @property
    def where(self) -> str:
        """The path."""
        return str(self.path)

    def create(self, first: Row) -> None:
        """Make the tables and write the first entry, in one transaction."""
        if not self.path.parent.is_dir():
            raise InputError(
                f"the folder {str(self.path.parent)!r} does not exist; create it first"
            )
        self._refuse_folder()
        self._check_folder()
        try:
            with suppress(FileExistsError):
                os.close(create_ours(self.path))
        except OSError as error:
            raise LedgerError(f"{self.where!r} cannot be made: {error.strerror}") from None
        with self._connection("rw", new=True) as connection, _transaction(connection):
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if tables:
                raise InputError(
                    f"{self.where!r} exists already; open it, or choose another name. A ledger is "
                    "never overwritten"
                )
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            for statement in _SCHEMA.split(";\n"):
                # A trigger's body ends in "; END", so that ";\n" only separates statements.
                connection.execute(statement)
            _SqliteWriter(connection).append(first)

    def reach(self) -> None:
        """Check that there is a ledger."""
        with self._connection("ro"):
            pass

    def rows(self) -> list[Row]:
        """Return all entries in order."""
        with self._connection("ro") as connection:
            return _SqliteWriter(connection).rows()

    def people(self, dataset: int) -> bytes | None:
        """Return the tokens of a data set."""
        with self._connection("ro") as connection:
            return _SqliteWriter(connection).people(dataset)

    def write(self, act: Callable[[Writer], T]) -> T:
        """Run `act` under the lock and commit, or leave everything as it was."""
        with self._connection("rw") as connection, _transaction(connection):
            return act(_SqliteWriter(connection))

    def grant(self, role: str, *, write: bool) -> None:
        """Refuse: a file has no roles."""
        raise InputError(
            "a ledger in a file has no roles, and only its owner may use it; use PostgreSQL for a team"
        )

    @contextmanager
    def _connection(self, mode: str, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        self._check_ours()
        # Writers and readers alike may have to roll back what a killed process left, which needs "rw".
        if mode == "ro" and not self.readonly:
            mode = "rw"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            connection = sqlite3.connect(uri, uri=True, timeout=LOCK_TIMEOUT, isolation_level=None)
            with closing(connection):
                connection.text_factory = lambda text: text.decode(errors="replace")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA synchronous = EXTRA")
                if not new:
                    self._check(connection)
                yield connection
        except sqlite3.Error as error:
            raise self._explain(error) from None
        except UnicodeDecodeError:  # in a message about a schema that is damaged
            raise LedgerError(
                f"{self.where!r} cannot be used: {_REMEDIES['SQLITE_CORRUPT']}"
            ) from None

    def _refuse_folder(self) -> None:
        if self.path.is_dir():
            raise InputError(
                f"{self.where!r} is a folder, and a ledger is one file",
                remedy=f"give the name of a file, for example {str(self.path / 'cohort.ledger')!r}",
            )

    def _check_ours(self) -> None:
        """Refuse a file, or a journal next to it, that others made or may read.

        By name and not by descriptor: closing one would release the locks of other connections.
        """
        self._refuse_folder()
        if not (self.path.is_file() or self.path.is_symlink()):
            raise InputError(
                f"there is no ledger at {self.where!r}",
                remedy=Message.of(
                    "make one with ",
                    Advice(
                        "create_ledger_at",
                        "create_ledger (primo ledger init)",
                        about=shlex.quote(self.where),
                    ),
                ),
            )
        self._check_folder()
        for ending in ("", "-journal", "-wal", "-shm"):
            path = Path(f"{self.path}{ending}")
            with suppress(FileNotFoundError):
                reason = why_not_ours(path.lstat())
                if reason is not None:
                    raise PrivacyError(
                        f"{str(path)!r} is refused: {reason}. A ledger tells which data sets share "
                        f"people, and whoever can write to it can change it. {_remedy(path)}; a team "
                        "uses PostgreSQL, and an auditor gets an export"
                    )

    def _check_folder(self) -> None:
        """Refuse a folder where others may put a journal next to the ledger, or an old copy of it."""
        folder = self.path.parent.absolute()
        found = folder.stat()
        if found.st_uid not in (0, os.geteuid()):
            why = "its folder belongs to another user"
        elif found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            why = "other users may put files into its folder"
        else:
            return
        raise PrivacyError(
            f"{self.where!r} is refused: {why}, who could put an old copy in its place. Use a folder of "
            f"your own; if this one is yours, run `chmod go-w {folder}`"
        )

    def _check(self, connection: sqlite3.Connection) -> None:
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        if application != _APPLICATION:
            raise InputError(f"{self.where!r} is not a ledger that primo made")

    def _explain(self, error: sqlite3.Error) -> PrimoError:
        name = str(getattr(error, "sqlite_errorname", ""))
        for prefix, remedy in _REMEDIES.items():
            if name.startswith(prefix):
                kind = InputError if prefix == "SQLITE_NOTADB" else LedgerError
                return kind(f"{self.where!r} cannot be used: {remedy}")
        return LedgerError(
            f"{self.where!r} cannot be used ({error}); restore it from a copy if this happens again"
        )


def _remedy(path: Path) -> str:
    """Say how to make a file private that others may read."""
    if path.is_symlink():
        return "Name the file itself, not a link to it"
    return f"If it is yours, run `chmod 600 {path}`"


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")  # waits here, and never later, for other writers
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@dataclass(frozen=True)
class _SqliteWriter:
    connection: sqlite3.Connection

    def rows(self) -> list[Row]:
        found = self.connection.execute(
            "SELECT number, body, hash, seal FROM entries ORDER BY number"
        )
        return [
            Row(number=number, body=str(body), hash=str(digest), seal=str(seal))
            for number, body, digest, seal in found
        ]

    def people(self, dataset: int) -> bytes | None:
        found = self.connection.execute("SELECT tokens FROM people WHERE dataset = ?", (dataset,))
        row = found.fetchone()
        return None if row is None else bytes(row[0]) if isinstance(row[0], bytes) else b""

    def append(self, row: Row) -> None:
        values = (row.number, row.body, row.hash, row.seal)
        self.connection.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", values)

    def add_people(self, dataset: int, tokens: bytes) -> None:
        self.connection.execute("INSERT INTO people VALUES (?, ?)", (dataset, tokens))
