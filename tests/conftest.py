"""What all tests share."""

from __future__ import annotations

import hashlib
import itertools
from pathlib import Path

import pytest

from primo.wall.noise import RandomBits

#: Where the freshness of keys is itself under test.
FRESH = ("wall/noise", "statistical", "faults")


@pytest.fixture(autouse=True)
def fresh_keys_from_a_list(request, monkeypatch):
    """Give "fresh" bits the keys of a fixed list, another one for every call within a test.

    A test that compares noise with a threshold then passes always or never, on every machine. Releases
    count as fresh as before: nothing warns, and they may be published.
    """
    path = Path(request.node.path).relative_to(Path(__file__).parent).as_posix()
    if path.startswith(FRESH):
        return
    numbers = itertools.count()

    def fresh(cls):
        return cls(hashlib.sha256(b"tests/fresh:%d" % next(numbers)).digest(), kind="fresh")

    monkeypatch.setattr(RandomBits, "fresh", classmethod(fresh))
