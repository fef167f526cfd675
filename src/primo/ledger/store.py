"""What the ledger needs of a database: read all entries, and append in an exclusive transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from primo.ledger.chain import Row

__all__ = ["LOCK_TIMEOUT", "Store", "Writer"]

#: Seconds to wait for other processes, or for a server that restarts, before giving up.
LOCK_TIMEOUT = 30.0

T = TypeVar("T")


class Writer(Protocol):
    """The inside of an exclusive transaction: nobody else writes until it ends."""

    def rows(self) -> list[Row]:
        """Return all entries in order."""
        ...

    def people(self, dataset: int) -> bytes | None:
        """Return the tokens of a data set."""
        ...

    def append(self, row: Row) -> None:
        """Add an entry."""
        ...

    def add_people(self, dataset: int, tokens: bytes) -> None:
        """Add the tokens of a new data set."""
        ...


class Store(Protocol):
    """A database with the entries and, apart from them, the tokens.

    Each call opens its own connection, so forks, sleep and restarts do no harm.
    """

    @property
    def where(self) -> str:
        """Its name in messages, without a password."""
        ...

    def create(self, first: Row) -> None:
        """Make the tables and write the first entry; refuse if there is a ledger already."""
        ...

    def reach(self) -> None:
        """Check that there is something at this address, and fail soon if not."""
        ...

    def rows(self) -> list[Row]:
        """Return all entries in order."""
        ...

    def people(self, dataset: int) -> bytes | None:
        """Return the tokens of a data set."""
        ...

    def write(self, act: Callable[[Writer], T]) -> T:
        """Run `act` under the lock and commit, or leave everything as it was.

        When this returns, what was appended survives a crash of the machine. `act` may be run again
        after a lost connection whose commit may or may not have happened, so it must look first
        whether its work is already done.
        """
        ...

    def grant(self, role: str, *, write: bool) -> None:
        """Let a role of the database read, or read and append."""
        ...
