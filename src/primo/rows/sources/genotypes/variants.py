"""Open genotypes in any format, and choose variants by public information."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message, PrivacyError
from primo.rows.sources.base import Columns
from primo.rows.sources.genotypes.frequencies import (
    Frequencies,
    count_frequencies,
    read_frequencies,
)
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.genotypes.variant_lists import (
    biallelic,
    refuse_multiallelic,
    select_variants,
)
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.rows.sources.genotypes.vcf_zarr import open_vcf_zarr
from primo.variants import Variants

__all__ = [
    "Genotypes",
    "choose_variants",
    "frequencies_of_panel",
    "open_genotypes",
]

AnyPath = str | PathLike[str]

Counts = list[tuple[str, int]]


class Genotypes(Columns, Protocol):
    """Columns that count alleles."""

    @property
    def variants(self) -> Variants:
        """What the columns count."""
        ...

    def people(self) -> People:
        """Read who the people are; two rows are one person's where `variants.haplotypes`."""
        ...

    def select(self, places: NDArray[np.intp]) -> Self:
        """Return some of the variants."""
        ...


def open_genotypes(
    bfile: AnyPath | None,
    pfile: AnyPath | None,
    vcf: AnyPath | None,
    vcf_zarr: AnyPath | None,
    haplotypes: bool,
    dosages: bool,
) -> Genotypes:
    """Open the one genotype file that is given."""
    given = [path for path in (bfile, pfile, vcf, vcf_zarr) if path is not None]
    if len(given) != 1:
        raise InputError(
            "give the genotypes by exactly one of ",
            Argument("bfile"),
            ", ",
            Argument("pfile"),
            ", ",
            Argument("vcf"),
            " and ",
            Argument("vcf_zarr"),
            f"; got {len(given)}",
        )
    if haplotypes and (bfile is not None or pfile is not None):
        raise InputError(
            f"haplotypes are read from phased VCF, BCF or VCF Zarr files only, not from {given[0]}; "
            "plink2 --pfile ... --export bcf writes one",
            argument="haplotypes",
            value=True,
        )
    if dosages and pfile is None:
        raise InputError(
            "dosages are read from PLINK 2 files (",
            Argument("pfile"),
            f") only, not from {given[0]}",
            argument="dosages",
            value=True,
        )
    if bfile is not None:
        return open_bed(bfile)
    if pfile is not None:
        return open_pgen(pfile, dosages=dosages)
    if vcf is not None:
        return open_vcf(vcf, haplotypes=haplotypes)
    return open_vcf_zarr(given[0], haplotypes=haplotypes)


def choose_variants(
    genotypes: Genotypes,
    counts: Counts,
    extract: AnyPath | None,
    exclude: AnyPath | None,
    frequencies: AnyPath | Frequencies | None,
    maf: float | None,
    multiallelic: Literal["refuse", "skip"],
) -> tuple[Genotypes, NDArray[np.float64] | None]:
    """Choose variants by public information only; return them with their frequencies, if given."""
    counts.append(("variants in the genotype file", len(genotypes.variants)))
    if extract is not None or exclude is not None:
        places = select_variants(genotypes.variants, extract=extract, exclude=exclude)
        genotypes = genotypes.select(places)
        counts.append(("variants after extract and exclude", len(places)))
    if multiallelic == "skip":
        places = biallelic(genotypes.variants)
        counts.append(
            ("variants with several alleles, left out", len(genotypes.names) - len(places))
        )
        genotypes = genotypes.select(places)
    refuse_multiallelic(genotypes.variants, "the genotype file")
    known = None
    if frequencies is not None:
        found = _public(frequencies, genotypes).match(genotypes.variants)
        counts += [
            ("variants with a public frequency", int(np.isfinite(found.frequency).sum())),
            ("of them with alleles swapped", found.swapped),
            ("variants without a public frequency, left out", found.unknown),
            ("variants with other alleles there, left out", found.different),
        ]
        genotypes, known = _kept(genotypes, found.frequency, np.isfinite(found.frequency))
    if maf is not None:
        known = _checked(known, maf)
        genotypes, known = _kept(genotypes, known, np.minimum(known, 1 - known) >= maf)
        counts.append((f"variants of public frequency at least {maf:g}", len(genotypes.names)))
    if not genotypes.names:
        raise InputError("no variant is left: " + ", ".join(f"{what}: {k}" for what, k in counts))
    counts.append(("variants used", len(genotypes.names)))
    return genotypes, known


def _kept(
    genotypes: Genotypes, known: NDArray[np.float64], mask: NDArray[np.bool_]
) -> tuple[Genotypes, NDArray[np.float64]]:
    return genotypes.select(np.flatnonzero(mask)), known[mask]


def _checked(known: NDArray[np.float64] | None, maf: float) -> NDArray[np.float64]:
    """Refuse a frequency filter that would have to look at the cohort."""
    if known is None:
        raise PrivacyError(
            Argument("maf", maf),
            " needs public allele frequencies: a choice of variants by their frequency in "
            "the private cohort would leak it",
            remedy=Message.of(
                "Give ",
                Argument("frequencies"),
                " from public people, for example "
                "plink2 --pfile public_panel --freq, which writes an .afreq file, or the panel itself",
            ),
        )
    if not 0 < maf < 0.5:
        raise InputError(Argument("maf", maf), " must lie between 0 and 0.5")
    return known


def _public(frequencies: AnyPath | Frequencies, genotypes: Genotypes) -> Frequencies:
    """Return the public frequencies, and refuse the cohort, or a part of it, as its own panel."""
    where = frequencies.where if isinstance(frequencies, Frequencies) else Path(frequencies)
    own = getattr(genotypes, "path", None)
    if own is not None and _same_file(Path(own), where):
        raise PrivacyError(
            f"{where} is the private cohort itself: frequencies counted in it would leak. Give those "
            "of public people"
        )
    if isinstance(frequencies, Frequencies):
        found = frequencies
    elif where.name.endswith((".bed", ".pgen", ".vcf", ".vcf.gz", ".vcf.bgz", ".bcf")):
        found = frequencies_of_panel(where)
    else:
        found = read_frequencies(where)
    if found.people is not None and found.people.shares_ids_with(genotypes.people()):
        raise PrivacyError(
            f"{where} is not a public panel: ids in it are also in the private genotype file, and the "
            "frequencies of private people would leak. Leave the people of the cohort out of the panel "
            "(plink2 --remove); if they are others of the same name, give the panel ids of its own"
        )
    return found


def _same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also by way of links."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there, or not on this machine
        return one.resolve() == other.resolve()


def frequencies_of_panel(path: AnyPath) -> Frequencies:
    """Count allele frequencies in a reference panel: a .bed, .pgen, VCF or BCF of *public* people.

    The people of the panel get no protection. Cost: one pass over it.
    """
    kind = Path(path).suffix
    panel: Genotypes
    if kind == ".bed":
        panel = open_bed(path)
    elif kind == ".pgen":
        panel = open_pgen(path)
    else:
        panel = open_vcf(path)
    panel = panel.select(biallelic(panel.variants))
    return count_frequencies(panel, panel.variants, panel.people(), Path(path))
