"""The options of a run that was interrupted, for the run that finishes it."""

from __future__ import annotations

import tomllib
from typing import Any

import click
import tomli_w
from click.core import ParameterSource

from primo.cli.config_file import checked
from primo.errors import InputError
from primo.workflow.resume import Staging

__all__ = ["resumed_options"]

#: How cells are read. It may be changed when a run is resumed, as the file itself may be repaired.
_READING = ("missing", "na", "decimal", "separator")


def resumed_options(ctx: click.Context, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return options and configuration of the interrupted run.

    Only options that do not change the release may be given again.
    """
    if options["out"] is None:
        raise InputError("--resume needs --out: the release that was interrupted")
    with Staging.resume(options["out"]) as staging:
        stored = _read_stored(staging.config)
        payer = staging.charge
    settings = checked(ctx.command, stored, "the interrupted run")
    changeable = {"out", "resume", "json_", "ledger", "ledger_key", "user", "threads", "workers"}
    changeable |= {"scheduler", "signal_r2", "outcome_sd", "feature_sd", *_READING}
    for name in options:
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in changeable:
            raise InputError(
                f"--{name.replace('_', '-')} cannot be changed when a run is resumed: the release was "
                "planned and paid for with the options of its first run"
            )
    with ctx.scope(cleanup=False):
        params = {p.name: p for p in ctx.command.params}
        for name, value in settings.items():
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
                options[name] = params[name].type_cast_value(ctx, value)
    for name in ("ledger", "purpose", "dataset", "user"):
        options[name] = options[name] or payer.get(name)
    for name in _READING:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            given = options[name]
            stored[name] = list(given) if isinstance(given, tuple) else given
    return options, tomli_w.dumps(stored)


def _read_stored(config: str) -> dict[str, Any]:
    try:
        return tomllib.loads(config)
    except (ValueError, RecursionError):
        pass
    raise InputError("the configuration of the interrupted run is damaged; it cannot be resumed")
