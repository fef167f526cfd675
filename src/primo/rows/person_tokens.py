"""A data set is known by its people, whatever its name, order or format.

Each person becomes a 64-bit token, a keyed hash of the person's id or, in data without ids, of the
row's feature values, sorted. Two data sets that share a token share a person: a copy under another
name, with its rows or columns in another order, with other outcomes, or some of its rows. Without the
key a token is a random number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.ledger.key import Key
from primo.ledger.people import Sketch
from primo.rows.sources.base import Ids, Source
from primo.rows.sources.canonical import canonical_id
from primo.rows.sources.row_owners import check_ids, named_by, rows_per_person_of

__all__ = ["sketch"]

_NUMBERS = 2**22  # in a block of rows: 32 MB of float64


def sketch(
    source: Source, key: Key, *, by_values: bool = False, rows_per_person: int | None = None
) -> Sketch:
    """Return the tokens of the people in `source`.

    Parameters
    ----------
    source
        The rows.
    key
        The key of the ledger.
    by_values
        Know people by their values although there are ids, for a ledger that does.
    rows_per_person
        How many rows one person may own, and is charged for; as many as the source says if None.

    Guarantee: the same person, by id (see `canonical_id`) or by exactly the same feature values in
    any order, has the same token under the same key; ids and values never meet. Nothing of it can be
    read without the key. Where there are family ids, a person has a second token, of `FID_IID`, by which
    a VCF of the same people is known. Without ids, strangers whose rows hold the same numbers are one
    person, which errs upwards: among genotypes, those who carry as many 0, 1 and 2.
    Cost: about 1 µs an id; without ids one pass over the features, about 30 s for 10⁹ numbers and
    1 µs a row.
    """
    ids = source.ids()
    if ids is not None:
        check_ids(ids, rows_per_person or rows_per_person_of(source))
    if ids is None or by_values:
        person, use = None, b"primo-values"
        people: Iterable[bytes] = _values(source)
    else:
        person, use = named_by(source), b"primo-ids"
        people = (canonical_id(label).encode() for label in _spellings(source, ids))
    # A keyed hash object is made once and copied: half the cost of making one per person.
    empty = hashlib.blake2b(key=key.secret, person=use, digest_size=8)
    hashes = b"".join(_hash(empty, person) for person in people)
    tokens = np.unique(np.frombuffer(hashes, dtype="<u8").astype(np.uint64))
    if not len(tokens):
        raise InputError("the source has no rows, so there is nobody to charge")
    return Sketch(tokens=tokens, rows=source.n, person=person, key_check=key.check)


def _spellings(source: Source, ids: Ids) -> Iterator[str]:
    """Yield the ids and, where a source knows it, another spelling of each: either is the person."""
    yield from ids.tolist()
    own = getattr(source, "other_ids", None)
    others: Ids | None = own() if callable(own) else None
    if others is not None:
        yield from others.tolist()


def _hash(empty: hashlib.blake2b, person: bytes) -> bytes:
    hasher = empty.copy()
    hasher.update(person)
    return hasher.digest()


def _values(source: Source) -> Iterator[bytes]:
    """Yield the sorted features of each row as bytes: equal numbers, equal bytes, of any type.

    Sorted, because nothing else of a row is the same in every order of its columns: their names may
    be numbers (x0, x1, …) that follow the order.
    """
    d = len(source.feature_names)
    for block in source.blocks(max(1, _NUMBERS // d)):
        # A copy always, as blocks may be views of someone's data. Sorted in their own type, which is
        # faster where it is small; adding 0.0 turns -0.0 into 0.0.
        values: NDArray[np.float64] = np.sort(block.features, axis=1).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        yield from (row.tobytes() for row in values)
