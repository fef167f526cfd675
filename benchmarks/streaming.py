"""Rows that do not fit in memory: peak memory stays the same, and reading overlaps with arithmetic.

`python -m benchmarks.streaming` is quick (0.6 and 1.2 GB); `--full` takes 1, 4 and 16 GB on disk and a
million rows of 5000 outcomes from a generator. Files are removed afterwards.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from benchmarks.timing import peak_memory
from primo._util.threads import blas_threads
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.moments import fold
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.base import Block, Ids, Source
from primo.rows.sources.paired import SplitSource
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

D, L = 50, 50  # of the files: float32, 400 bytes a row
WIDE_D, WIDE_L = 25, 5000  # the corner that the paper calls prohibitive
_POOL = 4096  # rows that a generator repeats


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class GeneratedSource:
    """Rows that are generated when read; the same few thousand are repeated, so they cost no time."""

    n: int
    features: NDArray[np.float32] = field(default_factory=lambda: pool(WIDE_D))
    outcomes: NDArray[np.float32] = field(default_factory=lambda: pool(WIDE_L))

    @property
    def feature_names(self) -> tuple[str, ...]:
        return tuple(f"x{i}" for i in range(self.features.shape[1]))

    @property
    def outcome_names(self) -> tuple[str, ...]:
        return tuple(f"y{i}" for i in range(self.outcomes.shape[1]))

    def ids(self) -> Ids | None:
        return None

    def blocks(self, rows: int) -> Iterator[Block]:
        for start in range(0, self.n, rows):
            place = np.arange(start, min(start + rows, self.n)) % _POOL
            yield Block(features=self.features[place], outcomes=self.outcomes[place])

    def part(self, start: int, stop: int) -> Self:
        return replace(self, n=stop - start)


def pool(width: int) -> NDArray[np.float32]:
    return np.random.default_rng(width).normal(size=(_POOL, width)).astype(np.float32)


def plan_for(source: Source, **changes: str) -> Plan:
    d, l = len(source.feature_names), len(source.outcome_names)
    return make_plan(
        Settings(
            epsilon=5,
            delta=1e-12,
            feature_bounds=Bounds(norm=1.2 * d**0.5),
            outcome_bounds=Bounds(norm=1.2 * l**0.5),
            **changes,  # type: ignore[arg-type]
        ),
        n=source.n,
        d=d,
        l=l,
    )


def write_file(path: Path, gigabytes: float) -> None:
    """Write normal numbers, a few megabytes of them repeated."""
    rows = round(gigabytes * 2**30 / (4 * (D + L)) / _POOL) * _POOL
    block = pool(D + L).tobytes()
    header = {"descr": "<f4", "fortran_order": False, "shape": (rows, D + L)}
    with path.open("wb") as file:
        npy_format.write_array_header_1_0(file, header)
        for _ in range(rows // _POOL):
            file.write(block)


def file_source(path: Path) -> SplitSource:
    columns = open_npy(path)
    return SplitSource(columns=columns, d=D, rows=range(columns.n))


def report_peak(what: str) -> None:
    """Release a file, or so many generated rows, and print the peak; in a process of its own."""
    source = GeneratedSource(n=int(what)) if what.isdigit() else file_source(Path(what))
    make_release(source, plan_for(source), bits=RandomBits.fresh())
    peak = peak_memory() / 2**20
    print(json.dumps({"n": source.n, "megabytes": peak}))


def peak_of(what: str) -> float:
    command = [sys.executable, "-m", "benchmarks.streaming", "--peak", what]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["megabytes"])


def memory_of_files(folder: Path, sizes: list[float]) -> None:
    first = None
    for size in sizes:
        if shutil.disk_usage(folder).free < 1.1 * size * 2**30:
            print(f"memory: {size:g} GB: skipped, {folder} has no room for it (--folder)")
            continue
        path = folder / "rows.npy"
        try:
            write_file(path, size)
            peak = peak_of(str(path))
        finally:
            path.unlink(missing_ok=True)
        first = first or peak
        print(
            f"memory: {size:g} GB of .npy, d={D} l={L}: peak {peak:.0f} MB, "
            f"{peak / first:.2f} x that of the first file",
            flush=True,
        )


def memory_of_generated(rows: list[int]) -> None:
    first = None
    for n in rows:
        peak = peak_of(str(n))
        first = first or peak
        print(
            f"memory: {n} generated rows, d={WIDE_D} l={WIDE_L}: peak {peak:.0f} MB, "
            f"{peak / first:.2f} x that of the first run",
            flush=True,
        )


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    """Return the best of a few times: other work on the machine can only add time."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def ratios(folder: Path, gigabytes: float) -> None:
    """Compare one pass with its two parts, reading and multiplying, each done by itself."""
    path = folder / "rows.npy"
    write_file(path, gigabytes)
    source = file_source(path)
    # Two BLAS threads slow each other down on one small product, which would make the peer too slow.
    with blas_threads(1):
        plan = plan_for(source)
        buffer = np.empty((_POOL, D + L), dtype=np.float32)
        numbers = pool(D + L).astype(np.float64)

        def read() -> None:
            with path.open("rb", buffering=0) as file:
                while file.readinto(buffer.data):
                    pass

        def multiply() -> None:
            for _ in range(source.n // _POOL):
                _ = numbers.T @ numbers

        fold(source, plan)  # loads libraries, and the file into the cache of the system
        one = seconds(lambda: fold(source, plan, threads=1))
        two = seconds(lambda: fold(source, plan, threads=2))
        alone = {"reading alone": seconds(read), "bare products": seconds(multiply)}
    where = f"stream: {gigabytes:g} GB of .npy, d={D} l={L}"
    for name, peer in alone.items():
        print(f"{where}: fold takes {one / peer:.2f} x {name}, both on one thread")
    print(f"{where}: fold takes {one / max(alone.values()):.2f} x the larger (target 1.3)")
    print(f"{where}: 2 threads take {two / one:.2f} x the time of 1")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="1, 4 and 16 GB; a million rows")
    parser.add_argument("--gigabytes", type=float, nargs="+", help="other sizes")
    parser.add_argument("--rows", type=int, nargs="+", help="other numbers of generated rows")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        report_peak(options.peak)
        return
    # From half a GB on compiled kernels are loaded; they take 100 MB themselves.
    sizes = options.gigabytes or ([1, 4, 16] if options.full else [0.6, 1.2])
    rows = options.rows or ([100_000, 1_000_000] if options.full else [20_000, 100_000])
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        ratios(Path(folder), sizes[0])
        memory_of_files(Path(folder), sizes)
    memory_of_generated(rows)


if __name__ == "__main__":
    main()
