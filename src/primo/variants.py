"""What is public about genetic features: where a variant lies and which allele is counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError

__all__ = ["Variants"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Variants:
    """The variants behind (some of the) features, in the order of the features; all of it is public.

    A feature counts the copies of `counted`: 0 to 2 for genotypes, 0 or 1 for haplotypes.
    """

    names: tuple[str, ...]  # the features' names, each once
    chromosome: tuple[str, ...]
    position: NDArray[np.int64]  # (d,) base pairs
    counted: tuple[str, ...]  # allele, as the file spells it
    other: tuple[str, ...]
    haplotypes: bool = False

    def __post_init__(self) -> None:
        """Check that all parts describe the same variants."""
        lengths = {
            len(part)
            for part in (self.names, self.chromosome, self.position, self.counted, self.other)
        }
        if len(lengths) != 1:
            raise InputError("the parts of the description of the variants differ in length")

    def __len__(self) -> int:
        return len(self.names)

    @property
    def copies(self) -> int:
        """Largest number of copies a feature can count."""
        return 1 if self.haplotypes else 2

    def select(self, places: Sequence[int] | NDArray[np.intp]) -> Self:
        """Return the variants at these places, in this order."""
        return type(self)(
            names=tuple(self.names[i] for i in places),
            chromosome=tuple(self.chromosome[i] for i in places),
            position=self.position[np.asarray(places, dtype=np.intp)],
            counted=tuple(self.counted[i] for i in places),
            other=tuple(self.other[i] for i in places),
            haplotypes=self.haplotypes,
        )
