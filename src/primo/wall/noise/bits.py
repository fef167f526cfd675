"""Uniform bits for the noise: the key of a release and the AES streams derived from it.

Every stream has a key of its own and is short: a chunk of noise takes about 2¹⁶ blocks of AES, a chunk
of a sample 2¹⁵. The blocks of one stream never repeat, as those of true random bits might: for q blocks
the two can be told apart with an advantage of at most q(q - 1)/2¹²⁹. docs/guarantee.md, section 5,
adds that up and says what follows for the smallest delta.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import operator
import os
import secrets
import threading
from collections.abc import Callable
from typing import NoReturn, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from primo.errors import InputError, PrivacyError

__all__ = ["BLOCKS", "CHUNK", "SLACK", "RandomBits", "Stream", "Words", "integer"]

# Draws per stream; part of what a seed means, so it never depends on memory or threads.
CHUNK = 2**16
#: Blocks of AES that the proof counts for a chunk: those of the first proposals and a reserve, which is
#: not enough with probability 1e-100 (docs/guarantee.md, section 5).
BLOCKS = 2**16 + 2**12
SLACK = 2  # words; cryptography before 43 wants a spare block behind the output

Words = NDArray[np.uint64]

_KEY_BYTES = 32
_ZEROS = memoryview(bytes(16 * CHUNK))  # CTR mode turns zeros into key stream


class RandomBits:
    """The key of one release, from which every stream of its noise is derived.

    A stream belongs to a label and a chunk number and has an AES key of its own, HMAC-SHA256(key,
    chunk, label), so chunks may be drawn in any order and by any thread. A label can be drawn once:
    a second time would repeat the noise, which then cancels out of a difference. For the same
    reason a fresh key refuses to work in a forked process, to be copied and to be pickled.

    Sealed bits are for a release that a crash may interrupt: their key is made of a stored secret and
    of what is released (`bound`), so a second attempt at the same release repeats the very same
    noise, and an attempt at anything else draws other noise. `wall.sealing` proves what that gives.
    """

    __slots__ = ("_commit", "_key", "_kind", "_lock", "_pid", "_secret", "_used")

    #: The last stage of a release: its moments. Stages before it have other names.
    RELEASE = "release"

    def __init__(self, key: bytes, *, kind: str) -> None:
        self._key = key
        self._kind = kind  # "fresh", "reproducible", "sealed" or "bound"
        self._secret: bytes | None = None  # of sealed bits, until their last stage is bound
        self._commit: Callable[[str, bytes], None] | None = None
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._used: set[str] = set()

    @classmethod
    def fresh(cls) -> Self:
        """Draw a 256-bit key from the operating system; the only choice for a release."""
        return cls(secrets.token_bytes(_KEY_BYTES), kind="fresh")

    @classmethod
    def seeded(cls, random_state: int) -> Self:
        """Derive the key from a seed (tests, experiments): anyone who knows it can remove the noise."""
        seed = integer("random_state", random_state)
        key = hashlib.sha256(b"primo.noise/seed/1:%d" % seed).digest()
        return cls(key, kind="reproducible")

    @classmethod
    def sealed(cls, secret: bytes, *, commit: Callable[[str, bytes], None] | None = None) -> Self:
        """Derive the key from a secret of 32 random bytes and from what will be released.

        No noise can be drawn before `bound`, which calls `commit` with the stage and the digest first.
        It may note them on disk, and refuse another digest than it noted before, by raising an error.
        The secret is to be destroyed once the release is published: with it, the release protects
        nobody.
        """
        if len(secret) != _KEY_BYTES:
            raise InputError(f"the secret of a release has {_KEY_BYTES} bytes, not {len(secret)}")
        # A sample is drawn before the rows are read, so it can depend on the secret alone.
        bits = cls(_derived(secret, b"sample"), kind="sealed")
        bits._secret = secret
        bits._commit = commit
        return bits

    def bound(self, digest: bytes, *, stage: str = RELEASE) -> RandomBits:
        """Return the bits for the noise of what `digest` stands for (`sealing.moments_digest`).

        A release that draws noise in several stages binds each stage by its name, once, and
        "release" last. Bits that are not sealed are returned as they are: their labels keep the
        stages apart.
        """
        if self._kind in ("fresh", "reproducible"):
            return self
        with self._lock:
            secret = self._secret
            if secret is None or stage in self._used:
                raise PrivacyError("these random bits were bound to a release already")
            self._used.add(stage)
            if stage == self.RELEASE:
                self._secret = None
        if self._commit is not None:
            self._commit(stage, digest)
        purpose = b"noise:" if stage == self.RELEASE else b"noise of %b:" % stage.encode()
        return RandomBits(_derived(secret, purpose + digest), kind="bound")

    @property
    def reproducible(self) -> bool:
        """Whether the noise can be drawn again from a seed; a release must say so."""
        return self._kind == "reproducible"

    @property
    def unbound(self) -> bool:
        """Whether these bits have to be bound to what is released before they draw noise."""
        return self._kind == "sealed"

    @property
    def repeatable(self) -> bool:
        """Whether another process could draw the same noise: from a seed, or from the secret."""
        return self._kind != "fresh"

    def __repr__(self) -> str:
        return f"<RandomBits {self._kind}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("RandomBits cannot be copied or pickled: two holders would repeat noise")

    def claim(self, label: str) -> None:
        """Take a label for good, or refuse; comes before the first stream of the label."""
        if self._kind == "sealed":
            raise PrivacyError(
                "sealed random bits draw noise only after bound(digest) has tied them to what is "
                "released: tied to nothing, the noise of other rows would be the same and cancel"
            )
        self._claim(label)

    def _claim(self, label: str) -> None:
        if not self.reproducible and os.getpid() != self._pid:
            raise PrivacyError(
                "these random bits were drawn before a fork and would repeat the parent's noise; "
                "call RandomBits.fresh() in the process that draws"
            )
        with self._lock:
            if label in self._used:
                raise PrivacyError(
                    f"noise labelled {label!r} was already drawn from these random bits and would "
                    "repeat; use another label, or new bits for another release"
                )
            self._used.add(label)

    def subset(self, n: int, size: int, *, label: str) -> NDArray[np.bool_]:
        """Draw `size` of `n` places in secret, every subset with the same probability.

        The places with the smallest of n independent 128-bit words: uniform by symmetry, and exactly
        so because a draw with equal words is thrown away.
        """
        self._claim(label)
        chunks = itertools.count()  # a stream for each: one for all would be too long a stream
        while True:
            words = np.concatenate(
                [
                    self.stream(label, next(chunks)).words(min(CHUNK, 2 * n - i))
                    for i in range(0, 2 * n, CHUNK)
                ]
            )
            order = np.lexsort((words[:n], words[n:]))
            ties = (np.diff(words[:n][order]) == 0) & (np.diff(words[n:][order]) == 0)
            if not ties.any():
                break
        chosen = np.zeros(n, dtype=np.bool_)
        chosen[order[:size]] = True
        return chosen

    def stream(self, label: str, chunk: int) -> Stream:
        """Start the stream of a chunk of a claimed label, always from its beginning."""
        text = label.encode()
        message = b"primo.noise/stream/1:%d:%d:%b" % (chunk, len(text), text)
        return Stream(hmac.digest(self._key, message, "sha256"))


class Stream:
    """Uniform 64-bit words: AES-256-CTR under a key that no other stream has."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int, buffer: Words | None = None) -> Words:
        """Draw the next words; a buffer has SLACK places more and is overwritten."""
        if buffer is None:
            buffer = np.empty(count + SLACK, dtype="<u8")
        self._cipher.update_into(_ZEROS[: 8 * count], buffer.view(np.uint8).data)
        return buffer[:count].astype(np.uint64, copy=False)

    def word(self) -> int:
        """Draw the next word."""
        return int(self.words(1)[0])


def _derived(secret: bytes, purpose: bytes) -> bytes:
    return hmac.digest(secret, b"primo.noise/sealed/1:" + purpose, "sha256")


def integer(name: str, value: object) -> int:
    """Check that an argument is an integer, NumPy's included."""
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{name} must be an integer; got {value!r}") from None
