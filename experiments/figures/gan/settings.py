"""What a GAN's weights are a function of, besides the rows."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["FULL", "QUICK", "Settings", "checked", "digest", "split"]

#: Raise it when the code makes other weights of the same settings.
VERSION = 2


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Sizes of the two networks and of their training."""

    snps: int | None = None  # learn the first ones only
    window: int = 32  # SNPs that share their hidden units
    local: int = 8  # latents of a window, read by its neighbours too: LD decays with distance
    shared: int = 4  # latents that all windows read: populations
    hidden: int = 64  # units of each of two layers, per window
    patch: int = 128  # SNPs that one critic sees: neighbours, or spread over the whole row
    stride: int = 64  # from one patch of neighbours to the next
    critic_hidden: tuple[int, int] = (64, 32)
    batch: int = 64
    critic_steps: int = 2  # per step of the generator
    steps: int = 900
    generator_rate: float = 1e-2
    critic_rate: float = 4e-3
    penalty: float = 10.0  # of a critic's gradient that is not of length 1
    temperature: float = 0.7  # of the relaxed coin flips, in the backward pass only
    average: float = 0.995  # of the generator's weights over steps
    threads: int = (
        1  # fixed: another number of threads rounds differently, and training amplifies that
    )
    seed: int = 6


FULL = Settings()
QUICK = Settings(snps=600, steps=300)


def digest(haplotypes: NDArray[np.int8], settings: Settings, engine: str) -> str:
    """Return the name of a checkpoint: a digest of the rows and of all that affects the weights."""
    key = asdict(settings) | {"version": VERSION, "torch": engine, "shape": haplotypes.shape}
    sha = hashlib.sha256(json.dumps(key, sort_keys=True).encode())
    sha.update(np.packbits(haplotypes.astype(bool), axis=None).tobytes())
    return sha.hexdigest()[:16]


def checked(haplotypes: NDArray[np.int8], settings: Settings) -> NDArray[np.int8]:
    """Return the SNPs that are learned, or raise ValueError if they are not haplotypes."""
    if haplotypes.ndim != 2 or len(haplotypes) < 50 or haplotypes.shape[1] < 2:
        raise ValueError(
            f"a GAN needs a table of 50 rows and 2 SNPs at least, but got shape {haplotypes.shape}"
        )
    chosen = haplotypes[:, : settings.snps]
    least, most = int(chosen.min()), int(chosen.max())
    if least < 0 or most > 1:
        raise ValueError(
            f"haplotypes are 0 or 1, but these range from {least} to {most}; "
            "genotypes (0, 1, 2) must be phased first"
        )
    return chosen


def split(rows: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows to learn from and the fifth that is held out: always the same ones."""
    order = np.random.default_rng(rows).permutation(rows)
    kept = rows - rows // 5
    return np.sort(order[:kept]), np.sort(order[kept:])
