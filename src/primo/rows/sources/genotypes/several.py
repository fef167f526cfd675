"""Several genotype files of the same people, one per chromosome, as one: their variants side by side."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.genotypes.people import People, keys
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.join import match
from primo.rows.sources.paired import compose_rows
from primo.variants import Variants

__all__ = ["GenotypeFiles", "aligned", "expand", "open_several", "side_by_side"]

AnyPath = str | PathLike[str]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GenotypeFiles:
    """The variants of several files side by side; rows follow the first file.

    All files must hold the same people, in any order. Whether they do is found out by `aligned`, or when
    rows are read; opening compares numbers of people only.
    """

    parts: tuple[VariantColumns, ...]
    order: NDArray[np.intp]  # column i is column order[i] of the parts side by side
    rows: tuple[Rows, ...] | None = (
        None  # row i is row rows[k][i] of part k; None: not compared yet
    )

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.parts[0].n

    @cached_property
    def variants(self) -> Variants:
        """What the columns count."""
        return side_by_side([part.variants for part in self.parts]).select(self.order)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the variants."""
        return self.variants.names

    @property
    def paths(self) -> tuple[Path, ...]:
        """The genotype files."""
        return tuple(Path(path) for part in self.parts if (path := getattr(part, "path", None)))

    @property
    def rows_per_person(self) -> int:
        """Two for haplotypes."""
        return self.parts[0].rows_per_person

    @property
    def id_names(self) -> tuple[str, ...]:
        """As of one file."""
        return self.parts[0].id_names

    def __repr__(self) -> str:
        """Show the schema only."""
        files, n = len(self.parts), self.n
        return f"<GenotypeFiles files={files} n={n} variants={len(self.names)} (private)>"

    def people(self) -> People:
        """Read who the people are, in the order of the first file."""
        return self.parts[0].people()

    def ids(self) -> Ids:
        """Return the individual id of the owner of each row."""
        return self.parts[0].ids()

    def other_ids(self) -> Ids | None:
        """Return the id of each row as tools without families write it, or None."""
        return self.parts[0].other_ids()

    def labels(self) -> Ids:
        """Return labels that distinguish the people."""
        return self.parts[0].labels()

    def select(self, places: Sequence[int] | NDArray[np.intp]) -> Self:
        """Return some of the variants; files that hold none of them are left out."""
        wanted = self.order[np.asarray(places, dtype=np.intp)]
        ends = np.cumsum([len(part.variants) for part in self.parts])
        owner = np.searchsorted(ends, wanted, side="right")
        used = [k for k in range(len(self.parts)) if (owner == k).any()] or [0]
        parts = []
        order = np.empty(len(wanted), dtype=np.intp)
        start = 0
        for k in used:
            mine = np.flatnonzero(owner == k)
            first = ends[k] - len(self.parts[k].variants)
            parts.append(self.parts[k].select(wanted[mine] - first))
            order[mine] = np.arange(start, start + len(mine))
            start += len(mine)
        rows = None
        if self.rows is not None:
            if (
                used[0] != 0
            ):  # rows would follow another file than those that were counted off already
                raise AssertionError("choose variants before people are compared")
            rows = tuple(self.rows[k] for k in used)
        return replace(self, parts=tuple(parts), order=order, rows=rows)

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the rows `order` in blocks of `rows`.

        Cost: that of every file; each holds its own 64 MB.
        """
        stored = aligned(self).rows
        assert stored is not None
        walks = [
            part.blocks(compose_rows(own, order), rows)
            for part, own in zip(self.parts, stored, strict=True)
        ]
        in_order = bool((np.diff(self.order) == 1).all())
        for blocks in zip(*walks, strict=True):
            joined = np.hstack(blocks)
            yield joined if in_order else joined[:, self.order]


def aligned(genotypes: Any) -> Any:
    """Return genotypes whose files were compared: the same people in each, found by their ids.

    Anything but `GenotypeFiles` is returned unchanged. The error shows no id and no count.
    """
    if not isinstance(genotypes, GenotypeFiles) or genotypes.rows is not None:
        return genotypes
    found = keys([part.people() for part in genotypes.parts])
    joined = match(found, labels=[str(path) for path in genotypes.paths] or ["a file"] * len(found))
    if any(len(ids) != joined.n for ids in found):
        raise _other_people(genotypes.paths)
    rows = joined.rows
    if genotypes.rows_per_person == 2:
        rows = tuple(_doubled(part) for part in rows)
    return replace(genotypes, rows=rows)


def open_several(paths: Sequence[Path], open_one: Callable[[Path], VariantColumns]) -> Any:
    """Open one file, or several as one; refuse another number of people, and variants that repeat."""
    parts = tuple(open_one(path) for path in paths)
    if len(parts) == 1:
        return parts[0]
    if len({part.n for part in parts}) != 1:
        raise _other_people(paths)
    _refuse_repeated(parts, paths)
    width = sum(len(part.variants) for part in parts)
    return GenotypeFiles(parts=parts, order=np.arange(width, dtype=np.intp))


def expand(given: AnyPath | Sequence[AnyPath], ending: str = "") -> list[Path]:
    """Return the files that paths and patterns name; chr2 comes before chr10.

    `ending` is that of the files where a prefix is given (`.bed`); a path that exists is not a pattern.
    """
    asked = [given] if isinstance(given, str | PathLike) else list(given)
    found: list[Path] = []
    for path in asked:
        item = fspath(path)
        whole = item if not ending or item.endswith(ending) else item + ending
        if not glob.has_magic(item) or Path(whole).exists():
            found.append(Path(item))
            continue
        matched = sorted(glob.glob(whole), key=_natural)
        if not matched:
            raise InputError(f"no file fits the pattern {whole!r}")
        found += map(Path, matched)
        _refuse_other_beds(whole, matched)
    return found


def _refuse_other_beds(pattern: str, matched: Sequence[str]) -> None:
    """Refuse a .bed that a pattern fits and that is no fileset: blocks are in files so called, too."""
    for path in map(Path, matched):
        if path.suffix == ".bed" and not path.with_suffix(".bim").is_file():
            raise InputError(
                f"the pattern {pattern!r} fits {str(path)!r}, which has no .bim beside it: a file of "
                "blocks, or not a whole fileset",
                remedy="write a pattern that fits genotypes only, such as 'chr[0-9]*', or rename it",
            )


def _natural(text: str) -> list[tuple[int, str]]:
    """Sort key with numbers as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", text)
    ]


def _doubled(rows: Rows) -> Rows:
    if isinstance(rows, range):
        return range(2 * rows.start, 2 * rows.stop)
    both = np.repeat(2 * rows, 2)
    both[1::2] += 1
    return both


def _other_people(paths: Sequence[Path]) -> InputError:
    """Return one error for another number of people and for other people."""
    return InputError(
        f"the {len(paths)} genotype files do not hold the same people, but are to be one cohort: the "
        f"first is {paths[0]}, the last {paths[-1]}",
        remedy="Write them with the same people, for example with plink2 --keep; their order does not "
        "matter. Nothing was charged",
    )


def _refuse_repeated(parts: Sequence[VariantColumns], paths: Sequence[Path]) -> None:
    """Refuse a variant that two files have, by its name or by its place and alleles."""
    names: dict[str, int] = {}
    places: dict[tuple[str, int, frozenset[str]], int] = {}
    for k, part in enumerate(parts):
        variants = part.variants
        described = zip(
            variants.names,
            variants.chromosome,
            variants.position.tolist(),
            variants.counted,
            variants.other,
            strict=True,
        )
        for name, chromosome, position, counted, other in described:
            place = (chromosome.removeprefix("chr"), position, frozenset((counted, other)))
            first = names.setdefault(name, k)
            if first == k and position > 0:
                first = places.setdefault(place, k)
            if first != k:
                raise InputError(
                    f"variant {name} is in two of the genotype files, {paths[first]} and {paths[k]}",
                    remedy="Leave it out of one of them, for example with plink2 --exclude; variants "
                    "need ids of their own",
                )


def side_by_side(parts: Sequence[Variants]) -> Variants:
    """Join the descriptions of variants of several files."""
    return Variants(
        names=tuple(name for part in parts for name in part.names),
        chromosome=tuple(name for part in parts for name in part.chromosome),
        position=np.concatenate([part.position for part in parts]),
        counted=tuple(allele for part in parts for allele in part.counted),
        other=tuple(allele for part in parts for allele in part.other),
        haplotypes=parts[0].haplotypes,
    )
