"""Times of jobs that take turns."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

__all__ = ["in_turn"]


def in_turn(
    jobs: dict[str, Callable[[], object]], *, repeats: int, first: int = 1
) -> dict[str, float]:
    """Return median times; jobs take turns, so that a busy moment of the machine meets all of them.

    The `first` rounds do not count: they load libraries, kernels and tables.
    """
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(first + repeats):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(seen[first:])) for name, seen in times.items()}
