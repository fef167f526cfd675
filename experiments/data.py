"""Real data of `../shared/data`, where it is present, and the paper's outcome model on any features."""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.rows.sources.base import Block

__all__ = [
    "SHARED",
    "StreamedOutcomes",
    "kg_haplotypes",
    "mnist_digits",
    "mnist_images",
    "soybean_lines",
]

Matrix = NDArray[np.float64]

#: Beside the checkout for developers and CI; users do not have it.
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def kg_haplotypes() -> NDArray[np.int8]:
    """1000 Genomes phase 3: 5008 haplotypes × SNPs with minor allele frequency at least 5 %."""
    with np.load(SHARED / "kg_haplotypes_5008" / "kg_hap5008.npz") as data:
        common = data["maf"] >= 0.05
        packed = data["packed"][common]
    return np.unpackbits(packed, axis=1)[:, :5008].T.astype(np.int8)


def soybean_lines() -> tuple[NDArray[np.int8], Matrix]:
    """SoyNAM: genotypes of soybean lines and 69 measured outcomes, standardised, NaN if missing."""
    with np.load(SHARED / "soynam" / "soynam_multi.npz") as data:
        genotypes = data["X"].astype(np.int8)
        outcomes = data["Y"][:, data["well_covered"]].astype(np.float64)
    outcomes -= np.nanmean(outcomes, axis=0)
    return genotypes, outcomes / np.nanstd(outcomes, axis=0)


def mnist_digits(n: int, rng: np.random.Generator) -> Matrix:
    """Return n random training digits as rows of 784 pixels in [0, 1]."""
    pixels = mnist_images(SHARED / "mnist")
    return pixels[rng.choice(len(pixels), n, replace=False)] / 255.0


@lru_cache(maxsize=1)
def mnist_images(folder: Path) -> NDArray[np.uint8]:
    """Return the training images of a folder of IDX files, compressed or not, (60000, 784)."""
    names = ("train-images-idx3-ubyte", "train-images.idx3-ubyte")
    paths = [folder / f"{name}{suffix}" for name in names for suffix in (".gz", "")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise InputError(f"{folder} has no {names[0]} or {names[0]}.gz")
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        content = file.read()
    magic, *shape = struct.unpack(">4I", content[:16].ljust(16, b"\0"))
    size = math.prod(shape)
    if magic != _IDX_BYTES_3D or size == 0 or len(content) != 16 + size:
        raise InputError(f"{path} is not a whole IDX file of images")
    return np.frombuffer(content, np.uint8, offset=16).reshape(shape[0], -1)


_IDX_BYTES_3D = 0x0803  # unsigned bytes along three axes


@dataclass(frozen=True, kw_only=True)
class StreamedOutcomes:
    """A `Source` that draws y = θ·x + N(0, 1) as it is read: outcomes too wide to be held at once.

    Reading it with the same block size gives the same rows again.
    """

    features: Matrix  # (n, d)
    theta: Matrix  # (d, l)
    seed: int
    feature_names: tuple[str, ...] = ()
    outcome_names: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.features)

    def ids(self) -> None:
        """Return None: rows have no ids."""
        return

    def part(self, start: int, stop: int) -> Self:
        """Return the rows `start` to `stop`; their outcomes are drawn again."""
        return replace(self, features=self.features[start:stop], seed=self.seed + start)

    def blocks(self, rows: int) -> Iterator[Block]:
        """Draw every row once, at most `rows` at a time."""
        rng = np.random.default_rng(self.seed)
        for start in range(0, self.n, rows):
            features = self.features[start : start + rows]
            outcomes = features @ self.theta
            outcomes += rng.standard_normal(outcomes.shape)
            yield Block(features=features, outcomes=outcomes)
