"""Whether compiled loops (`tabular.compiled`) are there and worth loading."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

from primo._util.jit import load

__all__ = ["LARGE", "compiled_for"]

LARGE = 2**27  # bytes of text, from which looking through them saves what it takes to load


def compiled_for(numbers: int, *, many: int) -> ModuleType | None:
    """Return `tabular.compiled` if numba is there and worth loading (it takes half a second).

    That is where `numbers` are `many`, or where somebody has loaded it already, as a large fold does.
    """
    return _load() if numbers >= many or "numba" in sys.modules else None


@cache
def _load() -> ModuleType | None:
    return load("primo.rows.sources.tabular.compiled")
