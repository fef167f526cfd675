"""Run the studies, draw the figures, write the page (`make figures`, `make figures-quick`)."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from experiments.figures import results
from experiments.figures.features import Data, dbgap_snps
from experiments.figures.grid import Study, read_studies
from experiments.figures.page import write_page
from experiments.figures.page.provenance import record_sources
from experiments.figures.plot import draw_figure
from experiments.figures.results import Score
from experiments.figures.runner import run_study
from primo.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"


def main() -> int:
    """Read the options and run; 2 if they are wrong, 130 if interrupted."""
    options = _options()
    if options.outcomes and not options.methods:
        print("error: --outcomes needs --methods, to say what is run again", file=sys.stderr)
        return 2
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        _run(options, console)
    except InputError as error:
        console.print(f"error: {error}", highlight=False)
        return 2
    except OSError as error:
        console.print(f"error: {error.strerror or error}: {error.filename or ''}", highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print(
            "interrupted; what is finished is kept, and the same command goes on from there"
        )
        return 130
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="experiments.figures", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="a few minutes; figures go to build/figures-quick"
    )
    names = ", ".join(study.name for study in read_studies())
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="STUDY", help=f"these studies only, of: {names}"
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        default=[],
        metavar="METHOD",
        help="run these methods again and take all others from the stored results",
    )
    parser.add_argument(
        "--outcomes",
        nargs="+",
        type=_positive,
        default=[],
        metavar="L",
        help="with --methods: run only cells with these numbers of outcomes again",
    )
    parser.add_argument("--kg", type=Path, help="1000 Genomes haplotypes: VCF, BCF or VCF Zarr")
    parser.add_argument("--dbgap", type=Path, help="dbGaP genotypes: prefix of .bed, .bim and .fam")
    parser.add_argument("--mnist", type=Path, help="folder with the MNIST training images")
    parser.add_argument(
        "--workers", type=_positive, default=os.cpu_count() or 1, help="processes (all cores)"
    )
    parser.add_argument(
        "--draw-only", action="store_true", help="run nothing: figures and page from the results"
    )
    return parser.parse_args()


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; give 1 or more")
    return number


def _run(options: argparse.Namespace, console: Console) -> None:
    studies = read_studies(tuple(options.only))
    if options.quick:
        studies = tuple(study.quick_version() for study in studies)
    home = BUILD / "figures-quick" if options.quick else DOCS
    stored = home / "results"
    data = Data(
        kg=options.kg, dbgap=options.dbgap, mnist=options.mnist, cache=BUILD / "figures-data"
    )
    parts = BUILD / ("parts-quick" if options.quick else "parts")
    for study in studies:
        path = stored / f"{study.name}.parquet"
        if not options.draw_only:
            earlier = results.read(path) if options.methods and path.exists() else []
            scores = run_study(
                study,
                data=data,
                folder=parts,
                workers=options.workers,
                console=console,
                again=tuple(options.methods),
                outcomes=tuple(options.outcomes),
                stored=earlier,
            )
            results.write(scores, path)
            used = {unit.cell.features for unit in study.units()}
            record_sources(stored, data, used)
            if any(name.startswith("gan") for name in used):
                _check_gan(data, stored, quick=options.quick)
        elif not path.exists():
            console.print(f"{study.name}: not run yet, so not drawn")
            continue
        _draw(study, results.read(path), home / "figures", console)
    if not any(stored.glob("*.parquet")):
        raise InputError(f"there are no results in {stored}; run without --draw-only first")
    page = write_page(stored, home / "reproduction.md")
    console.print(f"written: {page}", highlight=False)


def _check_gan(data: Data, stored: Path, *, quick: bool) -> None:
    """Compare the GAN's rows with real ones, and keep the numbers with the results."""
    from experiments.figures.gan import match_of
    from experiments.figures.gan.check import save

    match = match_of(dbgap_snps(data).columns(slice(None)), cache=data.cache, quick=quick)
    save(match, stored / "gan-check")


def _draw(study: Study, scores: list[Score], folder: Path, console: Console) -> None:
    for figure in study.figures:
        for path in draw_figure(figure, scores, folder):
            console.print(f"written: {path}", highlight=False)


if __name__ == "__main__":
    raise SystemExit(main())
