"""Progress of long work: a bar or a line on a terminal, nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["row_progress", "working"]

_AFTER = 1.0  # seconds, before which there is nothing to wait for


@contextmanager
def row_progress(
    total: int, *, show: bool, description: str = "reading rows"
) -> Iterator[Callable[[int], None] | None]:
    """Yield a callback that advances a bar over `total` rows, or None if it is not shown.

    The bar needs `show` and a terminal. It shows only the share of rows read, and is erased at the end:
    it must not stay visible at which row a run failed.
    """
    if not (show and sys.stderr.isatty()):
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=total)
        yield lambda rows: bar.advance(task, rows)


@contextmanager
def working(words: str, *, show: bool = True) -> Iterator[None]:
    """Show a line that says what is being done, if it takes longer than a second.

    The line needs `show` and a terminal, and is erased at the end.
    """
    if not (show and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console

    status = Console(stderr=True).status(f"{words} …")
    timer = threading.Timer(_AFTER, status.start)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        status.stop()
