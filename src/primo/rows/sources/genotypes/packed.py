"""Genotypes packed four to a byte, one variant after the other, read as rows of people.

The layout is that of a PLINK 1 `.bed`: two bits per person, from the lowest up, each variant padded to
whole bytes. Such a file is transposed in *packed* form, which moves a quarter of the bytes, and a
block is unpacked with a few byte-wide operations only when it is needed.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.jit import load
from primo.errors import InputError
from primo.rows.sources.base import Rows

__all__ = ["Packed", "pack", "with_nan"]

Bytes = NDArray[np.uint8]

#: Packed bytes held at once: 64 MB are 256 million genotypes. With very many variants it is up to four
#: times as much, so that of each variant at least `_STRETCH` bytes are read at a time.
_HELD = 2**26
_STRETCH = 2**11

#: Bytes read at once for a few variants, before they are transposed.
_READ = 2**24

#: What two bits say, as in a .bed: 0, 2 and 3 are two, one and no copies; 1 is missing.
_CODE = np.array([3, 2, 0], dtype=np.uint8)  # of 0, 1, 2 copies
_MISSING = 1


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Packed:
    """An open file of packed variants, `width` bytes each, after `offset` bytes of something else."""

    file: io.RawIOBase | io.BufferedRandom
    where: str  # names the file in messages
    offset: int
    width: int
    places: NDArray[np.intp]  # the stored variants that are the columns

    def blocks(self, order: Rows, rows: int) -> Iterator[NDArray[Any]]:
        """Yield the people `order` in blocks of `rows`: int8, or float32 with NaN if some are missing.

        Cost: if `order` follows the file, every byte of it is read once. In any other order, the
        packed people that are held at once, 64 to 256 MB, read the part of the file between the first
        and the last of them.
        """
        unpack = _unpack_for(len(order) * len(self.places))
        width = max(1, len(self.places))
        held = min(max(_HELD, _STRETCH * width), 4 * _HELD)
        step = rows * max(1, held // (-(-rows // 4) * width))
        for start in range(0, len(order), step):
            people = order[start : start + step]
            transposed, skip = self._gather(people)
            for first in range(skip, skip + len(people), rows):
                yield unpack(transposed, first, min(first + rows, skip + len(people)))

    def _gather(self, people: Rows) -> tuple[Bytes, int]:
        """Return packed people × variants, and how many people in the first byte to skip."""
        if isinstance(people, range) and people.step == 1:
            first, last = people.start, people.stop - 1
        else:
            people = np.asarray(people, dtype=np.intp)
            first, last = int(people.min()), int(people.max())
            if len(people) == last - first + 1 and (np.diff(people) == 1).all():
                people = range(first, last + 1)
        low, high = first // 4, last // 4 + 1
        length = high - low if isinstance(people, range) else -(-len(people) // 4)
        transposed = np.empty((length, len(self.places)), dtype=np.uint8)
        step = max(1, _READ // (high - low))
        for start in range(0, len(self.places), step):
            part = self._read(self.places[start : start + step], low, high)
            if not isinstance(people, range):
                part = _repack(part, people - 4 * low)
            transposed[:, start : start + step] = part.T
        return transposed, first % 4 if isinstance(people, range) else 0

    def _read(self, places: NDArray[np.intp], low: int, high: int) -> Bytes:
        """Return the bytes `low` to `high` of some variants."""
        part = np.empty((len(places), high - low), dtype=np.uint8)
        read = self._read_at
        for row, offset in zip(
            part, (self.offset + low + places * self.width).tolist(), strict=True
        ):
            if read(row, offset) != high - low:
                raise InputError(f"{self.where} ended early: it is truncated or was changed")
        return part

    @property
    def _read_at(self) -> Callable[[Bytes, int], int | None]:
        """Return a function that fills an array from a place of the file and says how much it read."""
        file = self.file
        if isinstance(file, io.FileIO) and hasattr(os, "preadv"):  # one call, and not two
            number = file.fileno()
            return lambda row, offset: os.preadv(number, [row.data], offset)

        def read(row: Bytes, offset: int) -> int | None:
            file.seek(offset)
            return file.readinto(row.data)

        return read


def pack(copies: NDArray[np.integer[Any]], missing: NDArray[np.bool_]) -> Bytes:
    """Return the packed bytes of one variant: 0, 1 or 2 copies, or missing, of each person."""
    codes = np.zeros(-(-len(copies) // 4) * 4, dtype=np.uint8)
    codes[: len(copies)] = np.where(missing, _MISSING, _CODE[np.where(missing, 0, copies)])
    packed: Bytes = _join(codes[None, :])[0]
    return packed


def with_nan(values: NDArray[Any]) -> NDArray[Any]:
    """Return the values, in float32 with NaN for negative (missing) ones where there are any."""
    missing = values < 0
    if not missing.any():
        return values
    floats = values.astype(np.float32)
    floats[missing] = np.nan
    return floats


def _repack(part: Bytes, people: NDArray[np.intp]) -> Bytes:
    """Return variants × people in another order, packed again."""
    codes = np.zeros((len(part), -(-len(people) // 4) * 4), dtype=np.uint8)
    np.take(part, people >> 2, axis=1, out=codes[:, : len(people)], mode="clip")
    codes[:, : len(people)] >>= (2 * (people & 3)).astype(np.uint8)
    codes &= 3
    return _join(codes)


def _join(codes: Bytes) -> Bytes:
    """Return four codes in each byte, the first one lowest."""
    joined = codes[:, 0::4].copy()
    for place in (1, 2, 3):
        joined |= codes[:, place::4] << np.uint8(2 * place)
    return joined


_MANY = 2**27  # genotypes, from which compiled unpacking saves more time than loading takes


def _unpack_for(genotypes: int) -> Callable[[Bytes, int, int], NDArray[Any]]:
    """Return `_unpack`, or the same compiled if numba is there and loaded or worth it."""
    compiled = _compiled() if genotypes >= _MANY or "numba" in sys.modules else None
    if compiled is None:
        return _unpack
    return lambda transposed, first, stop: compiled.unpack(transposed, first, stop - first)


@cache
def _compiled() -> ModuleType | None:
    return load("primo.rows.sources.genotypes.compiled")


def _unpack(transposed: Bytes, first: int, stop: int) -> NDArray[Any]:
    """Return the copies that the people `first` to `stop` carry."""
    packed = transposed[first // 4 : -(-stop // 4)]
    # Bytes with a code 01 have a low bit without its high bit.
    some_missing = bool((packed & ~(packed >> 1) & 0x55).any())
    shape = len(packed), 4, packed.shape[1]
    copies = np.empty(shape, dtype=np.float32 if some_missing else np.int8)
    for place in range(4):
        code = packed >> (2 * place) & 3
        # 0, 2, 3 become 2, 1, 0; the missing 1 becomes 1, and then NaN.
        np.subtract(2, code - (code >> 1), out=copies[:, place], casting="unsafe")
        if some_missing:
            np.copyto(copies[:, place], np.nan, where=code == _MISSING)
    rows = copies.reshape(-1, packed.shape[1])[first % 4 :][: stop - first]
    # The missing one may have been a neighbour in the first or last byte.
    alone = some_missing and (first % 4 or stop % 4) and not np.isnan(rows).any()
    return rows.astype(np.int8) if alone else rows
