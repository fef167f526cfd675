"""A paid release that is killed at any moment is finished once: one charge, one draw of noise."""

import datetime
import errno
import functools
import json
import os
import signal
import stat
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

import primo
from primo._util import ownership
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.bundle import read_bundle
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow import resume as staging_module
from primo.workflow.pipeline import make_release
from primo.workflow.resume import Staging, partial_of

SECRET = bytes(range(32))
DAY = datetime.date(2026, 11, 15)


@functools.cache
def plan_of(epsilon=2.0):
    return make_plan(
        Settings(
            epsilon=epsilon,
            delta=1e-6,
            feature_bounds=Bounds(lower=-1.0, upper=1.0),
            outcome_bounds=Bounds(lower=-1.0, upper=1.0),
            covariance_rows=30,
        ),
        n=60,
        d=3,
        l=2,
    )


def source(seed=0):
    rng = np.random.default_rng(seed)
    return ArraySource(
        features=rng.uniform(-1, 1, size=(60, 3)),
        outcomes=rng.uniform(-1, 1, size=(60, 2)),
        feature_names=tuple("abc"),
        outcome_names=tuple("yz"),
    )


def begin(out, **changes):
    given = {"config": "x = 1\n", "plan": plan_of(), "charge": {"mu": 1.0}, "release_id": "run-1"}
    return Staging.begin(out, **given | changes)


def complete(staging, ledger):
    """Do everything between the start, or a resume, and the end."""
    with staging:
        if not staging.published:
            staging.check_plan(plan_of())
            charge = ledger / staging.release_id
            if not charge.exists():
                charge.touch()
            release = make_release(source(), plan_of(), bits=staging.bits(), threads=1)
            staging.write(release)
        staging.finish()


def finish_somehow(out, ledger):
    """What a user does after a crash: resume; if there is nothing to resume, start."""
    if (partial_of(out) / "job.json").exists():
        complete(Staging.resume(out), ledger)
    elif not out.exists():
        complete(begin(out, created=DAY), ledger)
    elif partial_of(out).exists():
        with pytest.raises(primo.InputError, match="nothing to resume"):
            Staging.resume(out)


@pytest.fixture
def ledger(tmp_path):
    folder = tmp_path / "ledger"
    folder.mkdir()
    return folder


@pytest.fixture
def undisturbed(tmp_path, monkeypatch):
    """The bundle of a run with the known secret that nobody kills."""
    monkeypatch.setattr(staging_module, "secrets", SimpleNamespace(token_bytes=lambda _: SECRET))
    folder = tmp_path / "undisturbed"
    folder.mkdir()
    complete(begin(folder / "out", created=DAY), folder)
    return read_bundle(folder / "out")


def test_from_start_to_end(tmp_path, ledger):
    out = tmp_path / "out"
    with begin(out) as staging:
        folder = partial_of(out)
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
        assert "private" in repr(staging)
        assert staging.charge == {"mu": 1.0}
    staging = Staging.resume(out)
    assert staging.config == "x = 1\n"
    assert staging.release_id == "run-1"
    complete(staging, ledger)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ledger", "out"]
    bundle = read_bundle(out)
    assert bundle.manifest["release_id"] == "run-1"
    assert bundle.release.publishable
    assert bundle.config == "x = 1\n"


def test_same_rows_same_noise_and_other_rows_other_noise(tmp_path):
    def drawn(rows):
        with Staging.resume(tmp_path / "out") as staging:
            return make_release(rows, plan_of(), bits=staging.bits(), threads=1).association

    begin(tmp_path / "out").close()
    first, again = drawn(source()), drawn(source())
    np.testing.assert_array_equal(first, again)
    neighbour = source()
    neighbour.features[0] = 1.0
    exact = [
        make_release(rows, plan_of(), bits=RandomBits.seeded(1), threads=1).association
        for rows in (source(), neighbour)
    ]
    (partial_of(tmp_path / "out") / "drawn").unlink()  # which would refuse a second draw
    cancelled = (drawn(neighbour) - first) - (exact[1] - exact[0])
    assert np.abs(cancelled).min() > 1e-6 * plan_of().association_sigma


class TestKilled:
    CALLS = ("fsync", "rename", "replace", "unlink", "rmdir", "mkdir", "utime")

    def child(self, work, kill_at):
        """Run `work` in a fork that kills itself before its kill_at-th step on the disk."""
        pid = os.fork()
        if pid == 0:
            steps = iter(range(1, 10**9))

            def counted(call):
                def run(*args, **kwargs):
                    if next(steps) == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    return call(*args, **kwargs)

                return run

            try:
                for name in self.CALLS:
                    setattr(os, name, counted(getattr(os, name)))
                work()
                os._exit(0)
            except BaseException:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        return status

    def check(self, out, ledger, undisturbed):
        finish_somehow(out, ledger)
        bundle = read_bundle(out)
        assert bundle.digest == undisturbed.digest
        assert [p.name for p in ledger.iterdir()] == ["run-1"]
        assert {p.name for p in out.parent.iterdir()} == {"out"}

    def walk(self, tmp_path, undisturbed, steps):
        killed = 0
        for step in steps:
            place, ledger = tmp_path / f"at{step}", tmp_path / f"ledger{step}"
            place.mkdir()
            ledger.mkdir()
            out = place / "out"
            status = self.child(lambda out=out, ledger=ledger: finish_somehow(out, ledger), step)
            if os.WIFSIGNALED(status):
                killed += 1
            else:
                assert os.WEXITSTATUS(status) == 0
            self.check(out, ledger, undisturbed)
            if not os.WIFSIGNALED(status):
                break
        return killed

    def test_at_many_steps(self, tmp_path, undisturbed):
        assert self.walk(tmp_path, undisturbed, range(1, 1000, 4)) > 8

    @pytest.mark.statistical
    def test_at_every_step(self, tmp_path, undisturbed):
        assert self.walk(tmp_path, undisturbed, range(1, 1000)) > 30

    def test_twice(self, tmp_path, undisturbed):
        for first, second in ((5, 5), (12, 3), (20, 20), (30, 1)):
            place, ledger = tmp_path / f"{first}-{second}", tmp_path / f"ledger{first}"
            place.mkdir()
            ledger.mkdir()
            for step in (first, second):
                self.child(lambda p=place, g=ledger: finish_somehow(p / "out", g), step)
            self.check(place / "out", ledger, undisturbed)

    def test_at_random_moments(self, tmp_path, undisturbed):
        rng = np.random.default_rng()
        for i in range(8):
            place, ledger = tmp_path / f"at{i}", tmp_path / f"ledger{i}"
            place.mkdir()
            ledger.mkdir()
            pid = os.fork()
            if pid == 0:
                try:
                    finish_somehow(place / "out", ledger)
                finally:
                    os._exit(0)
            time.sleep(rng.uniform(0, 0.2))
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.check(place / "out", ledger, undisturbed)


class TestRefusals:
    def test_nothing_to_resume(self, tmp_path, ledger):
        with pytest.raises(primo.InputError, match=r"nothing to resume.*as a new release"):
            Staging.resume(tmp_path / "out")
        complete(begin(tmp_path / "out"), ledger)
        with pytest.raises(primo.InputError, match=r"nothing to resume.*complete"):
            Staging.resume(tmp_path / "out")

    def test_a_second_start(self, tmp_path):
        out = tmp_path / "out"
        begin(out).close()
        before = (partial_of(out) / "secret").read_bytes()
        with pytest.raises(primo.InputError, match=r"Staging\.resume.*charged stays charged"):
            begin(out)
        assert (partial_of(out) / "secret").read_bytes() == before
        Staging.resume(out).close()  # the refusal let go of the lock
        assert "run-1" in (partial_of(out) / "job.json").read_text()

    def test_an_existing_target(self, tmp_path):
        (tmp_path / "out").mkdir()
        with pytest.raises(primo.InputError, match="exists already"):
            begin(tmp_path / "out")
        assert [p.name for p in tmp_path.iterdir()] == ["out"]

    def test_two_at_once(self, tmp_path):
        out = tmp_path / "out"
        with begin(out):
            code = (
                "import sys; from primo.workflow.resume import Staging\n"
                "from primo.errors import InputError\n"
                "try: Staging.resume(sys.argv[1])\n"
                "except InputError as error: print(error)\n"
            )
            made = subprocess.run(
                [sys.executable, "-c", code, out], capture_output=True, text=True, check=True
            )
            assert "another process is working on" in made.stdout
            with pytest.raises(primo.InputError, match="another process"):
                begin(out)
        Staging.resume(out).close()

    def test_many_starts_at_once(self, tmp_path):
        children = []
        for _ in range(8):
            pid = os.fork()
            if pid == 0:
                status = 2
                try:
                    begin(tmp_path / "out", release_id=f"run-{os.getpid()}")
                    status = 0
                except primo.InputError:
                    status = 1
                finally:
                    os._exit(status)
            children.append(pid)
        ends = {pid: os.WEXITSTATUS(os.waitpid(pid, 0)[1]) for pid in children}
        assert sorted(ends.values()) == [0] + [1] * 7
        winner = next(pid for pid, status in ends.items() if status == 0)
        with Staging.resume(tmp_path / "out") as staging:
            assert staging.release_id == f"run-{winner}"

    def test_another_plan(self, tmp_path):
        with begin(tmp_path / "out") as staging:
            staging.check_plan(plan_of())
            with pytest.raises(primo.InputError, match="paid for under another plan"):
                staging.check_plan(plan_of(2.5))

    def test_a_bundle_of_another_release(self, tmp_path, ledger):
        complete(begin(tmp_path / "other", release_id="run-2"), ledger)
        staging = begin(tmp_path / "out")
        os.rename(tmp_path / "other", tmp_path / "out")
        with pytest.raises(primo.InputError, match=r"holds release run-2.*run-1"):
            _ = staging.published
        with pytest.raises(primo.InputError, match="holds release run-2"):
            staging.finish()
        assert (staging.folder / "secret").exists()

    def test_finish_needs_the_bundle(self, tmp_path):
        with begin(tmp_path / "out") as staging:
            with pytest.raises(primo.InputError, match="not there yet"):
                staging.finish()
            assert (staging.folder / "secret").exists()

    def test_a_destroyed_secret(self, tmp_path):
        with begin(tmp_path / "out") as staging:
            (staging.folder / "secret").unlink()
            with pytest.raises(primo.PrivacyError, match="was destroyed"):
                staging.bits()

    def test_a_damaged_job(self, tmp_path):
        begin(tmp_path / "out").close()
        path = partial_of(tmp_path / "out") / "job.json"
        for text in ("{", "[]", json.dumps({"format": "other"})):
            path.write_text(text)
            with pytest.raises(primo.InputError, match="damaged or of another version"):
                Staging.resume(tmp_path / "out")

    def test_after_closing(self, tmp_path):
        staging = begin(tmp_path / "out")
        staging.close()
        with pytest.raises(primo.InputError, match="was closed"):
            staging.bits()

    def test_folders_that_refuse(self, tmp_path, monkeypatch):
        with pytest.raises(primo.InputError, match="does not exist"):
            begin(tmp_path / "nowhere" / "out")
        with pytest.raises(primo.InputError, match="cannot write"):
            begin("/proc/out")

        def full(_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(primo.InputError, match="No space left"):
            begin(tmp_path / "out")

    def test_giving_up(self, tmp_path):
        begin(tmp_path / "out").discard()
        assert not list(tmp_path.iterdir())


def test_the_secret_is_overwritten(tmp_path, monkeypatch):
    staging = begin(tmp_path / "out")
    secret = staging.folder / "secret"
    twin = tmp_path / "twin"
    os.link(secret, twin)
    staging.discard()
    assert twin.read_bytes() == bytes(32)


def test_a_crash_while_the_secret_is_destroyed_leaves_no_known_secret(tmp_path, monkeypatch):
    """Zeros in the place of the secret would be noise that everybody can compute."""
    out = tmp_path / "out"
    staging = begin(out)
    fill = ownership._fill

    def crash(handle, content):
        fill(handle, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ownership, "_fill", crash)
        with pytest.raises(KeyboardInterrupt):
            staging.discard()
    staging.close()
    with Staging.resume(out) as again, pytest.raises(primo.PrivacyError, match="destroyed"):
        again.bits()
    (partial_of(out) / "secret").touch(mode=0o600)
    (partial_of(out) / "secret").write_bytes(bytes(32))
    with Staging.resume(out) as again, pytest.raises(primo.PrivacyError, match="destroyed"):
        again.bits()


def test_one_charge_draws_for_one_set_of_rows_only(tmp_path):
    """Also if the first release was published, moved away, and the files changed in between."""
    out = tmp_path / "out"
    with begin(out) as staging:
        first = make_release(source(), plan_of(), bits=staging.bits())
    with Staging.resume(out) as again, pytest.raises(primo.PrivacyError, match="drawn before"):
        make_release(source(1), plan_of(), bits=again.bits())
    with Staging.resume(out) as again:
        second = make_release(source(), plan_of(), bits=again.bits())
    np.testing.assert_array_equal(first.association, second.association)
    assert stat.S_IMODE((partial_of(out) / "drawn").stat().st_mode) == 0o600
