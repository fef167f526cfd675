"""Entries appended inside a transaction, stamped with who and when."""

from __future__ import annotations

import getpass
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from primo.ledger.chain import link
from primo.ledger.key import Key
from primo.ledger.state import read_state
from primo.ledger.store import Writer

__all__ = ["Appender", "now", "user_name"]


@dataclass(kw_only=True)
class Appender:
    """Appends entries inside a transaction, and knows the state after each."""

    writer: Writer
    key: Key
    where: str

    def __post_init__(self) -> None:
        """Read the state before the first entry."""
        self.state = read_state(self.writer.rows(), self.key, where=self.where)

    def write(self, **fields: Any) -> None:
        """Append one entry, stamped with the time, and bring the state up to date."""
        row = link(self.state.last, {**fields, "time": now()}, self.key)
        self.writer.append(row)
        self.state.apply(json.loads(row.body), row)


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def user_name(given: str | None) -> str:
    """Return the name that was given, or that of whoever runs the program."""
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container without user names
        return f"uid {os.getuid()}"
