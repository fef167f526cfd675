"""Load the compiled loops (`tabular.compiled`) if numba is installed and it is worth the time."""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

from primo._util.jit import load

__all__ = ["LARGE", "compiled_for"]

LARGE = 2**27  # from so many bytes of text on, compiled search saves more time than loading takes


def compiled_for(numbers: int, *, many: int) -> ModuleType | None:
    """Return `tabular.compiled` if numba is installed and worth loading (it takes half a second).

    It is worth loading if `numbers` is at least `many`, or if numba is loaded already (by a large fold).
    """
    return _load() if numbers >= many or "numba" in sys.modules else None


@cache
def _load() -> ModuleType | None:
    return load("primo.rows.sources.tabular.compiled")
