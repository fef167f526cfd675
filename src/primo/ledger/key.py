"""The secret that turns people into tokens and seals the history.

It is not stored in the ledger. Whoever has both can ask "is this person in the data set?" by computing
the person's token; whoever has the ledger alone sees random numbers. Nobody needs it to read.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from primo._util.ownership import NotOursError, create_ours, open_ours
from primo.errors import Argument, InputError, LedgerError, Message, PrivacyError

__all__ = ["KEY_FILE_VARIABLE", "Key", "make_key", "read_key"]

#: Environment variable that names the key file where none is given.
KEY_FILE_VARIABLE = "PRIMO_LEDGER_KEY_FILE"

_FIRST_LINE = "primo ledger key 1"
_BYTES = 32


@dataclass(frozen=True, repr=False)
class Key:
    """32 secret bytes; each use has its own label, so that no output can be used for another purpose."""

    secret: bytes

    def __repr__(self) -> str:
        """Hide the secret."""
        return "<Key (secret)>"

    @property
    def check(self) -> str:
        """A public name of the key: it tells two keys apart and reveals neither."""
        return self._digest(b"", b"primo-key")

    def seal(self, text: str) -> str:
        """Return what only a holder of the key can compute for this text."""
        return self._digest(text.encode(), b"primo-seal")

    def _digest(self, data: bytes, use: bytes) -> str:
        return hashlib.blake2b(data, key=self.secret, person=use, digest_size=32).hexdigest()


def read_key(path: Path) -> Key:
    """Read a key file; refuse anything else, and a key that others made or may read."""
    try:
        with os.fdopen(open_ours(path), encoding="ascii") as file:
            lines = file.read().splitlines()
    except NotOursError as error:
        raise PrivacyError(
            f"the key {str(path)!r} is refused: {error}. Whoever has the key can find out who is in "
            "the data, and write a false history. If you made it and nobody else read it, run "
            f"`chmod 600 {path}`, or put a copy of your own in the place of a link. Else remove it, "
            "make a new ledger with a new key, and enter what was spent by hand (primo ledger note)"
        ) from None
    except FileNotFoundError:
        raise LedgerError(
            f"there is no key at {str(path)!r}",
            argument="key_file",
            value=str(path),
            remedy=lost_key(),
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a text file"
        raise LedgerError(f"the key {str(path)!r} cannot be read: {reason}") from None
    try:
        first, digits = lines
        secret = bytes.fromhex(digits)
    except ValueError:
        first, secret = "", b""
    if first != _FIRST_LINE or len(secret) != _BYTES:
        raise LedgerError(
            f"{str(path)!r} is not a key that primo wrote; restore it from a copy",
            argument="key_file",
            value=str(path),
            remedy=lost_key(),
        )
    return Key(secret)


def make_key(path: Path) -> Key:
    """Return the key at `path` if it is ours alone, or write a new one that only its owner can read."""
    try:
        handle = create_ours(path)
    except FileExistsError:
        return read_key(path)
    except OSError as error:
        raise InputError(f"the key {str(path)!r} cannot be written: {error.strerror}") from None
    key = Key(secrets.token_bytes(_BYTES))
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{_FIRST_LINE}\n{key.secret.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InputError(f"the key {str(path)!r} cannot be written: {error.strerror}") from None
    return key


def lost_key() -> Message:
    """Say what can be done without the key."""
    return Message.of(
        "Give ",
        Argument("key_file"),
        f", or set {KEY_FILE_VARIABLE}. Without the key the ledger can be read but people "
        "cannot be recognised, so nothing can be charged; if it is lost for good, make a new ledger "
        "and enter what was spent by hand (primo ledger note)",
    )
