"""Files that must stay as they were when they were opened.

Rows are found by their place. A file that is sorted anew or written again while parts of it are read,
by this process or by workers, could give one person's row twice and another's not at all: somebody
would count twice in the sums, which the noise does not cover.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from os import stat_result
from pathlib import Path
from typing import TypeVar

from primo.errors import InputError

__all__ = ["Unchanged", "remember"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False)
class Unchanged:
    """Size and time of last change of some files when they were opened, and on which machine.

    A worker on another machine may read a copy of its own, which has another time. There the time is
    compared only if it is the same file by its number, as on a shared file system. A change within
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
        """Walk on, and check before the first step and after the last."""
        self.check()
        yield from walk
        self.check()


def remember(*paths: Path) -> Unchanged:
    """Note what these files are now; call it before they are read for the first time."""
    stats = [(path, _stat(path)) for path in paths]
    return Unchanged(
        files=tuple((path, now.st_size, now.st_mtime_ns, now.st_ino) for path, now in stats),
        host=socket.gethostname(),
    )


def _stat(path: Path) -> stat_result:
    try:
        return path.stat()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
