"""Open a cohort: genotypes, phenotype and covariate files, lists, public frequencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.rows.sources.base import Columns, Rows
from primo.rows.sources.genotypes.aligned import align
from primo.rows.sources.genotypes.frequencies import Frequencies
from primo.rows.sources.genotypes.panels import Panel, read_panel
from primo.rows.sources.genotypes.people import keys, read_list_of_people
from primo.rows.sources.genotypes.phenotypes import open_covariates, open_phenotypes, people_of
from primo.rows.sources.genotypes.several import aligned
from primo.rows.sources.genotypes.variants import (
    Files,
    Genotypes,
    PanelPeople,
    choose_variants,
    frequencies_of_panel,
    open_genotypes,
)
from primo.rows.sources.join import match, too_few
from primo.rows.sources.paired import PairedSource, StackedColumns, Unmatched
from primo.rows.sources.row_owners import rows_per_person_of
from primo.rows.sources.select import choose, refuse_overlap
from primo.rows.sources.table_columns import TableColumns
from primo.variants import Variants

__all__ = ["Cohort", "frequencies_of_panel", "open_cohort", "open_feature_columns"]

AnyPath = str | PathLike[str]

Counts = list[tuple[str, int]]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Cohort:
    """Rows that can be read, and what is public about them."""

    source: PairedSource | Unmatched
    variants: Variants  # the first features; covariates follow
    counts: tuple[tuple[str, int], ...]  # of variants, and of people in each file; public
    frequencies: NDArray[np.float64] | None  # (variants,) of the counted alleles; public
    panel: Panel | None = None  # public people with the same variants

    def __repr__(self) -> str:
        """Show the schema only."""
        source = self.source
        d, l = len(source.feature_names), len(source.outcome_names)
        return f"<Cohort n={source.n} d={d} l={l} (private)>"


def open_cohort(
    *,
    bfile: Files = None,
    pfile: Files = None,
    vcf: Files = None,
    vcf_zarr: Files = None,
    bgen: Files = None,
    sample: Files = None,
    haplotypes: bool = False,
    dosages: bool = False,
    vcf_field: str = "GT",
    pheno: AnyPath | Sequence[AnyPath] = (),
    covar: AnyPath | Sequence[AnyPath] = (),
    outcomes: str | Sequence[str] | None = None,
    keep: AnyPath | None = None,
    remove: AnyPath | None = None,
    extract: AnyPath | None = None,
    exclude: AnyPath | None = None,
    frequencies: AnyPath | Frequencies | None = None,
    ld_panel: Sequence[AnyPath] = (),
    maf: float | None = None,
    multiallelic: Literal["refuse", "skip"] = "refuse",
    also_missing: Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    outcome_levels: Mapping[str, Sequence[Any]] | None = None,
    decimal: str = ".",
    matched: bool = True,
) -> Cohort:
    r"""Open genotypes and phenotype files as rows of one cohort; no genotype and no outcome is read.

    Parameters
    ----------
    bfile, pfile, vcf, vcf_zarr, bgen
        Genotypes: exactly one of a PLINK 1 or PLINK 2 prefix, a VCF or BCF, a VCF Zarr store, a BGEN.
        Several files of the same people (one per chromosome) are one cohort: a list, or a pattern such
        as "chr*".
    sample
        The `.sample` file of a `bgen`: one for all, or one for each.
    haplotypes
        Two rows per person, each 0 or 1; phased VCF, BCF or VCF Zarr only.
    dosages
        Expected copies of an imputed `pfile` instead of its hard calls; a `bgen` has no others.
    vcf_field
        What to read of a `vcf`: calls ("GT"), dosages ("DS") or genotype probabilities ("GP").
    pheno, covar
        Files with a header `FID IID ...` (or `IID ...`) and one line per person. Phenotypes are the
        outcomes, covariates are further features after the variants.
    outcomes
        Names and patterns of the outcomes; all columns of `pheno` if None.
    keep, remove
        Lists of people, `FID IID` or `IID` on each line.
    extract, exclude
        Lists of variant ids.
    frequencies
        *Public* allele frequencies: a file, a panel of public people (by its .bed, .pgen, .vcf.gz or
        .bcf), or what `frequencies_of_panel` gave. Variants without one are left out.
    ld_panel
        Genotypes of *public* people, one file or several, which must hold all variants.
    maf
        Leave out variants whose rarer allele has a lower public frequency.
    multiallelic
        Whether variants with several ALT alleles are an error or left out.
    also_missing
        Further cells of `pheno` and `covar` that mean a missing value.
    levels, outcome_levels
        Public levels of categories in `covar` and `pheno` (in `pheno` `outcome_levels`, if given), as
        in `table_source`.
    decimal
        The decimal sign.
    matched
        Whether to find out who is in all files and lists. If not, the cohort can only be used for a
        plan, with at most as many rows as the smallest file or list of people to keep, until its source
        is joined (`Unmatched.join`).

    Returns
    -------
    Cohort
        Its rows are the people who are in every file, in the order of the first phenotype file.

    Examples
    --------
    Two variants of four people in PLINK 1 files, and one phenotype:

    >>> from pathlib import Path
    >>> import primo
    >>> people = ["ann", "ben", "cat", "dan"]
    >>> _ = Path("study.bed").write_bytes(bytes([0x6C, 0x1B, 0x01, 0b11_10_00_10, 0b10_11_10_00]))
    >>> _ = Path("study.bim").write_text("1 rs1 0 100 A G\n1 rs2 0 200 C T\n")
    >>> _ = Path("study.fam").write_text("".join(f"0 {name} 0 0 0 -9\n" for name in people))
    >>> rows = [f"0 {name} {170 + i}\n" for i, name in enumerate(people)]
    >>> _ = Path("study.pheno").write_text("FID IID height\n" + "".join(rows))
    >>> cohort = primo.open_cohort(bfile="study", pheno="study.pheno")
    >>> cohort.source.n, cohort.source.feature_names, cohort.source.outcome_names
    (4, ('rs1', 'rs2'), ('height',))
    """
    genotypes = open_genotypes(
        bfile=bfile,
        pfile=pfile,
        vcf=vcf,
        vcf_zarr=vcf_zarr,
        bgen=bgen,
        sample=sample,
        haplotypes=haplotypes,
        dosages=dosages,
        vcf_field=vcf_field,
    )
    counts: Counts = []
    genotypes, known, counted = choose_variants(
        genotypes, counts, extract, exclude, frequencies, maf, multiallelic
    )
    panel = read_panel(ld_panel, like=genotypes.variants) if ld_panel else None
    public = [] if counted is None else [counted]
    if ld_panel and panel is not None:
        where = str(ld_panel[0])
        public.append(PanelPeople(people=panel.people, where=where, what="correlations"))
    how: dict[str, Any] = {"also_missing": also_missing, "decimal": decimal}
    coded = levels if outcome_levels is None else outcome_levels
    phenotypes = _choose_outcomes(pheno, outcomes, {**how, "levels": coded})
    covariates = [open_covariates(path, **how, levels=levels) for path in _paths(covar)]
    for table in [*phenotypes, *covariates]:
        table.store.check(table.names)  # before anything is charged
    tables = [*phenotypes, *covariates]
    counts += [("people in the genotype file", genotypes.n // rows_per_person_of(genotypes))]
    counts += [(f"people in {table.where}", table.n) for table in tables]

    def paired(own: Genotypes, rows: Sequence[Rows]) -> PairedSource:
        first, *others = rows
        features, feature_rows = _stacked([own, *covariates], [first, *others[len(phenotypes) :]])
        chosen, outcome_rows = _stacked(phenotypes, others[: len(phenotypes)])
        refuse_overlap(features.names, chosen.names)
        return PairedSource(
            features=features, outcomes=chosen, feature_rows=feature_rows, outcome_rows=outcome_rows
        )

    def joined() -> PairedSource:
        own: Genotypes = aligned(genotypes)  # here the people of several files are compared
        for people in public:
            people.refuse_in(own)
        return paired(own, _join(own, tables, keep, remove))

    if matched:
        source: PairedSource | Unmatched = joined()
    else:
        unmatched = paired(genotypes, _side_by_side(genotypes, tables, keep))
        source = Unmatched(
            features=unmatched.features, outcomes=unmatched.outcomes, n=unmatched.n, join=joined
        )
    return Cohort(
        source=source,
        variants=genotypes.variants,
        counts=tuple(counts),
        frequencies=known,
        panel=panel,
    )


def open_feature_columns(
    *,
    bfile: Files = None,
    pfile: Files = None,
    vcf: Files = None,
    vcf_zarr: Files = None,
    bgen: Files = None,
    sample: Files = None,
    haplotypes: bool = False,
    dosages: bool = False,
    vcf_field: str = "GT",
    covar: AnyPath | Sequence[AnyPath] = (),
    keep: AnyPath | None = None,
    remove: AnyPath | None = None,
    extract: AnyPath | None = None,
    exclude: AnyPath | None = None,
    frequencies: AnyPath | Frequencies | None = None,
    maf: float | None = None,
    multiallelic: Literal["refuse", "skip"] = "refuse",
    also_missing: Sequence[str] = (),
    levels: Mapping[str, Sequence[Any]] | None = None,
    decimal: str = ".",
    like: Variants | None = None,
    strict: bool = True,
) -> StackedColumns:
    """Open the features of a cohort without outcomes, for predictions; as `open_cohort` does.

    `like` are the variants of a release: those are chosen, in that order, and counted by the same
    alleles, also where the file counts the other ones (`AlignedGenotypes`, the first of the parts).
    Variants that are absent are an error if `strict`, and missing values otherwise.
    """
    genotypes = open_genotypes(
        bfile=bfile,
        pfile=pfile,
        vcf=vcf,
        vcf_zarr=vcf_zarr,
        bgen=bgen,
        sample=sample,
        haplotypes=haplotypes,
        dosages=dosages,
        vcf_field=vcf_field,
    )
    counts: Counts = []
    genotypes, _, counted = choose_variants(
        genotypes, counts, extract, exclude, frequencies, maf, "skip" if like else multiallelic
    )
    how: dict[str, Any] = {"also_missing": also_missing, "levels": levels, "decimal": decimal}
    covariates = [open_covariates(path, **how) for path in _paths(covar)]
    # Variants first: a file that holds none of them is left out, and the first one left orders the rows.
    if counted is not None:
        counted.refuse_in(genotypes)
    if like is None:
        genotypes = chosen = aligned(genotypes)
    else:
        found = align(like, genotypes, strict=strict)
        genotypes = aligned(found.genotypes)
        chosen = replace(found, genotypes=genotypes)
    rows = _join(genotypes, covariates, keep, remove)
    return StackedColumns(parts=(chosen, *covariates), rows=tuple(rows))


def _choose_outcomes(
    pheno: AnyPath | Sequence[AnyPath],
    outcomes: str | Sequence[str] | None,
    how: Mapping[str, Any],
) -> list[TableColumns]:
    """Open the phenotype files that hold outcomes asked for."""
    tables = [open_phenotypes(path, **how) for path in _paths(pheno)]
    if not tables:
        raise InputError(
            "give the outcomes with ",
            Argument("pheno"),
            ": a file with a header FID IID and one column per outcome. "
            "(The phenotype column of a .fam or .psam is not used)",
        )
    if outcomes is None:
        return tables
    named = [(*table.names, *getattr(table.store, "indicators", {})) for table in tables]
    available = list(dict.fromkeys(name for names in named for name in names))
    where = " and ".join(table.where for table in tables)
    wanted = choose(available, outcomes, what="outcomes", where=where)
    chosen = []
    for table, there in zip(tables, named, strict=True):
        names = [name for name in wanted if name in there]
        if names:
            chosen.append(table.select(names))
    return chosen


def _join(
    genotypes: Genotypes,
    tables: Sequence[TableColumns],
    keep: AnyPath | None,
    remove: AnyPath | None,
) -> list[Rows]:
    """Find the people who are in all files; return their rows in each, two for a person with haplotypes.

    The order is that of the first table, so that text is read front to back.
    """
    people = genotypes.people()
    labels = ["the genotype file", *(table.where for table in tables)]
    own, *others = keys([people, *map(people_of, tables)])
    chosen = np.ones(len(people), dtype=bool)
    if keep is not None:
        chosen &= people.listed(keep)
    if remove is not None:
        chosen &= ~people.listed(remove)
    if not chosen.any():
        raise too_few()
    joined = match([own[chosen], *others], labels=labels, order=1 if tables else 0)
    stored = np.flatnonzero(chosen)[np.asarray(joined.rows[0], dtype=np.intp)]
    rows: list[Rows] = [stored if not chosen.all() else joined.rows[0], *joined.rows[1:]]
    if not genotypes.variants.haplotypes:
        return rows
    doubled = np.repeat(2 * stored, 2)
    doubled[1::2] += 1
    return [doubled, *(np.repeat(np.asarray(part, dtype=np.intp), 2) for part in rows[1:])]


def _side_by_side(
    genotypes: Genotypes, tables: Sequence[TableColumns], keep: AnyPath | None
) -> list[Rows]:
    """Return as many rows of each file as there can be people in all; their ids are not read."""
    strands = rows_per_person_of(genotypes)
    listed = [] if keep is None else [len(read_list_of_people(keep))]
    people = min([genotypes.n // strands, *(table.n for table in tables), *listed])
    rows = np.repeat(np.arange(people, dtype=np.intp), strands)
    return [range(strands * people), *(rows for _ in tables)]


def _stacked(parts: Sequence[Columns], rows: Sequence[Rows]) -> tuple[Columns, Rows]:
    """Return several stores as one, and its rows; a single store is returned unchanged."""
    if len(parts) == 1:
        return parts[0], rows[0]
    return StackedColumns(parts=tuple(parts), rows=tuple(rows)), range(len(rows[0]))


def _paths(paths: AnyPath | Sequence[AnyPath]) -> list[AnyPath]:
    return [paths] if isinstance(paths, str | PathLike) else list(paths)
