"""Files that other users made or can read are refused; a planted link is never written through."""

import ast
import os
import stat
from pathlib import Path

import numpy as np
import pytest

import primo
from primo._util import atomic, ownership
from primo._util.ownership import NotOursError, PrivateFolder, open_ours
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.sources.arrays.memory import ArraySource
from primo.workflow.pipeline import make_release
from primo.workflow.resume import Staging, partial_of

STRANGER = 12345
SOURCE = Path(primo.__file__).parent


def plan():
    bounds = Bounds(lower=-1.0, upper=1.0)
    return make_plan(
        Settings(epsilon=0.1, delta=1e-6, feature_bounds=bounds, outcome_bounds=bounds),
        n=60,
        d=3,
        l=2,
    )


def source():
    rng = np.random.default_rng(0)
    return ArraySource(
        features=rng.uniform(-1, 1, size=(60, 3)),
        outcomes=rng.uniform(-1, 1, size=(60, 2)),
        feature_names=tuple("abc"),
        outcome_names=tuple("yz"),
    )


def begin(out):
    return Staging.begin(out, config="", plan=plan(), charge={}, release_id="run-1")


@pytest.fixture
def begun(tmp_path):
    """A release that was begun and interrupted; returns its private folder."""
    begin(tmp_path / "out").close()
    return partial_of(tmp_path / "out")


@pytest.fixture
def as_stranger(monkeypatch):
    """Everything that exists belongs to somebody else from now on."""
    return lambda: monkeypatch.setattr(os, "geteuid", lambda: STRANGER)


root_only = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can give a file to another user"
)


class TestStaging:
    @pytest.mark.parametrize("entry", [Staging.resume, begin])
    def test_of_somebody_else(self, begun, as_stranger, entry):
        as_stranger()
        with pytest.raises(primo.PrivacyError, match=r"belongs to another user.*remove the folder"):
            entry(begun.parent / "out")

    @root_only
    @pytest.mark.parametrize("name", [".", "secret", "job.json", "lock"])
    def test_given_away(self, begun, name):
        os.chown(begun / name, STRANGER, STRANGER)
        with (
            pytest.raises(primo.PrivacyError, match="belongs to another user"),
            Staging.resume(begun.parent / "out") as staging,
        ):
            staging.bits()

    @root_only
    def test_an_empty_folder_of_somebody_else_gets_no_secret(self, tmp_path):
        """The attack: make the folder first, then read the secret that a run puts into it."""
        planted = partial_of(tmp_path / "out")
        planted.mkdir(mode=0o700)
        os.chown(planted, STRANGER, STRANGER)
        with pytest.raises(primo.PrivacyError, match="belongs to another user"):
            begin(tmp_path / "out")
        assert not list(planted.iterdir())

    @pytest.mark.parametrize("mode", [0o755, 0o750, 0o701, 0o777, 0o710])
    def test_a_folder_that_others_may_enter(self, begun, mode):
        begun.chmod(mode)
        for entry in (Staging.resume, begin):
            with pytest.raises(primo.PrivacyError, match="other users may look"):
                entry(begun.parent / "out")
        begun.chmod(0o2700)  # a folder takes the bit for the group from its parent: no harm
        Staging.resume(begun.parent / "out").close()

    def test_a_planted_folder_that_others_may_enter_gets_no_secret(self, tmp_path):
        planted = partial_of(tmp_path / "out")
        planted.mkdir()
        planted.chmod(0o777)
        with pytest.raises(primo.PrivacyError, match="other users may look"):
            begin(tmp_path / "out")
        assert not list(planted.iterdir())

    @pytest.mark.parametrize("name", ["secret", "job.json"])
    @pytest.mark.parametrize("mode", [0o644, 0o640, 0o606])
    def test_a_file_that_others_may_read(self, begun, name, mode):
        (begun / name).chmod(mode)
        with (
            pytest.raises(primo.PrivacyError, match="other users may look"),
            Staging.resume(begun.parent / "out") as staging,
        ):
            staging.bits()

    def test_links(self, begun, tmp_path):
        out = tmp_path / "out"
        begun.rename(tmp_path / "elsewhere")
        begun.symlink_to(tmp_path / "elsewhere")
        for entry in (Staging.resume, begin):
            with pytest.raises(primo.PrivacyError, match="symbolic link"):
                entry(out)
        begun.unlink()
        begun.write_text("a file")
        with pytest.raises(primo.PrivacyError, match="not a folder"):
            Staging.resume(out)

    @pytest.mark.parametrize("name", ["secret", "job.json", "lock"])
    def test_links_inside(self, begun, tmp_path, name):
        (begun / name).rename(tmp_path / "victim")
        content = (tmp_path / "victim").read_bytes()
        for link, words in (("symlink_to", "symbolic link"), ("hardlink_to", "second name")):
            getattr(begun / name, link)(tmp_path / "victim")
            with (
                pytest.raises(primo.PrivacyError, match=words),
                Staging.resume(tmp_path / "out") as staging,
            ):
                staging.bits()
            (begun / name).unlink()
        assert (tmp_path / "victim").read_bytes() == content

    def test_a_pipe_does_not_keep_it_waiting(self, begun):
        (begun / "secret").unlink()
        os.mkfifo(begun / "secret", 0o600)
        with (
            Staging.resume(begun.parent / "out") as staging,
            pytest.raises(primo.PrivacyError, match="not a plain file"),
        ):
            staging.bits()

    def test_a_folder_that_takes_its_place_gets_nothing(self, tmp_path):
        """Where others may rename in the parent folder: what was opened is what is used."""
        out, folder = tmp_path / "out", partial_of(tmp_path / "out")
        with begin(out) as staging:
            secret = (folder / "secret").read_bytes()
            folder.rename(tmp_path / "moved")
            folder.mkdir(mode=0o700)
            (folder / "secret").write_bytes(bytes(range(32)))
            release = make_release(source(), plan(), bits=staging.bits(), threads=1)
            assert (tmp_path / "moved" / "drawn").exists()
            with pytest.raises(primo.PrivacyError, match="was moved"):
                staging.write(release)
            assert [p.name for p in folder.iterdir()] == ["secret"]
            staging.discard()
        assert not list((tmp_path / "moved").iterdir())
        assert secret != bytes(32)

    def test_a_refusal_leaves_everything_as_it_was(self, begun, as_stranger):
        before = {path.name: path.read_bytes() for path in begun.iterdir()}
        as_stranger()
        with pytest.raises(primo.PrivacyError):
            Staging.resume(begun.parent / "out")
        assert {path.name: path.read_bytes() for path in begun.iterdir()} == before


class TestPrivateFiles:
    def test_modes_whatever_the_mask_allows(self, tmp_path):
        before = os.umask(0)
        try:
            begin(tmp_path / "out").close()
            with atomic.new_folder(tmp_path / "new") as folder:
                assert stat.S_IMODE(folder.stat().st_mode) == 0o700
            with atomic.whole_file(tmp_path / "file", private=True):
                pass
        finally:
            os.umask(before)
        folder = partial_of(tmp_path / "out")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
        assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600

    def test_nothing_is_made_where_something_is(self, tmp_path):
        (tmp_path / "link").symlink_to(tmp_path / "victim")
        for make in (ownership.create_ours, atomic.new_file):
            with pytest.raises(FileExistsError):
                make(tmp_path / "link")
        assert not (tmp_path / "victim").exists()

    def test_what_does_not_exist(self, tmp_path):
        with pytest.raises(FileNotFoundError):
            open_ours(tmp_path / "nothing")
        with pytest.raises(FileNotFoundError):
            PrivateFolder.open(tmp_path / "nothing")

    def test_what_is_ours(self, tmp_path):
        place = PrivateFolder.make(tmp_path / "folder")
        place.write("a", b"one")
        place.write("a", b"two")
        assert place.read("a") == b"two"
        assert place.names() == ["a"]
        place.close()
        (tmp_path / "folder" / "a").chmod(0o604)
        with pytest.raises(NotOursError, match="other users"):
            open_ours(tmp_path / "folder" / "a")


class TestLinks:
    """In a folder where others may write, too."""

    def test_a_planted_target_is_replaced_and_not_followed(self, tmp_path):
        victim, target = tmp_path / "victim", tmp_path / "target"
        victim.write_text("precious")
        target.symlink_to(victim)
        with atomic.whole_file(target) as file:
            file.write(b"ours")
        assert victim.read_text() == "precious"
        assert not target.is_symlink()
        assert target.read_bytes() == b"ours"

    def test_a_part_that_is_exchanged_for_a_link_is_not_written_through(self, tmp_path):
        victim = tmp_path / "victim"
        victim.write_text("precious")

        def write():
            with atomic.whole_file(tmp_path / "target", private=True) as file:
                (part,) = (path for path in tmp_path.iterdir() if path != victim)
                part.unlink()
                part.symlink_to(victim)
                file.write(b"a prediction for one person")

        with pytest.raises(primo.InputError, match="in its place"):
            write()
        assert victim.read_text() == "precious"
        assert list(tmp_path.iterdir()) == [victim]

    @pytest.mark.parametrize("name", ["manifest.json", "moments.npz", "outcomes.tsv", "plan.json"])
    def test_links_in_a_bundle_under_way(self, tmp_path, monkeypatch, name):
        from primo.released.bundle import write_bundle

        victim = tmp_path / "victim"
        victim.write_text("precious")
        release = make_release(
            source(), plan(), bits=primo.wall.noise.RandomBits.fresh(), threads=1
        )
        made = os.mkdir

        def planted(path, *mode, **options):
            made(path, *mode, **options)
            if Path(path).name == "bundle":
                (Path(path) / name).symlink_to(victim)

        monkeypatch.setattr(os, "mkdir", planted)
        with pytest.raises(primo.InputError, match="cannot write"):
            write_bundle(release, tmp_path / "out")
        assert victim.read_text() == "precious"
        assert [path.name for path in tmp_path.iterdir()] == ["victim"]


def test_files_are_made_in_two_places_only():
    """`primo._util.atomic` and `primo._util.ownership`: nobody else opens by name what is written to."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", getattr(call.func, "id", ""))
            words = [
                value.value
                for value in (*call.args[:2], *(k.value for k in call.keywords if k.arg == "mode"))
                if isinstance(value, ast.Constant) and isinstance(value.value, str)
            ]
            opens = name == "open" and any(
                word[:1] in "wax" and set(word) <= set("wax+bt") for word in words if word
            )
            by_flags = name == "open" and getattr(call.func, "value", None) is not None
            by_flags = by_flags and getattr(call.func.value, "id", "") == "os"
            if opens or by_flags or name in {"write_text", "write_bytes", "touch", "mkstemp"}:
                found.add((path.relative_to(SOURCE).as_posix(), name))
    allowed = {"_util/atomic.py", "_util/ownership.py"}
    found = {(path, name) for path, name in found if path not in allowed}
    # The program's output goes nowhere once its reader is gone; a member of an archive is no file.
    assert found == {("cli/app.py", "open"), ("released/bundle/write.py", "open")}
