"""Dosages that a file stores variant by variant, read as rows of people by way of a temporary file.

The temporary file is inside the trust boundary, as that of `sources.spill`: it never has a name, only
the owner may read it, and it disappears with the process.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Rows

__all__ = ["Dosage", "spooled_blocks"]

Dosage = NDArray[np.float32]

#: Bytes of dosages held at once, as rows.
_HELD = 2**26


def spooled_blocks(
    columns: Iterable[tuple[int, Dosage]],
    order: Rows,
    rows: int,
    *,
    n: int,
    width: int,
    where: Path,
) -> Iterator[Dosage]:
    """Yield the rows `order` in blocks of `rows`, of (slot, dosages of all n people) in any order.

    Cost: `columns` is read once, into a temporary file of 4·n·width bytes; 64 MB and a block of memory.
    """
    with tempfile.TemporaryFile() as file:
        try:
            for slot, dosage in columns:
                file.seek(4 * n * slot)
                file.write(np.ascontiguousarray(dosage, dtype="<f4").data)
            file.flush()
        except OSError as error:
            raise InputError(
                f"cannot write the dosages of {where} to a temporary file in "
                f"{tempfile.gettempdir()}: {error.strerror}; set TMPDIR to a folder with room for "
                f"{4 * n * width / 1e9:.2f} GB"
            ) from None
        step = rows * max(1, _HELD // (4 * rows * max(1, width)))
        for start in range(0, len(order), step):
            people = np.asarray(order[start : start + step], dtype=np.intp)
            held = _gather(file, people, n, width, where)
            for first in range(0, len(people), rows):
                yield held[first : first + rows]


def _gather(file: IO[Any], people: NDArray[np.intp], n: int, width: int, where: Path) -> Dosage:
    """Return people × variants."""
    low, high = int(people.min()), int(people.max()) + 1
    held = np.empty((len(people), width), dtype=np.float32)
    part = np.empty(high - low, dtype="<f4")
    for slot in range(width):
        file.seek(4 * (n * slot + low))
        if file.readinto(part.data) != part.nbytes:  # type: ignore[attr-defined]
            raise InputError(f"{where} was changed while it was being read")
        held[:, slot] = part[people - low]
    return held
