"""What commands print: sentences and tables for people, JSON for machines."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import click

__all__ = ["as_json", "counted", "say", "show_json", "table"]


def say(text: str = "") -> None:
    """Print a line for people, on standard error so that standard output stays clean for pipes."""
    click.echo(text, err=True)


def counted(number: int, thing: str) -> str:
    """Write "1 row", "2 rows"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def show_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    click.echo(as_json(value))


def as_json(value: Any) -> str:
    """Write a value as JSON; infinities and NaN, which JSON lacks, become null."""
    return json.dumps(_plain(value), indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay out a table in plain text; columns of numbers are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(line[i]) for line in [list(header), *cells]) for i in range(len(header))]
    right = [
        bool(rows) and all(isinstance(row[i], int | float) for row in rows)
        for i in range(len(header))
    ]

    def line(parts: Sequence[str]) -> str:
        return "  ".join(
            part.rjust(width) if to_right else part.ljust(width)
            for part, width, to_right in zip(parts, widths, right, strict=True)
        ).rstrip()

    return "\n".join([line(list(header)), *(line(row) for row in cells)])
