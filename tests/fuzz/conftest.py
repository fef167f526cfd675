"""What all fuzzing shares: how far it goes, how bytes are damaged, and what may come out.

`PRIMO_FUZZ=thorough` draws many more examples, and other ones every time; the quick suite draws the
same few every time. A test uses `@settings(settings.get_profile("fuzz"))`.
"""

import os
import signal
import tempfile
import traceback
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from primo.errors import PrimoError
from sentinels import Watch

THOROUGH = os.environ.get("PRIMO_FUZZ") == "thorough"
SECONDS = 10  # of computing for one example; more is called a hang, however busy the machine is
WAITING = 300  # seconds by the clock, for what waits and computes nothing

settings.register_profile(
    "fuzz",
    max_examples=1000 if THOROUGH else 30,
    phases=tuple(Phase)
    if THOROUGH
    else (Phase.explicit, Phase.generate),  # shrinking takes minutes
    report_multiple_bugs=False,
    derandomize=not THOROUGH,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

#: What parsers trip over: numbers at the edges, quotes, ends of lines, bytes that are no text.
TOKENS = (
    *(b"nan", b"inf", b"-inf", b"1e400", b"-1e-400", b"1e5", b"0x10", b"-9", b"-9.0", b"NA", b"."),
    *(b"99999999999999999999", b"9" * 400, b"-1", b"1_0", b"\xc2\xb2", "१".encode(), b" ", b""),
    *(
        b"\0",
        b"\r",
        b"\n",
        b"\r\n",
        b"\t",
        b",",
        b'"',
        b"''",
        b"#",
        b"\\",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
    ),
    *(b"{", b"]", b"null", b"true", b"[[[[", b"../../x", b"\x85", "\u2028".encode(), b"x" * 70_000),
)

EDIT = st.tuples(
    st.sampled_from(
        ["flip", "flip", "set", "insert", "insert", "replace", "replace", "delete", "repeat", "cut"]
    ),
    st.floats(0, 1, exclude_max=True),  # where, as a share of the length
    st.integers(0, 2**16),  # how much, or which bit
    st.one_of(st.sampled_from(TOKENS), st.binary(min_size=1, max_size=6)),
)


def damaged(content, edits):
    """Apply edits to bytes, one after the other."""
    for kind, share, number, new in edits:
        place = int(share * (len(content) + 1))
        before, after = content[:place], content[place:]
        if kind == "flip" and after:
            content = before + bytes([after[0] ^ (1 << number % 8)]) + after[1:]
        elif kind == "set" and after:
            content = before + bytes([number % 256]) + after[1:]
        elif kind == "insert":
            content = before + new + after
        elif kind == "replace":
            content = before + new + after[len(new) :]
        elif kind == "delete":
            content = before + after[1 + number % 64 :]
        elif kind == "repeat":
            content = before + after[: 1 + number % 64] * 2 + after[1 + number % 64 :]
        elif kind == "cut":
            content = before
    return content


def _alarm(number, _):
    spent = f"{SECONDS} s of computing" if number == signal.SIGPROF else f"{WAITING} s"
    raise AssertionError(f"not done after {spent}: a hang")


class Fuzz:
    """Damage, and the wall that every error has to pass."""

    thorough = THOROUGH
    tokens = TOKENS
    edits = st.lists(EDIT, min_size=1, max_size=4)
    damaged = staticmethod(damaged)

    @staticmethod
    @contextmanager
    def guarded(*, forbidden=(), also=()):
        """Let errors of ours end the block; fail on any other, on a hang, and on forbidden words."""
        previous = {kind: signal.signal(kind, _alarm) for kind in (signal.SIGPROF, signal.SIGALRM)}
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        signal.alarm(WAITING)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield
        except (PrimoError, *also) as error:
            refused = error
        else:
            refused = None
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for kind, handler in previous.items():
                signal.signal(kind, handler)
        if refused is not None:
            shown = "".join(traceback.format_exception(refused))
            assert str(refused).strip(), "an error without a message"
            for word in forbidden:
                assert word not in shown, f"{word!r} leaked:\n{shown}"

    @staticmethod
    @contextmanager
    def folder(files=None):
        """Give a folder of its own with these files in it."""
        with tempfile.TemporaryDirectory(prefix="primo-fuzz-") as name:
            place = Path(name)
            for file, content in (files or {}).items():
                path = place / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch(mode=0o600)  # what is secret has to be
                path.write_bytes(content)
            yield place


@pytest.fixture(scope="session")
def fuzz():
    return Fuzz


@pytest.fixture
def tmp_path(tmp_path_factory):
    """Give a folder whose name does not repeat the parameters of a test, as pytest's does."""
    return tmp_path_factory.mktemp("case")


@pytest.fixture
def watch(capfd, caplog):
    return Watch(capfd, caplog)
