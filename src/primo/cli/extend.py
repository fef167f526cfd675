"""`primo extend`: outcomes that arrived later, with the covariance already paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from primo.cli.data import open_rows, outcome_bounds
from primo.cli.options import (
    config_option,
    cost_options,
    data_options,
    engine_options,
    json_option,
    ledger_options,
    out_options,
    used_config,
)
from primo.cli.publish import Request, preview, resumed_options, run
from primo.errors import InputError
from primo.fitting import prepare_extension

__all__ = ["extend"]


@click.command(
    epilog="Example:  primo extend --release release/ --bfile cohort --pheno later.tsv --epsilon 1 "
    "--delta 1e-6 --bounds bounds.toml --ledger cohort.ledger --out second/"
)
@click.option("--release", type=click.Path(path_type=Path), help="The earlier release.")
@config_option
@data_options
@cost_options
@click.option("--bounds", type=click.Path(path_type=Path), help="TOML file; only its [outcomes].")
@click.option(
    "--estimator",
    type=click.Choice(["auto", "ridge", "filter", "one-sided", "two-sided"]),
    default="auto",
    show_default=True,
    help="How coefficients are made from the release; costs nothing.",
)
@ledger_options
@engine_options
@out_options
@json_option
@click.pass_context
def extend(ctx: click.Context, /, **options: Any) -> None:
    """Release new outcomes of the same people; only their association is paid for."""
    from primo.bundle import read_bundle

    config = ""
    if options["resume"]:
        options = resumed_options(ctx, options)
    else:
        config = used_config(ctx)
    if options["release"] is None or options["epsilon"] is None or options["delta"] is None:
        raise InputError("give --release (the earlier one), --epsilon and --delta")
    earlier = read_bundle(options["release"])
    opened = open_rows(options)
    prepared = prepare_extension(
        earlier.release,
        opened.source,
        epsilon=options["epsilon"],
        delta=options["delta"],
        outcome_bounds=outcome_bounds(options, opened.source),
    )
    request = Request(options=options, opened=opened, prepared=prepared, config=config)
    if options["dry_run"]:
        preview(request)
    else:
        run(request)
