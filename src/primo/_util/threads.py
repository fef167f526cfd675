"""Work shared out among threads, and how many of its own BLAS may use meanwhile: none."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from primo.errors import Argument, InputError

__all__ = ["ahead", "blas_threads", "in_order", "thread_count"]

MOST_THREADS = 1024  # each holds moments of its own

Item = TypeVar("Item")
Result = TypeVar("Result")


# A walk that is given up may be ended by the garbage collector, in the middle of anything, also of
# starting a thread. Waiting for threads there can wait for ever, so neither of these does: what is under
# way ends by itself and is forgotten.


def in_order(
    work: Callable[[Item], Result], items: Iterator[Item], threads: int
) -> Iterator[Result]:
    """Yield what `work` makes of each item, with at most two items per worker in flight.

    Items are made by the calling thread while the others work, also where there is only one.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        pending = [pool.submit(work, item) for item in islice(items, 2 * threads)]
        while pending:
            yield pending.pop(0).result()
            pending.extend(pool.submit(work, item) for item in islice(items, 1))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if isinstance(items, Generator):
            items.close()  # now, and not whenever the trace of an error is forgotten


def ahead(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items, of which the next is made by a thread of its own while one is used."""
    pool = ThreadPoolExecutor(1)
    try:
        coming = pool.submit(list, islice(items, 1))
        while item := coming.result():
            coming = pool.submit(list, islice(items, 1))
            yield item[0]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def blas_threads(limit: int | None) -> Any:
    """Return a context in which BLAS uses at most `limit` threads; None leaves it alone.

    An idle thread of OpenBLAS goes on spinning for a while after the call that woke it, at the expense
    of whoever computes next. So small problems are better off without any.
    """
    return _controller().limit(limits=limit, user_api="blas")


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks through all loaded libraries, so once is enough


def thread_count(n_jobs: Any) -> int | None:
    """Read scikit-learn's n_jobs: a positive number, -1 for all cores, None for the default."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise InputError(Argument("n_jobs", n_jobs), " must be a positive integer, -1 or None")
    wanted = int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
    return min(wanted, MOST_THREADS)
