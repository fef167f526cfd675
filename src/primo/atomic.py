"""Files and folders that appear whole or not at all, and errors that say so."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from primo.errors import InputError

__all__ = ["flush", "new_folder", "publish", "refuse_existing", "whole_file", "writing"]


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn the operating system's refusals (no space, no permission) into one clear error."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"cannot write {str(target)!r}: {reason}. Nothing was left behind; make room or choose "
            "a folder that can be written to, and try again"
        ) from error


@contextmanager
def whole_file(target: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield a temporary sibling to write; on success it replaces `target`, else it is removed.

    A reader sees the old file or the new one, never half of one, even after a loss of power. With
    `private` only the owner may read it.
    """
    if not target.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; give the name of a file")
    # The name keeps its endings, by which writers choose the format.
    part = target.with_name(f".{secrets.token_hex(4)}.{target.name}")
    try:
        with writing(target):
            os.close(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
            )
            yield part
            flush(part)
            os.replace(part, target)
            flush(target.parent)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def new_folder(target: Path, *, workspace: Path | None = None) -> Iterator[Path]:
    """Yield a temporary folder to fill, removed at the end; `publish` moves out of it.

    It lies beside `target`, or in `workspace` on the same file system.
    """
    parent = workspace or target.parent
    if not parent.is_dir():
        raise InputError(f"the folder {str(parent)!r} does not exist; create it first")
    refuse_existing(target)
    folder = parent / f".{target.name}.{secrets.token_hex(4)}"
    with writing(target):
        try:
            folder.mkdir()
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
    """Refuse to write over something: a release is never replaced."""
    if os.path.lexists(target):
        raise InputError(f"{str(target)!r} exists already; choose another name, or move it away")


def flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
