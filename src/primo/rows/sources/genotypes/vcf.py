"""VCF and BCF files, read by cyvcf2 (htslib): calls, haplotypes where they are phased, or dosages."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import Argument, InputError, Message
from primo.rows.sources.base import Rows
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.genotypes.packed import Packed, pack
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.spooled import Dosage, spooled_blocks
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable, refuse_multiallelic
from primo.rows.sources.genotypes.vcf_dosages import FIELDS, expected_copies, stated_copies
from primo.rows.sources.genotypes.vcf_text import VcfText, open_header, scan_text
from primo.rows.sources.unchanged import remember

__all__ = ["VcfColumns", "open_vcf"]

#: The empty block that ends every file that bgzip wrote.
_BGZF_END = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VcfColumns(VariantColumns):
    """Calls (field GT) or dosages (DS, GP) of a VCF or BCF as columns: copies of ALT.

    A row is a person, 0, 1 or 2; with `haplotypes` it is one of a person's two chromosomes, 0 or 1,
    and rows 2i and 2i + 1 belong to person i. A block is int8 where nothing in it is missing, else
    float32 with NaN. A call of which one allele is missing is missing. A haploid call counts twice, as
    in PLINK; among haplotypes it is an error, as is a heterozygous call without phase.

    Dosages are expected copies, 0 to 2, in float32, NaN where missing: the field DS itself, or P(0/1) +
    2·P(1/1) of the field GP. A haploid GP counts twice. Whether a DS is that of a haploid call only GT
    can say, so haploid calls, and X, Y and MT without GT, are an error.
    """

    path: Path
    records: int  # in the file
    undeclared: tuple[str, ...]  # chromosomes that the header does not mention
    field: str = "GT"  # or "DS", "GP"

    def people(self) -> People:
        """Read who the people are; a VCF has no family ids."""
        samples = open_header(self.path)
        if samples is None:
            samples = _samples(_open_reader(self.path), self.path)
        return People(where=self.path, iid=canonical_ids(samples), fid=None)

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the rows `order` in blocks of `rows`.

        Cost: every pass parses the text once, into a temporary file without a name that takes a quarter
        of a byte for each call; for many passes (a cluster) convert the file to `.pgen` first.
        """
        refuse_multiallelic(self.variants, self.path)
        if self.field != "GT":
            yield from spooled_blocks(
                self._dosages(), order, rows, n=self.n, width=len(self.places), where=self.path
            )
            return
        with tempfile.TemporaryFile() as file:
            try:
                self._parse(file)
            except OSError as error:
                raise InputError(
                    f"cannot write the calls of {self.path} to a temporary file in "
                    f"{tempfile.gettempdir()}: {error.strerror}; set TMPDIR to a folder with room for "
                    f"{self.n * len(self.places) / 4e9:.2f} GB"
                ) from None
            packed = Packed(
                file=file.raw,
                where=str(self.path),
                offset=0,
                width=-(-self.n // 4),
                places=np.arange(len(self.places), dtype=np.intp),
            )
            yield from packed.blocks(order, rows)

    def _parse(self, file: IO[bytes]) -> None:
        """Write the calls of the chosen variants, packed, in the order of `places`."""
        width = -(-self.n // 4)
        for slot, record in self._chosen():
            copies, missing = self._calls(record, self.variants.names[slot])
            file.seek(slot * width)
            file.write(pack(copies, missing).data)
        file.flush()

    def _chosen(self) -> Iterator[tuple[int, Any]]:
        """Yield the records of the chosen variants, each with its place among the columns."""
        slots: dict[int, int] = {place: slot for slot, place in enumerate(self.places.tolist())}
        number = -1
        reader = _open_reader(self.path, self.undeclared)
        for number, record in enumerate(_records(reader, self.path)):
            slot = slots.get(number)
            if slot is not None:
                yield slot, record
        if number + 1 != self.records:
            raise InputError(f"{self.path} was changed since it was opened")

    def _dosages(self) -> Iterator[tuple[int, Dosage]]:
        """Yield the dosages of the chosen variants, each with its place among the columns."""
        for slot, record in self._chosen():
            read = expected_copies if self.field == "GP" else stated_copies
            yield slot, read(record, self.path, self.variants.names[slot], self.samples)

    def _calls(self, record: Any, name: str) -> tuple[NDArray[np.int16], NDArray[np.bool_]]:
        """Return copies and whether they are missing, of every row."""
        try:
            calls = record.genotype.array()
        except Exception:  # cyvcf2 raises bare exceptions
            calls = None
        if calls is None:
            raise InputError(f"{self.path}: variant {name} has no genotypes (field GT)")
        alleles, phased = calls[:, :-1], calls[:, -1].astype(bool)
        if alleles.shape[1] > 2 or (alleles.max(initial=0) > 1):
            raise InputError(f"{self.path}: variant {name} has calls with more than two alleles")
        if alleles.shape[1] == 1:
            alleles = np.column_stack([alleles, np.full(len(alleles), _ABSENT, alleles.dtype)])
        absent = alleles[:, 1] == _ABSENT
        if not self.variants.haplotypes:
            second = np.where(absent, alleles[:, 0], alleles[:, 1])
            return alleles[:, 0] + second, (alleles[:, 0] < 0) | (second < 0)
        if absent.any():
            raise InputError(
                f"{self.path}: variant {name} has haploid calls, which do not make two haplotypes",
                argument="haplotypes",
                value=True,
                remedy=Message.of(
                    "leave such chromosomes out with ", Argument("exclude"), ", or read genotypes"
                ),
            )
        if ((alleles[:, 0] != alleles[:, 1]) & ~phased).any():
            raise InputError(
                f"{self.path}: variant {name} has unphased calls (0/1 instead of 0|1), so there are no "
                "haplotypes; phase the file first, or read genotypes"
            )
        flat = alleles.ravel()
        return flat, flat < 0


_ABSENT = -2  # cyvcf2's mark for the second allele of a haploid call


def open_vcf(
    path: str | PathLike[str], *, haplotypes: bool = False, field: str = "GT"
) -> VcfColumns:
    """Open a VCF (plain, gzip, bgzip) or BCF. Cost: one pass over the records, without their calls."""
    path = Path(path).absolute()  # a worker may have another working folder
    _check_file(path)
    unchanged = remember(path)
    text = scan_text(path) or _scan_bcf(path)
    if not text.samples:
        raise InputError(f"{path} has no samples: it lists variants only")
    if field not in FIELDS:
        raise InputError(Argument("vcf_field", field), f": choose one of {', '.join(FIELDS)}")
    if field not in text.fields:
        raise InputError(
            f"{path} has no genotypes: its header does not declare the field {field}",
            argument="vcf_field",
            value=field,
        )
    variants = text.table.variants(haplotypes=haplotypes)
    if len(_samples(_open_reader(path), path)) != len(text.samples):
        raise InputError(f"{path} is not a VCF or BCF file, or its header is broken")
    return VcfColumns(
        path=path,
        unchanged=unchanged,
        variants=variants,
        places=np.arange(len(variants), dtype=np.intp),
        records=len(variants),
        samples=len(text.samples),
        undeclared=text.undeclared,
        field=field,
    )


def _scan_bcf(path: Path) -> VcfText:
    """Read samples and variants of a BCF, without the calls."""
    reader = _open_reader(path)
    samples = _samples(reader, path)
    if samples:
        reader.set_samples([])  # the calls are not parsed in this pass
    table = VariantTable(where=path)
    for record in _records(reader, path):
        table.add(*_fixed(record, path))
    return VcfText(
        samples=samples,
        fields=frozenset(filter(reader.contains, FIELDS)),
        table=table,
        undeclared=(),
    )


def _fixed(record: Any, path: Path) -> tuple[str, str, int, str, str]:
    """Return id, chromosome, position, counted and other allele of a record."""
    try:
        counted = ",".join(record.ALT) or "."
        return record.ID or ".", record.CHROM, int(record.POS), counted, record.REF
    except UnicodeDecodeError:
        pass
    raise InputError(f"{path} cannot be read: it is corrupt")


def _samples(reader: Any, path: Path) -> tuple[str, ...]:
    try:
        samples = tuple(name.strip() for name in reader.samples)
    except UnicodeDecodeError:
        samples = ("",)
    if not all(samples):
        raise InputError(f"{path} is not a VCF or BCF file, or its header is broken")
    if len(set(samples)) != len(samples):
        raise InputError(f"{path}: some people appear more than once; sample names must differ")
    return samples


def _open_reader(path: Path, undeclared: tuple[str, ...] = ()) -> Any:
    cyvcf2 = optional("cyvcf2.cyvcf2", extra="genomics", purpose="reading VCF and BCF files")
    cyvcf2.set_htslib_log_level(0)  # htslib prints ids and calls that it cannot read
    try:
        reader = cyvcf2.VCF(str(path))
        for name in undeclared:  # htslib returns their records even if it cannot read them
            reader.add_to_header(f"##contig=<ID={name}>")
        return reader
    except Exception:  # cyvcf2 raises OSError and bare exceptions
        pass
    raise InputError(f"{path} is not a VCF or BCF file that htslib can read")


def _records(reader: Any, path: Path) -> Iterator[Any]:
    """Yield the records, or fail without quoting one."""
    records = iter(reader)
    while True:
        try:
            record = next(records)
        except StopIteration:
            return
        except Exception:
            record = None
        if record is None:
            raise InputError(f"{path} cannot be read to its end: it is truncated or corrupt")
        yield record


def _check_file(path: Path) -> None:
    """Check that a file exists and, if bgzip wrote it, that it is complete."""
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    with path.open("rb") as file:
        start = file.read(18)
        file.seek(max(0, path.stat().st_size - len(_BGZF_END)))
        end = file.read()
    if start[:2] == b"\x1f\x8b" and start[12:14] == b"BC" and end != _BGZF_END:
        raise InputError(f"{path} is truncated: the block that ends a bgzip file is missing")
