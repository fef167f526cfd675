"""`primo extend`: outcomes that arrived later, with the covariance already paid for."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from primo.cli.config_file import config_option, used_config
from primo.cli.data_options import data_options
from primo.cli.option_types import AUTO, PROTECTIONS, Rounds
from primo.cli.options import (
    cost_options,
    engine_options,
    estimator_option,
    forecast_options,
    json_option,
    ledger_options,
    norms_option,
    out_options,
    person_option,
)
from primo.errors import Argument, InputError

__all__ = ["extend"]


def _one_round(ctx: click.Context, _: click.Parameter, value: int | str | None) -> None:
    """Refuse several rounds, and say why."""
    if value not in (None, 1, AUTO) and not ctx.resilient_parsing:
        raise InputError(
            Argument("rounds", value),
            " is not possible here: later outcomes are made in one round",
            remedy="leave it out",
        )


@click.command(
    epilog="Example:  primo extend --release release/ --bfile cohort --pheno later.tsv --epsilon 1 "
    "--delta 1e-6 --protect both --bounds bounds.toml --ledger cohort.ledger --out second/"
)
@click.option("--release", type=click.Path(path_type=Path), help="The earlier release.")
@config_option
@data_options
@cost_options
@click.option(
    "--protect",
    type=PROTECTIONS,
    help="What is secret about a person; must be the same as in the earlier release.",
)
@click.option(
    "--bounds",
    type=click.Path(path_type=Path),
    help="TOML file with public bounds; of [features] only levels are used.",
)
@norms_option
@person_option
@estimator_option
@ledger_options
@engine_options
@out_options
@forecast_options
@json_option
@click.option(
    "--rounds",
    type=Rounds(),
    expose_value=False,
    hidden=True,
    callback=_one_round,
    help="Not for later outcomes, which are made in one round.",
)
@click.pass_context
def extend(ctx: click.Context, /, **options: Any) -> None:
    """Release new outcomes of the same people; only their association is paid for."""
    from primo.cli.data import open_rows, outcome_bounds
    from primo.cli.preview import preview
    from primo.cli.publish import run
    from primo.cli.request import Request, check_naming, planned
    from primo.cli.resumed import resumed_options
    from primo.ledger import open_ledger
    from primo.released.bundle import read_bundle
    from primo.rows.sources.paired import Unmatched
    from primo.workflow.extension import check_known, check_protection
    from primo.workflow.fit import prepare_extension

    if options["resume"]:
        options, config = resumed_options(ctx, options)
    else:
        config = used_config(ctx)
    if any(options[name] is None for name in ("release", "protect", "epsilon", "delta")):
        raise InputError(
            "give --release (the earlier one), --protect (what is secret, as in the earlier one), "
            "--epsilon and --delta"
        )
    earlier = read_bundle(options["release"])
    # Checked before a data file is opened: which blocks may be read depends on the protection.
    check_protection(earlier.release, options["protect"])
    check_naming(options)
    if options["ledger"] is not None:
        check_known(earlier, open_ledger(options["ledger"], readonly=True))
    opened = open_rows(options)
    source = opened.source
    if isinstance(source, Unmatched):
        # Whether these are the rows of the earlier release is checked after the join.
        source = replace(source, n=min(source.n, earlier.release.plan.n))
        opened = replace(opened, source=source)
    plan = partial(
        prepare_extension,
        earlier,
        protection=options["protect"],
        epsilon=options["epsilon"],
        delta=options["delta"],
        outcome_bounds=outcome_bounds(options, source),
        rows_per_person=options["rows_per_person"],
    )
    request = planned(
        Request(options=options, opened=opened, prepared=plan(source), config=config), plan
    )
    if options["dry_run"]:
        preview(request)
    else:
        run(request)
