"""The ledger in a file: tampering, faults, and what the file gives away."""

import hashlib
import json
import os
import resource
import shutil
import sqlite3
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import primo.rows.person_tokens
from primo.errors import InputError, LedgerError, PrimoError
from primo.ledger import create_ledger, open_ledger, sqlite
from primo.ledger.chain import line_hash, to_line
from primo.ledger.people import Sketch
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget

LIMIT = Budget(epsilon=5, delta=1e-6)
RUNS = 200
IDS = [f"person-{i:05d}" for i in range(300)]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cohort.ledger"


@pytest.fixture
def ledger(path):
    """A ledger with an entry of every kind."""
    ledger = create_ledger(path, limit=LIMIT)
    ledger.charge(sketch(ledger), Cost(mu=0.2), release_id="r1", purpose="height", dataset="A")
    ledger.finish("r1", "ab12")
    ledger.note(Cost(epsilon=0.5, delta=1e-8), purpose="a paper", dataset="A", release_id="n1")
    ledger.set_limit(Budget(epsilon=6, delta=1e-6), purpose="board", dataset="A")
    ledger.charge(sketch(ledger), Cost(mu=0.3), release_id="r2", purpose="weight")
    return ledger


def sketch(ledger, ids=IDS):
    source = SimpleNamespace(n=len(ids), ids=lambda: np.array(ids), id_names=("IID",))
    return primo.rows.person_tokens.sketch(source, ledger.key)


def tamper(path, *statements):
    """Write to the file as its owner could."""
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement, *values in statements:
            connection.execute(statement, values)
    connection.close()


def bodies(path):
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT number, body FROM entries ORDER BY number").fetchall()
    connection.close()
    return [(number, json.loads(body)) for number, body in found]


def changed(value):
    """Return another value of the same type."""
    if isinstance(value, dict):
        return {name: changed(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [*value, 1]
    if isinstance(value, str):
        return "0" + value[1:] if not value.startswith("0") else "1" + value[1:]
    return 1 if value is None else value * 2 + 1


def test_every_change_of_every_field_is_seen_and_placed(ledger, path, tmp_path):
    spoilt = tmp_path / "spoilt"
    count = 0
    for number, fields in bodies(path):
        for name in fields:
            shutil.copy(path, spoilt)
            body = to_line(fields | {name: changed(fields[name])})
            tamper(spoilt, ("UPDATE entries SET body = ? WHERE number = ?", body, number))
            with pytest.raises(LedgerError, match=f"entry {number} "):
                open_ledger(spoilt)
            count += 1
    assert count > 50


@pytest.mark.parametrize(
    ("statement", "number"),
    [
        ("DELETE FROM entries WHERE number = 3", 3),
        ("DELETE FROM entries WHERE number = 1", 1),
        ("UPDATE entries SET number = 100 - number", 1),
        ("UPDATE entries SET number = number + 1 WHERE number > 3 AND number = 7", 7),
        ("UPDATE entries SET hash = 'ab' WHERE number = 4", 4),
        ("UPDATE entries SET seal = 'ab' WHERE number = 4", 4),
        ("UPDATE entries SET body = x'ff00' WHERE number = 2", 2),
        ("UPDATE entries SET body = '[]' WHERE number = 2", 2),
        ("UPDATE entries SET body = 3, hash = 4 WHERE number = 2", 2),
    ],
)
def test_removed_moved_and_spoilt_entries(ledger, path, statement, number):
    tamper(path, (statement,))
    with pytest.raises(LedgerError, match=f"entry {number} .*restore"):
        open_ledger(path)
    with pytest.raises(LedgerError, match=f"entry {number} "):
        ledger.charge(sketch(ledger), Cost(mu=0.1), release_id="r3", purpose="p")


def test_two_entries_that_change_places(ledger, path):
    rows = dict(bodies(path))
    tamper(
        path,
        ("UPDATE entries SET body = ? WHERE number = 4", to_line(rows[5])),
        ("UPDATE entries SET body = ? WHERE number = 5", to_line(rows[4])),
    )
    with pytest.raises(LedgerError, match="entry 4 "):
        open_ledger(path)


def test_a_chain_written_anew_needs_the_key(ledger, path):
    """Whoever recomputes all hashes fools a reader without the key, and nobody who charges."""
    previous, statements = "0" * 64, []
    for number, fields in bodies(path):
        if fields["kind"] == "charge":
            fields["cost"]["mu"] = 0.01
        body = to_line(fields | {"previous": previous})
        previous = line_hash(body)
        statement = "UPDATE entries SET body = ?, hash = ? WHERE number = ?"
        statements.append((statement, body, previous, number))
    tamper(path, *statements)
    with pytest.raises(LedgerError, match="entry 3 "):
        open_ledger(path)
    Path(f"{path}.key").unlink()
    assert open_ledger(path).spent()[0].releases == 3


def test_a_cut_end_is_seen_by_whoever_noted_the_head(ledger, path):
    head = ledger.head
    tamper(path, ("DELETE FROM entries WHERE number = 7",))
    assert open_ledger(path).spent()[0].releases == 2
    with pytest.raises(LedgerError, match="cut off"):
        open_ledger(path, expected_head=head)


def test_people_that_were_exchanged_are_seen(ledger, path):
    tamper(path, ("UPDATE people SET tokens = x'0102030405060708'",))
    with pytest.raises(LedgerError, match="people of data set 'A'"):
        open_ledger(path).charge(
            sketch(ledger, IDS[:5]), Cost(mu=0.1), release_id="r3", purpose="p"
        )


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET body = '{}'",
        "DELETE FROM entries",
        "INSERT OR REPLACE INTO entries VALUES (2, 'a', 'b', 'c')",
        "INSERT INTO entries VALUES (99, 'a', 'b', 'c')",
        "UPDATE people SET tokens = x'00'",
        "DELETE FROM people",
        "INSERT OR REPLACE INTO people VALUES (1, x'00')",
    ],
)
def test_the_file_itself_only_grows(ledger, path, statement):
    connection = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)
    connection.close()
    assert open_ledger(path).head == ledger.head


def test_the_file_knows_no_ids_and_no_unkeyed_hashes(ledger, path, tmp_path):
    content = path.read_bytes() + ledger.export(tmp_path / "h.jsonl").read_bytes()
    assert ledger.key.secret not in content
    assert ledger.key.secret.hex().encode() not in content
    tokens = sketch(ledger).tokens
    assert tokens[5].tobytes() in content  # what is looked for below would be found
    for person in IDS[:100]:
        raw = person.encode()
        assert raw not in content
        for name in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
            digest = hashlib.new(name, raw).digest()
            assert digest[:8] not in content
            assert digest[:8][::-1] not in content
            assert digest.hex()[:16].encode() not in content
    assert Path(f"{path}.key").stat().st_mode & 0o777 == 0o600


def test_another_key_gives_other_tokens(tmp_path):
    one = create_ledger(tmp_path / "1", limit=LIMIT)
    two = create_ledger(tmp_path / "2", limit=LIMIT)
    assert not np.isin(sketch(one).tokens, sketch(two).tokens).any()


@pytest.mark.parametrize("other", [1, 3])
def test_an_older_and_a_newer_format(path, monkeypatch, other):
    monkeypatch.setattr("primo.ledger.book.FORMAT", other)
    create_ledger(path, limit=LIMIT)
    with pytest.raises(
        LedgerError, match=f"format {other} and this .* format 2; use the .*ledger init"
    ):
        open_ledger(path)


@pytest.mark.parametrize("content", [b"", b"hello" * 1000, b"SQLite format 3\x00" + b"x" * 5000])
def test_what_is_not_a_ledger(path, content):
    path.touch(mode=0o600)
    path.write_bytes(content)
    with pytest.raises(PrimoError, match="ledger") as caught:
        open_ledger(path)
    assert isinstance(caught.value, InputError | LedgerError)


def test_another_database_is_neither_read_nor_overwritten(path):
    path.touch(mode=0o600)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine (x)")
    connection.close()
    with pytest.raises(InputError, match="not a ledger"):
        open_ledger(path)
    with pytest.raises(InputError, match="exists already"):
        create_ledger(path, limit=LIMIT)
    assert not Path(f"{path}.key").exists()


@pytest.mark.parametrize("where", ["missing/cohort.ledger", "nothing.ledger", "."])
def test_a_place_without_a_ledger(tmp_path, where):
    said = "is a folder" if where == "." else r"no ledger at .*init"
    with pytest.raises(InputError, match=said):
        open_ledger(tmp_path / where)
    if where.startswith("missing"):
        with pytest.raises(InputError, match="cannot be written"):
            create_ledger(tmp_path / where, limit=LIMIT)
    if where == ".":
        with pytest.raises(InputError, match=r"is a folder.*cohort\.ledger"):
            create_ledger(tmp_path, limit=LIMIT)
        assert not list(tmp_path.iterdir())
        assert not tmp_path.with_name(f"{tmp_path.name}.key").exists()


def test_other_addresses(tmp_path):
    with pytest.raises(InputError, match="cannot be at a mysql:// address"):
        open_ledger("mysql://host/db")
    with pytest.raises(InputError, match="needs a place for its key"):
        create_ledger("postgresql://host/db", limit=LIMIT)


def test_random_damage_is_an_error_and_never_a_wrong_number(ledger, path, tmp_path):
    content = bytearray(path.read_bytes())
    spent, rng = ledger.spent(), np.random.default_rng(3)
    spoilt, refused = tmp_path / "spoilt", 0
    spoilt.touch(mode=0o600)
    for _ in range(RUNS):
        damaged = content.copy()
        for place in rng.integers(0, len(content), size=rng.integers(1, 30)):
            damaged[place] = rng.integers(256)
        if rng.random() < 0.3:
            del damaged[rng.integers(len(content)) :]
        spoilt.write_bytes(damaged)
        try:
            assert open_ledger(spoilt, key_file=f"{path}.key").spent() == spent
        except PrimoError:
            refused += 1
    assert refused > RUNS // 4


def test_a_lock_that_stays_is_reported(ledger, path, monkeypatch):
    monkeypatch.setattr(sqlite, "LOCK_TIMEOUT", 0.2)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="another process"):
        ledger.charge(sketch(ledger), Cost(mu=0.1), release_id="r3", purpose="p")
    assert len(ledger.history()) == 7, "reading goes on"
    other.execute("ROLLBACK")
    other.close()
    ledger.charge(sketch(ledger), Cost(mu=0.1), release_id="r3", purpose="p")


def in_child(work):
    """Run work in a process of its own; return its message or 'done'."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            work()
            said = "done"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_full_disk_charges_nothing(ledger, path):
    head, size = ledger.head, path.stat().st_size

    def charge():
        # The file may not grow, which is what a full disk looks like; a sketch of 80 kB would.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
        big = Sketch(
            tokens=np.arange(10**4, dtype=np.uint64),
            rows=10**4,
            person=("IID",),
            key_check=ledger.key.check,
        )
        ledger.charge(big, Cost(mu=0.1), release_id="r3", purpose="p")

    said = in_child(charge)
    assert said.startswith("LedgerError")
    assert "disk" in said
    assert open_ledger(path).head == head


@pytest.mark.skipif(os.geteuid() != 0, reason="changes its user, for which it must be root")
@pytest.mark.parametrize("what", ["file", "folder", "unreadable"])
def test_permission_loss(what):
    """The file is still ours, but it, or its folder, may not be written to any more."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    path = folder / "cohort.ledger"
    ledger = create_ledger(path, limit=LIMIT)
    who = sketch(ledger)
    for place in (folder, path, Path(f"{path}.key")):
        os.chown(place, 65534, 65534)
    path.chmod(0o400 if what == "file" else 0o600)
    if what == "folder":
        os.chown(folder, 0, 0)
        folder.chmod(0o755)
    elif what == "unreadable":
        path.chmod(0o000)

    def charge():
        os.setuid(65534)
        ledger.charge(who, Cost(mu=0.1), release_id="r", purpose="p")

    def look():
        os.setuid(65534)
        assert len(open_ledger(path, readonly=True).history()) == 1

    said = in_child(charge)
    assert said.startswith("LedgerError")
    assert "permission" in said
    said = in_child(look)
    assert said == "done" if what != "unreadable" else "permission" in said
    shutil.rmtree(folder)
