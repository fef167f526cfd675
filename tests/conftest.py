"""What all tests share."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from pathlib import Path

import pytest

from primo.released.uncertainty import published
from primo.wall.noise import RandomBits
from primo.workflow import resume

#: Where the freshness of keys is itself under test.
FRESH = ("wall/noise", "statistical", "faults")

#: Where bundles are made and read and the R² of what they publish is not itself under test. It comes
#: from sixty runs of the estimator on a small release, two thirds of the time of a small fit.
FEW_RUNS = (
    "audit",
    "cli",
    "docs/test_panels",
    "faults",
    "fuzz",
    "released/bundle",
    "released/export",
    "workflow",
)
RUNS = published.MOST_RUNS


class ListedSecrets:
    """Stands for the module `secrets` where releases from files get theirs: those of a fixed list."""

    def __init__(self):
        self.numbers = itertools.count()

    def token_bytes(self, size):
        return hashlib.sha256(b"tests/secret:%d" % next(self.numbers)).digest()[:size]


@pytest.hookimpl(tryfirst=True)  # before fixtures of any scope make a bundle
def pytest_runtest_setup(item):
    path = path_of(item)
    published.MOST_RUNS = 6 if path.startswith(FEW_RUNS) else RUNS
    resume.secrets = secrets if path.startswith(FRESH) else ListedSecrets()


def path_of(item):
    """Return the path of the file of a test, from here."""
    return Path(item.path).relative_to(Path(__file__).parent).as_posix()


@pytest.fixture(autouse=True)
def fresh_keys_from_a_list(request, monkeypatch):
    """Give "fresh" bits the keys of a fixed list, another one for every call within a test.

    A test that compares noise with a threshold then passes always or never, on every machine. Releases
    count as fresh as before: nothing warns, and they may be published.
    """
    if path_of(request.node).startswith(FRESH):
        return
    numbers = itertools.count()

    def fresh(cls):
        return cls(hashlib.sha256(b"tests/fresh:%d" % next(numbers)).digest(), kind="fresh")

    monkeypatch.setattr(RandomBits, "fresh", classmethod(fresh))
