"""`primo demo`: every step on simulated people, command by command."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from contextlib import nullcontext, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from primo._util.atomic import as_text, new_file, refuse_existing
from primo.cli.options import json_option
from primo.cli.output import say, show_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["demo"]

PEOPLE, VARIANTS, OUTCOMES = 5000, 30, 40
PANEL = 2500  # other people, who are public

_BOUNDS = """\
# Public knowledge about the simulated people. Genotypes need no bounds here: they lie in 0 to 2, and
# their frequencies are counted in panel.bed, which holds other people, who are public.
[features]
norm = "auto"         # length of a row: found privately, for a small part of the budget

[features.columns.age]
centre = 52           # mean and standard deviation of the population
scale = 13

[outcomes]            # standardised questionnaire scores
lower = -5
upper = 5
norm = "auto"
"""


@click.command(epilog="Example:  primo demo --out primo-demo")
@click.option("--out", type=click.Path(path_type=Path), default="primo-demo", show_default=True)
@click.option("--data-only", is_flag=True, help="Write the simulated files and stop.")
@json_option
def demo(out: Path, data_only: bool, json_: bool) -> None:
    """Simulate a cohort and run plan, ledger, fit, report and scores, and a fit that is refused."""
    refuse_existing(out)
    # With --json the commands speak on standard error, and standard output has one value.
    with redirect_stdout(sys.stderr) if json_ else nullcontext():
        commands = _demonstrate(out, data_only=data_only)
    if json_:
        files = sorted(str(path) for path in out.iterdir())
        show_json({"folder": str(out), "files": files, "commands": commands})


def _demonstrate(out: Path, *, data_only: bool) -> list[str]:
    """Write the cohort and, unless only that is asked for, run the commands; return them."""
    out.mkdir(parents=True)
    _write_cohort(out)
    say(
        f"Wrote {PEOPLE} simulated people to {out}: cohort.bed, traits.tsv, ages.tsv, bounds.toml; and "
        f"{PANEL} others, who are public: panel.bed."
    )
    if data_only:
        return []
    where = shlex.quote(str(out))
    data = (
        f"--bfile {where}/cohort --pheno {where}/traits.tsv --covar {where}/ages.tsv "
        f"--frequencies {where}/panel.bed --bounds {where}/bounds.toml"
    )
    paid = f"--epsilon 5 --delta 1e-8 --ledger {where}/cohort.ledger"
    refused = f"fit {data} {paid} --out {where}/second"
    commands = [
        f"ledger init {where}/cohort.ledger --epsilon 6 --delta 1e-6 --person-column IID",
        f"fit {data} {paid} --dry-run",
        f"fit {data} {paid} --purpose 'first release' --out {where}/release",
        f"report {where}/release --out {where}/report.html",
        f"score-file {where}/release --out {where}/scores.tsv",
        f"ledger show {where}/cohort.ledger",
    ]
    for line in commands:
        _run(line)
    say("\nA second release would exceed the limit. The ledger refuses it before a row is read:")
    _run(refused, refused=True)
    say(f"\nDone. Open {out}/report.html in a browser.")
    return [f"primo {line}" for line in (*commands, refused)]


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
    import numpy as np

    rng = np.random.default_rng(2025)
    frequency = rng.uniform(0.1, 0.5, VARIANTS)
    genotypes = _genotypes(rng, frequency, PEOPLE)
    age = rng.uniform(30, 75, PEOPLE)
    signal = (genotypes - genotypes.mean(axis=0)) @ rng.normal(size=(VARIANTS, OUTCOMES))
    signal *= np.sqrt(rng.uniform(0.05, 0.6, OUTCOMES)) / signal.std(axis=0)
    outcomes = signal + 0.01 * (age[:, None] - 52) + rng.normal(size=(PEOPLE, OUTCOMES)) * 0.8
    people = [f"person{i:05d}" for i in range(PEOPLE)]
    lines = [f"{name}\t{name}" for name in people]
    _write_fileset(folder / "cohort", lines, genotypes)
    names = [f"score{i:02d}" for i in range(OUTCOMES)]
    _write_table(folder / "traits.tsv", names, lines, outcomes)
    _write_table(folder / "ages.tsv", ["age"], lines, age[:, None])
    _write(folder / "bounds.toml", [_BOUNDS])
    public = [f"public{i:04d}\tpublic{i:04d}" for i in range(PANEL)]
    _write_fileset(folder / "panel", public, _genotypes(rng, frequency, PANEL))


def _write_fileset(prefix: Path, people: list[str], genotypes: NDArray[np.int8]) -> None:
    """Write .bed, .bim and .fam."""
    _write(prefix.with_suffix(".fam"), (f"{line}\t0\t0\t0\t-9\n" for line in people))
    _write(
        prefix.with_suffix(".bim"),
        (f"{1 + i // 6}\trs{1000 + i}\t0\t{10_000 * (i + 1)}\tA\tG\n" for i in range(VARIANTS)),
    )
    _write_bed(prefix.with_suffix(".bed"), genotypes)


def _genotypes(
    rng: np.random.Generator, frequency: NDArray[np.float64], people: int
) -> NDArray[np.int8]:
    """Draw genotypes of which neighbouring variants are correlated."""
    import numpy as np

    haplotypes = np.empty((2 * people, VARIANTS), dtype=np.int8)
    latent = rng.random(2 * people)
    for i in range(VARIANTS):
        fresh = rng.random(2 * people)
        latent = np.where(rng.random(2 * people) < 0.4, fresh, latent)
        haplotypes[:, i] = latent < frequency[i]
    return haplotypes[::2] + haplotypes[1::2]


def _write_bed(path: Path, genotypes: NDArray[np.int8]) -> None:
    """Write PLINK 1 binary: two bits a genotype, variant by variant, copies of the first allele."""
    import numpy as np

    code = np.array([0b11, 0b10, 0b00], dtype=np.uint8)[genotypes.T]
    code = np.pad(code, ((0, 0), (0, -len(genotypes) % 4))).reshape(VARIANTS, -1, 4)
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
