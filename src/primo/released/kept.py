"""Values that take a decomposition are made once for each release, and shared by all that ask.

Coefficients, intervals, R² and tables all start from the same decomposed covariance. The first one to
need it makes it; it stays with the release object and goes when that does. A release that is pickled,
or changed with `dataclasses.replace`, leaves it behind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

from primo.released.moments import KEPT, ReleasedMoments

__all__ = ["hand_over", "kept"]

Value = TypeVar("Value")


def kept(release: ReleasedMoments, key: Hashable, make: Callable[[], Value]) -> Value:
    """Return the value under a key, made on the first call.

    `make` must be a deterministic function of the release and the key. Values are shared: nobody may
    write into their arrays.
    """
    values = release.__dict__.setdefault(KEPT, {})
    if key not in values:
        values[key] = make()
    found: Value = values[key]
    return found


def hand_over(old: ReleasedMoments, new: ReleasedMoments) -> None:
    """Let a release that was written and read again use what was made for the one in memory.

    Only if both hold the same plan and the same numbers to the last bit; otherwise nothing happens.
    """
    same = old.plan == new.plan and (old.projected is None) == (new.projected is None)
    for name in ("covariance", "association", "outcome_moments"):
        same = same and np.array_equal(getattr(old, name), getattr(new, name))
    if same and old.projected is None and old.public_features is None and KEPT in old.__dict__:
        new.__dict__[KEPT] = old.__dict__[KEPT]
