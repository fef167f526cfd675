"""Times of jobs that take turns, and the peak memory of a process."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

__all__ = ["in_turn", "in_turn_by", "peak_memory"]


_PAUSE = 0.2  # seconds


def in_turn(
    jobs: dict[str, Callable[[], object]], *, repeats: int, first: int = 1
) -> dict[str, float]:
    """Return median times; jobs take turns, so that other load on the machine affects all of them.

    The `first` rounds do not count: they load libraries, kernels and tables. Before each job there is a
    pause: threads of BLAS wait busily for a while after their work, which is not the next job's time.
    """
    return in_turn_by(time.perf_counter, jobs=jobs, repeats=repeats, first=first)[0]


def in_turn_by(
    *clocks: Callable[[], float],
    jobs: Mapping[str, Callable[[], object]],
    repeats: int,
    first: int = 1,
) -> list[dict[str, float]]:
    """Return what `in_turn` does by each of several clocks, of the same runs."""
    times: dict[str, list[list[float]]] = {name: [] for name in jobs}
    for _ in range(first + repeats):
        for name, job in jobs.items():
            time.sleep(_PAUSE)
            start = [clock() for clock in clocks]
            job()
            times[name].append([clock() - at for clock, at in zip(clocks, start, strict=True)])
    medians = {name: np.median(seen[first:], axis=0).tolist() for name, seen in times.items()}
    return [{name: found[k] for name, found in medians.items()} for k in range(len(clocks))]


def peak_memory() -> int:
    """Return the largest resident size of this process so far, in bytes.

    Read from /proc where there is one: `getrusage` may also count the memory that the parent process had
    when it started this one.
    """
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    kilobytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return 1024 * kilobytes
