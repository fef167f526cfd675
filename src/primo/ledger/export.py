"""The history as a file for an auditor, and the check of such a file without the ledger."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from primo._util.atomic import as_text, whole_file
from primo._util.reading import unreadable
from primo.errors import InputError, LedgerError
from primo.ledger.chain import Row, read_chain, to_line
from primo.ledger.entries import Entry

__all__ = ["verify_export", "write_export"]

_COLUMNS = (
    *("number", "time", "kind", "user", "purpose", "dataset", "release_id"),
    *("mu", "margin", "epsilon", "delta", "limit_epsilon", "limit_delta", "digest", "hash"),
)


def write_export(
    path: Path, rows: Iterable[Row], entries: Iterable[Entry], *, replace: bool = True
) -> Path:
    """Write entries to a .jsonl or .csv file, whole or not at all."""
    if path.suffix not in (".jsonl", ".csv"):
        raise InputError(f"{str(path)!r} must end in .jsonl (with the chain) or .csv (a table)")
    with whole_file(path, private=True, replace=replace) as binary, as_text(binary) as file:
        if path.suffix == ".csv":
            _write_table(file, entries)
        else:
            _write_lines(file, rows)
    return path


def verify_export(path: str | os.PathLike[str]) -> str:
    """Check the chain of an exported .jsonl file; return its head.

    InputError for a file that is no export at all; LedgerError where an entry was changed or removed.
    """
    rows = []
    try:
        with open(path, encoding="utf-8") as file:
            for line in file:
                stored = json.loads(line)
                body = to_line(stored["entry"])
                number = int(stored["entry"]["number"])
                rows.append(Row(number=number, body=body, hash=stored["hash"], seal=stored["seal"]))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, KeyError, TypeError, RecursionError):
        if not rows:
            raise _no_export(path, "its first line is not an entry") from None
        raise LedgerError(
            f"line {len(rows) + 1} of {str(path)!r} is not an exported entry; export the ledger again"
        ) from None
    if not rows:
        raise _no_export(path, "it is empty")
    read_chain(rows, where=str(path))
    return rows[-1].hash


def _no_export(path: str | os.PathLike[str], why: str) -> InputError:
    return InputError(
        f"{str(path)!r} is no exported history: {why}",
        remedy="give a file that `primo ledger export LEDGER --out FILE.jsonl` wrote",
    )


def _write_lines(file: IO[str], rows: Iterable[Row]) -> None:
    for row in rows:
        stored = {"entry": json.loads(row.body), "hash": row.hash, "seal": row.seal}
        file.write(to_line(stored) + "\n")


def _write_table(file: IO[str], entries: Iterable[Entry]) -> None:
    table = csv.DictWriter(file, _COLUMNS, restval="", extrasaction="ignore")
    table.writeheader()
    for entry in entries:
        cells = {name: getattr(entry, name, None) for name in _COLUMNS}
        if entry.cost is not None:
            cells |= entry.cost.to_dict()
        if entry.limit is not None:
            cells |= {"limit_epsilon": entry.limit.epsilon, "limit_delta": entry.limit.delta}
        table.writerow({name: "" if cell is None else cell for name, cell in cells.items()})
