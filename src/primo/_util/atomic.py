"""Files and folders that appear whole or not at all, and errors that say so.

The only module that makes files that other users may read. A file is created by its name once, never
through a link and never over an existing file, and after that only its descriptor is used: a user who
can write to the same folder can remove or replace it, but cannot make primo write its bytes somewhere
else. Private files are made in `primo._util.ownership`.
"""

from __future__ import annotations

import errno
import io
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from primo.errors import InputError

__all__ = [
    "as_text",
    "flush",
    "new_file",
    "new_folder",
    "publish",
    "refuse_existing",
    "whole_file",
    "writing",
]


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn the operating system's errors (no space, no permission) into one clear error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"cannot write {str(target)!r}: {reason}. Nothing was left behind; make room or choose "
            "a folder that can be written to, and try again"
        ) from error


def new_file(path: Path, *, private: bool = False) -> BinaryIO:
    """Make a file that did not exist and open it for writing; a link in its place is an error.

    With `private` only the owner may read it.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o600 if private else 0o666), "w+b")


@contextmanager
def as_text(file: BinaryIO) -> Iterator[TextIO]:
    """Write UTF-8 text to a binary file, which stays open."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
    try:
        yield text
        text.flush()
    finally:
        text.detach()


@contextmanager
def whole_file(target: Path, *, private: bool = False, replace: bool = True) -> Iterator[BinaryIO]:
    """Yield a temporary file to write; on success it takes the place of `target`, else it is removed.

    A reader sees the old file or the new one, never half of one, even after a loss of power. A link
    at `target` is replaced, not followed. With `private` only the owner may read it. Without `replace`
    anything that is at `target`, before or after the file was written, is an error and stays.
    """
    if not target.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; give the name of a file")
    if not replace:
        refuse_existing(target)
    part = target.with_name(f".{secrets.token_hex(8)}.primo-part")
    with writing(target):
        file = new_file(part, private=private)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if not os.path.samestat(os.lstat(part), os.fstat(file.fileno())):
                    raise OSError(errno.ESTALE, "another program put a file in its place")
                if replace:
                    os.replace(part, target)
                else:
                    _put_in_place(part, target)
            flush(target.parent)
        finally:
            part.unlink(missing_ok=True)


def _put_in_place(part: Path, target: Path) -> None:
    """Give a finished file its name, unless something has that name; in one step where possible."""
    try:
        os.link(part, target)
    except FileExistsError:
        refuse_existing(target)
    except OSError:  # a file system without hard links
        refuse_existing(target)
        os.replace(part, target)


@contextmanager
def new_folder(target: Path, *, workspace: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder to fill, removed at the end; `publish` moves out of it.

    It lies beside `target`, or in `workspace` on the same file system. Other users cannot enter it, so
    they cannot put links where files will be made. Put what is to be published into a folder inside it.
    """
    parent = workspace or target.parent
    if not parent.is_dir():
        raise InputError(f"the folder {str(parent)!r} does not exist; create it first")
    refuse_existing(target)
    folder = parent / f".{target.name}.{secrets.token_hex(8)}"
    with writing(target):
        try:
            os.mkdir(folder, 0o700)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def publish(made: Path, target: Path) -> None:
    """Move what was made, a file or a folder of files, to its place: one atomic step."""
    if made.is_dir():
        for file in made.iterdir():
            flush(file)
    flush(made)
    refuse_existing(target)
    os.rename(made, target)
    flush(target.parent)


def refuse_existing(target: Path) -> None:
    """Refuse to overwrite anything: a release is never replaced."""
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already; choose another name, or move it away")


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
