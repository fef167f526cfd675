"""`primo predict`: predictions of a release for the rows of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from primo.cli.data_options import feature_options, missing_option
from primo.cli.options import json_option, release_argument
from primo.cli.output import say, show_json
from primo.cli.overwriting import check_output, force_option

__all__ = ["predict"]


@click.command(epilog="Example:  primo predict release/ --bfile new --out predicted.tsv")
@release_argument
@feature_options
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File to write: .tsv, .tsv.gz or .parquet.",
)
@missing_option
@click.option(
    "--strict", is_flag=True, help="Refuse a genotype file that lacks variants of the release."
)
@force_option
@json_option
def predict(
    release: Path, out: Path, strict: bool, force: bool, json_: bool, **options: Any
) -> None:
    """Predict all outcomes for the rows of a file, block by block.

    Features are found by the names that they have in the release. A missing genotype, and a variant
    that the file lacks, counts as its public mean; a variant whose other allele the file counts is
    swapped.

    Predictions are about the people of that file: they are as private as its rows, and not covered
    by the guarantee of the release.
    """
    from primo.cli.data import missing_of, open_features
    from primo.released.bundle import read_bundle
    from primo.released.public_means import public_means
    from primo.workflow.predict import predict_to_file

    check_output(out, force=force)
    bundle = read_bundle(release)
    coefficients = bundle.coefficients()
    fill = missing_of(options) == "centre"
    columns = open_features(
        options, coefficients.feature_names, bundle.variants, strict=strict or not fill
    )
    centre = public_means(bundle.release) if fill else None
    path = predict_to_file(
        coefficients, columns, out, missing_centre=centre, replace=force, show_progress=True
    )
    if json_:
        show_json({"file": str(path), "rows": columns.n})
    else:
        say(f"Wrote {path}: {columns.n} rows. It is as private as the rows it is about.")
