"""Allele frequencies of *public* people: from a file, or counted in a public reference panel.

Frequencies of the private cohort itself would be private statistics released without noise, and a
choice of variants by them leaks as well. Nothing here reads the cohort.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Columns
from primo.rows.sources.genotypes.people import People
from primo.variants import Variants

__all__ = ["Frequencies", "Matched", "count_frequencies", "read_frequencies"]

#: Columns of an id, of the allele whose frequency is given, of the other allele, of the frequency:
#: plink2 .afreq, plink 1.9 .frq, and tables made by hand.
_ID = ("ID", "SNP", "RSID", "VARIANT")
_ALLELE = ("ALT", "A1", "ALLELE", "EFFECT_ALLELE", "COUNTED")
_OTHER = ("REF", "A2", "OTHER", "OTHER_ALLELE")
_FREQUENCY = ("ALT_FREQS", "ALT_FREQ", "FREQ", "FREQUENCY", "AF", "A1_FREQ", "MAF")

#: Rows of a panel that are counted at a time.
_ROWS = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class Matched:
    """Frequencies of the counted alleles of some variants; all public."""

    frequency: NDArray[np.float64]  # (variants,) NaN where there is none
    swapped: int  # given for the other allele, and replaced by 1 - f
    unknown: int  # variants whose id has no frequency
    different: int  # variants whose id has a frequency for other alleles


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Frequencies:
    """Frequencies of alleles among public people, by variant id."""

    where: Path
    ids: tuple[str, ...]
    allele: tuple[str, ...]  # whose frequency is given
    other: tuple[str, ...] | None  # where the file says it
    frequency: NDArray[np.float64]
    people: People | None = None  # of a panel; used to refuse the cohort as its own panel

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        """Say how many there are, and from where."""
        return f"<Frequencies of {len(self)} variants from {self.where} (public)>"

    def match(self, variants: Variants) -> Matched:
        """Find the frequency of each counted allele, by id and alleles.

        A frequency f of the other allele becomes 1 - f. Alleles that fit neither way, as on the other
        strand, are left without a frequency: whether A/T is A/T or its complement cannot be decided, so
        strands are never changed here.
        """
        known = {name: place for place, name in enumerate(self.ids)}
        found = np.full(len(variants), np.nan)
        swapped = unknown = different = 0
        for i, (name, counted, other) in enumerate(
            zip(variants.names, variants.counted, variants.other, strict=True)
        ):
            place = known.get(name)
            if place is None:
                unknown += 1
            elif self._is(place, counted, other):
                found[i] = self.frequency[place]
            elif self._is(place, other, counted):
                found[i] = 1.0 - self.frequency[place]
                swapped += 1
            else:
                different += 1
        return Matched(frequency=found, swapped=swapped, unknown=unknown, different=different)

    def _is(self, place: int, allele: str, other: str) -> bool:
        same = self.allele[place].upper() == allele.upper()
        return same and (self.other is None or self.other[place].upper() == other.upper())


def read_frequencies(path: str | PathLike[str]) -> Frequencies:
    """Read a plink2 `.afreq`, a plink 1.9 `.frq`, or a table with columns ID, ALLELE and FREQ.

    Columns are separated by blanks or tabs; `.gz` is unpacked. Variants without a frequency (NA) or with
    several ALT alleles are skipped.
    """
    where = Path(path)
    try:
        with (
            gzip.open(where, "rt", encoding="utf-8")
            if where.suffix == ".gz"
            else where.open(encoding="utf-8")
        ) as file:
            lines = [line.split() for line in file if line.strip() and not line.startswith("##")]
    except (OSError, EOFError, UnicodeDecodeError, zlib.error):
        raise InputError(f"cannot read the frequency file {where}") from None
    if not lines:
        raise InputError(f"the frequency file {where} is empty")
    header = [name.upper() for name in [lines[0][0].removeprefix("#"), *lines[0][1:]]]
    places = {
        what: _column(header, names)
        for what, names in (("id", _ID), ("allele", _ALLELE), ("frequency", _FREQUENCY))
    }
    absent = [what for what, place in places.items() if place is None]
    if absent:
        raise InputError(
            f"{where} has no column for the {' and the '.join(absent)}; its first line must name the "
            "columns, as in plink2's .afreq, plink 1.9's .frq, or ID ALLELE FREQ"
        )
    return _table(where, lines, len(header), places, _column(header, _OTHER))


def count_frequencies(
    panel: Columns, variants: Variants, people: People, where: Path
) -> Frequencies:
    """Count the alleles of a panel, whose people are public. Cost: one pass over it."""
    copies, calls = np.zeros(len(variants)), np.zeros(len(variants))
    for block in panel.blocks(range(panel.n), _ROWS):
        copies += np.nansum(block, axis=0, dtype=np.float64)
        calls += (~np.isnan(block)).sum(axis=0) if block.dtype.kind == "f" else len(block)
    seen = np.flatnonzero(calls)
    chosen = variants.select(seen)
    return Frequencies(
        where=where,
        ids=chosen.names,
        allele=chosen.counted,
        other=chosen.other,
        frequency=copies[seen] / calls[seen] / variants.copies,
        people=people,
    )


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    return next((header.index(name) for name in names if name in header), None)


def _table(
    where: Path,
    lines: list[list[str]],
    width: int,
    places: dict[str, int | None],
    other: int | None,
) -> Frequencies:
    """Take the columns out of the lines; their content is public and may be quoted."""
    kept: dict[str, tuple[str, str, float]] = {}
    for number, words in enumerate(lines[1:], start=2):
        if len(words) != width:
            raise InputError(f"line {number} of {where} has {len(words)} columns, not {width}")
        name, allele, text = (words[place] for place in places.values() if place is not None)
        if text.upper() in ("NA", "NAN", ".") or "," in allele:
            continue
        try:
            value = float(text)
        except ValueError:
            value = np.nan
        if not 0.0 <= value <= 1.0:
            raise InputError(f"line {number} of {where}: {text!r} is not a frequency (0 to 1)")
        if name in kept and name != ".":
            raise InputError(f"{where} has variant {name} twice; keep one line for it")
        kept[name] = (allele, words[other] if other is not None else "", value)
    kept.pop(".", None)
    if not kept:
        raise InputError(f"the frequency file {where} holds no frequencies")
    allele_, other_, frequency = zip(*kept.values(), strict=True)
    return Frequencies(
        where=where,
        ids=tuple(kept),
        allele=allele_,
        other=other_ if other is not None else None,
        frequency=np.array(frequency),
    )
