"""Ledgers and interrupted runs, damaged."""

import json
import sqlite3

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzz_values import JSON, PATH, replaced, rows
from primo.cli import main
from primo.ledger import create_ledger, open_ledger, verify_export
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget
from primo.rows.person_tokens import sketch
from primo.workflow.resume import Staging, partial_of

PROFILE = settings(settings.get_profile("fuzz"))


JOB = {
    "format": "primo job 1",
    "release_id": "run-1",
    "created": "2026-11-15",
    "primo": "0.1.0",
    "plan_digest": "00" * 32,
    "charge": {"ledger": True},
    "config": 'bfile = "x"\nepsilon = 1.0\n',
}


@PROFILE
@given(data=st.data(), path=PATH, value=JSON)
def test_a_damaged_job(fuzz, data, path, value):
    if data.draw(st.booleans()):
        content = json.dumps(replaced(JOB, path, value)).encode()
    else:
        content = fuzz.damaged(json.dumps(JOB).encode(), data.draw(fuzz.edits))
    with fuzz.folder() as folder:
        place = partial_of(folder / "out")
        place.mkdir(mode=0o700)
        for name, stored in (("job.json", content), ("secret", bytes(32))):
            (place / name).touch(mode=0o600)
            (place / name).write_bytes(stored)
        with fuzz.guarded(), Staging.resume(folder / "out") as staging:
            _ = staging.release_id, staging.created, staging.config, staging.charge
            _ = staging.published, repr(staging)
            staging.bits()
        result = CliRunner().invoke(main, ["fit", "--resume", "--out", str(folder / "out")])
        assert result.exit_code in (1, 2)
        assert "unexpected" not in result.stderr


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A ledger with a few entries, its key and its export."""
    folder = tmp_path_factory.mktemp("books")
    ledger = create_ledger(folder / "a.ledger", limit=Budget(epsilon=5, delta=1e-6), by_values=True)
    people = sketch(rows(), ledger.key)
    ledger.charge(people, Cost(mu=0.1), release_id="r", purpose="p")
    ledger.note(Cost(epsilon=0.1, delta=1e-9), purpose="q")
    ledger.export(folder / "a.jsonl")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def look_through(folder):
    ledger = open_ledger(folder / "a.ledger")
    ledger.spent()
    ledger.history()
    repr(ledger)
    ledger.charge(sketch(rows(20), ledger.key), Cost(mu=0.1), release_id="s", purpose="p")
    return ledger


@PROFILE
@given(data=st.data())
def test_a_damaged_ledger(fuzz, books, data):
    name = data.draw(st.sampled_from(["a.ledger", "a.ledger", "a.ledger.key"]))
    content = fuzz.damaged(books[name], data.draw(fuzz.edits))
    with fuzz.folder({**books, name: content}) as folder:
        found = None
        with fuzz.guarded():
            found = look_through(folder)
        assert found is None or found.find("r") is not None, "a charge was lost unseen"


@PROFILE
@given(
    number=st.integers(1, 5),
    column=st.sampled_from(["body", "hash", "seal", "number"]),
    value=st.one_of(
        st.text(max_size=9), st.binary(max_size=9), st.integers(-3, 9), st.floats(), JSON
    ),
)
def test_changed_rows_of_a_ledger(fuzz, books, number, column, value):
    with fuzz.folder(books) as folder:
        database = sqlite3.connect(folder / "a.ledger", isolation_level=None)
        database.execute("DROP TRIGGER entries_stay")
        value = json.dumps(value) if isinstance(value, dict | list | bool | None) else value
        try:
            command = f"UPDATE entries SET {column} = ? WHERE number = ?"
            changed = database.execute(command, (value, number)).rowcount
        except (sqlite3.Error, OverflowError, UnicodeError):
            changed = 0
        database.close()
        found = None
        with fuzz.guarded():
            found = look_through(folder)
        assert found is None or not changed or (column, value) == ("number", number)


@PROFILE
@given(data=st.data())
def test_a_damaged_export(fuzz, books, data):
    content = fuzz.damaged(books["a.jsonl"], data.draw(fuzz.edits))
    with fuzz.folder({"a.jsonl": content}) as folder, fuzz.guarded():
        verify_export(folder / "a.jsonl")
