"""The exact discrete Gaussian, from cryptographic bits; the only package that draws noise.

The law, and the proof that the draws have it exactly, are at the top of `primo.wall.noise.sampler`; the
bits and what a seed means are in `primo.wall.noise.bits`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.wall.noise.bits import CHUNK, RandomBits, integer
from primo.wall.noise.opendp import add_opendp, check_opendp
from primo.wall.noise.sampler import Scratch, sampler_for
from primo.wall.noise.seed import random_bits

__all__ = [
    "BACKENDS",
    "CHUNK",
    "MAX_VARIANCE_BITS",
    "RandomBits",
    "add_noise",
    "check_backend",
    "discrete_gaussian",
    "random_bits",
]

BACKENDS = ("primo", "opendp")
MAX_VARIANCE_BITS = 116  # keeps 32σ inside int64


def check_backend(backend: str, *, seeded: bool) -> None:
    """Refuse a backend that cannot be used, before anything is read or charged."""
    if backend not in BACKENDS:
        raise InputError(f"unknown noise backend {backend!r}; choose one of {', '.join(BACKENDS)}")
    if backend == "opendp":
        check_opendp(seeded=seeded)


def discrete_gaussian(
    size: int,
    *,
    variance_bits: int,
    bits: RandomBits,
    label: str,
    backend: str = "primo",
) -> NDArray[np.int64]:
    """Draw `size` independent values of the discrete Gaussian.

    The draws are those that `add_noise` would add to zeros; see there for scale, guarantee and cost.
    """
    if (size := integer("size", size)) < 0:
        raise InputError(f"size must not be negative; got {size}")
    values = np.zeros(size, dtype=np.int64)
    add_noise(values, variance_bits=variance_bits, bits=bits, label=label, backend=backend)
    return values


def add_noise(
    values: NDArray[np.int64],
    *,
    variance_bits: int,
    bits: RandomBits,
    label: str,
    backend: str = "primo",
    threads: int = 1,
) -> None:
    """Add discrete Gaussian noise to an array, in place.

    Parameters
    ----------
    values
        C-contiguous int64 array of any shape. After an interrupted call some entries have noise
        and some have not: throw the array away.
    variance_bits
        The scale: σ² = 2**variance_bits, 0 to 116. Off-diagonal entries have half the variance of the
        diagonal, so odd values occur.
    bits
        The key of this release.
    label
        Names the noise; each label can be drawn once from `bits`.
    backend
        "primo", or "opendp" for OpenDP's sampler: hundreds of times slower, never seeded.
    threads
        Number of threads; the result does not depend on it. OpenDP's sampler uses one.

    Notes
    -----
    Guarantee: the noise has exactly the law stated in `primo.wall.noise.sampler` if the bits are
    uniform. Sums wrap modulo 2⁶⁴. That is post-processing of the exact sum, so it can spoil numbers
    but not privacy, whereas a test for overflow would leak something about the data. The plan leaves
    room: |value| + 32σ < 2⁶³ (noise beyond 32σ has probability 2⁻⁷³⁸).
    Cost: O(size), and a few MB for each worker.
    """
    variance_bits = integer("variance_bits", variance_bits)
    if not 0 <= variance_bits <= MAX_VARIANCE_BITS:
        raise InputError(
            f"variance_bits must lie in 0..{MAX_VARIANCE_BITS} so that noise fits int64; "
            f"got {variance_bits}; use a coarser output step"
        )
    threads = integer("threads", threads)
    if threads < 1:
        raise InputError(f"threads must be at least 1; got {threads}")
    check_backend(backend, seeded=bits.reproducible)
    if not isinstance(values, np.ndarray) or values.dtype != np.int64:
        raise InputError("noise is added in place to an int64 array; convert the values first")
    if not (values.flags.c_contiguous and values.flags.writeable):
        raise InputError("noise is added in place: the array must be C-contiguous and writeable")
    flat = values.reshape(-1)
    if backend == "opendp":
        add_opendp(flat, variance_bits=variance_bits, bits=bits, label=label)
        return
    bits.claim(label)
    sampler = sampler_for(variance_bits)
    chunks = -(-flat.size // CHUNK)

    def run(first: int) -> None:
        scratch = Scratch(min(CHUNK, flat.size))
        for chunk in range(first, chunks, threads):
            part = flat[chunk * CHUNK : (chunk + 1) * CHUNK]
            noise = scratch.noise[: part.size]
            sampler.fill(noise, bits.stream(label, chunk), scratch)
            part += noise

    if threads == 1 or chunks <= 1:
        for first in range(min(threads, chunks)):
            run(first)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(run, range(min(threads, chunks))))
