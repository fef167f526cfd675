"""Compiled loops (numba): when they can be used, and how they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

__all__ = ["cached", "compiled", "load"]

Function = TypeVar("Function", bound=Callable[..., Any])


def load(module: str) -> ModuleType | None:
    """Return a module of compiled loops, or None if numba is absent or its compiler is disabled."""
    try:
        if import_module("numba").config.DISABLE_JIT:  # the loops only work when compiled
            return None
        return import_module(module)
    except ImportError:  # no numba, or one that does not support this NumPy
        return None


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call; it releases the GIL, so other threads run meanwhile.

    Without `fastmath`, so that it rounds as NumPy does.
    """
    return import_module("numba").njit(nogil=True, **options)  # type: ignore[no-any-return]


def cached(function: Function) -> Function:
    """Compile, and cache the result on disk for later processes if a folder can be written to."""
    try:
        return compiled(cache=True)(function)
    except RuntimeError:
        return compiled()(function)
