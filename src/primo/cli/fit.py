"""`primo fit`: plan, charge, read, publish; and finish what was interrupted."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from primo.cli.config_file import config_option, used_config
from primo.cli.data_options import data_options
from primo.cli.options import (
    cost_options,
    engine_options,
    forecast_options,
    json_option,
    ledger_options,
    out_options,
    release_options,
)

if TYPE_CHECKING:
    from primo.cli.request import Request
    from primo.rows.sources.base import Source
    from primo.workflow.fit import Prepared

__all__ = ["fit"]


@click.command(
    epilog="Example:  primo fit --bfile cohort --pheno traits.tsv --protect both --epsilon 5 "
    "--delta 1e-6 --bounds bounds.toml --ledger cohort.ledger --out release/"
)
@config_option
@data_options
@cost_options
@release_options
@ledger_options
@engine_options
@out_options
@forecast_options
@json_option
@click.pass_context
def fit(ctx: click.Context, /, **options: Any) -> None:
    """Fit all outcomes under one privacy budget and publish a release.

    Reads every row once in each round (--rounds; most often 6 by default), and up to four times more
    with --norms auto. The ledger is charged before the first row is read.
    """
    from primo.cli.preview import preview
    from primo.cli.publish import run
    from primo.cli.resumed import resumed_options

    if options["resume"]:
        options, config = resumed_options(ctx, options)
    else:
        config = used_config(ctx)
    request = prepared_request(options, config=config)
    if options["dry_run"]:
        preview(request)
    else:
        run(request)


def prepared_request(options: dict[str, Any], *, config: str) -> Request:
    """Open the rows and plan the release; no row is read."""
    from primo.cli.data import open_rows, settings_of
    from primo.cli.request import Request, check_naming, planned
    from primo.workflow.fit import prepare

    check_naming(options)
    opened = open_rows(options)
    settings = settings_of(options, opened)

    def plan(source: Source) -> Prepared:
        if source is opened.source or settings.covariance_rows is None:
            return prepare(source, settings)
        # To refuse a sample of more people than were matched would tell how many they are.
        return prepare(
            source, replace(settings, covariance_rows=min(settings.covariance_rows, source.n))
        )

    return planned(
        Request(options=options, opened=opened, prepared=plan(opened.source), config=config), plan
    )
