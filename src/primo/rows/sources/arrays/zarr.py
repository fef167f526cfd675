"""Columns from Zarr arrays (formats 2 and 3) and genotypes from VCF Zarr stores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError, PrimoError
from primo.rows.sources.arrays.chunked import (
    check_ids,
    check_names,
    check_table,
    chunk_starts,
    plain,
    plain_type,
    walk,
)
from primo.rows.sources.base import Ids, Rows
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.genotypes.packed import with_nan
from primo.rows.sources.genotypes.people import People
from primo.rows.sources.genotypes.variant_columns import VariantColumns
from primo.rows.sources.genotypes.variant_lists import VariantTable, refuse_multiallelic
from primo.rows.sources.unchanged import Unchanged, remember
from primo.variants import Variants

__all__ = ["VcfZarrColumns", "ZarrColumns", "open_vcf_zarr", "open_zarr"]

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ZarrColumns:
    """A table in a Zarr array; `open_zarr` makes it.

    Cost: every chunk is opened once, and a few times where one row of chunks has more than 64 MB.
    Memory is that of a few such rows. A chunk that is absent holds the fill value, as the format says.
    """

    path: str
    array: str  # inside a group, or ""
    columns_first: bool
    n: int
    names: tuple[str, ...]
    labels: Ids | None
    id_name: str
    unchanged: Unchanged  # its metadata

    def __repr__(self) -> str:
        """Show the schema only."""
        return f"<ZarrColumns n={self.n} columns={len(self.names)} (private)>"

    def ids(self) -> Ids | None:
        """Return the labels that the caller gave for the rows, or None."""
        return self.labels

    @property
    def id_names(self) -> tuple[str, ...] | None:
        """What the caller says that the labels are."""
        return None if self.labels is None else (self.id_name,)

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in blocks of `rows`."""
        return self.unchanged.during(self._walk(order, rows))

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        array = _open(self.path, self.array)

        def read(first: int, stop: int) -> NDArray[Any]:
            if not self.columns_first:
                return plain(array[first:stop])
            out = np.empty((stop - first, len(self.names)), dtype=plain_type(array.dtype))
            for part in _slices(len(self.names), array.chunks[0]):
                out[:, part] = array[part, first:stop].T
            return out

        return walk(
            _checked(self.path, read),
            starts=chunk_starts(self.n, array.chunks[1 if self.columns_first else 0]),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=plain_type(array.dtype),
        )


def open_zarr(
    path: str | os.PathLike[str],
    array: str = "",
    *,
    names: Sequence[str] | None = None,
    ids: Sequence[str] | NDArray[Any] | None = None,
    id_name: str = "",
    columns_first: bool = False,
) -> ZarrColumns:
    """Open a Zarr array of shape (rows, columns); only its metadata are read.

    Parameters
    ----------
    path
        The store: a folder, a `.zip` file, or an address that Zarr knows.
    array
        Name of the array, where the store holds a group of them.
    names
        Names of the columns; the name of the array (or store) and a number if None.
    ids
        Labels of the rows, if there are any; private.
    id_name
        What these labels are, for a ledger that pins what names a person: "IID".
    columns_first
        The array has the shape (columns, rows), as genotypes often have. It is turned in blocks.
    """
    path = os.fspath(path)
    place = f"{path}/{array}" if array else path
    unchanged = _remember(path, array)
    node = _checked(path, _open)(path, array)
    if not hasattr(node, "chunks"):
        names_inside = _checked(path, lambda: sorted(name for name, _ in node.arrays()))()
        inside = ", ".join(names_inside) or "none"
        raise InputError(f"{place} is a group of arrays ({inside}); say which with array=")
    shape = node.shape[::-1] if columns_first else node.shape
    check_table(place, shape, node.dtype)
    n, width = shape
    stem = array.rsplit("/", 1)[-1] or Path(path).name.split(".")[0]
    return ZarrColumns(
        path=path,
        array=array,
        columns_first=columns_first,
        n=n,
        names=check_names(place, names, width, f"{stem}_"),
        labels=check_ids(place, ids, n),
        id_name=id_name,
        unchanged=unchanged,
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class VcfZarrColumns(VariantColumns):
    """Calls of a VCF Zarr store as columns: copies of ALT; `open_vcf_zarr` makes it.

    A row is a person, 0, 1 or 2; with haplotypes it is one of a person's two chromosomes, 0 or 1, and
    rows 2i and 2i + 1 belong to person i. A block is int8 where nothing in it is missing, else float32
    with NaN. A call of which one allele is missing is missing. A haploid call counts twice, as PLINK
    has it; among haplotypes it is an error, as is a heterozygous call without phase.

    Cost: the store has variants first. 64 MB of rows at a time are turned, one chunk of variants after
    the other, so that every chunk is opened about once.
    """

    path: str

    def people(self) -> People:
        """Read who the people are; the store knows no families."""
        iid = _checked(self.path, lambda: _texts(_field(self.path, "sample_id")))()
        return People(where=Path(self.path), iid=canonical_ids(iid), fid=None)

    def _walk(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the stored rows `order`, in blocks of `rows`."""
        refuse_multiallelic(self.variants, Path(self.path))
        calls, phased = _checked(self.path, self._calls)()
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
            _checked(self.path, read),
            starts=chunk_starts(self.n, calls.chunks[1] * strands),
            order=order,
            rows=rows,
            width=len(self.names),
            dtype=np.dtype(np.int8),
        )
        for block in walked:
            yield with_nan(block)

    def _calls(self) -> tuple[Any, Any]:
        """Return the calls, and which of them are phased, where that matters and is known."""
        calls = _field(self.path, "call_genotype", axes=3)
        known = "call_genotype_phased" in _open(self.path)
        if not (known and self.variants.haplotypes):
            return calls, None
        return calls, _field(self.path, "call_genotype_phased", axes=2)

    def _copies(self, calls: NDArray[Any], phased: NDArray[Any] | None) -> NDArray[Any]:
        """Return copies (variants, people, strands), -1 where missing, of calls (…, ploidy)."""
        if calls.max(initial=0) > 1:
            raise InputError(f"{self.path}: some calls are of an allele that their variant lacks")
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
                f"{self.path}: there are haploid calls, which do not make two haplotypes; leave such "
                "chromosomes out with exclude=, or read genotypes"
            )
        if phased is not None and ((first != second) & ~phased.astype(bool)).any():
            raise InputError(
                f"{self.path}: there are unphased calls (0/1 instead of 0|1), so there are no "
                "haplotypes; phase the data first, or read genotypes"
            )
        return calls


_ABSENT = -2  # fills the place of the second allele of a haploid call


def open_vcf_zarr(path: str | os.PathLike[str], *, haplotypes: bool = False) -> VcfZarrColumns:
    """Open a VCF Zarr store, as bio2zarr and sgkit write it; the calls are not read.

    Parameters
    ----------
    path
        The store.
    haplotypes
        Rows are the two chromosomes of each person (of phased calls), instead of people.
    """
    columns = _checked(os.fspath(path), _open_calls)(os.fspath(path), haplotypes)
    columns.people().keys(families=False)  # refuses people who are there twice
    return columns


def _open_calls(path: str, haplotypes: bool) -> VcfZarrColumns:
    unchanged = _remember(path, "call_genotype")
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
    has_ids = "variant_id" in _open(path)
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


def _remember(path: str, inside: str) -> Unchanged:
    """Note what the metadata of a store are: chunks are too many, and who writes them anew writes these.

    A `.zip` is one file and noted whole; of an address on the network nothing is.
    """
    store = Path(path)
    if store.is_file():
        return remember(store)
    folders = dict.fromkeys((store, store / inside))
    names = ("zarr.json", ".zmetadata", ".zgroup", ".zarray")
    found = [folder / name for folder in folders for name in names]
    return remember(*(file.absolute() for file in found if file.is_file()))


def _checked(path: str, read: Callable[..., T]) -> Callable[..., T]:
    """Return `read` with an error of ours where metadata or a chunk cannot be decoded."""

    def checked(*args: Any) -> T:
        try:
            return read(*args)
        except PrimoError:
            raise
        except Exception as error:  # each codec has errors of its own
            failure = type(error).__name__
        raise InputError(
            f"{path} cannot be read ({failure}): its metadata or a chunk is damaged; copy it again"
        )

    return checked


def _open(path: str, inside: str = "") -> Any:
    """Return the Zarr array or group at `path` (and `inside` it), open for reading."""
    try:
        import zarr
    except ImportError:
        raise InputError("reading Zarr needs zarr: pip install 'primo-dp[zarr]'") from None
    if "://" not in path and not Path(path).exists():
        raise InputError(f"there is no Zarr store {path}")
    try:
        return zarr.open(store=path, path=inside, mode="r")
    except Exception as error:  # stores and codecs have errors of their own
        failure = type(error).__name__
    place = f"array {inside!r} in {path}" if inside else f"Zarr array or group at {path}"
    raise InputError(f"there is no {place}, or its metadata are damaged ({failure})")


def _field(path: str, name: str, *, axes: int = 1) -> Any:
    """Return an array of a VCF Zarr store, or say what is missing."""
    group = _open(path)
    if hasattr(group, "chunks") or name not in group or not hasattr(group[name], "chunks"):
        raise InputError(
            f"{path} has no array {name!r}, which a VCF Zarr store needs; convert a VCF with "
            "bio2zarr (vcf2zarr convert)"
        )
    if group[name].ndim != axes:
        raise InputError(f"{path}: {name} has {group[name].ndim} axes; VCF Zarr has {axes} there")
    return group[name]


def _texts(array: Any) -> list[Any]:
    """Return strings as lists: one long allele would widen a whole array of them."""
    values = array[:]
    texts: list[Any] = (np.char.decode(values) if values.dtype.kind == "S" else values).tolist()
    return texts


def _slices(length: int, step: int) -> Iterator[slice]:
    for start in range(0, length, step):
        yield slice(start, start + step)
