"""The base class of all stores of genotypes: people × variants, with a choice of variants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.unchanged import Unchanged
from primo.variants import Variants

__all__ = ["VariantColumns"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VariantColumns(ABC):
    """Columns that count alleles; a row is a person, or one of the two haplotypes of a person.

    Rows 2i and 2i + 1 are the haplotypes of person i.
    """

    samples: int  # people in the store
    variants: Variants
    places: NDArray[Any]  # where the variants are stored
    unchanged: Unchanged  # the files behind it

    @property
    def rows_per_person(self) -> int:
        """Two for haplotypes."""
        return 2 if self.variants.haplotypes else 1

    @property
    def id_names(self) -> tuple[str, ...]:
        """The individual id, as PLINK calls it, also where a file calls it a sample."""
        return ("IID",)

    @property
    def n(self) -> int:
        """Number of rows: people, or twice as many haplotypes."""
        return self.samples * self.rows_per_person

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variants."""
        return self.variants.names

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<{type(self).__name__} n={self.n} variants={len(self.variants)} (private)>"

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the rows `order` in blocks of `rows`; it is an error if a file changes meanwhile."""
        return self.unchanged.during(self._walk(order, rows))

    @abstractmethod
    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the blocks."""

    @abstractmethod
    def people(self) -> People:
        """Read who the people are."""

    def ids(self) -> Ids:
        """Return the individual id of the owner of each row, without the family id.

        Family ids are left out although two people may share an individual id: whether a person is
        recognised must not depend on who else is in the file.
        """
        return np.repeat(self.people().iid, self.rows_per_person)

    def other_ids(self) -> Ids | None:
        """Return the id of each row as tools without families write it, `FID_IID`, or None."""
        other = self.people().joined
        return None if other is None else np.repeat(other, self.rows_per_person)

    def labels(self) -> Ids:
        """Return labels that distinguish the people of this file: `FID IID` if individual ids repeat."""
        people = self.people()
        named = people.iid
        if len(np.unique(named)) != len(named):
            named = np.char.replace(people.keys(families=True), "\t", " ")
        return np.repeat(named, self.rows_per_person)

    def select(self, places: Sequence[int] | NDArray[np.intp]) -> Self:
        """Return some of the variants."""
        places = np.asarray(places, dtype=np.intp)
        return replace(self, variants=self.variants.select(places), places=self.places[places])
