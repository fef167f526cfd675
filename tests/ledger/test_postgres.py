"""The ledger in PostgreSQL: roles, restarts, and a connection lost at the worst moment."""

import threading

import pytest

from primo.errors import InputError, LedgerError
from primo.ledger import open_ledger, postgres
from primo.privacy.accounting import Cost

psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed (extra: postgres)")

SMALL = Cost(mu=0.1)


@pytest.fixture
def schema(server):
    return server.new_schema()


@pytest.fixture
def place(server, schema, tmp_path, monkeypatch):
    monkeypatch.setenv("PRIMO_LEDGER_KEY_FILE", str(tmp_path / "key"))
    return server.url(schema)


@pytest.fixture
def role(server, schema):
    name = f"role_{schema}"
    server.execute(f"CREATE ROLE {name} LOGIN")
    return name


DENIED = psycopg.errors.InsufficientPrivilege


def test_a_reader_reads_and_no_more(server, schema, ledger, people, role):
    ledger.charge(people("abc"), SMALL, release_id="r", purpose="p")
    ledger.grant_reader(role)
    reader = open_ledger(server.url(schema, role), readonly=True)
    assert reader.history() == ledger.history()
    assert reader.spent() == ledger.spent()
    for statement in (
        "INSERT INTO primo_entries VALUES (9, 'a', 'b', 'c')",
        "UPDATE primo_entries SET body = ''",
        "DELETE FROM primo_entries",
        "TRUNCATE primo_entries",
        "SELECT * FROM primo_people",
        "ALTER TABLE primo_entries DISABLE TRIGGER ALL",
        "DROP TABLE primo_entries",
    ):
        with pytest.raises(DENIED):
            server.execute(statement, schema, role)
    bold = open_ledger(server.url(schema, role))
    with pytest.raises(LedgerError, match="grant_writer"):
        bold.charge(people("abc"), SMALL, release_id="s", purpose="p")
    assert ledger.find("s") is None


def test_a_writer_appends_and_changes_nothing(server, schema, ledger, people, role):
    ledger.grant_writer(role)
    writer = open_ledger(server.url(schema, role))
    charge = writer.charge(people("abc"), SMALL, release_id="r", purpose="p")
    assert ledger.find("r") == charge
    for table in ("primo_entries", "primo_people"):
        for statement in ("DELETE FROM {}", "TRUNCATE {}", "DROP TABLE {}"):
            with pytest.raises(DENIED):
                server.execute(statement.format(table), schema, role)
    with pytest.raises(DENIED):
        server.execute("UPDATE primo_entries SET body = ''", schema, role)
    # What a writer forges without the key is seen.
    server.execute("INSERT INTO primo_entries VALUES (4, '{}', 'b', 'c')", schema, role)
    with pytest.raises(LedgerError, match="entry 4 "):
        ledger.charge(people("abc"), SMALL, release_id="s", purpose="p")


def test_a_stranger_sees_nothing(server, schema, ledger, role):
    with pytest.raises(InputError, match="may not see it"):
        open_ledger(server.url(schema, role))
    server.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    with pytest.raises(LedgerError, match="grant_reader"):
        open_ledger(server.url(schema, role))


def test_roles_that_do_not_exist_and_names_that_need_quotes(ledger):
    for name in ("nobody-such", 'x"; DROP TABLE primo_entries; --'):
        with pytest.raises(InputError, match="does not exist"):
            ledger.grant_reader(name)
    assert ledger.verify()


def test_even_the_owner_only_appends(server, schema, ledger):
    for table in ("primo_entries", "primo_people"):
        for statement in ("DELETE FROM {}", "TRUNCATE {}"):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                server.execute(statement.format(table), schema)
    with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
        server.execute("UPDATE primo_entries SET body = ''", schema)


def test_tampering_by_the_owner_is_seen(server, schema, ledger, people):
    ledger.charge(people("abc"), SMALL, release_id="r", purpose="p")
    server.execute("ALTER TABLE primo_entries DISABLE TRIGGER ALL", schema)
    change = "UPDATE primo_entries SET body = replace(body, '0.1', '0.01') WHERE number = 3"
    server.execute(change, schema)
    with pytest.raises(LedgerError, match="entry 3 "):
        ledger.spent()


def test_a_restart_between_charges_is_not_noticed(server, ledger, people):
    ledger.charge(people("abc"), SMALL, release_id="r", purpose="p")
    server.stop()
    restart = threading.Timer(0.5, server.start)
    restart.start()
    charge = ledger.charge(people("abc"), SMALL, release_id="s", purpose="p")
    restart.join()
    assert [e.release_id for e in ledger.history() if e.kind == "charge"] == ["r", "s"]
    assert ledger.find("s") == charge


@pytest.mark.parametrize("committed", [True, False])
def test_a_connection_lost_around_the_commit_charges_once(
    server, schema, ledger, people, monkeypatch, committed
):
    """Whether the lost commit happened cannot be known; asking again finds out."""
    ledger.charge(people("abc"), SMALL, release_id="r", purpose="p")
    append, attempts = postgres._PostgresWriter.append, []

    def lose_connection(self, row):
        append(self, row)
        attempts.append(row.number)
        if len(attempts) == 1:
            if committed:
                self.connection.execute("COMMIT")
            pid = self.connection.info.backend_pid
            server.execute(f"SELECT pg_terminate_backend({pid}, 1000)", schema)
            self.connection.execute("SELECT 1")

    monkeypatch.setattr(postgres._PostgresWriter, "append", lose_connection)
    charge = ledger.charge(people("abc"), SMALL, release_id="s", purpose="p")
    assert attempts == ([4] if committed else [4, 4])
    assert charge.number == 4
    assert ledger.spent()[0].releases == 2


def test_a_server_that_stays_away(server, ledger, people, monkeypatch):
    who = people("abc")
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT", 0.3)
    monkeypatch.setattr(postgres, "_CONNECT_TIMEOUT", 0.3)
    server.stop()
    try:
        with pytest.raises(LedgerError, match=r"server is up.*never charged twice") as caught:
            ledger.charge(who, SMALL, release_id="r", purpose="p")
        assert "secret" not in str(caught.value)
    finally:
        server.start()
    assert ledger.find("r") is None


def test_wrong_addresses_fail_at_once(server, schema, ledger, monkeypatch):
    def pause(seconds):
        pytest.fail("a wrong address was tried again")

    monkeypatch.setattr(postgres.time, "sleep", pause)
    for url in (server.url(database="no_such_db"), server.url(schema, "no_such_role")):
        with pytest.raises(LedgerError, match="does not exist") as caught:
            open_ledger(url)
        assert "secret" not in str(caught.value)
    with pytest.raises(InputError, match="valid postgresql"):
        open_ledger("postgresql://host:port:port/?x=y")
    with pytest.raises(InputError, match=r"no ledger at postgresql:///postgres \(schema public\)"):
        open_ledger(server.url())


def test_a_lock_that_stays_is_reported(server, schema, ledger, people, monkeypatch):
    monkeypatch.setattr(postgres, "LOCK_TIMEOUT", 0.3)
    with psycopg.connect(server.url(schema)) as other:
        other.execute(postgres._LOCK)
        with pytest.raises(LedgerError, match="another process"):
            ledger.charge(people("abc"), SMALL, release_id="r", purpose="p")
        assert len(ledger.history()) == 1


def test_defaults_of_the_server_do_not_matter(server, schema, ledger, people, role):
    ledger.grant_writer(role)
    for setting in (
        "default_transaction_isolation = 'repeatable read'",
        "synchronous_commit = off",
        "lock_timeout = 1",
    ):
        server.execute(f"ALTER ROLE {role} SET {setting}")
    writer = open_ledger(server.url(schema, role))
    charge = writer.charge(people("abc"), SMALL, release_id="r", purpose="p")
    assert ledger.find("r") == charge
