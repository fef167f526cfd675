"""`primo extend`: outcomes that arrived later, with the covariance already paid for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from primo.bundle import Bundle, read_bundle
from primo.cli.data import open_rows, outcome_bounds
from primo.cli.options import (
    config_option,
    cost_options,
    data_options,
    engine_options,
    estimator_option,
    forecast_options,
    json_option,
    ledger_options,
    out_options,
    person_option,
    used_config,
)
from primo.cli.output import say
from primo.cli.publish import Request, check_naming, preview, resumed_options, run
from primo.errors import InputError
from primo.fitting import prepare_extension
from primo.ledger import open_ledger
from primo.sources.paired import Unmatched

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
@person_option
@estimator_option
@ledger_options
@engine_options
@out_options
@forecast_options
@json_option
@click.pass_context
def extend(ctx: click.Context, /, **options: Any) -> None:
    """Release new outcomes of the same people; only their association is paid for."""
    if options["resume"]:
        options, config = resumed_options(ctx, options)
    else:
        config = used_config(ctx)
    if options["release"] is None or options["epsilon"] is None or options["delta"] is None:
        raise InputError("give --release (the earlier one), --epsilon and --delta")
    earlier = read_bundle(options["release"])
    check_naming(options)
    opened = open_rows(options)
    source = opened.source
    if isinstance(source, Unmatched):
        # Whether it has exactly the rows of the earlier release shows when it is paid for.
        source = replace(source, n=min(source.n, earlier.release.plan.n))
        opened = replace(opened, source=source)
    prepared = prepare_extension(
        earlier.release,
        source,
        epsilon=options["epsilon"],
        delta=options["delta"],
        outcome_bounds=outcome_bounds(options, source),
        rows_per_person=options["rows_per_person"],
    )
    _check_earlier(earlier, options)
    request = Request(options=options, opened=opened, prepared=prepared, config=config)
    if options["dry_run"]:
        preview(request)
    else:
        run(request)


def _check_earlier(earlier: Bundle, options: dict[str, Any]) -> None:
    """Refuse an earlier release that is not, to the byte, the one that the ledger knows."""
    if options["ledger"] is None:
        return
    book = open_ledger(options["ledger"], readonly=True)
    known = book.find(earlier.manifest["release_id"])
    if known is None:
        say(
            f"Note: {earlier.path} is not in {book.where}; if it was paid for elsewhere, enter its cost "
            "with `primo ledger note`, else it is not counted."
        )
    elif known.digest is not None and known.digest != earlier.digest:
        raise InputError(
            f"{earlier.path} is not what {book.where} has under release {known.release_id}: its digest "
            "differs. Use an untouched copy"
        )
