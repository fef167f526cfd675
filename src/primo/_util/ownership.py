"""Files and folders that only the current user can access; others are refused.

A secret does not stay secret in a file that another user made. So before a file or folder is used, its
owner, mode and number of links are checked through an open descriptor: the object that was checked is
the one that is used, even if its name is changed meanwhile. Links are never followed.

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

_NO_FOLLOW = os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | _NO_FOLLOW


class NotOursError(PrivacyError):
    """Other users have or had access to a file or folder that must be private; the message says why."""


def why_not_ours(found: os.stat_result) -> str | None:
    """Say why other users have or had access to a file or folder; None if they do not.

    An access control list counts too: its mask appears in the group bits of the mode.
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
        # Without O_NONBLOCK, opening a pipe in place of the file would block.
        handle = os.open(path, flags | os.O_NONBLOCK | _NO_FOLLOW, dir_fd=folder)
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
    """Make a new file that only the current user may read and write."""
    return os.open(path, _CREATE, 0o600, dir_fd=folder)


class PrivateFolder:
    """A private folder, held open: its content is found even if another folder takes its path."""

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
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _NO_FOLLOW)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise NotOursError("it is a symbolic link, or not a folder") from None
            raise
        reason = why_not_ours(os.fstat(handle))
        if reason is not None:
            os.close(handle)
            raise NotOursError(reason)
        return cls(path, handle)

    def close(self) -> None:
        """Close the folder and release its lock."""
        if self._lock is not None:
            os.close(self._lock)
        os.close(self._handle)

    @property
    def in_place(self) -> bool:
        """Whether the path still leads to this folder."""
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

        It is renamed to `gone` first: after a crash, `name` must not be a secret of all zeros. A file
        `gone` that an earlier crash left is destroyed too.
        """
        if self.has(name):
            os.replace(name, gone, src_dir_fd=self._handle, dst_dir_fd=self._handle)
            self.flush()
        if self.has(gone):
            handle = os.open(gone, os.O_WRONLY | _NO_FOLLOW, dir_fd=self._handle)
            _fill(handle, bytes(os.fstat(handle).st_size))
            self.remove(gone)
            self.flush()

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with everything in it; do nothing if it does not exist."""
        try:
            os.unlink(name, dir_fd=self._handle)
        except FileNotFoundError:
            pass
        except (IsADirectoryError, PermissionError):  # PermissionError on macOS
            shutil.rmtree(name, dir_fd=self._handle)

    def remove_folders(self) -> None:
        """Remove the folders in it, with everything in them."""
        for name in self.names():
            if stat.S_ISDIR(os.lstat(name, dir_fd=self._handle).st_mode):
                self.remove(name)

    def remove_itself(self) -> None:
        """Remove the empty folder, unless its path now leads to another one."""
        if self.in_place:
            os.rmdir(self.path)

    def lock(self, name: str) -> bool:
        """Lock a file in the folder; False if another process holds the lock.

        `fcntl.flock` on a descriptor, not a library such as filelock: that opens the lock file by its
        path, follows links to folders, and checks neither the owner, the mode nor hard links.
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
            # Another process may have removed the file between opening and locking.
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
