"""Public reference panels: genotypes of people who need no protection, held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.rows.sources.genotypes.bgen import open_bgen
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.pgen import open_pgen
from primo.rows.sources.genotypes.plink import companion, open_bed, read_bim
from primo.rows.sources.genotypes.several import (
    aligned,
    expand,
    open_several,
    side_by_side,
)
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import biallelic, select_variants
from primo.rows.sources.genotypes.vcf import open_vcf
from primo.variants import Variants

__all__ = ["Panel", "open_panel_file", "read_panel", "variants_of_bim"]

AnyPath = str | PathLike[str]

_ROWS = 1024  # people who are decoded at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Panel:
    """Allele counts of public people."""

    counts: NDArray[Any]  # (people, variants): int8, or float32 where something is missing
    variants: Variants
    people: People


def open_panel_file(path: AnyPath) -> VariantColumns:
    """Open a panel by its .bed, .pgen, .bgen or VCF."""
    kind = Path(path).suffix
    if kind == ".bed":
        return open_bed(path)
    if kind == ".pgen":
        return open_pgen(path)
    if kind == ".bgen":
        return open_bgen(path)
    return open_vcf(path)


def read_panel(
    paths: Sequence[AnyPath],
    *,
    extract: AnyPath | None = None,
    among: Variants | None = None,
    like: Variants | None = None,
) -> Panel:
    """Read a panel of *public* people: one file, or one per chromosome, by paths and patterns.

    Variants with several ALT alleles are left out. `extract` is a list of variants to use, and
    so is `among`, by ids. `like` are the variants of a release: those are read, in that order, and all
    of them must be in the panel.

    Guarantee: none for the people of the panel, who are public. Cost: one pass; a byte a genotype.
    """
    genotypes = open_several([_named(path) for path in expand(paths)], open_panel_file)
    genotypes = genotypes.select(biallelic(genotypes.variants))
    if extract is not None:
        genotypes = genotypes.select(select_variants(genotypes.variants, extract=extract))
    if among is not None:
        known = set(among.names)
        shared = [i for i, name in enumerate(genotypes.variants.names) if name in known]
        if not shared:
            raise InputError(
                "the panel has none of the cohort's variants",
                argument="panel",
                remedy="Take a panel that has them under the same ids",
            )
        genotypes = genotypes.select(shared)
    if like is not None:
        genotypes = genotypes.select(_places(genotypes.variants, like))
    genotypes = aligned(genotypes)
    blocks = list(genotypes.blocks(range(genotypes.n), _ROWS))
    return Panel(
        counts=np.concatenate(blocks), variants=genotypes.variants, people=genotypes.people()
    )


def variants_of_bim(paths: Sequence[AnyPath]) -> Variants:
    """Return the variants of PLINK 1 filesets by their prefixes; only .bim files are read."""
    parts = [read_bim(companion(path, ".bim")) for path in expand(paths, ".bed")]
    return side_by_side(parts)


def _named(path: Path) -> Path:
    """Return the path, or that of the `.bed` or `.pgen` that a bare prefix stands for."""
    if not path.exists():
        for ending in (".bed", ".pgen"):
            whole = Path(fspath(path) + ending)
            if whole.exists():
                return whole
        raise InputError(Argument("panel"), f": there is no file {str(path)!r}")
    return path


def _places(panel: Variants, like: Variants) -> list[int]:
    """Return where the variants of a release are in a panel, by their ids."""
    place = {name: i for i, name in enumerate(panel.names)}
    absent = [name for name in like.names if name not in place]
    if absent:
        raise InputError(
            f"the panel lacks {len(absent)} of the {len(like)} variants of the release, for example "
            f"{absent[0]!r}",
            argument="panel",
            remedy="Take a panel that has them under the same ids, or release only variants that it has",
        )
    return [place[name] for name in like.names]
