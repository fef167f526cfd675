"""Tokens by which a ledger recognises people, whatever the name, order or format of a data set.

Each person becomes a 64-bit token: a keyed hash of the person's id or, in data without ids, of the
sorted feature values of the row. Two data sets that share a token share a person. So a copy is
recognised under another name, with rows or columns in another order, with other outcomes, or if it holds
only some of the rows. Without the key a token is a random number.
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
from primo.rows.sources.paired import one_block
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
        Identify people by their values although there are ids, for a ledger that does so.
    rows_per_person
        How many rows one person may own and is charged for; the number that the source states if None.

    Guarantee: the same person, by id (see `canonical_id`) or by exactly the same feature values in
    any order, has the same token under the same key; tokens of ids and of values never match. Nothing
    can be read from a token without the key. Where there are family ids, a person has a second token, of
    `FID_IID`, which recognises a VCF of the same people. Without ids, different people whose rows hold
    the same numbers count as one person, so the ledger may overstate what a person has spent, never
    understate it; among genotypes these are people with equally many 0, 1 and 2.
    Cost: about 1 µs per id; without ids one pass over the features, about 30 s for 10⁹ numbers, and
    1 µs per row.
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
    """Yield the ids and, if the source has one, another spelling of each; both stand for the person."""
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

    Sorted, so that the order of the columns does not matter. Names could not be used instead: they may
    be numbers (x0, x1, …) that follow the order.
    """
    d = len(source.feature_names)
    # Outcomes are not read before the charge: a cell that cannot be read is then no free answer.
    for block in one_block(source, "features", max(1, _NUMBERS // d)):
        # Always a copy, as blocks may be views of the caller's data. Sorted in their own type, which is
        # faster if it is small; adding 0.0 turns -0.0 into 0.0.
        values: NDArray[np.float64] = np.sort(block, axis=1).astype(np.float64) + 0.0
        values[np.isnan(values)] = np.nan
        yield from (row.tobytes() for row in values)
