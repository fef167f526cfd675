"""Small tables of HTML for notebooks; every text is escaped, and colours are those of the page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

__all__ = ["facts", "grid", "plain"]

_CELL = "text-align:left;vertical-align:top;padding:.15em .9em .15em 0"


def facts(title: str, entries: Sequence[tuple[str, str]]) -> str:
    """Return a title and a table of names and texts."""
    rows = "".join(
        f'<tr><th scope="row" style="{_CELL};white-space:nowrap">{escape(name)}</th>'
        f'<td style="{_CELL}">{escape(text)}</td></tr>'
        for name, text in entries
    )
    return _framed(title, f"<table>{rows}</table>")


def grid(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    strong: Sequence[bool] = (),
    notes: Sequence[str] = (),
) -> str:
    """Return a title, a table with a header, and notes; rows that are `strong` stand out."""
    head = "".join(f'<th scope="col" style="{_CELL}">{escape(name)}</th>' for name in header)
    bold = [*strong, *[False] * (len(rows) - len(strong))]
    lines = "".join(
        "<tr>"
        + "".join(
            f'<td style="{_CELL}{";font-weight:bold" if heavy else ""}">{escape(cell)}</td>'
            for cell in row
        )
        + "</tr>"
        for row, heavy in zip(rows, bold, strict=True)
    )
    said = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return _framed(title, f"<table><thead><tr>{head}</tr></thead>{lines}</table>{said}")


def plain(text: str) -> str:
    """Return text with its line ends and blanks, in a font of one width."""
    return f'<div class="primo"><pre style="line-height:1.3">{escape(text)}</pre></div>'


def _framed(title: str, inside: str) -> str:
    return f'<div class="primo"><p><strong>{escape(title)}</strong></p>{inside}</div>'
