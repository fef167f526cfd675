"""Small helpers to collect results and to write them as Markdown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path

import numpy as np

__all__ = ["Results", "write_section"]

DOCS = Path(__file__).resolve().parents[1] / "docs"


class Results:
    """Numbers by key, averaged at the end."""

    def __init__(self) -> None:
        self._values: defaultdict[Hashable, list[float]] = defaultdict(list)

    def add(self, key: Hashable, value: float) -> None:
        self._values[key].append(value)

    def mean(self, key: Hashable) -> float:
        return float(np.mean(self._values[key]))


def write_section(
    name: str, command: str, note: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Replace the section `name` of docs/accuracy.md by a table, and say which command made it."""
    path = DOCS / "accuracy.md"
    lines = [
        f"<!-- {name} -->",
        f"Printed by `{command}`. {note}",
        "",
        "| " + " | ".join(header) + " |",
        "|" + "---|" * len(header),
        *("| " + " | ".join(row) + " |" for row in rows),
        f"<!-- end {name} -->",
    ]
    text = path.read_text()
    start, end = text.index(lines[0]), text.index(lines[-1]) + len(lines[-1])
    path.write_text(text[:start] + "\n".join(lines) + text[end:])
