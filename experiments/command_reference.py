"""Write docs/command-line.md from the commands themselves: `python -m experiments.command_reference`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import click

from primo.cli import main

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"

_HEAD = """# The command line

Written from the program by `python -m experiments.command_reference`; a test keeps it true.

Every option of `primo fit` and `primo extend` can be set in a TOML file (`--config run.toml`), under its
name without the dashes. Section names have no meaning. The command line overrides the file. The options
used are stored with the release (`config.toml`); `primo fit --config release/config.toml` makes such a
release again (and charges for it again).

Exit codes: 0 done; 1 could not be done (budget used up, ledger locked, disk full, interrupted, a bug); 2
bad input. With `--json` results and errors are JSON on standard output. Progress bars appear on a
terminal only. What the messages mean and what to do: [errors](errors.md).
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join([_HEAD, *_sections(main, ())])


def _sections(group: click.Group, above: tuple[str, ...]) -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        path = (*above, name)
        yield f"{'#' * (1 + len(path))} primo {' '.join(path)}\n"
        yield from _describe(command)
        if isinstance(command, click.Group):
            yield from _sections(command, path)


def _describe(command: click.Command) -> Iterator[str]:
    yield inspect.cleandoc(command.help or "") + "\n"
    if command.epilog:
        label, example = command.epilog.split(":", 1)
        yield f"{label}: `{example.strip()}`\n"
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        yield "| option | meaning |\n|---|---|"
        yield "\n".join(_row(option) for option in options) + "\n"


def _row(option: click.Option) -> str:
    names = " ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    kind = ""
    if isinstance(option.type, click.Choice):
        kind = " (" + ", ".join(map(str, option.type.choices)) + ")"
    default = f" Default: {option.default}." if option.show_default else ""
    return f"| {names}{kind} | {option.help or ''}{default} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
