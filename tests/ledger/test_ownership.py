"""A ledger or a key that somebody else made, or may read, is refused; ours are private to us."""

import os
import sqlite3
import stat
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import primo.rows.person_tokens
from primo.cli import main
from primo.errors import PrivacyError
from primo.ledger import create_ledger, open_ledger
from primo.ledger.key import make_key
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget

LIMIT = Budget(epsilon=5, delta=1e-6)
STRANGER = 12345

root_only = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a file to another user"
)


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


@pytest.fixture
def path(tmp_path):
    create_ledger(tmp_path / "cohort.ledger", limit=LIMIT)
    return tmp_path / "cohort.ledger"


@pytest.fixture
def key(path):
    return Path(f"{path}.key")


def charge(path):
    ledger = open_ledger(path)
    people = SimpleNamespace(n=3, ids=lambda: np.array(["a", "b", "c"]), id_names=("IID",))
    sketch = primo.rows.person_tokens.sketch(people, ledger.key)
    return ledger.charge(sketch, Cost(mu=0.1), release_id="r", purpose="p")


def refused(act, match):
    with pytest.raises(PrivacyError, match=match) as caught:
        act()
    return str(caught.value)


def test_both_are_made_for_the_owner_alone_whatever_the_mask_allows(tmp_path):
    before = os.umask(0)
    try:
        create_ledger(tmp_path / "l", limit=LIMIT)
    finally:
        os.umask(before)
    assert mode(tmp_path / "l") == mode(tmp_path / "l.key") == 0o600


def test_the_journal_is_as_private_as_the_ledger(path):
    before = os.umask(0)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("INSERT INTO people VALUES (1, x'00')")
        connection.execute("PRAGMA cache_spill = 1")
        assert mode(f"{path}-journal") == 0o600
    finally:
        os.umask(before)
        connection.execute("ROLLBACK")
        connection.close()


class TestKey:
    @pytest.mark.parametrize("bits", [0o644, 0o640, 0o604, 0o620, 0o666])
    def test_that_others_may_read(self, path, key, bits):
        key.chmod(bits)
        said = refused(lambda: open_ledger(path), "other users may look")
        assert f"chmod 600 {key}" in said
        refused(lambda: make_key(key), "other users may look")
        key.chmod(0o600)
        charge(path)

    def test_of_somebody_else(self, path, monkeypatch):
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
        refused(lambda: open_ledger(path), "key .* belongs to another user")

    @root_only
    def test_planted_before_the_ledger_was_made(self, tmp_path, key):
        """The attack: whoever planted the key can tell who is in the data."""
        planted = tmp_path / "new.ledger.key"
        planted.touch(mode=0o600)
        planted.write_bytes(key.read_bytes())
        os.chown(planted, STRANGER, STRANGER)
        refused(
            lambda: create_ledger(tmp_path / "new.ledger", limit=LIMIT), "belongs to another user"
        )
        assert not (tmp_path / "new.ledger").exists()
        assert planted.exists(), "it is not ours to remove"

    @pytest.mark.parametrize("link", ["symlink_to", "hardlink_to"])
    def test_links(self, path, key, tmp_path, link):
        key.rename(tmp_path / "kept")
        getattr(key, link)(tmp_path / "kept")
        refused(lambda: open_ledger(path), "symbolic link|second name")
        (tmp_path / "nothing").symlink_to(tmp_path / "victim")
        refused(lambda: make_key(tmp_path / "nothing"), "symbolic link")
        assert not (tmp_path / "victim").exists()

    def test_the_program_says_so(self, path, key):
        key.chmod(0o644)
        result = CliRunner().invoke(main, ["ledger", "show", str(path)])
        assert result.exit_code == 2
        assert "chmod 600" in result.stderr


class TestFile:
    @pytest.mark.parametrize("bits", [0o644, 0o640, 0o604, 0o660])
    def test_that_others_may_read(self, path, bits):
        path.chmod(bits)
        said = refused(lambda: open_ledger(path), "other users may look")
        assert f"chmod 600 {path}" in said
        assert "PostgreSQL" in said
        refused(lambda: open_ledger(path, readonly=True), "other users may look")
        path.chmod(0o600)
        charge(path)

    def test_that_others_may_read_from_now_on(self, path):
        ledger = open_ledger(path)
        path.chmod(0o644)
        refused(ledger.history, "other users may look")

    @root_only
    def test_of_somebody_else(self, path):
        os.chown(path, STRANGER, STRANGER)
        refused(lambda: charge(path), "cohort.ledger' .* belongs to another user")

    @root_only
    def test_an_empty_one_of_somebody_else_is_not_filled(self, tmp_path):
        planted = tmp_path / "new.ledger"
        planted.touch(mode=0o600)
        os.chown(planted, STRANGER, STRANGER)
        refused(lambda: create_ledger(planted, limit=LIMIT), "belongs to another user")
        assert not planted.stat().st_size
        assert not (tmp_path / "new.ledger.key").exists()

    def test_links(self, path, tmp_path):
        path.rename(tmp_path / "kept")
        for link, words in (("symlink_to", "symbolic link"), ("hardlink_to", "second name")):
            getattr(path, link)(tmp_path / "kept")
            refused(lambda: open_ledger(path), words)
            path.unlink()
        path.symlink_to(tmp_path / "victim")
        refused(lambda: create_ledger(path, limit=LIMIT), "symbolic link")
        assert not (tmp_path / "victim").exists()

    @root_only
    @pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
    def test_a_journal_that_somebody_put_beside_it(self, path, ending):
        """SQLite would replay it, and so undo entries."""
        planted = Path(f"{path}{ending}")
        planted.touch(mode=0o600)
        os.chown(planted, STRANGER, STRANGER)
        refused(lambda: charge(path), f"ledger{ending}' .* belongs to another user")
        planted.unlink()
        charge(path)

    @pytest.mark.parametrize("ending", ["-journal", "-wal", "-shm"])
    def test_a_journal_that_others_may_write_to(self, path, ending):
        planted = Path(f"{path}{ending}")
        planted.touch()
        planted.chmod(0o666)
        refused(lambda: charge(path), f"ledger{ending}' .* other users may")

    def test_a_folder_where_everybody_may_put_files(self, path):
        path.parent.chmod(0o1777)
        refused(lambda: charge(path), "folder of your own")
        refused(lambda: create_ledger(path.parent / "new", limit=LIMIT), "folder of your own")
        assert sorted(p.name for p in path.parent.iterdir()) == [
            "cohort.ledger",
            "cohort.ledger.key",
        ]
        path.parent.chmod(0o755)
        charge(path)

    @pytest.mark.parametrize("bits", [0o770, 0o2770, 0o775])
    def test_a_folder_where_a_group_may_put_files(self, path, bits):
        """The attack: a member of the group renames an old copy over the ledger."""
        path.parent.chmod(bits)
        said = refused(lambda: charge(path), "folder of your own")
        assert f"chmod go-w {path.parent}" in said
        refused(lambda: create_ledger(path.parent / "new", limit=LIMIT), "folder of your own")
        path.parent.chmod(0o700)
        charge(path)

    @root_only
    def test_a_folder_of_somebody_else(self, path):
        os.chown(path.parent, STRANGER, STRANGER)
        refused(lambda: charge(path), "folder belongs to another user")

    def test_a_link_is_not_mended_by_its_mode(self, path, tmp_path):
        (tmp_path / "link").symlink_to(path)
        said = refused(lambda: open_ledger(tmp_path / "link"), "symbolic link")
        assert "Name the file itself" in said
        assert "chmod" not in said
