"""Work shared among threads; a limit on the threads of BLAS; the number of threads a user asks for."""

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

__all__ = ["blas_threads", "in_order", "prefetch", "thread_count"]

MOST_THREADS = 1024  # each holds moments of its own

Item = TypeVar("Item")
Result = TypeVar("Result")


# The garbage collector may close an abandoned iterator at any moment, even while a thread is being
# started. Waiting for threads at such a moment can deadlock, so neither function waits: work that is
# running ends by itself and its result is dropped.


def in_order(
    work: Callable[[Item], Result], items: Iterator[Item], threads: int
) -> Iterator[Result]:
    """Yield `work(item)` for each item, in order, with at most two items per worker in flight.

    The calling thread makes the items while the worker threads work, even with one worker.
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
            items.close()  # now, not when the traceback of an error is freed


def prefetch(items: Iterator[Item]) -> Iterator[Item]:
    """Yield the items; a separate thread makes the next item while the caller uses the current one."""
    pool = ThreadPoolExecutor(1)
    try:
        coming = pool.submit(list, islice(items, 1))
        while item := coming.result():
            coming = pool.submit(list, islice(items, 1))
            yield item[0]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def blas_threads(limit: int | None) -> Any:
    """Return a context in which BLAS uses at most `limit` threads; None sets no limit.

    An idle thread of OpenBLAS keeps spinning for a while after a call and slows down whatever computes
    next. So small problems run faster with one thread.
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
