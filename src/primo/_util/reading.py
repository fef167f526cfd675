"""One wording for files that cannot be read."""

from __future__ import annotations

import os

from primo.errors import InputError

__all__ = ["unreadable"]


def unreadable(path: str | os.PathLike[str], error: OSError) -> InputError:
    """Return the error for a file that is not there, or that the system does not let us read."""
    if isinstance(error, FileNotFoundError):
        return InputError(f"there is no file {os.fspath(path)}")
    if isinstance(error, IsADirectoryError):
        return InputError(f"{os.fspath(path)} is a folder; give a file")
    return InputError(f"cannot read {os.fspath(path)}: {error.strerror}")
