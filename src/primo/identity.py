"""A data set is known by its people, whatever its name, order or format.

Each person becomes a 64-bit token, a keyed hash of the person's id or, in data without ids, of the
row's feature values. Two data sets that share a token share a person: a copy under another name, in
another order, with other outcomes, or a part of it. Without the key a token is a random number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.ledger.key import Key
from primo.ledger.people import Sketch
from primo.sources.base import Source

__all__ = ["sketch"]

_NUMBERS = 2**22  # in a block of rows: 32 MB of float64


def sketch(source: Source, key: Key) -> Sketch:
    """Return the tokens of the people in `source`.

    Guarantee: the same person, by id or by exactly the same feature values, has the same token under
    the same key; ids and values never meet. Nothing of it can be read without the key.
    Cost: about 1 µs an id; without ids one pass over the features, about 1 s a gigabyte.
    """
    ids = source.ids()
    if ids is not None:
        by, use = "ids", b"primo-ids"
        people: Iterable[bytes] = (label.encode("utf-8", "surrogatepass") for label in ids.tolist())
    else:
        by, use = "values", b"primo-values"
        people = _values(source)
    # A keyed hash object is made once and copied: half the cost of making one per person.
    empty = hashlib.blake2b(key=key.secret, person=use, digest_size=8)
    hashes = b"".join(_hash(empty, person) for person in people)
    tokens = np.unique(np.frombuffer(hashes, dtype="<u8").astype(np.uint64))
    if not len(tokens):
        raise InputError("the source has no rows, so there is nobody to charge")
    return Sketch(tokens=tokens, rows=source.n, by=by, key_check=key.check)


def _hash(empty: hashlib.blake2b, person: bytes) -> bytes:
    hasher = empty.copy()
    hasher.update(person)
    return hasher.digest()


def _values(source: Source) -> Iterator[bytes]:
    """Yield the features of each row as bytes: equal numbers, equal bytes, whatever their type."""
    d = len(source.feature_names)
    for block in source.blocks(max(1, _NUMBERS // d)):
        # A copy always, as blocks may be views of someone's data; adding 0.0 turns -0.0 into 0.0.
        values: NDArray[np.float64] = np.asarray(block.features, dtype=np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        yield from (row.tobytes() for row in values)
