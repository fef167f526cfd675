"""Random bits from a user's `random_state`: fresh without a seed; with one, known, with a warning."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from primo.errors import Argument, InputError, ReproducibleNoiseWarning
from primo.wall.noise.bits import RandomBits

__all__ = ["random_bits"]


def random_bits(random_state: Any) -> RandomBits:
    """Return fresh bits; if a seed is given, known bits, with a warning."""
    if random_state is None:
        return RandomBits.fresh()
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31))
    if not isinstance(random_state, int | np.integer) or isinstance(random_state, bool):
        raise InputError(
            Argument("random_state", random_state),
            " must be an integer, a numpy RandomState or None",
        )
    warnings.warn(
        ReproducibleNoiseWarning(
            Argument("random_state"),
            " makes the noise reproducible: the release is not private against anyone who "
            "knows or guesses it, and is marked as not for publication",
            remedy="Leave it out for real data",
        ),
        stacklevel=3,
    )
    return RandomBits.seeded(int(random_state))
