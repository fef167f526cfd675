"""Check that files do not change between opening and reading.

Rows are found by their position. If a file is sorted or rewritten while parts of it are read, by this
process or by workers, one person's row could be read twice and another's not at all: a person would
count twice in the sums, which the noise does not cover.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from typing import TypeVar

from primo._util.reading import unreadable
from primo.errors import InputError

__all__ = ["Unchanged", "remember"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False)
class Unchanged:
    """Size and time of last change of some files when they were opened, and on which machine.

    A worker on another machine may read its own copy, which has another time. There the time is
    compared only if the file has the same inode number, as on a shared file system. A change within
    the resolution of the file system's clock, a few milliseconds, that leaves the size as it was is
    not seen.
    """

    files: tuple[tuple[Path, int, int, int], ...]  # size, time in nanoseconds, number (inode)
    host: str

    def __repr__(self) -> str:
        """Say which files."""
        return f"<Unchanged {', '.join(str(path) for path, *_ in self.files)}>"

    def check(self) -> None:
        """Refuse files that are no longer what was opened."""
        here = socket.gethostname() == self.host
        for path, size, time, number in self.files:
            now = _stat(path)
            same_place = here or now.st_ino == number
            if now.st_size != size or (same_place and now.st_mtime_ns != time):
                raise InputError(
                    f"{path} was changed while it was being read, so one person's row could count "
                    "twice; leave the file alone and open it again"
                )

    def during(self, walk: Iterator[T]) -> Iterator[T]:
        """Yield the same items; check the files before the first and after the last."""
        self.check()
        yield from walk
        self.check()


def remember(*paths: Path) -> Unchanged:
    """Record size, time and inode of these files; call it before they are read for the first time."""
    stats = [(path, _stat(path)) for path in paths]
    return Unchanged(
        files=tuple((path, now.st_size, now.st_mtime_ns, now.st_ino) for path, now in stats),
        host=socket.gethostname(),
    )


def _stat(path: Path) -> stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise unreadable(path, error) from None
