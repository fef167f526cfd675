"""Many SNPs of many rows as bits, in memory and in a cache on disk."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CACHE", "PackedSnps", "Tell", "cached", "tell_stderr"]

#: Where simulated and converted data are kept between runs; git ignores it.
CACHE = Path(__file__).resolve().parents[2] / "build" / "figures-data"

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, eq=False)
class PackedSnps:
    """SNPs of n rows; a value is the sum of its bits over the planes.

    Haplotypes (0 or 1) have one plane, genotypes (0, 1 or 2) have two.
    """

    n: int
    planes: NDArray[np.uint8]  # (copies, snps, ⌈n/8⌉)
    contig: NDArray[np.int32]  # (snps,) numbers of the chromosomes
    position: NDArray[np.int64]  # (snps,) base pairs

    @property
    def snps(self) -> int:
        """Number of SNPs."""
        return int(self.planes.shape[1])

    @property
    def copies(self) -> int:
        """Largest value: 1 for haplotypes, 2 for genotypes."""
        return len(self.planes)

    def columns(self, chosen: NDArray[np.integer[Any]] | slice) -> NDArray[np.int8]:
        """Return some SNPs of all rows, (n, chosen)."""
        bits = np.unpackbits(self.planes[:, chosen], axis=2, count=self.n)
        return np.ascontiguousarray(bits.sum(axis=0, dtype=np.int8).T)

    def frequencies(self) -> NDArray[np.float64]:
        """Return the frequency of the counted allele of every SNP, (snps,)."""
        counts = np.bitwise_count(self.planes).sum(axis=(0, 2), dtype=np.int64)
        return np.asarray(counts / (self.n * self.copies))


def tell_stderr(message: str) -> None:
    """Print a message about a step that takes a while."""
    print(message, file=sys.stderr, flush=True)


def cached(
    name: str, key: dict[str, Any], make: Callable[[], PackedSnps], *, cache: Path
) -> PackedSnps:
    """Return the result of `make`, from the cache if an earlier run had the same key.

    The key is part of the file's name, so that what other parameters or versions made is never read;
    the file appears whole or not at all.
    """
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    path = cache / f"{name}-{digest}.npz"
    if not path.exists():
        _save(make(), path)
    return _load(path)


def _save(snps: PackedSnps, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(descriptor, "wb") as file:
            np.savez(file, n=snps.n, planes=snps.planes, contig=snps.contig, position=snps.position)
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


@functools.lru_cache(maxsize=4)
def _load(path: Path) -> PackedSnps:
    with np.load(path) as data:
        return PackedSnps(
            n=int(data["n"]),
            planes=data["planes"],
            contig=data["contig"],
            position=data["position"],
        )
