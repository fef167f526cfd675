"""A user's own genotype files, read once by primo's sources and kept as packed bits.

This code protects nobody: which SNPs are common, their means and the longest row are read off the
file, as in the paper's experiments. To fit a model to private people use primo itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.figures.packed import PackedSnps, Tell, cached, tell_stderr
from primo.errors import InputError
from primo.rows.sources.genotypes.plink import companion, open_bed
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import biallelic
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.rows.sources.genotypes.vcf_zarr import open_vcf_zarr

__all__ = ["common_snps"]

_VCF = (".vcf", ".vcf.gz", ".vcf.bgz", ".bcf")
_CELLS = 2**26  # of a file that are looked at together


def common_snps(
    path: Path, *, cache: Path, maf: float = 0.05, tell: Tell = tell_stderr
) -> PackedSnps:
    """Return the SNPs of two alleles and of minor allele frequency at least `maf` in the file itself.

    Rows are haplotypes if the file is a phased VCF, BCF or VCF Zarr store; they are people, with 0 to 2
    copies, if it is a PLINK fileset. A missing call counts as the most common one, so that features
    stay whole numbers. Cost: two passes over the file in the first run.
    """
    path = path.absolute()
    key = {"path": str(path), "maf": maf, "state": _state(path), "code": 1}
    return cached("file", key, lambda: _read(path, maf, tell), cache=cache)


def _state(path: Path) -> list[list[Any]]:
    """Return what changes when a file is rewritten: sizes and times."""
    if path.is_dir():  # of a Zarr store the metadata: chunks are too many
        inside = (path, path / "call_genotype")
        names = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")
        files = [folder / name for folder in inside for name in names]
    elif _is_vcf(path) or path.suffix == ".zip":
        files = [path]
    else:
        files = [companion(path, suffix) for suffix in (".bed", ".bim", ".fam")]
    states = [file.stat() for file in files if file.is_file()]
    if not states:
        raise InputError(f"there is no VCF, BCF, VCF Zarr store or PLINK fileset at {path}")
    return [[state.st_size, state.st_mtime_ns] for state in states]


def _is_vcf(path: Path) -> bool:
    return path.name.endswith(_VCF)


def _open(path: Path) -> VariantColumns:
    if path.is_dir() or path.suffix == ".zip":
        return open_vcf_zarr(path, haplotypes=True)
    return open_vcf(path, haplotypes=True) if _is_vcf(path) else open_bed(path)


def _read(path: Path, maf: float, tell: Tell) -> PackedSnps:
    columns = _open(path)
    columns = columns.select(biallelic(columns.variants))
    rows = "haplotypes" if columns.variants.haplotypes else "people"
    tell(f"reading {path}: {columns.n} {rows} × {len(columns.names)} SNPs (once)")
    if rows == "people":
        tell(f"  {path.name} is not phased: its rows are people, the paper's are haplotypes")
    counts = _count(columns)
    frequency = counts.frequency()
    common = np.flatnonzero(np.minimum(frequency, 1 - frequency) >= maf)
    if not len(common):
        raise InputError(f"no SNP of {path} has a minor allele frequency of at least {maf:g}")
    tell(f"  {len(common)} SNPs of minor allele frequency at least {maf:g}")
    chosen = columns.select(common)
    _, contig = np.unique(chosen.variants.chromosome, return_inverse=True)
    return PackedSnps(
        n=chosen.n,
        planes=_pack(chosen, counts.most_common()[common]),
        contig=contig.astype(np.int32),
        position=chosen.variants.position,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counts:
    """How many rows have 0, 1, … copies of every SNP."""

    rows: NDArray[np.int64]  # (copies + 1, snps)

    def frequency(self) -> NDArray[np.float64]:
        copies = np.arange(len(self.rows)) @ self.rows
        known = self.rows.sum(axis=0) * (len(self.rows) - 1)
        return np.asarray(copies / np.maximum(known, 1))

    def most_common(self) -> NDArray[np.int8]:
        return np.asarray(np.argmax(self.rows, axis=0), dtype=np.int8)


def _count(columns: VariantColumns) -> _Counts:
    copies, snps = columns.variants.copies, len(columns.names)
    rows = np.zeros((copies + 1, snps), dtype=np.int64)
    for block in columns.blocks(range(columns.n), max(1, _CELLS // snps)):
        for value in range(copies + 1):
            rows[value] += np.count_nonzero(block == value, axis=0)
    return _Counts(rows=rows)


def _pack(columns: VariantColumns, instead: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Return bits (copies, snps, ⌈n/8⌉); a missing call becomes `instead`."""
    copies, snps = columns.variants.copies, len(columns.names)
    planes = np.empty((copies, snps, -(-columns.n // 8)), dtype=np.uint8)
    step = 8 * max(1, _CELLS // (8 * snps))
    for number, block in enumerate(columns.blocks(range(columns.n), step)):
        values = np.where(np.isnan(block), instead, block)
        first = number * step // 8
        for plane in range(copies):
            bits = np.packbits(values > plane, axis=0).T
            planes[plane, :, first : first + bits.shape[1]] = bits
    return planes
