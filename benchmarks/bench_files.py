"""End to end from a `.bed` and a phenotype file, as ratios measured in one run (`make bench`).

Peers, on the same cohort: bed-reader reading the genotypes alone; the two bare products XᵀX and XᵀY on
arrays in memory; scikit-learn's Ridge on the same arrays; pyarrow reading the phenotypes alone, because
text takes longer to parse than to multiply. Ours runs from opening the files to the release, or to the
coefficients ("with estimation", whose cost depends on d and l alone).

    python -m benchmarks.bench_files --n 100000 --d 1000 --l 500     # issue 4's size, a few minutes
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.timing import in_turn, peak_memory
from primo.planning.settings import Settings
from primo.released.coefficients import coefficients
from primo.released.release import Release
from primo.rows.sources.base import Source
from primo.rows.sources.genotypes.cohort import open_cohort
from primo.rows.sources.genotypes.plink import open_bed
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.tabular.parquet import open_parquet
from primo.wall.noise import RandomBits
from primo.workflow.fit import Engine, prepare, release_rows

PHENOTYPES = {"Parquet": "pheno.parquet", "text": "pheno.tsv"}
TARGET = 1.5  # times the slower of bed-reader alone and the bare products, at this size:
TARGET_SIZE = "n=100000 d=1000 l=500"
TARGET_MEMORY = 1536  # MB


def write_cohort(folder: Path, n: int, d: int, l: int, missing: float, decimals: int) -> None:
    """Write `cohort.bed/.bim/.fam` and the same phenotypes twice, in bounded memory."""
    import polars as pl

    rng = np.random.default_rng(0)
    codes = np.array([3, 2, 0], dtype=np.uint8)  # of 0, 1, 2 copies
    with (folder / "cohort.bed").open("wb") as bed:
        bed.write(bytes([0x6C, 0x1B, 1]))
        for _ in range(d):
            genotypes = codes[rng.binomial(2, rng.uniform(0.05, 0.5), -(-n // 4) * 4)]
            genotypes[rng.random(len(genotypes)) < missing] = 1
            genotypes[n:] = 0
            four = genotypes.reshape(-1, 4)
            bed.write((four << np.array([0, 2, 4, 6], dtype=np.uint8)).sum(axis=1, dtype=np.uint8))
    lines = (f"1\trs{j}\t0\t{j + 1}\tA\tG\n" for j in range(d))
    (folder / "cohort.bim").write_text("".join(lines))
    lines = (f"0 p{i} 0 0 0 -9\n" for i in range(n))
    (folder / "cohort.fam").write_text("".join(lines))
    table = pl.DataFrame(
        {"FID": np.zeros(n, dtype=np.int64), "IID": [f"p{i}" for i in range(n)]}
        | {f"y{j}": rng.standard_normal(n, dtype=np.float32).astype(np.float64) for j in range(l)}
    )
    table.write_csv(folder / PHENOTYPES["text"], separator="\t", float_precision=decimals)
    parquet = folder / PHENOTYPES["Parquet"]
    table.write_parquet(parquet, row_group_size=8192, compression="snappy")


def open_source(folder: Path, phenotypes: str) -> Source:
    if phenotypes == "text":  # joined by FID and IID
        return open_cohort(bfile=folder / "cohort", pheno=folder / PHENOTYPES["text"]).source
    genotypes = open_bed(folder / "cohort")
    outcomes = open_parquet(folder / PHENOTYPES[phenotypes], columns="y*")
    rows = range(genotypes.n)
    return PairedSource(features=genotypes, outcomes=outcomes, feature_rows=rows, outcome_rows=rows)


def release(folder: Path, phenotypes: str, threads: int | None = None) -> Release:
    settings = Settings(
        epsilon=5, delta=1e-8, feature_bounds=(0, 2), outcome_bounds=(-5, 5), missing="centre"
    )
    source = open_source(folder, phenotypes)
    return release_rows(
        source,
        prepare(source, settings),
        bits=RandomBits.fresh(),
        engine=Engine(threads=threads),
    )


def loaded(folder: Path) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    blocks = list(open_source(folder, "Parquet").blocks(8192))
    x = np.concatenate([block.features for block in blocks], dtype=np.float64)
    np.nan_to_num(x, copy=False, nan=1.0)
    return x, np.concatenate([block.outcomes for block in blocks], dtype=np.float64)


def read_genotypes(folder: Path) -> object:
    from bed_reader import open_bed as bed_reader

    with bed_reader(folder / "cohort.bed") as bed:
        return bed.read(dtype="int8")


def read_phenotypes(folder: Path, kind: str) -> object:
    path = folder / PHENOTYPES[kind]
    if kind == "Parquet":
        return import_module("pyarrow.parquet").read_table(path)
    csv = import_module("pyarrow.csv")  # ships no types
    return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter="\t"))


def compare(folder: Path, repeats: int) -> None:
    """Time all jobs in turn and print ratios."""
    from sklearn.linear_model import Ridge

    x, y = loaded(folder)
    released = release(folder, "Parquet")
    jobs: dict[str, Callable[[], object]] = {
        "bed-reader alone": lambda: read_genotypes(folder),
        "bare products": lambda: (x.T @ x, x.T @ y),
        "Ridge": lambda: Ridge().fit(x, y),
        "estimation": lambda: coefficients(released),
        "2 threads": lambda: release(folder, "Parquet", 2),
        "1 thread": lambda: release(folder, "Parquet", 1),
    }
    for kind in PHENOTYPES:
        jobs[f"release, {kind}"] = partial(release, folder, kind)
        jobs[f"{kind} alone"] = partial(read_phenotypes, folder, kind)
    took = in_turn(jobs, repeats=repeats)
    slower = max("bed-reader alone", "bare products", key=lambda name: took[name])
    for kind in PHENOTYPES:
        ours = took[f"release, {kind}"]
        both = took["bed-reader alone"] + took[f"{kind} alone"]
        print(f"  {kind} phenotypes, from files to the release:")
        for peer in ("bed-reader alone", "bare products", "Ridge"):
            target = f" (target {TARGET:g} at {TARGET_SIZE})" if peer == slower else ""
            print(f"    {ours / took[peer]:.2f} x {peer}{target}")
        print(f"    {ours / both:.2f} x both files read by their own readers alone")
        print(f"    {ours / (both + took['bare products']):.2f} x readers, then bare products")
        print(f"    {(ours + took['estimation']) / took[slower]:.2f} x {slower}, with estimation")
    print(f"  2 threads take {took['2 threads'] / took['1 thread']:.2f} x the time of 1")


def memory(folder: Path, phenotypes: str) -> None:
    """Print the peak of a whole process that fits once."""
    coefficients(release(folder, phenotypes))
    peak = peak_memory() // 2**20
    print(
        f"  {phenotypes} phenotypes: peak memory of a process {peak} MB (target {TARGET_MEMORY} MB)"
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--d", type=int, default=500)
    parser.add_argument("--l", type=int, default=200)
    parser.add_argument("--missing", type=float, default=0.001, help="share of missing genotypes")
    parser.add_argument("--decimals", type=int, default=5, help="of phenotypes in text")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="keep the files here, and use them again")
    parser.add_argument("--memory", choices=PHENOTYPES, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.memory:
        memory(given.folder, given.memory)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / PHENOTYPES["Parquet"]).exists():
            folder.mkdir(parents=True, exist_ok=True)
            write_cohort(folder, given.n, given.d, given.l, given.missing, given.decimals)
        print(f"files: n={given.n} d={given.d} l={given.l}", flush=True)
        compare(folder, given.repeats)
        for kind in PHENOTYPES:
            again = [sys.executable, "-m", "benchmarks.bench_files", "--memory", kind]
            subprocess.run([*again, "--folder", str(folder)], check=True)


if __name__ == "__main__":
    main()
