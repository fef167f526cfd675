"""Outputs that replace nothing by accident: not without --force, and never an input of the command."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from primo._util.atomic import refuse_existing
from primo.errors import InputError

__all__ = ["check_output", "force_option"]

force_option = click.option(
    "--force",
    is_flag=True,
    help="Replace a file that is there already; never one that this command reads.",
)

#: What a prefix stands for, by the option that takes it.
_ENDINGS = {
    "bfile": (".bed", ".bim", ".fam"),
    "pfile": (".pgen", ".pvar", ".pvar.zst", ".psam"),
    "ledger": ("", ".key", "-journal", "-wal", "-shm"),
    "where": ("", ".key", "-journal", "-wal", "-shm"),
}


def check_output(*targets: Path, force: bool) -> None:
    """Refuse files to write that this command reads, and those that exist, unless --force was given.

    Files are compared by device and inode, so that links and other spellings of a path are seen.
    Everything that the running command was given as a path is an input, except its --out. A place
    inside an input folder (a release, a Zarr store) is refused as well.
    """
    inputs = list(_inputs(click.get_current_context()))
    for target in targets:
        for path in inputs:
            if _is_part(target, path):
                raise InputError(
                    f"--out {str(target)!r} is, or lies in, {str(path)!r}, which this command reads; "
                    "choose another name"
                )
        if not force and os.path.lexists(target):
            if target.is_dir():
                refuse_existing(target)
            raise InputError(
                f"{str(target)!r} exists already; choose another name, or replace it with --force"
            )


def _inputs(ctx: click.Context) -> Iterator[Path]:
    """Yield every existing file or folder that the options of the command name."""
    for name, value in ctx.params.items():
        if name == "out":
            continue
        for item in value if isinstance(value, tuple | list) else (value,):
            if name in _ENDINGS and item is not None:
                yield from (Path(f"{item}{ending}") for ending in _ENDINGS[name])
            elif isinstance(item, Path):
                yield item


def _is_part(target: Path, path: Path) -> bool:
    """Whether a target is this file, lies in this folder, or is a link to one of its files."""
    if _same(target, path):
        return True
    if not path.is_dir():
        return False
    around = (*target.absolute().parents, *target.resolve().parents)
    return any(_same(place, path) for place in around) or any(
        _same(target, file) for file in path.iterdir()
    )


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist, which the command itself says
        return False
