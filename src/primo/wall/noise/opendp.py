"""The other backend: discrete Gaussian noise from OpenDP's sampler."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.optional import optional
from primo.errors import InputError
from primo.wall.noise.bits import CHUNK, RandomBits

__all__ = ["add_opendp", "check_opendp"]


def check_opendp(*, seeded: bool) -> None:
    """Refuse a seed, which OpenDP does not take, and a machine without OpenDP."""
    if seeded:
        raise InputError(
            "OpenDP cannot be seeded; use fresh random bits, or backend='primo' with a seed"
        )
    _prelude()


def add_opendp(
    flat: NDArray[np.int64], *, variance_bits: int, bits: RandomBits, label: str
) -> None:
    """Add noise that OpenDP draws with its own generator; `bits` only checks that the label is new."""
    check_opendp(seeded=bits.reproducible)
    if bits.repeatable:
        raise InputError(
            "OpenDP draws its own noise, so a resumed release would draw a second one; use "
            "backend='primo' for a release that can be resumed"
        )
    dp = _prelude()
    bits.claim(label)
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    unit_bits, odd = divmod(variance_bits, 2)
    sigma = math.ldexp(math.sqrt(1 + odd), unit_bits)  # float64's √2 is above √2: never less noise
    measure: Any = dp.m.make_gaussian(*space, scale=sigma)
    for start in range(0, flat.size, CHUNK):
        part = flat[start : start + CHUNK]
        part += np.array(measure([0] * part.size), dtype=np.int64)


def _prelude() -> Any:
    return optional(
        "opendp.prelude",
        extra="opendp",
        purpose="backend 'opendp'",
        instead="use backend 'primo'",
    )
