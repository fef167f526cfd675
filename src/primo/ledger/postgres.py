"""The ledger in a PostgreSQL database, for a team.

One advisory lock per ledger lets one writer work at a time. It needs no right to change rows, and ends
with its transaction or its connection. Tables are made in the first schema of the search path, so
`postgresql://host/db?options=-csearch_path%3Dcohort` keeps several ledgers in one database.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from primo._util.optional import optional
from primo.errors import Advice, Argument, InputError, LedgerError, Message, PrimoError
from primo.ledger.chain import Row
from primo.ledger.store import LOCK_TIMEOUT, Writer

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE primo_entries (
  number bigint PRIMARY KEY, body text NOT NULL, hash text NOT NULL, seal text NOT NULL
);
CREATE TABLE primo_people (dataset bigint PRIMARY KEY, tokens bytea NOT NULL);
CREATE FUNCTION primo_append_only() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'a ledger is never changed, only appended to'; END $$;
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON primo_entries
  FOR EACH STATEMENT EXECUTE FUNCTION primo_append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON primo_people
  FOR EACH STATEMENT EXECUTE FUNCTION primo_append_only();
REVOKE ALL ON primo_entries, primo_people FROM PUBLIC;
"""

_LOCK = "SELECT pg_advisory_xact_lock('primo_entries'::regclass::oid::bigint)"

#: What a failure means and what to do, by the class of the error in psycopg.errors.
_REMEDIES: dict[str, str | Message] = {
    "LockNotAvailable": "another process has been writing to it for too long; try again",
    "InsufficientPrivilege": Message.of(
        "this role may not do that; ask the steward for ",
        Advice("grant_reader", "grant_reader or grant_writer"),
    ),
    "ReadOnlySqlTransaction": "the server only reads (a standby?); connect to the primary",
    "DiskFull": "the server's disk is full; free some space and run it again",
    "UniqueViolation": "an entry of this number exists; run it again",
}

_PERMANENT = ("does not exist", "authentication failed", "translate host name", "permission denied")

_CONNECT_TIMEOUT = 5.0  # seconds for a first contact: an address may simply be wrong


@dataclass(frozen=True, kw_only=True)
class PostgresStore:
    """A ledger in a database."""

    url: str = field(repr=False)  # may hold a password
    readonly: bool = False

    @property
    def where(self) -> str:
        """The database and schema, without user or password."""
        try:
            parts = _driver().conninfo.conninfo_to_dict(self.url)
        except _driver().ProgrammingError:
            raise InputError("the address of the ledger is not a valid postgresql:// URL") from None
        host = str(parts.get("host", ""))
        schema = re.search(r"search_path=(\w+)", str(parts.get("options", "")))
        return f"postgresql://{'' if host.startswith('/') else host}/{parts.get('dbname', '')}" + (
            f" (schema {schema[1]})" if schema else ""
        )

    def create(self, first: Row) -> None:
        """Make the tables and write the first entry, in one transaction."""
        errors = _driver().errors
        exists = (errors.DuplicateTable, errors.DuplicateFunction, errors.UniqueViolation)

        def attempt(connection: psycopg.Connection[Any]) -> None:
            with connection.transaction():
                connection.execute(_SCHEMA)
                _PostgresWriter(connection).append(first)

        try:
            self._retrying(attempt, seconds=_CONNECT_TIMEOUT, expected=exists)
        except exists:
            raise InputError(
                f"{self.where} holds a ledger already; open it, or choose another database or schema"
            ) from None

    def reach(self) -> None:
        """Check that the server answers, and do not wait long for it."""
        self._retrying(lambda connection: None, seconds=_CONNECT_TIMEOUT)

    def rows(self) -> list[Row]:
        """Return all entries in order."""
        return self._retrying(lambda connection: _PostgresWriter(connection).rows())

    def people(self, dataset: int) -> bytes | None:
        """Return the tokens of a data set."""
        return self._retrying(lambda connection: _PostgresWriter(connection).people(dataset))

    def write(self, act: Callable[[Writer], T]) -> T:
        """Run `act` under the lock and commit, or leave everything as it was."""

        def attempt(connection: psycopg.Connection[Any]) -> T:
            with connection.transaction():
                # Whatever the server's defaults: a commit is on disk, and a wait has an end.
                connection.execute("SET LOCAL synchronous_commit = on")
                connection.execute(f"SET LOCAL lock_timeout = {int(LOCK_TIMEOUT * 1000)}")
                connection.execute(_LOCK)
                return act(_PostgresWriter(connection))

        return self._retrying(attempt)

    def grant(self, role: str, *, write: bool) -> None:
        """Let a role read the entries; a writer also appends, and sees the tokens."""
        driver = _driver()
        name = driver.sql.Identifier(role)
        tables = "primo_entries, primo_people" if write else "primo_entries"
        rights = f"GRANT {'SELECT, INSERT' if write else 'SELECT'} ON {tables} TO {{}}"
        usage = "GRANT USAGE ON SCHEMA {} TO {}"

        def attempt(connection: psycopg.Connection[Any]) -> None:
            (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("public",)
            with connection.transaction():
                schema_name = driver.sql.Identifier(schema)
                connection.execute(driver.sql.SQL(usage).format(schema_name, name))
                connection.execute(driver.sql.SQL(rights).format(name))

        missing = driver.errors.UndefinedObject
        try:
            self._retrying(attempt, expected=(missing,))
        except missing:
            raise InputError(
                Argument("role", role), " does not exist", remedy="CREATE ROLE it first"
            ) from None

    def _retrying(
        self,
        attempt: Callable[[psycopg.Connection[Any]], T],
        *,
        seconds: float | None = None,
        expected: tuple[type[Exception], ...] = (),
    ) -> T:
        """Run on a fresh connection, and again if the connection was lost: a server may restart."""
        driver = _driver()
        until, pause = time.monotonic() + (LOCK_TIMEOUT if seconds is None else seconds), 0.05
        while True:
            try:
                with self._connection() as connection:
                    return attempt(connection)
            except expected:
                raise
            except driver.errors.UndefinedTable:
                raise InputError(
                    f"there is no ledger at {self.where}, or this role may not see it",
                    remedy=Message.of(
                        "make one with ",
                        Advice("create_ledger", "create_ledger (primo ledger init)"),
                        ", or ask the steward for ",
                        Advice("grant_reader", "grant_reader"),
                    ),
                ) from None
            except driver.Error as error:
                if not _is_temporary(error) or time.monotonic() + pause > until:
                    raise self._explain(error) from None
            time.sleep(pause)
            pause = min(2 * pause, 2.0)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        driver = _driver()
        connection: psycopg.Connection[Any] = driver.connect(
            self.url, autocommit=True, connect_timeout=10, prepare_threshold=None
        )
        with connection:
            # Once we hold the lock, a statement must see what the last holder committed.
            connection.isolation_level = driver.IsolationLevel.READ_COMMITTED
            connection.read_only = self.readonly
            yield connection

    def _explain(self, error: psycopg.Error) -> PrimoError:
        name = type(error).__name__
        if name in _REMEDIES:
            return LedgerError(f"{self.where} cannot be used: ", _REMEDIES[name])
        first = (str(error).splitlines() or [name])[0]
        return LedgerError(
            f"{self.where} cannot be used ({first}). Check that the server is up, then run it again "
            "with the same release: a release is never charged twice"
        )


@dataclass(frozen=True)
class _PostgresWriter:
    connection: psycopg.Connection[Any]

    def rows(self) -> list[Row]:
        found = self.connection.execute(
            "SELECT number, body, hash, seal FROM primo_entries ORDER BY number"
        )
        return [
            Row(number=number, body=body, hash=digest, seal=seal)
            for number, body, digest, seal in found.fetchall()
        ]

    def people(self, dataset: int) -> bytes | None:
        found = self.connection.execute(
            "SELECT tokens FROM primo_people WHERE dataset = %s", (dataset,), binary=True
        ).fetchone()
        return None if found is None else bytes(found[0])

    def append(self, row: Row) -> None:
        values = (row.number, row.body, row.hash, row.seal)
        self.connection.execute("INSERT INTO primo_entries VALUES (%s, %s, %s, %s)", values)

    def add_people(self, dataset: int, tokens: bytes) -> None:
        self.connection.execute("INSERT INTO primo_people VALUES (%s, %b)", (dataset, tokens))


def _is_temporary(error: psycopg.Error) -> bool:
    """Say whether an error is that of a connection, so that a new connection may work."""
    errors = _driver().errors
    if isinstance(error, (errors.AdminShutdown, errors.CannotConnectNow, errors.CrashShutdown)):
        return True
    # Failures of the network and of connecting have no code, and some of those are permanent.
    words = str(error)
    return (
        isinstance(error, _driver().OperationalError)
        and error.sqlstate is None
        and not any(text in words for text in _PERMANENT)
    )


def _driver() -> Any:
    needed = partial(optional, extra="postgres", purpose="a ledger in PostgreSQL")
    for module in ("psycopg.conninfo", "psycopg.sql"):
        needed(module)
    return needed("psycopg")
