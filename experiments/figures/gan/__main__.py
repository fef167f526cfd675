"""Train the GAN on the dbGaP-like haplotypes; print how well its rows match."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from experiments.figures.gan import __doc__ as description
from experiments.figures.gan import load_or_train, match_of
from experiments.figures.gan.check import Match


def main() -> None:
    """Read the options and run."""
    from experiments.figures.packed import CACHE
    from experiments.figures.stand_ins import dbgap_like

    parser = argparse.ArgumentParser(prog="experiments.figures.gan", description=description)
    parser.add_argument("--check", action="store_true", help="compare its rows with held-out ones")
    parser.add_argument("--quick", action="store_true", help="a small GAN, in less than a minute")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of data and checkpoints")
    options = parser.parse_args()
    haplotypes = dbgap_like(options.cache).columns(slice(None))
    if not options.check:
        sampler = load_or_train(haplotypes, cache=options.cache, quick=options.quick)
        print(f"a GAN of {sampler.snps} SNPs is in {options.cache}; --check compares its rows")
        return
    match = match_of(haplotypes, cache=options.cache, quick=options.quick)
    show(match)
    if not match.passes:
        sys.exit(1)


def show(match: Match) -> None:
    """Print the tables."""
    console = Console(width=110)
    console.print(
        f"{match.rows} generated rows of {match.snps} SNPs against the {match.rows} rows learned "
        f"from; floor: {match.held_out} real rows held out"
    )
    console.print(_totals(match))
    console.print(_ld(match))
    for failure in match.failures:
        console.print(f"[red]fails:[/] {failure}", highlight=False)
    console.print("passes" if match.passes else "[red]does not pass[/]")


def _totals(match: Match) -> Table:
    table = Table("", "generated", "floor", "untrained", title="Frequencies, covariance, copies")
    found, floor, before = (
        match.frequency,
        match.frequency_floor,
        match.frequency_untrained,
    )
    near = match.nearest

    def row(what: str, *values: float | None) -> None:
        table.add_row(what, *("" if value is None else f"{value:.4f}" for value in values))

    row("allele frequency: correlation", found.correlation, floor.correlation, before.correlation)
    row("allele frequency: mean error", found.mean_error, floor.mean_error, before.mean_error)
    row("allele frequency: largest error", found.max_error, floor.max_error, before.max_error)
    row("covariance of 25 SNPs in a row: error", match.run_error, match.run_error_floor,
        match.run_error_untrained)  # fmt: skip
    row("covariance of 25 SNPs at random: error", match.set_error, match.set_error_floor, None)
    row("nearest training row: median distance", near.median, near.median_floor, None)
    row("nearest training row: closest 1 %", near.closest, near.closest_floor, None)
    row("nearest training patch of 100 SNPs", near.patch, near.patch_floor, None)
    row("nearest row of the same kind", near.between, near.between_floor, None)
    return table


def _ld(match: Match) -> Table:
    table = Table(
        "SNPs apart", "pairs", "corr. of r", "floor", "untrained", "slope", "floor",
        "mean r²", "real", title="LD",
    )  # fmt: skip
    for found in match.ld:
        values = (
            found.correlation, found.floor, found.untrained, found.slope, found.slope_floor,
            found.mean_r2, found.real_r2,
        )  # fmt: skip
        span = f"{found.least}-{found.most}"
        table.add_row(span, str(found.pairs), *(f"{value:.4f}" for value in values))
    return table


if __name__ == "__main__":
    main()
