"""BGEN files (layout 2, as version 1.2 and 1.3 have it), read by the package bgen: expected copies.

Who the people are is in the file itself, or in a `.sample` file beside it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import Argument, InputError, Message
from primo.rows.sources.base import Rows
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.genotypes.people import People, read_sample
from primo.rows.sources.genotypes.spooled import Dosage, spooled_blocks
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable, refuse_multiallelic
from primo.rows.sources.unchanged import remember

__all__ = ["BgenColumns", "open_bgen"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class BgenColumns(VariantColumns):
    """Dosages of a BGEN as columns: expected copies of the second allele, 0 to 2, in float32.

    A missing genotype is NaN. Where a person has one copy of a chromosome, the expected copy counts
    twice, as PLINK stores haploid calls; other numbers of copies than one and two are an error.
    """

    path: Path
    records: int  # in the file
    sample: Path | None  # the .sample file that names the people

    def people(self) -> People:
        """Read who the people are: from the `.sample` file, or from the file itself."""
        with _reader(self.path) as reader:
            named = _named(reader, self.path)
        if self.sample is None:
            assert named is not None  # `open_bgen` checked it
            return People(where=self.path, iid=canonical_ids(named), fid=None)
        people = read_sample(self.sample)
        own = None if named is None else canonical_ids(named)
        spellings = [people.iid, people.joined, people.fid]
        if len(people) != self.samples or (
            own is not None
            and not any(ids is not None and np.array_equal(own, ids) for ids in spellings)
        ):
            raise _other_people(self.path, self.sample)
        return people

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the people `order` in blocks of `rows`.

        Cost: every pass decodes the chosen variants once, into a temporary file without a name of 4
        bytes for each dosage; for many passes (a cluster) convert the file to `.pgen` first.
        """
        refuse_multiallelic(self.variants, self.path)
        return spooled_blocks(
            self._columns(), order, rows, n=self.n, width=len(self.places), where=self.path
        )

    def _columns(self) -> Iterator[tuple[int, Dosage]]:
        """Yield the dosages of the chosen variants, each with its place among the columns."""
        slots = {place: slot for slot, place in enumerate(self.places.tolist())}
        with _reader(self.path) as reader:
            for number, record in enumerate(_records(reader, self.path)):
                if number in slots:
                    yield slots[number], self._dosage(record, self.variants.names[slots[number]])

    def _dosage(self, record: Any, name: str) -> Dosage:
        ploidy = self._decoded(record, "ploidy")
        if not ((ploidy == 1) | (ploidy == 2)).all():
            raise InputError(
                f"{self.path}: variant {name} has genotypes of neither one nor two copies",
                remedy=Message.of("leave such variants out with ", Argument("exclude")),
            )
        dosage = self._decoded(record, "alt_dosage")
        doubled: Dosage = np.where(ploidy == 1, 2 * dosage, dosage).astype(np.float32)
        return doubled

    def _decoded(self, record: Any, what: str) -> NDArray[Any]:
        try:
            with _silence():
                found: NDArray[Any] | None = getattr(record, what)
        except Exception:  # the package raises ValueError and others, which may quote the file
            found = None
        if found is None:
            raise InputError(f"{self.path} cannot be read: it is truncated or corrupt")
        return found


def open_bgen(
    path: str | PathLike[str], *, sample: str | PathLike[str] | None = None
) -> BgenColumns:
    """Open a BGEN file, with the `.sample` file that names its people.

    Without `sample`, the ids in the file are used, or the `.sample` file of the same name beside it.
    Cost: a pass over the descriptions of the variants; genotypes are not decoded.
    """
    place = Path(path).absolute()  # a worker may have another working folder
    if not place.is_file():
        raise InputError(f"there is no file {place}")
    listed = None if sample is None else Path(sample).absolute()
    beside = place.with_suffix(".sample")
    with _reader(place) as reader:
        header = reader.header
        if header.layout != 2:
            raise InputError(
                f"{place} is a BGEN file of version 1.1 or older; rewrite it with "
                "plink2 --bgen ... --export bgen-1.2"
            )
        if listed is None and not header.has_sample_ids:
            if not beside.is_file():
                raise InputError(
                    f"{place} does not name its people, and there is no file {beside}; give the ",
                    Argument("sample"),
                    " file that goes with it",
                )
            listed = beside
        people, table = int(header.nsamples), VariantTable(where=place)
        unchanged = remember(place, *([] if listed is None else [listed]))
        for record in _records(reader, place):
            table.add(*_fixed(record, place))
    if listed is not None and len(read_sample(listed)) != people:
        raise _other_people(place, listed)
    variants = table.variants()
    return BgenColumns(
        path=place,
        unchanged=unchanged,
        samples=people,
        variants=variants,
        places=np.arange(len(variants), dtype=np.intp),
        records=len(variants),
        sample=listed,
    )


def _other_people(path: Path, sample: Path) -> InputError:
    """Return one error for another number of people, other people and another order."""
    return InputError(
        f"{sample} does not list the people of {path} in the order of that file",
        argument="sample",
        remedy="Give the .sample file that was written with it",
    )


@contextmanager
def _reader(path: Path) -> Iterator[Any]:
    """Open the file by its descriptor, so that the package reads no index beside it."""
    bgen = optional("bgen", extra="genomics", purpose="reading BGEN files")
    with path.open("rb") as file:
        try:
            with _silence():
                reader = bgen.BgenReader(f"/dev/fd/{file.fileno()}", delay_parsing=True)
                reader.header  # noqa: B018 (fails for a file that is none)
        except Exception:
            reader = None
        if reader is None:
            raise InputError(f"{path} is not a BGEN file, or its header is broken")
        try:
            yield reader
        finally:
            reader.close()


def _named(reader: Any, path: Path) -> tuple[str, ...] | None:
    """Return the ids in the file, or None where it has none; a broken one is not quoted."""
    if not reader.header.has_sample_ids:
        return None
    try:
        named = tuple(name.strip() for name in reader.samples)
    except Exception:  # UnicodeDecodeError, and what the package raises
        named = ("",)
    if not all(named):
        raise InputError(f"{path} is not a BGEN file, or its header is broken")
    return named


def _records(reader: Any, path: Path) -> Iterator[Any]:
    """Yield as many variants as the header states, or fail without quoting the file."""
    for _ in range(int(reader.header.nvariants)):
        try:
            record = next(reader)
        except Exception:  # also StopIteration: the file is shorter than its header states
            record = None
        if record is None:
            raise InputError(f"{path} cannot be read to its end: it is truncated or corrupt")
        yield record


def _fixed(record: Any, path: Path) -> tuple[str, str, int, str, str]:
    """Return id, chromosome, position, counted and other allele of a variant."""
    try:
        name = record.rsid or record.varid
        first, *others = record.alleles
        return name or ".", record.chrom or "0", int(record.pos), ",".join(others) or ".", first
    except (UnicodeDecodeError, ValueError):
        pass
    raise InputError(f"{path} cannot be read: it is corrupt")


class _Quiet(logging.Filter):
    """Drops what is logged by threads that decode genotypes: the package logs about values it finds."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        return record.thread not in self.threads


_QUIET = _Quiet()


@contextmanager
def _silence() -> Iterator[None]:
    logging.getLogger().addFilter(_QUIET)  # adding it twice changes nothing
    _QUIET.threads.add(threading.get_ident())
    try:
        yield
    finally:
        _QUIET.threads.discard(threading.get_ident())
