"""What was spent on people, by whom and for what, in a history in which every change is detected."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from primo.errors import Argument, InputError, Message, PrimoError
from primo.ledger.book import Ledger, first_row
from primo.ledger.entries import Charge, DataSet, Entry, Spent
from primo.ledger.export import verify_export
from primo.ledger.key import KEY_FILE_VARIABLE, Key, make_key, read_key
from primo.ledger.naming import Naming
from primo.ledger.people import Sketch
from primo.ledger.postgres import PostgresStore
from primo.ledger.sqlite import SqliteStore
from primo.ledger.store import Store
from primo.privacy.budget import Budget

__all__ = [
    "Charge",
    "DataSet",
    "Entry",
    "Key",
    "Ledger",
    "Naming",
    "Sketch",
    "Spent",
    "create_ledger",
    "open_ledger",
    "verify_export",
]

Where = str | os.PathLike[str]


def create_ledger(
    where: Where,
    *,
    limit: Budget,
    person: str | Sequence[str] | None = None,
    by_values: bool = False,
    key_file: Where | None = None,
) -> Ledger:
    """Make a new ledger.

    Parameters
    ----------
    where
        A file (SQLite), or a postgresql:// URL.
    limit
        What may be spent on the same people in all, unless `set_limit` says otherwise.
    person
        The column (or columns, or index of a frame) that names a person: "IID" for genotype files. A
        charge whose people are named by another one is refused. If None, the first charge decides.
    by_values
        Recognise people by the feature values of their rows, for data without ids. With another choice
        of columns the same person is taken for another person: prefer ids.
    key_file
        Where the key is written, readable by its owner only; one that exists is used. By default
        PRIMO_LEDGER_KEY_FILE or, for a file, the same name with .key beside it.

    Examples
    --------
    >>> import primo
    >>> limit = primo.Budget(epsilon=10, delta=1e-6)
    >>> ledger = primo.create_ledger("cohort.ledger", limit=limit, person="IID")
    >>> ledger.limit
    Budget(epsilon=10.0, delta=1e-06)
    >>> ledger.spent()
    ()
    """
    naming = Naming.of(person, by_values)
    store = _store(where, readonly=False)
    path = _key_path(where, key_file)
    if path is None:
        raise InputError(
            "a ledger in a database needs a place for its key",
            argument="key_file",
            remedy=Message.of("give ", Argument("key_file"), f", or set {KEY_FILE_VARIABLE}"),
        )
    fresh = not os.path.lexists(path)
    key = make_key(path)  # first: a ledger without its key would be useless
    try:
        store.create(first_row(limit, key, naming))
    except PrimoError:
        if fresh:
            path.unlink(missing_ok=True)
        raise
    return Ledger(store, key)


def open_ledger(
    where: Where,
    *,
    key_file: Where | None = None,
    readonly: bool = False,
    expected_head: str | None = None,
) -> Ledger:
    """Open a ledger and check its whole history.

    The key is needed to charge, not to read. `expected_head`, a head noted earlier, shows whether the
    end of the history is missing.

    Examples
    --------
    >>> import primo
    >>> limit = primo.Budget(epsilon=10, delta=1e-6)
    >>> made = primo.create_ledger("cohort.ledger", limit=limit, person="IID")
    >>> ledger = primo.open_ledger("cohort.ledger", readonly=True, expected_head=made.head)
    >>> len(ledger.history())
    1
    """
    store = _store(where, readonly=readonly)
    path = _key_path(where, key_file)
    wanted = key_file is not None and not readonly
    key = read_key(path) if path is not None and (wanted or path.is_file()) else None
    ledger = Ledger(store, key, readonly=readonly)
    store.reach()
    ledger.verify(expected_head)
    return ledger


def _store(where: Where, *, readonly: bool) -> Store:
    if not isinstance(where, str | os.PathLike):
        raise InputError("expected the path of a ledger file or a postgresql:// URL")
    text = os.fspath(where)
    if text.startswith(("postgresql://", "postgres://")):
        store = PostgresStore(url=text, readonly=readonly)
        _ = store.where  # refuses an invalid address
        return store
    if "://" in text:
        scheme = text.split("://", maxsplit=1)[0]
        raise InputError(
            f"a ledger cannot be at a {scheme}:// address; give a file or a postgresql:// URL"
        )
    return SqliteStore(path=Path(text), readonly=readonly)


def _key_path(where: Where, key_file: Where | None) -> Path | None:
    if key_file is not None:
        return Path(key_file)
    if os.environ.get(KEY_FILE_VARIABLE):
        return Path(os.environ[KEY_FILE_VARIABLE])
    text = os.fspath(where)
    return None if "://" in text else Path(f"{text}.key")
