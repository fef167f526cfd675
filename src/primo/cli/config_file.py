"""The configuration file of a command: what one may say, and what is stored of it with a release."""

from __future__ import annotations

import difflib
import json
import tomllib
from pathlib import Path
from typing import Any

import click
import tomli_w
from click.core import ParameterSource

from primo._util.reading import unreadable
from primo.cli.option_types import FILE, Rounds, Whole
from primo.errors import InputError

__all__ = ["checked", "config_option", "used_config"]


#: Options about this call, the machine or the ledger rather than about the release: not stored with it.
_NOT_STORED = {
    *("config", "out", "resume", "dry_run", "json_"),
    *("ledger", "ledger_key", "user", "purpose", "dataset"),
    *("threads", "workers", "scheduler"),
    *("signal_r2", "outcome_sd", "feature_sd"),
}


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take options from a TOML file; options on the command line override it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            settings = flattened(tomllib.load(file))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of a number too long
        raise InputError(f"configuration {str(path)!r} is not TOML: {error}") from None
    ctx.default_map = {**(ctx.default_map or {}), **checked(ctx.command, settings, str(path))}
    return path


def flattened(settings: dict[str, Any]) -> dict[str, Any]:
    """Drop section headings: they are for the reader."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat.update(flattened(value) if isinstance(value, dict) else {key: value})
    return flat


def checked(command: click.Command, settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Map options as they are written (`outcomes-from`) to parameters; refuse unknown ones."""
    known = {
        option.lstrip("-"): parameter.name or ""
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = key.replace("_", "-")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{where}: {key!r} is not an option of `primo {command.name}`{hint}")
        # A switch may be written under its other name: no-intercept = true.
        parameter = next(p for p in command.params if p.name == known[name])
        _check_kind(parameter, value, where=where, key=key)
        negative = f"--{name}" in parameter.secondary_opts
        many = isinstance(parameter, click.Option) and parameter.multiple
        one = many and not isinstance(value, list)
        found[known[name]] = (not value) if negative else [value] if one else value
    return found


def _check_kind(parameter: click.Parameter, value: Any, *, where: str, key: str) -> None:
    """Refuse a value of another type than the option has, and a fraction of what is whole."""
    stated = f"{where}: {key} = {_written(value)}"
    if isinstance(parameter.type, Rounds):
        _check_rounds(value, stated)
        return
    if isinstance(parameter.type, Whole):
        if not parameter.type.fits(value):
            raise InputError(f"{stated} must be {parameter.type.wanted}")
        return
    numeric = isinstance(parameter.type, click.types.FloatParamType)
    kinds = (int, float) if numeric else bool if getattr(parameter, "is_flag", False) else str
    many = parameter.multiple if isinstance(parameter, click.Option) else False
    items = value if many and isinstance(value, list) else [value]
    if not all(
        isinstance(item, kinds) and not (numeric and isinstance(item, bool)) for item in items
    ):
        wanted = "a number" if numeric else "true or false" if kinds is bool else "text in quotes"
        # Text is not shown: the address of a ledger may hold a password.
        shown = stated if numeric else f"{where}: {key}"
        raise InputError(f"{shown} must be {wanted}" + (", or a list of such" if many else ""))


def _check_rounds(value: Any, stated: str) -> None:
    from primo.planning.rounds import check_rounds

    try:
        check_rounds(value)
    except InputError as error:
        raise InputError(error.message.render(lambda _: stated)) from None


def _written(value: Any) -> str:
    """Write a value as a configuration file has it."""
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else str(value)


def used_config(ctx: click.Context) -> str:
    """Return the options that were given, by command line or file, as a configuration file."""
    given = {}
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        chosen = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        if chosen and value is not None and name not in _NOT_STORED:
            given[parameter.opts[0].lstrip("-")] = _toml(value)
    return tomli_w.dumps(given)


def _toml(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_toml(item) for item in value]
    return str(value) if isinstance(value, Path) else value


config_option = click.option(
    "--config",
    type=FILE,
    is_eager=True,
    callback=_read_config,
    help="TOML file with any of these options (without the dashes); the command line overrides it.",
)
