"""`primo completion`: the script that makes a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from primo.cli.options import json_option
from primo.cli.output import show_json

__all__ = ["completion"]


@click.command(epilog="Example:  primo completion bash >> ~/.bashrc")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, json_: bool) -> None:
    """Print the completion script of a shell."""
    found = get_completion_class(shell)
    assert found is not None
    root = ctx.find_root().command
    script = found(root, {}, "primo", "_PRIMO_COMPLETE").source()
    if json_:
        show_json({"shell": shell, "script": script})
    else:
        click.echo(script)
