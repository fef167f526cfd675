"""A history in which every change is detected: every entry carries the hash of the one before.

An entry is one line of canonical JSON. Its hash is SHA-256 of that line, and the line contains the
number of the entry and the hash of the previous one, so an entry that was changed, removed, inserted
or moved breaks the chain there. Each entry also has a seal, which is keyed: someone without the key
cannot write a new chain that passes. A chain alone does not show that its *end* was cut off; note the
head (the last hash) elsewhere to detect that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from primo.errors import LedgerError
from primo.ledger.key import Key

__all__ = ["Fields", "Row", "check_seals", "line_hash", "link", "read_chain", "to_line"]

Fields = dict[str, Any]

_START = "0" * 64  # stands for the hash before the first


@dataclass(frozen=True, kw_only=True)
class Row:
    """One entry as it is stored."""

    number: int  # 1, 2, 3, ... in the order of writing; clocks do not matter
    body: str
    hash: str
    seal: str


def to_line(fields: Fields) -> str:
    """Write fields in the one form that is hashed: sorted, ASCII, no spaces, floats to the last bit."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)


def line_hash(body: str) -> str:
    """Return the hash of an entry."""
    return hashlib.sha256(body.encode()).hexdigest()


def link(previous: Row | None, fields: Fields, key: Key) -> Row:
    """Return the next entry of the chain."""
    number = 1 if previous is None else previous.number + 1
    before = _START if previous is None else previous.hash
    body = to_line({**fields, "number": number, "previous": before})
    found = line_hash(body)
    return Row(number=number, body=body, hash=found, seal=key.seal(found))


def read_chain(rows: Iterable[Row], *, where: str) -> list[Fields]:
    """Return the fields of every entry, or name the first one that is not what was written.

    Guarantee: detects any change, except a recomputation of the whole rest of the chain or a cut at
    its end. Cost: one hash per entry.
    """
    found: list[Fields] = []
    before = _START
    for expected, row in enumerate(rows, start=1):
        try:
            fields = json.loads(row.body)
            linked = (fields["number"], fields["previous"]) == (expected, before)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise _broken(expected, where) from None
        if row.number != expected or not linked or row.hash != line_hash(row.body):
            raise _broken(expected, where)
        found.append(fields)
        before = row.hash
    if not found:
        raise LedgerError(
            f"{where} has no entries, not even of its creation; restore it from a copy"
        )
    return found


def check_seals(rows: Iterable[Row], key: Key, *, where: str) -> None:
    """Name the first entry of a chain that was written without the key.

    Guarantee: together with `read_chain`, detects any change by someone who did not have the key,
    except a cut at the end.
    """
    for row in rows:
        if not hmac.compare_digest(row.seal.encode(), key.seal(row.hash).encode()):
            raise _broken(row.number, where)


def _broken(number: int, where: str) -> LedgerError:
    return LedgerError(
        f"entry {number} of {where} is not what was written: an entry was changed, removed or moved. "
        "Do not charge anything; restore the ledger from a copy and find out who could write to it"
    )
