"""Compiled loops (numba): when they can be used, and how they are compiled."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any, TypeVar

__all__ = ["compiled", "kept", "load"]

Function = TypeVar("Function", bound=Callable[..., Any])


def load(module: str) -> ModuleType | None:
    """Return a module of compiled loops, or None where numba is not there or told not to compile."""
    try:
        if import_module("numba").config.DISABLE_JIT:  # the loops work compiled only
            return None
        return import_module(module)
    except ImportError:  # no numba, or one that does not go with this NumPy
        return None


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Compile a function on its first call; other threads run meanwhile and during it.

    Without `fastmath`, so that it rounds as NumPy does.
    """
    return import_module("numba").njit(nogil=True, **options)  # type: ignore[no-any-return]


def kept(function: Function) -> Function:
    """Compile, and keep the result on disk for later processes if there is a folder to write to."""
    try:
        return compiled(cache=True)(function)
    except RuntimeError:
        return compiled()(function)
