"""Cells of a chunk of text: find them without parsing, and parse plain numbers fast."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message

__all__ = [
    "Layout",
    "check_decimal",
    "count_lines",
    "doubled",
    "first_cells",
    "parse_plain",
    "tidy",
    "unquoted",
]

_TAB, _NEWLINE, _RETURN = 9, 10, 13
_SEPARATORS = "\t ,;:|"  # cannot be part of a number


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Layout:
    """The format of a table's lines, for the compiled loop."""

    separator: int
    quote: int  # -1: there is none
    target: NDArray[np.int64]  # (cells of a line,) the column that each becomes, or -1
    words: NDArray[np.uint8]  # the words that mean a missing value, one after the other
    ends: NDArray[np.int64]  # (words,) where each of them ends
    missing: NDArray[np.float64]  # numbers that mean a missing value

    @classmethod
    def of(
        cls,
        header: Sequence[str],
        names: Sequence[str],
        *,
        separator: str,
        quote: bool,
        words: Sequence[str],
        missing: Sequence[float],
    ) -> Layout | None:
        """Describe a table, or return None where its separator is unusual, such as a digit."""
        if separator not in _SEPARATORS:
            return None
        place = {name: j for j, name in enumerate(names)}
        coded = [word.encode() for word in words]
        return cls(
            separator=ord(separator),
            quote=ord('"') if quote else -1,
            target=np.array([place.get(name, -1) for name in header], dtype=np.int64),
            words=np.frombuffer(b"".join(coded), dtype=np.uint8),
            ends=np.cumsum([len(word) for word in coded], dtype=np.int64),
            missing=np.array(missing, dtype=np.float64),
        )


def check_decimal(decimal: str, separator: str) -> None:
    """Refuse a decimal sign that is neither a point nor a comma, or that also separates cells."""
    if decimal not in (".", ","):
        raise InputError(Argument("decimal", decimal), " must be '.' or ','")
    if decimal == separator == ",":
        raise InputError(
            "numbers with a decimal comma need another separator than a comma",
            argument="decimal",
            value=decimal,
            remedy=Message.of(
                "if the cells are separated by another sign, give it with ",
                Argument("separator", ";"),
            ),
        )


def parse_plain(
    text: bytes, rows: int, layout: Layout, compiled: ModuleType
) -> NDArray[np.float64] | None:
    """Return a chunk of `rows` lines as numbers, or None if not all of its cells are plain.

    Arrow decides what a cell means and what is wrong with it. For plain numbers, known words for missing
    values and the right number of cells, the loop gives the same result as Arrow.
    """
    ended = text if text.endswith(b"\n") else text + b"\n"
    out = np.empty((rows, int(layout.target.max()) + 1))
    stop = compiled.parse_rows(
        np.frombuffer(ended, dtype=np.uint8),
        layout.separator,
        layout.quote,
        layout.target,
        layout.words,
        layout.ends,
        layout.missing,
        out,
    )
    return out if stop == len(ended) else None


def first_cells(
    text: bytes, separator: str, cells: int, first: int, compiled: ModuleType | None
) -> bytes | None:
    """Return the `first` cells of each line, or None where that needs a parser.

    A parser is needed if a line does not have `cells` cells, and where there are quotation marks or
    unusual line ends.
    """
    if first >= cells or separator not in _SEPARATORS or b'"' in text or b"\r" in text:
        return None
    letters = np.frombuffer(text, dtype=np.uint8)
    ends = _breaks(letters, compiled)
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    find = _find_stops if compiled is None else compiled.find_stops
    stops = np.empty_like(ends)
    if not find(letters, ends, ord(separator), cells, first, stops):
        return None
    starts = np.append(0, ends[:-1] + 1)
    if (starts == stops).any():
        return None  # an empty line would not be a row
    if compiled is not None:
        heads = np.empty(int((stops - starts).sum()) + len(stops), dtype=np.uint8)
        compiled.join_heads(letters, starts, stops, heads)
        return heads.tobytes()
    places = zip(starts.tolist(), stops.tolist(), strict=True)
    return b"".join([text[start:stop] + b"\n" for start, stop in places])


def _breaks(letters: NDArray[np.uint8], compiled: ModuleType | None) -> NDArray[np.intp]:
    """Return where lines end."""
    if compiled is None:
        return np.flatnonzero(letters == _NEWLINE)
    places = np.empty(len(letters) // 64 + 1, dtype=np.intp)
    found = compiled.find_breaks(letters, places)
    if found > len(places):  # short lines
        places = np.empty(found, dtype=np.intp)
        compiled.find_breaks(letters, places)
    return places[:found]


def _find_stops(
    text: NDArray[np.uint8],
    ends: NDArray[np.intp],
    separator: int,
    cells: int,
    first: int,
    stops: NDArray[np.intp],
) -> bool:
    """Do the same as `compiled.find_stops`."""
    cuts = np.flatnonzero(text == separator)
    before = np.searchsorted(cuts, ends)
    if (np.diff(before, prepend=0) != cells - 1).any():
        return False
    stops[:] = cuts[first - 1 :: cells - 1]
    return True


def count_lines(text: bytes, compiled: ModuleType | None) -> tuple[int, int]:
    """Count lines and blank lines; a carriage return alone also ends a line, as for Arrow."""
    letters = np.frombuffer(text, dtype=np.uint8)
    breaks = _breaks(letters, compiled)
    odd = text[:1] in b"\r\n" or bool(np.isin(_after(letters, breaks), (_NEWLINE, _RETURN)).any())
    if not odd and b"\r" in text:
        returns = np.flatnonzero(letters == _RETURN)
        odd = bool((_after(letters, returns) != _NEWLINE).any()) or text.endswith(b"\r")
    if odd:
        lines = text.splitlines()
        return len(lines), lines.count(b"")
    return len(breaks) + (not text.endswith(b"\n")), 0


def _after(letters: NDArray[np.uint8], places: NDArray[np.intp]) -> NDArray[np.uint8]:
    """Return the letters after some places, except after the last of all."""
    return letters[places[places < len(letters) - 1] + 1]


def tidy(text: bytes) -> bytes:
    """Turn runs of blanks into one tab, and drop those at the ends of lines, in PLINK's files.

    A line break is added to the last line, so that it stays a line if it is blank.
    """
    if not text.endswith(b"\n"):
        text += b"\n"
    text = text.replace(b"\r", b"\t").replace(b" ", b"\t")
    while doubled(text, _TAB):
        text = text.replace(b"\t\t", b"\t")
    return text.replace(b"\t\n", b"\n").replace(b"\n\t", b"\n").strip(b"\t")


def unquoted(text: bytes) -> bytes:
    """Drop the quotation marks around whole words of tidy text, as R writes them."""
    if b'"' not in text:
        return text
    return re.sub(rb'(?<![^\t\n])"([^"\t\n]*)"(?![^\t\n])', rb"\1", text)


def doubled(text: bytes, letter: int) -> bool:
    """Whether a letter comes twice in a row; much faster than `in`, which is slow for pairs."""
    same = np.frombuffer(text, dtype=np.uint8) == letter
    return bool((same[1:] & same[:-1]).any())
