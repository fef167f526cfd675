"""PLINK 2 filesets: `.pgen` (genotypes), `.pvar` (variants), `.psam` (people), read by pgenlib."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fsencode
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import InputError
from primo.rows.sources.base import Rows
from primo.rows.sources.genotypes.packed import with_nan
from primo.rows.sources.genotypes.people import People, read_psam
from primo.rows.sources.genotypes.plink import companion
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable, refuse_multiallelic
from primo.rows.sources.unchanged import remember
from primo.variants import Variants

__all__ = ["PgenColumns", "open_pgen"]

#: Bytes of unpacked genotypes held at once. pgenlib unpacks whole variants for any choice of people,
#: so fewer and larger groups of people cost less.
_HELD = 2**26


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PgenColumns(VariantColumns):
    """Genotypes of a `.pgen` as columns: copies of ALT.

    Hard calls, 0, 1 or 2, in int8 (float32 with NaN for a block in which some are missing), or, with
    `dosages`, expected copies in float32 as far as the file has them.
    """

    path: Path  # of the .pgen
    allele_offsets: (
        NDArray[np.uintp] | None
    )  # pgenlib needs them where some variant has many alleles
    stored: int  # variants in the file
    dosages: bool = False

    def people(self) -> People:
        """Read who the rows are."""
        return read_psam(companion(self.path, ".psam"))

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the people `order` in blocks of `rows`.

        Cost: the chosen variants are unpacked once for each 64 MB of unpacked genotypes (16 MB in the
        file).
        """
        refuse_multiallelic(self.variants, self.path)
        step = rows * max(1, _HELD // (rows * len(self.places) * (4 if self.dosages else 1)))
        reader = _open_reader(self.path, self.n, self.stored, self.allele_offsets)
        with closing(reader):
            for start in range(0, len(order), step):
                wanted = np.asarray(order[start : start + step], dtype=np.intp)
                people, back = np.unique(wanted, return_inverse=True)
                held = self._read(reader, people.astype(np.uint32))
                for first in range(0, len(wanted), rows):
                    yield with_nan(held[back[first : first + rows]])

    def _read(self, reader: Any, people: NDArray[np.uint32]) -> NDArray[Any]:
        """Return people × variants, with -9 where the genotype is missing."""
        shape = (len(people), len(self.places))
        try:
            reader.change_sample_subset(people)
            if self.dosages:
                held: NDArray[Any] = np.empty(shape[::-1], dtype=np.float32)
                reader.read_dosages_list(self.places, held)
                return held.T
            held = np.empty(shape, dtype=np.int8)
            reader.read_list(self.places, held, sample_maj=True)
        except RuntimeError:
            failed = True
        else:
            failed = False
        if failed:
            raise InputError(f"{self.path} cannot be read: it is truncated or corrupt")
        return held


def open_pgen(path: str | PathLike[str], *, dosages: bool = False) -> PgenColumns:
    """Open a PLINK 2 fileset by its prefix or by the path of its `.pgen`."""
    pgen = companion(Path(path), ".pgen")
    unchanged = remember(pgen, companion(pgen, ".pvar"), companion(pgen, ".psam"))
    people = len(read_psam(companion(pgen, ".psam")))
    variants, offsets = _read_pvar(companion(pgen, ".pvar"))
    _open_reader(pgen, people, len(variants), offsets).close()
    return PgenColumns(
        path=pgen,
        unchanged=unchanged,
        samples=people,
        variants=variants,
        places=np.arange(len(variants), dtype=np.uint32),
        allele_offsets=offsets,
        stored=len(variants),
        dosages=dosages,
    )


def _pgenlib() -> Any:
    return optional("pgenlib", extra="genomics", purpose="reading .pgen files")


def _open_reader(path: Path, people: int, variants: int, offsets: NDArray[np.uintp] | None) -> Any:
    try:
        return _pgenlib().PgenReader(
            fsencode(path), raw_sample_ct=people, variant_ct=variants, allele_idx_offsets=offsets
        )
    except RuntimeError:
        raise InputError(
            f"{path} cannot be opened: it is not a .pgen file, it is truncated, or it does not hold the "
            f"{people} people of its .psam and the {variants} variants of its .pvar"
        ) from None


def _read_pvar(path: Path) -> tuple[Variants, NDArray[np.uintp] | None]:
    """Return the variants and, where some have several ALT alleles, what pgenlib needs to know."""
    try:
        reader = _pgenlib().PvarReader(fsencode(path))
    except RuntimeError as error:  # about the file's layout; the variants in it are public
        raise InputError(f"cannot read {path}: {_text(error.args[0])}") from None
    table = VariantTable(where=path)
    with closing(reader):
        for i in range(reader.get_variant_ct()):
            ref, *alt = (
                _text(reader.get_allele_code(i, k)) for k in range(reader.get_allele_ct(i))
            )
            table.add(
                _text(reader.get_variant_id(i)),
                _text(reader.get_variant_chrom(i)),
                int(reader.get_variant_pos(i)),
                counted=",".join(alt),
                other=ref,
            )
        many = reader.get_max_allele_ct() > 2
        return table.variants(), reader.get_allele_idx_offsets() if many else None


def _text(value: bytes | str) -> str:
    return value.decode(errors="replace").strip() if isinstance(value, bytes) else str(value)
