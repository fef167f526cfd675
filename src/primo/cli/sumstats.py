"""`primo sumstats`: summary statistics of a release in the formats of other programs."""

from __future__ import annotations

from pathlib import Path

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import counted, say, show_json
from primo.errors import InputError

__all__ = ["sumstats"]


@click.command(
    epilog="Example:  primo sumstats release/ --format gwas-ssf --genome-build GRCh38 --out sumstats/, "
    "then gwas-ssf validate sumstats/height.tsv.gz"
)
@release_argument
@click.option(
    "--format",
    "format_",
    type=click.Choice(["gwas-ssf", "ldsc", "regenie", "plink2"]),
    default="gwas-ssf",
    show_default=True,
    help="Whose columns to write.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder to make: one file per outcome, and guarantee.yaml.",
)
@click.option(
    "--outcomes", multiple=True, help="Outcomes by name or pattern; default: all. May be repeated."
)
@click.option(
    "--covariates",
    type=click.Choice(["adjust", "ignore"]),
    default="adjust",
    show_default=True,
    help="Adjust for the features that are not variants, or for the intercept alone.",
)
@click.option("--genome-build", default="NR", show_default=True, help="For example GRCh38.")
@json_option
def sumstats(
    release: Path,
    format_: str,
    out: Path,
    outcomes: tuple[str, ...],
    covariates: str,
    genome_build: str,
    json_: bool,
) -> None:
    """Export the marginal effect of every variant, with errors that contain the privacy noise.

    Computed from the release alone: costs no privacy.
    """
    from primo.released.bundle import read_bundle
    from primo.released.export.sumstats import write_summary_statistics
    from primo.released.marginal import summary_statistics
    from primo.rows.sources.select import choose

    bundle = read_bundle(release)
    if bundle.variants is None:
        raise InputError(
            f"{str(release)!r} was not made from genotypes, so it has no variants to give effects of; "
            "`primo inspect` shows its coefficients"
        )
    statistics = summary_statistics(bundle.release, bundle.variants, covariates=covariates)
    names = statistics.outcome_names
    chosen = choose(names, outcomes, what="outcomes", where=str(release)) if outcomes else names
    made = write_summary_statistics(
        statistics,
        out,
        format=format_,
        outcomes=tuple(chosen),
        genome_build=genome_build,
        digest=bundle.digest,
    )
    if json_:
        show_json(
            {
                "files": [str(path) for path in made.paths],
                "guarantee_file": str(made.guarantee),
                "variants": made.written,
                "hidden_by_noise": made.hidden,
                "not_in_format": list(made.unfit),
                "adjusted_for": list(statistics.covariates),
                "notes": list(statistics.notes),
            }
        )
        return
    say(
        f"Wrote {counted(len(made.paths), 'file')} to {out}: {counted(made.written, 'variant')} each. "
        "Standard errors contain the privacy noise."
    )
    say(f"The guarantee is in {made.guarantee}.")
    if made.hidden:
        say(
            f"Left out: {counted(made.hidden, 'variant')}, because the noise hides how much they vary."
        )
    if made.unfit:
        say(
            f"Left out: {counted(len(made.unfit), 'variant')} that GWAS-SSF cannot express, for example "
            f"{made.unfit[0]!r}."
        )
    for note in statistics.notes:
        say(f"Note: {note}.")
