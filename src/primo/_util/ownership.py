"""Files and folders that are ours alone, and the refusal of those that are not.

A secret is worth nothing if somebody else made the file that it is kept in. So before a file or folder
is used, its owner, its mode and its links are looked at, through an open descriptor: what was
looked at is what is used, whatever happens to its name meanwhile. Links are never followed.

This needs a POSIX system: `import primo` fails on others.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from typing import Self

from primo.errors import PrivacyError

__all__ = ["NotOursError", "PrivateFolder", "create_ours", "open_ours", "why_not_ours"]

_NEVER = os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NEVER


class NotOursError(PrivacyError):
    """A file or folder that should be ours alone is not; the message is the reason."""


def why_not_ours(found: os.stat_result) -> str | None:
    """Say why others have, or had, a hand on a file or folder; None if they have not.

    An access list counts, too: its mask is shown in the bits of the group.
    """
    if stat.S_ISLNK(found.st_mode):
        return "it is a symbolic link"
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    if found.st_mode & 0o077:
        return "other users may look into it or change it"
    if stat.S_ISREG(found.st_mode) and found.st_nlink != 1:
        return "it has a second name (a hard link)"
    return None


def open_ours(path: str | Path, flags: int = os.O_RDONLY, *, folder: int | None = None) -> int:
    """Open a file that exists, or raise `NotOursError`.

    `folder` is the descriptor of the folder that a relative path starts from.
    """
    try:
        # Without O_NONBLOCK a pipe that somebody put there would keep us waiting.
        handle = os.open(path, flags | os.O_NONBLOCK | _NEVER, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise NotOursError("it is a symbolic link") from None
        raise
    try:
        found = os.fstat(handle)
        plain = stat.S_ISREG(found.st_mode)
        reason = why_not_ours(found) if plain else "it is not a plain file"
        if reason is not None:
            raise NotOursError(reason)
    except BaseException:
        os.close(handle)
        raise
    return handle


def create_ours(path: str | Path, *, folder: int | None = None) -> int:
    """Make a file that only we may read and write, where nothing is yet."""
    return os.open(path, _CREATE, 0o600, dir_fd=folder)


class PrivateFolder:
    """A folder that is ours alone, held open: what is in it is found also if its path is taken over."""

    def __init__(self, path: Path, handle: int) -> None:
        """Use `make` or `open`."""
        self.path = path
        self._handle = handle
        self._lock: int | None = None

    @classmethod
    def make(cls, path: Path) -> Self:
        """Make the folder, or open it if it exists and is ours."""
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        return cls.open(path)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder, or raise `NotOursError`; `FileNotFoundError` if there is none."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NEVER)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise NotOursError("it is a symbolic link, or no folder") from None
            raise
        reason = why_not_ours(os.fstat(handle))
        if reason is not None:
            os.close(handle)
            raise NotOursError(reason)
        return cls(path, handle)

    def close(self) -> None:
        """Let go of it, and of its lock."""
        if self._lock is not None:
            os.close(self._lock)
        os.close(self._handle)

    @property
    def in_place(self) -> bool:
        """Whether the path still leads here."""
        try:
            found = os.stat(self.path, follow_symlinks=False)
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._handle))

    def names(self) -> list[str]:
        """Return the names in it."""
        return os.listdir(self._handle)

    def has(self, name: str) -> bool:
        """Whether there is something of that name."""
        return name in self.names()

    def read(self, name: str) -> bytes:
        """Return the content of a file, or raise `NotOursError`."""
        with os.fdopen(open_ours(name, folder=self._handle), "rb") as file:
            return file.read()

    def write(self, name: str, content: bytes) -> None:
        """Write a file whole or not at all; when this returns, it is on the disk."""
        part = f".{secrets.token_hex(8)}"
        try:
            _fill(create_ours(part, folder=self._handle), content)
            os.replace(part, name, src_dir_fd=self._handle, dst_dir_fd=self._handle)
        except BaseException:
            with suppress(OSError):
                os.unlink(part, dir_fd=self._handle)
            raise
        self.flush()

    def destroy(self, name: str, gone: str) -> None:
        """Overwrite a file with zeros and remove it.

        Under another name first: a crash must not leave a secret in place that is all zeros. `gone`
        may be left of such a crash.
        """
        if self.has(name):
            os.replace(name, gone, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            self.flush()
        if self.has(gone):
            handle = os.open(gone, os.O_WRONLY | _NEVER, dir_fd=self._handle)
            _fill(handle, bytes(os.fstat(handle).st_size))
            self.remove(gone)
            self.flush()

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with everything in it; what is not there is removed already."""
        try:
            os.unlink(name, dir_fd=self._handle)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):  # the second on macOS
            shutil.rmtree(name, dir_fd=self._handle)

    def remove_folders(self) -> None:
        """Remove the folders in it, with everything in them."""
        for name in self.names():
            if stat.S_ISDIR(os.lstat(name, dir_fd=self._handle).st_mode):
                self.remove(name)

    def remove_itself(self) -> None:
        """Remove the empty folder, unless its path leads elsewhere by now."""
        if self.in_place:
            os.rmdir(self.path)

    def lock(self, name: str) -> bool:
        """Take the lock that a file in it stands for; False if another process has it.

        `fcntl.flock` on a descriptor, and not a library such as filelock: that opens the lock file by
        its path, follows folders that are links, and looks at neither owner nor mode nor second names.
        """
        try:
            handle = create_ours(name, folder=self._handle)
        except FileExistsError:
            try:
                handle = open_ours(name, os.O_RDWR, folder=self._handle)
            except FileNotFoundError:
                return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # It may have been finished and removed between opening and locking.
            if not os.path.samestat(os.lstat(name, dir_fd=self._handle), os.fstat(handle)):
                raise FileNotFoundError
        except (BlockingIOError, FileNotFoundError):
            os.close(handle)
            return False
        except BaseException:
            os.close(handle)
            raise
        self._lock = handle
        return True

    def flush(self) -> None:
        """Wait until the names in it are on the disk."""
        os.fsync(self._handle)


def _fill(handle: int, content: bytes) -> None:
    """Write content to a descriptor, wait until it is on the disk, and close."""
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
