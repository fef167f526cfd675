"""Names of variants, and lists of them: `--extract`, `--exclude`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from sys import intern

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.rows.sources.select import read_list
from primo.variants import Variants

__all__ = [
    "VariantTable",
    "biallelic",
    "read_variant_list",
    "refuse_multiallelic",
    "select_variants",
]


@dataclass(kw_only=True)
class VariantTable:
    """The variants of a file while they are read, and how they become named features.

    A variant keeps its id if that is unique in the file; otherwise (`.`, or an id that several
    variants share) it is called `chromosome:position:other:counted`.
    """

    where: Path
    ids: list[str] = field(default_factory=list)
    chromosome: list[str] = field(default_factory=list)
    position: list[int] = field(default_factory=list)
    counted: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    def add(self, name: str, chromosome: str, position: int, counted: str, other: str) -> None:
        """Append a variant; `counted` is the allele whose copies count, or several with commas."""
        self.ids.append(name)
        self.chromosome.append(intern(chromosome))
        self.position.append(position)
        self.counted.append(intern(counted))
        self.other.append(intern(other))

    def variants(self, *, haplotypes: bool = False) -> Variants:
        """Return the variants with unique names."""
        if not self.ids:
            raise InputError(f"{self.where} holds no variants")
        times = Counter(self.ids)
        names = tuple(
            name
            if times[name] == 1 and name not in (".", "")
            else f"{self.chromosome[i]}:{self.position[i]}:{self.other[i]}:{self.counted[i]}"
            for i, name in enumerate(self.ids)
        )
        if len(set(names)) != len(names):
            twice = next(name for name, count in Counter(names).items() if count > 1)
            raise InputError(
                f"{self.where}: variant {twice} appears more than once, with the same alleles; "
                "drop the copies, for example with plink2 --rm-dup force-first"
            )
        return Variants(
            names=names,
            chromosome=tuple(self.chromosome),
            position=np.array(self.position, dtype=np.int64),
            counted=tuple(self.counted),
            other=tuple(self.other),
            haplotypes=haplotypes,
        )


def read_variant_list(path: str | PathLike[str]) -> frozenset[str]:
    """Return the variant ids in a file, as PLINK reads it: separated by blanks or line ends."""
    return frozenset(name for line in read_list(Path(path)) for name in line.split())


def select_variants(
    variants: Variants,
    *,
    extract: str | PathLike[str] | None = None,
    exclude: str | PathLike[str] | None = None,
) -> NDArray[np.intp]:
    """Return the places of the variants in `extract` (default: all) and not in `exclude`."""
    wanted = None if extract is None else read_variant_list(extract)
    unwanted: frozenset[str] = frozenset() if exclude is None else read_variant_list(exclude)
    places = [
        place
        for place, name in enumerate(variants.names)
        if (wanted is None or name in wanted) and name not in unwanted
    ]
    if not places:
        lists = " and ".join(str(path) for path in (extract, exclude) if path is not None)
        raise InputError(
            f"{lists} leave none of the {len(variants)} variants; the ids must be spelt as in the "
            f"genotype file, for example {variants.names[0]!r}"
        )
    return np.array(places, dtype=np.intp)


def biallelic(variants: Variants) -> NDArray[np.intp]:
    """Return the places of the variants with one counted allele."""
    return np.flatnonzero(["," not in allele for allele in variants.counted])


def refuse_multiallelic(variants: Variants, where: Path | str) -> None:
    """Refuse variants with several ALT alleles: there is no one count of their copies."""
    for name, allele in zip(variants.names, variants.counted, strict=True):
        if "," in allele:
            raise InputError(
                f"{where}: variant {name} has several ALT alleles",
                argument="multiallelic",
                remedy=Message.of(
                    "Split such variants (bcftools norm -m -any), name them in ",
                    Argument("exclude"),
                    ", or leave them all out with ",
                    Argument("multiallelic", "skip"),
                ),
            )
