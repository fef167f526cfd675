"""Genotypes of a file in the order, and by the counted alleles, of the variants of a release."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.genotypes.variants import Genotypes
from primo.rows.sources.row_owners import rows_per_person_of
from primo.variants import Variants

__all__ = ["AlignedGenotypes", "align"]

#: How files write an allele that nobody in them has.
_UNKNOWN = ("0", ".", "")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class AlignedGenotypes:
    """Columns that count the alleles of a release; a variant that the file lacks is missing (NaN).

    Where the file counts the other allele, a feature is copies − g.
    """

    genotypes: Genotypes  # the variants of the file that are used
    names: tuple[str, ...]  # of the variants of the release
    places: NDArray[np.intp]  # (names,) the column of `genotypes`, or -1 where it is absent
    swapped: NDArray[np.bool_]  # (names,) whether the file counts the other allele
    copies: int
    different: int  # absent because the variant of that name has other alleles

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.genotypes.n

    @property
    def absent(self) -> int:
        """How many variants of the release the file does not have."""
        return int((self.places < 0).sum())

    @property
    def rows_per_person(self) -> int:
        """How many rows one person owns."""
        return rows_per_person_of(self.genotypes)

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """Names of the columns that hold the ids."""
        found: tuple[str, ...] | None = getattr(self.genotypes, "id_names", None)
        return found

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<AlignedGenotypes n={self.n} variants={len(self.names)} (private)>"

    def ids(self) -> Ids | None:
        """Return the individual id of the owner of each row."""
        return self.genotypes.ids()

    def labels(self) -> Ids | None:
        """Return labels that distinguish the people of the file."""
        own = getattr(self.genotypes, "labels", None)
        found: Ids | None = own() if callable(own) else self.ids()
        return found

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order` in blocks of `rows`."""
        present = self.places >= 0
        columns = self.places[present]
        flipped = np.flatnonzero(self.swapped)
        plain = bool(present.all()) and not len(flipped)
        for block in self.genotypes.blocks(order, rows):
            if plain:
                yield block[:, columns]
                continue
            kind = np.float32 if block.dtype.itemsize <= 4 else np.float64
            made = np.full((len(block), len(self.names)), np.nan, dtype=kind)
            made[:, present] = block[:, columns]
            made[:, flipped] = self.copies - made[:, flipped]
            yield made


def align(like: Variants, genotypes: Genotypes, *, strict: bool) -> AlignedGenotypes:
    """Find the variants of a release in a file, by their names and alleles; no genotype is read.

    With `strict` a variant that is absent is an error. A file without any of them always is.
    """
    found = genotypes.variants
    if like.copies != found.copies:
        raise InputError(
            f"the release counts {'haplotypes' if like.haplotypes else 'genotypes'}, but the file was "
            f"opened for {'haplotypes' if found.haplotypes else 'genotypes'}",
            argument="haplotypes",
            value=found.haplotypes,
            remedy="open it as the release was made",
        )
    known = {name: place for place, name in enumerate(found.names)}
    places = np.full(len(like), -1, dtype=np.intp)
    swapped = np.zeros(len(like), dtype=bool)
    absent, different = [], []
    for i, name in enumerate(like.names):
        place = known.get(name, known.get(_swapped_name(like, i)))
        if place is None:
            absent.append(name)
            continue
        way = _way((like.counted[i], like.other[i]), (found.counted[place], found.other[place]))
        if way is None:
            different.append(name)
            continue
        places[i], swapped[i] = place, way
    if strict and (absent or different):
        raise InputError(_missing_variants(like, absent, different))
    if not (places >= 0).any():
        raise InputError(
            f"none of the {len(like)} variants of the release is in the genotype file with the same "
            f"alleles, for example {like.names[0]!r}; do both use the same names of variants?"
        )
    used, columns = np.unique(places[places >= 0], return_inverse=True)
    places[places >= 0] = columns
    return AlignedGenotypes(
        genotypes=genotypes.select(used),
        names=like.names,
        places=places,
        swapped=swapped,
        copies=like.copies,
        different=len(different),
    )


def _swapped_name(like: Variants, i: int) -> str:
    """Return what a variant without an id is called in a file that counts its other allele."""
    start = f"{like.chromosome[i]}:{int(like.position[i])}:"
    counted, other = like.counted[i], like.other[i]
    own = like.names[i]
    return f"{start}{counted}:{other}" if own == f"{start}{other}:{counted}" else own


def _way(wanted: tuple[str, str], found: tuple[str, str]) -> bool | None:
    """Whether the counted and the other allele are swapped; None if they are others.

    A file in which everybody has the same allele may leave the other one open.
    """
    counted, other = wanted
    for swapped, pair in ((False, found), (True, found[::-1])):
        same = pair == (counted, other)
        half = pair[0] in _UNKNOWN and pair[1] == other
        half = half or (pair[1] in _UNKNOWN and pair[0] == counted)
        if same or half:
            return swapped
    return None


def _missing_variants(like: Variants, absent: list[str], different: list[str]) -> str:
    total = len(absent) + len(different)
    example = (absent or different)[0]
    text = f"{total} of the {len(like)} variants of the release are not in the genotype file"
    if different:
        text += f" ({len(different)} of them are there with other alleles)"
    return f"{text}, for example {example!r}"
