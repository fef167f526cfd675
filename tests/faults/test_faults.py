"""`primo fit` with a ledger, and everything that can happen to it: nothing lost, nothing charged twice,
nothing released twice with different noise. `PRIMO_FUZZ=thorough` kills at many more moments."""

import os
import random
import subprocess
import time

import pytest

from primo.ledger import open_ledger
from primo.released.bundle import read_bundle

THOROUGH = os.environ.get("PRIMO_FUZZ") == "thorough"
KILLS = 200 if THOROUGH else 6


def test_undisturbed(program):
    assert program.fit()[0] == 0, program.said
    program.check()


def test_killed_at_any_moment(make_program):
    first = make_program()
    code, seconds = first.fit()
    assert code == 0, first.said
    rng = random.Random(None if THOROUGH else 7)
    killed = 0
    for i in range(KILLS):
        program = make_program()
        moment = seconds * (rng.random() if THOROUGH and i else i / KILLS)
        killed += program.fit(kill_after=moment)[0] == -9
        staged = program.staged()
        if i % 2 and (program.partial / "job.json").exists():  # and the resumed run as well
            program.resume(kill_after=moment)
            staged += program.staged()
        program.finish()
        program.check(staged)
    assert killed  # the first at once; how many more depends on how busy the machine is


#: Where to stop, as hooks that kill the process itself at a step that matters.
STEP = """
import importlib, operator
module = importlib.import_module("{module}")
*path, attribute = "{name}".split(".")
owner = operator.attrgetter(path[0])(module) if path else module
import os, signal
original = getattr(owner, attribute)
def stopped(*args, **options):
    {before}
    result = original(*args, **options)
    {after}
    return result
setattr(owner, attribute, stopped)
"""
KILL = "os.kill(os.getpid(), signal.SIGKILL)"
STEPS = [
    ("primo.workflow.fit", "Account.pay"),
    ("primo.workflow.fit", "make_release"),
    ("primo.workflow.resume", "write_bundle"),
    ("primo.released.bundle.write", "publish"),
    ("primo.ledger", "Ledger.finish"),
    ("primo.workflow.resume", "_remove"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("module", "name"), STEPS, ids=[name for _, name in STEPS])
def test_killed_at_every_step_that_matters(program, module, name, when):
    does = {"before": "pass", "after": "pass", when: KILL}
    assert program.fit(hook=STEP.format(module=module, name=name, **does))[0] == -9, program.said
    staged = program.staged()
    charged = open_ledger(program.where, readonly=True).spent()
    assert len(charged) <= 1
    program.finish()
    program.check(staged)


FULL = """
import resource, signal
os.dup2(os.open(os.devnull, os.O_WRONLY), 1), os.dup2(1, 2)  # what is said goes to a file, too
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""


@pytest.mark.parametrize("size", [0, 50, 3000, 40_000])
def test_no_file_may_grow(program, size):
    """A limit on the size of files fails writes in the middle, as a full disk does."""
    code, _ = program.fit(hook=FULL.format(size=size))
    assert code in (0, 1, 2)
    assert not (program.folder / "out" / "release").exists() or code == 0
    staged = program.staged()
    program.finish()
    program.check(staged)


@pytest.fixture
def small_disk(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k,mode=0700", "tmpfs", place]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a file system of its own cannot be mounted here")
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("room", [0, 8, 24, 48])
def test_a_full_disk(make_program, small_disk, room):
    program = make_program(small_disk, said=small_disk.parent / "said.txt")
    ballast = small_disk / "ballast"
    free = os.statvfs(small_disk)
    ballast.write_bytes(bytes(max(0, free.f_bavail * free.f_bsize - 1024 * room)))
    code, _ = program.fit()
    assert code in (1, 2), program.said
    assert not (small_disk / "out" / "release").exists()
    ballast.unlink()
    staged = program.staged()
    program.finish()
    program.check(staged)


LOSE = "os.seteuid(65534)" if os.geteuid() == 0 else "os.chmod('out', 0o500)"


@pytest.mark.parametrize(
    ("module", "name"),
    [("primo.workflow.fit", "Account.pay"), ("primo.workflow.fit", "make_release")],
)
def test_permission_lost_between_charge_and_write(program, module, name):
    program.folder.chmod(0o700)
    hook = STEP.format(module=module, name=name, before="pass", after=LOSE)
    code, _ = program.fit(hook=hook)
    assert code in (1, 2), program.said
    os.chmod(program.folder / "out", 0o700)
    assert open_ledger(program.where, readonly=True).spent()[0].releases == 1
    assert not (program.folder / "out" / "release").exists()
    program.finish()
    program.check()


def test_a_folder_that_goes_away(program):
    gone = "os.rename('out', 'away')"
    hook = STEP.format(module="primo.workflow.fit", name="make_release", before="pass", after=gone)
    assert program.fit(hook=hook)[0] in (1, 2), program.said
    (program.folder / "away").rename(program.folder / "out")
    program.finish()
    program.check()


CLOCK = """
import datetime, primo.ledger.appender as appender
class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime({year}, 1, 1, tzinfo=tz)
appender.datetime = Clock
"""


@pytest.mark.parametrize("years", [(2090, 1990), (1990, 2090)])
def test_a_clock_that_jumps(program, years):
    first, second = (CLOCK.format(year=year) for year in years)
    stop = STEP.format(module="primo.workflow.fit", name="make_release", before=KILL, after="pass")
    assert program.fit(hook=first + stop)[0] == -9, program.said
    assert program.resume(hook=second)[0] == 0, program.said
    program.check()
    times = [entry.time for entry in open_ledger(program.where, readonly=True).history()]
    assert any(str(years[0]) in time for time in times)
    assert any(str(years[1]) in time for time in times)
    # The order is that of the numbers, so what is spent does not depend on the clock.
    assert program.run("ledger show books.ledger")[0] == 0
    assert open_ledger(program.where, readonly=True).spent()[0].releases == 1


def test_resumed_without_its_ledger(program):
    """A run that was killed before it was charged is charged to the ledger it was begun with."""
    stop = STEP.format(module="primo.workflow.fit", name="Account.pay", before=KILL, after="pass")
    assert program.fit(hook=stop)[0] == -9
    program.run("fit --resume --out out/release")
    program.finish()
    program.check()


def test_resumed_with_another_treatment_of_missing_values(program):
    """Whatever is finished, it has the numbers that were drawn: other ones are refused."""
    stop = STEP.format(
        module="primo.released.bundle.write", name="publish", before=KILL, after="pass"
    )
    assert program.fit(hook=stop)[0] == -9
    staged = program.staged()
    assert staged
    program.resume(options="--missing centre")
    program.finish()
    program.check(staged)


WAIT = """
import os, time
open('ready', 'w').close()
while not os.path.exists('go'):
    time.sleep(0.02)
"""


def wait_for(path):
    end = time.monotonic() + 600  # so that a mistake does not hang for ever
    while not path.exists():
        assert time.monotonic() < end, "nothing happens"
        time.sleep(0.02)


@pytest.fixture
def team(server, make_program, tmp_path, monkeypatch):
    """A program whose ledger is in a database; its key is where the environment says."""
    monkeypatch.setenv("PRIMO_LEDGER_KEY_FILE", str(tmp_path / "key"))
    return make_program(ledger=server.url(server.new_schema()), key=tmp_path / "key")


def paused(name, place):
    """A hook that lets the parent do something before or after a step."""
    does = {"before": "pass", "after": "pass", place: f"exec({WAIT!r})"}
    return STEP.format(module="primo.workflow.fit", name=name, **does)


@pytest.mark.parametrize("place", ["before", "after"])
def test_the_database_restarts_around_the_charge(server, team, place):
    team.start(team.fit_line.format(ledger=team.ledger), hook=paused("Account.pay", place))
    wait_for(team.folder / "ready")
    server.stop()
    (team.folder / "go").touch()
    time.sleep(0.5)
    server.start()
    assert team.wait()[0] == 0, team.said
    team.check()


def test_killed_while_the_database_is_down(server, team):
    team.start(
        team.fit_line.format(ledger=team.ledger),
        hook=paused("Account.pay", "before"),
        kill_after=4,
    )
    wait_for(team.folder / "ready")
    server.stop()
    (team.folder / "go").touch()
    assert team.wait()[0] == -9, team.said
    server.start()
    assert len(open_ledger(team.where, readonly=True).history()) == 1
    team.finish()
    team.check()
    assert read_bundle(team.folder / "out" / "release").release.publishable
