"""Genotypes from VCF Zarr stores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.rows.sources.arrays.chunked import chunk_starts, walk
from primo.rows.sources.arrays.zarr import checked, open_node, remember_store
from primo.rows.sources.base import Rows
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.genotypes.packed import with_nan
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable, refuse_multiallelic
from primo.variants import Variants

__all__ = ["VcfZarrColumns", "open_vcf_zarr"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VcfZarrColumns(VariantColumns):
    """Calls of a VCF Zarr store as columns: copies of ALT; `open_vcf_zarr` makes it.

    A row is a person, 0, 1 or 2; with haplotypes it is one of a person's two chromosomes, 0 or 1, and
    rows 2i and 2i + 1 belong to person i. A block is int8 where nothing in it is missing, else float32
    with NaN. A call of which one allele is missing is missing. A haploid call counts twice, as in
    PLINK; among haplotypes it is an error, as is a heterozygous call without phase.

    Cost: variants are the first axis of the store. 64 MB of rows at a time are transposed, one chunk of
    variants after the other, so that every chunk is opened about once.
    """

    path: str

    def people(self) -> People:
        """Read who the people are; the store has no family ids."""
        iid = checked(self.path, lambda: _texts(_field(self.path, "sample_id")))()
        return People(where=Path(self.path), iid=canonical_ids(iid), fid=None)

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in blocks of `rows`."""
        refuse_multiallelic(self.variants, Path(self.path))
        calls, phased = checked(self.path, self._calls)()
        strands, step = self.rows_per_person, calls.chunks[0]
        chunks = self.places // step

        def read(first: int, stop: int) -> NDArray[Any]:
            people = slice(first // strands, -(-stop // strands))
            out = np.empty((people.stop - people.start, strands, len(self.names)), dtype=np.int8)
            for chunk in np.unique(chunks).tolist():
                here = np.flatnonzero(chunks == chunk)
                inside = self.places[here] - chunk * step
                stored = slice(chunk * step, (chunk + 1) * step)
                part = calls[stored, people][inside]
                flags = None if phased is None else phased[stored, people][inside]
                # A slice is written twenty times as fast as the same places by number.
                dense = here[-1] - here[0] == len(here) - 1
                where = slice(here[0], here[-1] + 1) if dense else here
                out[:, :, where] = self._copies(part, flags).transpose(1, 2, 0)
            return out.reshape(-1, len(self.names))[first - people.start * strands :][
                : stop - first
            ]

        walked = walk(
            checked(self.path, read),
            starts=chunk_starts(self.n, calls.chunks[1] * strands),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=np.dtype(np.int8),
        )
        for block in walked:
            yield with_nan(block)

    def _calls(self) -> tuple[Any, Any]:
        """Return the calls and, for haplotypes, which of them are phased, if the store says so."""
        calls = _field(self.path, "call_genotype", axes=3)
        known = "call_genotype_phased" in open_node(self.path)
        if not (known and self.variants.haplotypes):
            return calls, None
        return calls, _field(self.path, "call_genotype_phased", axes=2)

    def _copies(self, calls: NDArray[Any], phased: NDArray[Any] | None) -> NDArray[Any]:
        """Return copies (variants, people, strands), -1 where missing, of calls (…, ploidy)."""
        if calls.max(initial=0) > 1:
            raise InputError(
                f"{self.path}: some calls name an allele that their variant does not have"
            )
        first, second = calls[:, :, 0], calls[:, :, -1]
        if not self.variants.haplotypes:
            if calls.min() >= 0:
                copies: NDArray[Any] = first + second
                return copies[:, :, None]
            second = np.where(second == _ABSENT, first, second)
            missing = (first < 0) | (second < 0)
            return np.where(missing, -1, first + second)[:, :, None]
        if (second == _ABSENT).any():
            raise InputError(
                f"{self.path}: there are haploid calls, which do not make two haplotypes",
                argument="haplotypes",
                value=True,
                remedy=Message.of(
                    "leave such chromosomes out with ", Argument("exclude"), ", or read genotypes"
                ),
            )
        if phased is not None and ((first != second) & ~phased.astype(bool)).any():
            raise InputError(
                f"{self.path}: there are unphased calls (0/1 instead of 0|1), so there are no "
                "haplotypes; phase the data first, or read genotypes"
            )
        return calls


_ABSENT = -2  # stands for the second allele of a haploid call


def open_vcf_zarr(path: str | os.PathLike[str], *, haplotypes: bool = False) -> VcfZarrColumns:
    """Open a VCF Zarr store, as bio2zarr and sgkit write it; the calls are not read.

    Parameters
    ----------
    path
        The store.
    haplotypes
        Rows are the two chromosomes of each person (of phased calls), instead of people.
    """
    columns = checked(os.fspath(path), _open_calls)(os.fspath(path), haplotypes)
    columns.people().keys(families=False)  # refuses people who appear twice
    return columns


def _open_calls(path: str, haplotypes: bool) -> VcfZarrColumns:
    unchanged = remember_store(path, "call_genotype")
    calls = _field(path, "call_genotype", axes=3)
    count, samples, ploidy = calls.shape
    if calls.dtype.kind != "i" or 0 in calls.shape or ploidy > 2:
        raise InputError(
            f"{path}: call_genotype has the type {calls.dtype} and the shape {calls.shape}; whole "
            "numbers for (variants, samples, 1 or 2 alleles) are needed"
        )
    if haplotypes and ploidy == 1:
        raise InputError(f"{path} has haploid calls; each row is a haplotype already")
    if _field(path, "sample_id").shape != (samples,):
        raise InputError(f"{path}: sample_id and call_genotype differ in the number of samples")
    return VcfZarrColumns(
        path=path,
        unchanged=unchanged,
        samples=samples,
        variants=_variants(path, count, haplotypes),
        places=np.arange(count, dtype=np.intp),
    )


def _variants(path: str, count: int, haplotypes: bool) -> Variants:
    """Read the fixed fields of the variants."""
    contigs = _texts(_field(path, "contig_id"))
    contig, position = (_field(path, f"variant_{name}")[:] for name in ("contig", "position"))
    alleles = _texts(_field(path, "variant_allele", axes=2))
    has_ids = "variant_id" in open_node(path)
    names = _texts(_field(path, "variant_id")) if has_ids else ["."] * count
    if {len(contig), len(position), len(alleles), len(names)} != {count}:
        raise InputError(f"{path}: the variant_ arrays and call_genotype differ in length")
    if not ((contig >= 0) & (contig < len(contigs))).all():
        raise InputError(f"{path}: variant_contig points outside contig_id")
    table = VariantTable(where=Path(path))
    for name, i, place, (reference, *others) in zip(
        names, contig.tolist(), position.tolist(), alleles, strict=True
    ):
        alternatives = ",".join(allele for allele in others if allele not in ("", "."))
        table.add(name, contigs[i], place, counted=alternatives or ".", other=reference)
    return table.variants(haplotypes=haplotypes)


def _field(path: str, name: str, *, axes: int = 1) -> Any:
    """Return an array of a VCF Zarr store, or say what is missing."""
    group = open_node(path)
    if hasattr(group, "chunks") or name not in group or not hasattr(group[name], "chunks"):
        raise InputError(
            f"{path} has no array {name!r}, which a VCF Zarr store needs; convert a VCF with "
            "bio2zarr (vcf2zarr convert)"
        )
    if group[name].ndim != axes:
        raise InputError(f"{path}: {name} has {group[name].ndim} axes; VCF Zarr has {axes} there")
    return group[name]


def _texts(array: Any) -> list[Any]:
    """Return strings as lists: in an array, one long allele would make all of them wide."""
    values = array[:]
    texts: list[Any] = (np.char.decode(values) if values.dtype.kind == "S" else values).tolist()
    return texts
