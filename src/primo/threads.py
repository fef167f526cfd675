"""How many threads BLAS may use: none beside our own, where those are the unit of parallel work."""

from __future__ import annotations

from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["blas_threads"]


def blas_threads(limit: int | None) -> Any:
    """Return a context in which BLAS uses at most `limit` threads; None leaves it alone.

    An idle thread of OpenBLAS goes on spinning for a while after the call that woke it, at the expense
    of whoever computes next. So small problems are better off without any.
    """
    return _controller().limit(limits=limit, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so once is enough
