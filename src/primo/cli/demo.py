"""`primo demo`: every step on simulated people, command by command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import as_text, new_file
from primo.cli.output import say
from primo.errors import InputError

__all__ = ["demo"]

PEOPLE, VARIANTS, OUTCOMES = 5000, 30, 40

_BOUNDS = """\
# Public knowledge about the simulated people. Genotypes need no bounds here: they lie in 0 to 2.
[features]
norm = "auto"         # how long rows are is found privately; see docs/data.md, "Bounds in a file"

[features.columns.age]
lower = 18
upper = 90

[outcomes]            # standardised questionnaire scores
lower = -5
upper = 5
norm = "auto"
"""


@click.command(epilog="Example:  primo demo --out primo-demo")
@click.option("--out", type=click.Path(path_type=Path), default="primo-demo", show_default=True)
def demo(out: Path) -> None:
    """Simulate a cohort and run plan, ledger, fit, report and scores, and a fit that is refused."""
    if out.exists():
        raise InputError(f"{str(out)!r} exists already; remove it or give another --out")
    out.mkdir(parents=True)
    _write_cohort(out)
    say(f"Wrote {PEOPLE} simulated people to {out}: cohort.bed, traits.tsv, ages.tsv, bounds.toml.")
    data = (
        f"--bfile {out}/cohort --pheno {out}/traits.tsv --covar {out}/ages.tsv "
        f"--bounds {out}/bounds.toml"
    )
    paid = f"--epsilon 5 --delta 1e-8 --ledger {out}/cohort.ledger"
    _run(f"ledger init {out}/cohort.ledger --epsilon 6 --delta 1e-6 --person-column IID")
    _run(f"fit {data} {paid} --dry-run")
    _run(f"fit {data} {paid} --purpose 'first release' --out {out}/release")
    _run(f"report {out}/release --out {out}/report.html")
    _run(f"score-file {out}/release --out {out}/scores.tsv")
    _run(f"ledger show {out}/cohort.ledger")
    say("\nA second release would exceed the limit. The ledger refuses it before a row is read:")
    _run(f"fit {data} {paid} --out {out}/second", refused=True)
    say(f"\nDone. Open {out}/report.html in a browser.")


def _run(line: str, *, refused: bool = False) -> None:
    """Run a command as if it had been typed, and show it."""
    from primo.cli.app import main
    from primo.cli.render import in_options
    from primo.errors import BudgetError

    say(f"\n$ primo {line}")
    try:
        main.call(shlex.split(line))
    except BudgetError as error:
        if not refused:
            raise
        say(f"primo: {in_options(error)}")


def _write_cohort(folder: Path) -> None:
    """Write simulated people in the formats that cohorts come in."""
    rng = np.random.default_rng(2025)
    genotypes = _genotypes(rng)
    age = rng.uniform(30, 75, PEOPLE)
    signal = (genotypes - genotypes.mean(axis=0)) @ rng.normal(size=(VARIANTS, OUTCOMES))
    signal *= np.sqrt(rng.uniform(0.05, 0.6, OUTCOMES)) / signal.std(axis=0)
    outcomes = signal + 0.01 * (age[:, None] - 52) + rng.normal(size=(PEOPLE, OUTCOMES)) * 0.8
    people = [f"person{i:05d}" for i in range(PEOPLE)]
    lines = [f"{name}\t{name}" for name in people]
    _write(folder / "cohort.fam", (f"{line}\t0\t0\t0\t-9\n" for line in lines))
    _write(
        folder / "cohort.bim",
        (f"{1 + i // 6}\trs{1000 + i}\t0\t{10_000 * (i + 1)}\tA\tG\n" for i in range(VARIANTS)),
    )
    _write_bed(folder / "cohort.bed", genotypes)
    names = [f"score{i:02d}" for i in range(OUTCOMES)]
    _write_table(folder / "traits.tsv", names, lines, outcomes)
    _write_table(folder / "ages.tsv", ["age"], lines, age[:, None])
    _write(folder / "bounds.toml", [_BOUNDS])


def _genotypes(rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw genotypes of which neighbouring variants are correlated."""
    haplotypes = np.empty((2 * PEOPLE, VARIANTS), dtype=np.int8)
    frequency = rng.uniform(0.1, 0.5, VARIANTS)
    latent = rng.random(2 * PEOPLE)
    for i in range(VARIANTS):
        fresh = rng.random(2 * PEOPLE)
        latent = np.where(rng.random(2 * PEOPLE) < 0.4, fresh, latent)
        haplotypes[:, i] = latent < frequency[i]
    return haplotypes[::2] + haplotypes[1::2]


def _write_bed(path: Path, genotypes: NDArray[np.int8]) -> None:
    """Write PLINK 1 binary: two bits a genotype, variant by variant, copies of the first allele."""
    code = np.array([0b11, 0b10, 0b00], dtype=np.uint8)[genotypes.T]
    code = np.pad(code, ((0, 0), (0, -PEOPLE % 4))).reshape(VARIANTS, -1, 4)
    packed = code[..., 0] | code[..., 1] << 2 | code[..., 2] << 4 | code[..., 3] << 6
    with new_file(path) as file:
        file.write(bytes([0x6C, 0x1B, 0x01]) + packed.astype(np.uint8).tobytes())


def _write_table(
    path: Path, names: list[str], people: list[str], values: NDArray[np.float64]
) -> None:
    rows = ("\t".join(f"{value:.4f}" for value in row) for row in values)
    lines = (f"{who}\t{row}\n" for who, row in zip(people, rows, strict=True))
    _write(path, ("\t".join(["FID", "IID", *names]) + "\n", *lines))


def _write(path: Path, lines: Iterable[str]) -> None:
    with new_file(path) as file, as_text(file) as text:
        text.writelines(lines)
