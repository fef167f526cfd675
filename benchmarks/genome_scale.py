"""Genome scale from a `.bed`: time against reading and bare products, peak memory, cost in n, d and l.

    python -m benchmarks.genome_scale                          # small: a minute
    python -m benchmarks.genome_scale --n 20000 --d 8000       # another size
    python -m benchmarks.genome_scale --full                   # 100 000 x 79 000, 2 GB of disk
    python -m benchmarks.genome_scale --plot                   # also draws docs/genome-cost.svg
    python -m benchmarks.genome_scale --outcomes --plot        # growth alone, no ratios

A release with `covariance="blocks"` is timed from opening the files to the release, on one thread. Its
peers, on one thread as well: bed-reader decoding the genotypes alone, and the bare products in float64,
the precision of ours, of rows in memory: those inside blocks, and all features times all outcomes. They
are products alone: nothing is decoded, clipped, put on a grid or added up exactly. Besides the time that
passed, the processor time is printed: a busy machine changes it less, and it counts a release's thread
that reads ahead too. Files are removed afterwards.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.results import DOCS
from benchmarks.scaling import Axis, slope
from benchmarks.timing import in_turn_by, peak_memory
from primo._util.threads import blas_threads
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.tabular.parquet import open_parquet
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, release_rows

WIDTH = 50  # variants in a block
OUTCOMES = (1, 10, 100)
FREQUENCY = 0.3
TARGET, TARGET_GB = 1.5, 4  # of issue 19, at n = 100 000 and d = 79 000
LONG = 10**9  # genotypes, from which a round takes minutes on a busy machine
ROWS = 512  # of the bare products at a time
_POOL = 64  # variants that are drawn; files repeat them, cut at other places


def write_genotypes(prefix: Path, n: int, d: int) -> None:
    """Write a fileset in bounded memory."""
    rng = np.random.default_rng(n)
    width = -(-n // 4)
    codes = np.array([3, 2, 0], dtype=np.uint8)  # of 0, 1, 2 copies
    drawn = codes[rng.binomial(2, FREQUENCY, size=(_POOL, width, 4))]
    packed = (drawn << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=2, dtype=np.uint8)
    last = 4 ** (n % 4 or 4) - 1  # bits that are nobody's are 0
    with prefix.with_suffix(".bed").open("wb") as file:
        file.write(bytes([0x6C, 0x1B, 1]))
        for j in range(d):
            line = np.roll(packed[j % _POOL], 7 * (j // _POOL))
            line[-1] &= last
            file.write(line.tobytes())
    lines = (f"1\trs{j}\t0\t{j + 1}\tA\tG\n" for j in range(d))
    prefix.with_suffix(".bim").write_text("".join(lines))
    lines = (f"0 p{i} 0 0 0 -9\n" for i in range(n))
    prefix.with_suffix(".fam").write_text("".join(lines))


def write_outcomes(prefix: Path, n: int, l: int) -> None:
    """Write outcomes as Parquet, in the order of the people."""
    rng = np.random.default_rng(l)
    table = pl.DataFrame({f"y{j}": rng.standard_normal(n) for j in range(l)})
    table.write_parquet(prefix.with_suffix(".parquet"), row_group_size=8192)


def starts_of(d: int) -> list[int]:
    """Return borders of blocks of `WIDTH` variants."""
    return [*range(0, d, WIDTH), d]


def release(prefix: Path) -> None:
    """Make a release from the files."""
    genotypes = open_bed(prefix)
    outcomes = open_parquet(prefix.with_suffix(".parquet"), columns="y*")
    rows = range(genotypes.n)
    source = PairedSource(
        features=genotypes, outcomes=outcomes, feature_rows=rows, outcome_rows=rows
    )
    d = len(genotypes.variants)
    settings = Settings(
        epsilon=5,
        delta=1e-10,
        feature_bounds=Bounds.from_frequencies(np.full(d, FREQUENCY)),
        outcome_bounds=(-5, 5),
        missing="centre",
        covariance="blocks",
        blocks=starts_of(d),
        outcome_moments="diagonal",
    )
    release_rows(
        source, prepare(source, settings), bits=RandomBits.fresh(), engine=Engine(threads=1)
    )


def read(prefix: Path) -> None:
    """Decode all genotypes by bed-reader, in bounded memory."""
    from bed_reader import open_bed as bed_reader

    with bed_reader(prefix.with_suffix(".bed"), num_threads=1) as bed:
        for start in range(0, bed.sid_count, 1024):
            bed.read(index=np.s_[:, start : start + 1024], dtype="int8")


def multiply(n: int, d: int, l: int) -> None:
    """Multiply as many rows as there are; the same few are repeated, so they cost no memory."""
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((ROWS, d)), rng.standard_normal((ROWS, l))
    starts = starts_of(d)
    for _ in range(-(-n // ROWS)):
        for a, b in pairwise(starts):
            part = x[:, a:b]
            _ = part.T @ part
        _ = x.T @ y


def times(prefix: Path, n: int, d: int, l: int, repeats: int) -> list[dict[str, float]]:
    """Return the times of a release and of its peers, in turn, and their processor times.

    Where they take minutes, the first round counts: that kernels are loaded in it is a second.
    """
    write_outcomes(prefix, n, l)
    return in_turn_by(
        time.perf_counter,
        time.process_time,
        jobs={
            "release": lambda: release(prefix),
            "reading": lambda: read(prefix),
            "bare products": lambda: multiply(n, d, l),
        },
        repeats=repeats,
        first=int(n * d < LONG),
    )


def peak(prefix: Path) -> float:
    """Return the peak memory of a release in a process of its own, in MB."""
    command = [sys.executable, "-m", "benchmarks.genome_scale", "--peak", str(prefix)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(done.stdout)


def ratios(folder: Path, n: int, d: int, outcomes: Sequence[int], repeats: int) -> None:
    """Print time and memory for every number of outcomes."""
    prefix = folder / "cohort"
    write_genotypes(prefix, n, d)
    size = prefix.with_suffix(".bed").stat().st_size / 2**20
    print(f"n={n} d={d}, blocks of {WIDTH}: a .bed of {size:.0f} MB", flush=True)
    for l in outcomes:
        took, worked = times(prefix, n, d, l, repeats)
        slower = max("reading", "bare products", key=lambda name: took[name])
        found = took["release"] / took[slower]
        print(
            f"  l={l}: {found:.2f} x {slower}, the slower of the two "
            f"({took['release'] / took['reading']:.2f} x reading, "
            f"{took['release'] / took['bare products']:.2f} x bare products); "
            f"{worked['release'] / worked[slower]:.2f} x by processor time; "
            f"peak memory {peak(prefix):.0f} MB",
            flush=True,
        )
    print(f"  targets at n=100000 d=79000: {TARGET:g} x the slower, {TARGET_GB} GB", flush=True)


def cost(folder: Path, n: int, d: int, l: int, repeats: int) -> float:
    """Return the processor time of a release of generated files, in seconds: the median of a few."""
    prefix = folder / "axis"
    write_genotypes(prefix, n, d)
    write_outcomes(prefix, n, l)
    jobs = {"release": lambda: release(prefix)}
    return in_turn_by(time.process_time, jobs=jobs, repeats=repeats)[0]["release"]


def axes(n: int, d: int) -> list[Axis]:
    """Return the sizes of the plot: up to n, d and 400 outcomes."""
    halves = 2.0 ** np.arange(-3, 1)
    people, variants = ((most * halves).astype(int).tolist() for most in (n, d))
    return [
        Axis(name="n", expected=1, sizes=people, others={"d": d // 2, "l": 10}),
        Axis(name="d", expected=1, sizes=variants, others={"n": n // 2, "l": 10}),
        Axis(name="l", expected=1, sizes=[50, 100, 200, 400], others={"n": n // 4, "d": d // 2}),
    ]


def scale(folder: Path, n: int, d: int, repeats: int, *, draw: bool) -> None:
    """Print how the cost grows; draw it if asked to."""
    measured = []
    for axis in axes(n, d):
        seconds = [cost(folder, **shape, repeats=repeats) for shape in axis.shapes()]
        found = slope(axis.sizes, seconds)
        growth = ", ".join(f"{each / seconds[0]:.1f}" for each in seconds)
        print(
            f"cost in {axis.name} = {', '.join(map(str, axis.sizes))}: slope {found:.2f} (at most 1 "
            f"expected); times over the first: {growth}",
            flush=True,
        )
        measured.append((axis, seconds, found))
    if draw:
        plot(measured)


def plot(measured: list[tuple[Axis, list[float], float]]) -> None:
    """Draw docs/genome-cost.svg."""
    import matplotlib

    matplotlib.use("svg")
    # The same bytes for the same numbers, and text as text.
    matplotlib.rcParams.update({"svg.hashsalt": "primo", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(measured), figsize=(10, 3.2), layout="constrained")
    for panel, (axis, seconds, found) in zip(panels, measured, strict=True):
        sizes = np.array(axis.sizes, dtype=float)
        panel.loglog(sizes, seconds, "o-", label=f"measured, slope {found:.2f}")
        panel.loglog(sizes, seconds[-1] * sizes / sizes[-1], "--", color="grey", label="slope 1")
        others = ", ".join(f"{name} = {size}" for name, size in axis.others.items())
        panel.set(xlabel=axis.name, title=others)
        panel.set_xticks(sizes, [str(size) for size in axis.sizes])
        panel.xaxis.minorticks_off()
        panel.legend(frameon=False, loc="upper left")
    panels[0].set_ylabel("processor time in seconds")
    figure.savefig(DOCS / "genome-cost.svg", metadata={"Date": None})
    print(f"drawn in {DOCS / 'genome-cost.svg'}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=4_000, help="people")
    parser.add_argument("--d", type=int, default=2_000, help="variants")
    parser.add_argument("--full", action="store_true", help="100 000 people, 79 000 variants")
    parser.add_argument("--outcomes", type=int, nargs="*", default=OUTCOMES, metavar="L")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-growth", action="store_true", help="leave out the cost in n, d and l")
    parser.add_argument("--plot", action="store_true", help="draw docs/genome-cost.svg")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--peak", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        release(options.peak)
        print(peak_memory() / 2**20)
        return
    n, d = (100_000, 79_000) if options.full else (options.n, options.d)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, blas_threads(1):
        ratios(Path(folder), n, d, options.outcomes, options.repeats)
        if not options.no_growth:
            scale(Path(folder), min(n, 20_000), min(d, 8_000), options.repeats, draw=options.plot)


if __name__ == "__main__":
    main()
