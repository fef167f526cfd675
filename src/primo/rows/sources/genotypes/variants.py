"""Open genotypes in any format, and choose variants by public information."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message, PrivacyError
from primo.rows.sources.base import Columns
from primo.rows.sources.genotypes.bgen import open_bgen
from primo.rows.sources.genotypes.frequencies import (
    Frequencies,
    count_frequencies,
    read_frequencies,
)
from primo.rows.sources.genotypes.panels import open_panel_file
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.genotypes.several import expand, open_several
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import (
    biallelic,
    refuse_multiallelic,
    select_variants,
)
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.rows.sources.genotypes.vcf_zarr import open_vcf_zarr
from primo.variants import Variants

__all__ = [
    "Files",
    "Genotypes",
    "PanelPeople",
    "choose_variants",
    "frequencies_of_panel",
    "open_genotypes",
]

AnyPath = str | PathLike[str]

#: Genotype files: one, or several of the same people, by paths and patterns.
Files = AnyPath | Sequence[AnyPath] | None

#: What a prefix stands for where it is a pattern.
_ENDINGS = {"bfile": ".bed", "pfile": ".pgen"}

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
    *,
    bfile: Files,
    pfile: Files,
    vcf: Files,
    vcf_zarr: Files,
    bgen: Files,
    sample: Files,
    haplotypes: bool,
    dosages: bool,
    vcf_field: str,
) -> Genotypes:
    """Open the genotype file that is given, or several of one kind as one."""
    asked = {"bfile": bfile, "pfile": pfile, "vcf": vcf, "vcf_zarr": vcf_zarr, "bgen": bgen}
    given = {kind: files for kind, files in asked.items() if files not in (None, (), [])}
    if len(given) != 1:
        raise InputError(
            "give the genotypes by exactly one of ",
            Argument("bfile"),
            ", ",
            Argument("pfile"),
            ", ",
            Argument("vcf"),
            ", ",
            Argument("vcf_zarr"),
            " and ",
            Argument("bgen"),
            f"; got {len(given)}",
        )
    ((kind, files),) = given.items()
    assert files is not None
    paths = expand(files, _ENDINGS.get(kind, ""))
    if haplotypes and kind not in ("vcf", "vcf_zarr"):
        raise InputError(
            f"haplotypes are read from phased VCF, BCF or VCF Zarr files only, not from {paths[0]}; "
            "plink2 --pfile ... --export bcf writes one",
            argument="haplotypes",
            value=True,
        )
    if dosages and kind not in ("pfile", "bgen"):
        raise InputError(
            "dosages are read from PLINK 2 files (",
            Argument("pfile"),
            "), from BGEN files and, with ",
            Argument("vcf_field", "DS"),
            f", from VCF files, not from {paths[0]}",
            argument="dosages",
            value=True,
        )
    _refuse_misplaced(kind, paths, sample, vcf_field, haplotypes)
    samples = expand(sample) if sample is not None else []

    def open_one(path: Path) -> VariantColumns:
        if kind == "bfile":
            return open_bed(path)
        if kind == "pfile":
            return open_pgen(path, dosages=dosages)
        if kind == "vcf":
            return open_vcf(path, haplotypes=haplotypes, field=vcf_field)
        if kind == "bgen":
            place = paths.index(path) if len(samples) > 1 else 0
            return open_bgen(path, sample=samples[place] if samples else None)
        return open_vcf_zarr(path, haplotypes=haplotypes)

    opened: Genotypes = open_several(paths, open_one)
    return opened


def _refuse_misplaced(
    kind: str, paths: list[Path], sample: Files, vcf_field: str, haplotypes: bool
) -> None:
    """Refuse options of one kind of file that were given with another."""
    if sample not in (None, (), []) and kind != "bgen":
        raise InputError(Argument("sample"), " goes with ", Argument("bgen"), " only")
    if sample not in (None, (), []) and len(expand(sample)) not in (1, len(paths)):
        raise InputError(
            "give one ",
            Argument("sample"),
            f" file for all {len(paths)} BGEN files, or one for each",
        )
    if vcf_field != "GT" and kind != "vcf":
        raise InputError(Argument("vcf_field", vcf_field), " goes with ", Argument("vcf"), " only")
    if vcf_field != "GT" and haplotypes:
        raise InputError(
            "haplotypes are read from calls (GT), not from the field ",
            Argument("vcf_field", vcf_field),
        )


def choose_variants(
    genotypes: Genotypes,
    counts: Counts,
    extract: AnyPath | None,
    exclude: AnyPath | None,
    frequencies: AnyPath | Frequencies | None,
    maf: float | None,
    multiallelic: Literal["refuse", "skip"],
) -> tuple[Genotypes, NDArray[np.float64] | None, PanelPeople | None]:
    """Choose variants by public information only.

    Returns them with their public frequencies and the people these were counted in, if given.
    """
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
    known = people = None
    if frequencies is not None:
        public = _public(frequencies, genotypes)
        if public.people is not None:
            people = PanelPeople(people=public.people, where=str(public.where), what="frequencies")
        found = public.match(genotypes.variants)
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
    return genotypes, known, people


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
    """Return the public frequencies, and refuse the file of the cohort as its own panel."""
    where = frequencies.where if isinstance(frequencies, Frequencies) else Path(frequencies)
    own = getattr(genotypes, "paths", None) or [getattr(genotypes, "path", None)]
    if any(path is not None and _same_file(Path(path), where) for path in own):
        raise PrivacyError(
            f"{where} is the private cohort itself: frequencies counted in it would leak. Give those "
            "of public people"
        )
    if isinstance(frequencies, Frequencies):
        return frequencies
    if where.name.endswith((".bed", ".pgen", ".vcf", ".vcf.gz", ".vcf.bgz", ".bcf", ".bgen")):
        return frequencies_of_panel(where)
    return read_frequencies(where)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PanelPeople:
    """The people of a public panel, who must not be in the cohort."""

    people: People
    where: str
    what: str  # "frequencies" or "correlations": what of them will be public

    def refuse_in(self, genotypes: Genotypes) -> None:
        """Refuse a panel that shares ids with the cohort.

        This compares ids, so it is done where the ids of files are matched, and not by a dry run: a
        panel of one's own making would tell, without any charge, who is in the cohort.
        """
        if self.people.shares_ids_with(genotypes.people()):
            raise PrivacyError(
                f"{self.where} is not a public panel: ids in it are also in the private genotype file, "
                f"and the {self.what} of private people would leak. Leave the people of the cohort out "
                "of the panel (plink2 --remove); if they are others of the same name, give the panel "
                "ids of its own"
            )


def _same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file, also by way of links."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there, or not on this machine
        return one.resolve() == other.resolve()


def frequencies_of_panel(path: AnyPath) -> Frequencies:
    """Count allele frequencies in a reference panel: a .bed, .pgen, .bgen or VCF of *public* people.

    The people of the panel get no protection. Cost: one pass over it.
    """
    panel = open_panel_file(path)
    panel = panel.select(biallelic(panel.variants))
    return count_frequencies(panel, panel.variants, panel.people(), Path(path))
