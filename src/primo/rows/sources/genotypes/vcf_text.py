"""The text of a VCF, read before htslib sees it.

htslib ignores some damage (a NUL byte cuts a header line short), prints the offending cell on standard
error, and returns a half-read record of an undeclared chromosome as a complete one, which makes cyvcf2
crash with a segmentation fault. So the columns that describe the variants are read here.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from primo.errors import InputError
from primo.rows.sources.genotypes.variant_lists import VariantTable

__all__ = ["VcfText", "open_header", "scan_text"]

_FIXED = 9  # columns before the first sample
_LAST_POSITION = 2**31 - 1  # the format's own limit


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VcfText:
    """What the text of a VCF says about its samples and variants."""

    samples: tuple[str, ...]
    fields: frozenset[str]  # of a sample, that the header declares
    table: VariantTable
    undeclared: tuple[str, ...]  # chromosomes that the header does not mention

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<VcfText samples={len(self.samples)} variants={len(self.table.ids)} (private)>"


def open_header(path: Path) -> tuple[str, ...] | None:
    """Return the sample names of a VCF, or None for a BCF."""
    lines = _lines(path)
    header = _header(path, lines)
    return None if header is None else header[0]


def scan_text(path: Path) -> VcfText | None:
    """Read header and fixed columns of a VCF; None for a BCF. Cost: one pass, calls are not parsed."""
    lines = _lines(path)
    header = _header(path, lines)
    if header is None:
        return None
    samples, declared, fields = header
    table = VariantTable(where=path)
    for number, line in enumerate(lines, start=1):
        if line.strip(b"\r\n"):
            _add_record(path, table, number, line, len(samples))
        elif next(lines, b""):
            raise InputError(f"{path} has an empty line between its records")
    chromosomes = dict.fromkeys(table.chromosome)
    return VcfText(
        samples=samples,
        fields=fields,
        table=table,
        undeclared=tuple(name for name in chromosomes if name not in declared),
    )


def _add_record(path: Path, table: VariantTable, number: int, line: bytes, samples: int) -> None:
    columns = _FIXED + samples if samples else _FIXED - 1
    fields = _decoded(line.split(b"\t", 5)[:5])
    if (
        fields is None
        or line.count(b"\t") != columns - 1
        or b"\0" in line
        or not re.fullmatch(r"[^#\s][^\s]*", fields[0])
        or not re.fullmatch(r"[0-9]{1,10}", fields[1])
        or int(fields[1]) > _LAST_POSITION
        or not (fields[3] and fields[4])
    ):
        raise InputError(
            f"record {number} of {path} cannot be read: {columns} columns are needed, with a "
            "chromosome, a position and two alleles; the file is truncated or corrupt"
        )
    chromosome, position, name, reference, alternatives = fields
    table.add(name, chromosome, int(position), counted=alternatives, other=reference)


def _header(
    path: Path, lines: Iterator[bytes]
) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]] | None:
    """Return samples, declared chromosomes and declared fields of samples; None for a BCF."""
    first = next(lines, b"")
    if first.startswith(b"BCF"):
        return None
    declared: set[str] = set()
    fields: set[str] = set()
    for line in lines if first.startswith(b"##fileformat=VCF") else ():
        if not line.startswith(b"##"):
            names = _decoded(line.rstrip(b"\r\n").split(b"\t"))
            if names is None or names[0] != "#CHROM" or b"\0" in line:
                break
            samples = tuple(name.strip() for name in names[_FIXED:])
            if not all(samples):
                break
            if len(set(samples)) != len(samples):
                raise InputError(
                    f"{path}: some people appear more than once; sample names must differ"
                )
            return samples, frozenset(declared), frozenset(fields)
        if found := re.match(rb"##contig=<(?:.*,)?ID=([^,>]+)", line):
            declared.add(found[1].decode(errors="replace"))
        if found := re.match(rb"##FORMAT=<(?:.*,)?ID=([^,>]+)", line):
            fields.add(found[1].decode(errors="replace"))
    raise InputError(f"{path} is not a VCF or BCF file, or its header is broken")


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of the (unpacked) file."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as lines:
        while True:
            try:
                line = lines.readline()
            except (OSError, EOFError, zlib.error):
                line = None
            if line is None:  # outside the handler: no bytes in the traceback
                raise InputError(f"{path} cannot be read to its end: it is truncated or corrupt")
            if not line:
                return
            yield line


def _decoded(fields: list[bytes]) -> list[str] | None:
    try:
        return [field.decode() for field in fields]
    except UnicodeDecodeError:
        return None
