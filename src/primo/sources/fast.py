"""Whether compiled loops (`primo.sources.compiled`) are there and worth loading."""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from types import ModuleType

__all__ = ["compiled_for"]


def compiled_for(numbers: int, *, many: int) -> ModuleType | None:
    """Return `primo.sources.compiled` if numba is there and worth loading (it takes half a second).

    That is where `numbers` are `many`, or where somebody has loaded it already, as a large fold does.
    """
    return _load() if numbers >= many or "numba" in sys.modules else None


@cache
def _load() -> ModuleType | None:
    try:
        if import_module("numba").config.DISABLE_JIT:  # the loops work compiled only
            return None
        return import_module("primo.sources.compiled")
    except ImportError:  # no numba, or one that does not go with this NumPy
        return None
