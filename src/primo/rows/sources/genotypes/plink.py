"""PLINK 1 filesets: `.bed` (genotypes), `.bim` (variants), `.fam` (people)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Rows
from primo.rows.sources.genotypes.packed import Packed
from primo.rows.sources.genotypes.people import People, read_fam
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable
from primo.rows.sources.unchanged import remember
from primo.variants import Variants

__all__ = ["BedColumns", "companion", "open_bed", "read_bim"]

_MAGIC = b"\x6c\x1b\x01"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BedColumns(VariantColumns):
    """Genotypes of a `.bed` as columns: copies of A1 (column 5 of the `.bim`), 0, 1 or 2.

    A block is int8 where nothing in it is missing, else float32 with NaN. The bytes are decoded here:
    transposing them while they are packed saves a pass over unpacked genotypes (see `genotypes.packed`).
    The tests compare the rows with those of bed-reader.
    """

    path: Path  # of the .bed

    def people(self) -> People:
        """Read who the rows are."""
        return read_fam(companion(self.path, ".fam"))

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the people `order` in blocks of `rows`.

        Cost: one pass over the chosen variants where `order` follows the file; 64 to 256 MB and two
        blocks.
        """
        with self.path.open("rb", buffering=0) as file:
            packed = Packed(
                file=file,
                where=str(self.path),
                offset=len(_MAGIC),
                width=-(-self.n // 4),
                places=self.places,
            )
            yield from packed.blocks(order, rows)


def open_bed(path: str | PathLike[str]) -> BedColumns:
    """Open a PLINK 1 fileset by its prefix or by the path of its `.bed`."""
    bed = companion(Path(path), ".bed")
    unchanged = remember(bed, companion(bed, ".bim"), companion(bed, ".fam"))
    people = read_fam(companion(bed, ".fam"))
    variants = read_bim(companion(bed, ".bim"))
    _check_bed(bed, len(people), len(variants))
    return BedColumns(
        path=bed,
        unchanged=unchanged,
        samples=len(people),
        variants=variants,
        places=np.arange(len(variants), dtype=np.intp),
    )


def companion(path: Path, suffix: str) -> Path:
    """Return the file of a fileset with this suffix, given another of them or the bare prefix."""
    known = (".bed", ".bim", ".fam", ".pgen", ".pvar", ".psam")
    prefix = str(path.with_suffix("")) if path.suffix in known else str(path)
    found = Path(prefix + suffix).absolute()  # a worker may have another working folder
    if not found.is_file():
        trio = known[:3] if suffix in known[:3] else known[3:]
        raise InputError(
            f"there is no file {found}; a fileset is {', '.join(trio)} side by side with one prefix"
        )
    return found


def read_bim(path: Path) -> Variants:
    """Read which variants a fileset has; a .bim holds nothing of its people."""
    table = VariantTable(where=path)
    with path.open("rb") as lines:  # as bytes: Unicode has more blanks and digits than PLINK
        for number, line in enumerate(lines, start=1):
            words = [word.decode(errors="replace") for word in line.split()]
            if not words:
                continue
            if len(words) != 6 or not re.fullmatch(r"-?[0-9]{1,18}", words[3]):
                raise InputError(
                    f"line {number} of {path} is not a variant: six columns are needed, chromosome, "
                    "id, centimorgans, position (a whole number), A1 and A2"
                )
            table.add(words[1], words[0], int(words[3]), counted=words[4], other=words[5])
    return table.variants()


def _check_bed(path: Path, people: int, variants: int) -> None:
    """Check magic bytes and size before anything is read."""
    with path.open("rb") as file:
        magic = file.read(3)
    if magic[:2] == _MAGIC[:2] and magic[2:] == b"\x00":
        raise InputError(
            f"{path} is individual-major, a layout of before 2008; rewrite it with "
            "plink1.9 --bfile ... --make-bed"
        )
    if magic != _MAGIC:
        raise InputError(f"{path} is not a PLINK 1 .bed file: its first bytes are wrong")
    expected, size = len(_MAGIC) + variants * -(-people // 4), path.stat().st_size
    if size != expected:
        raise InputError(
            f"{path} has {size} bytes, but {people} people in its .fam and {variants} variants in its "
            f".bim make {expected}; it is truncated, or the three files do not belong together"
        )
