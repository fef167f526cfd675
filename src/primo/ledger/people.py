"""The people of a data set, as tokens that mean nothing without the key."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from primo.ledger.naming import Person

__all__ = ["Sketch", "Tokens", "share_people", "tokens_digest", "tokens_from_bytes"]

#: Keyed hashes of people, sorted, each once.
Tokens = NDArray[np.uint64]

_SAMPLE = 4096


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Sketch:
    """Who is in a data set: one 64-bit token per person; `primo.rows.person_tokens.sketch` makes it."""

    tokens: Tokens
    rows: int
    person: Person | None  # the columns with the ids; None: tokens stand for values
    key_check: str  # public name of the key that was used
    digest: str = field(init=False)

    def __post_init__(self) -> None:
        """Name the set of people by a hash of all tokens."""
        object.__setattr__(self, "digest", tokens_digest(self.to_bytes()))

    @property
    def by(self) -> str:
        """What a token stands for. Those of ids and of values never match each other."""
        return "values" if self.person is None else "ids"

    def __repr__(self) -> str:
        """Say how it was made; show no token."""
        return f"<Sketch n={self.rows} by {self.by} (private)>"

    def to_bytes(self) -> bytes:
        """Return the tokens as little-endian bytes."""
        return self.tokens.astype("<u8", copy=False).tobytes()


def tokens_from_bytes(data: bytes) -> Tokens:
    """Return the tokens that `Sketch.to_bytes` wrote."""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False)


def tokens_digest(data: bytes) -> str:
    """Return the hash by which the ledger knows a set of people."""
    return hashlib.sha256(data).hexdigest()


def share_people(first: Tokens, second: Tokens) -> bool:
    """Say whether two sets have a person in common.

    Never misses one; a wrong yes has probability n₁·n₂/2⁶⁴ (5e-8 for a million each).
    Cost: O(small·log large), and little where a percent or more is shared.
    """
    # Tokens are uniform, so the smallest of each are a fair sample: they decide the usual case.
    if np.isin(first[:_SAMPLE], second[:_SAMPLE], assume_unique=True).any():
        return True
    small, large = sorted((first, second), key=len)
    if not len(small):
        return False
    places = np.minimum(np.searchsorted(large, small), len(large) - 1)
    return bool((large[places] == small).any())
