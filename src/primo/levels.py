"""Columns of categories: public levels, the indicator columns that they become, and their exact bounds.

A column with K levels becomes K − 1 columns, each 1 where the cell is its level and 0 elsewhere; the
first level, the reference, is 0 in all of them. At most one indicator is 1, so how far a row can lie
from the centre 1/K is known exactly, and is the unit of all K − 1: they add at most 1 to the squared
length of a row, as one column in its range does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError

__all__ = ["Levels", "levels_for"]

#: Signs between the name of a column and its level, in the name of an indicator.
_SIGN = "="


@dataclass(frozen=True)
class Levels:
    """The levels of a column, all of them public, in the order in which they were stated."""

    values: tuple[str, ...]  # as text; whole numbers without a point

    @classmethod
    def of(cls, values: Any, where: str) -> Levels:
        """Check stated levels; `where` names the column in messages."""
        if isinstance(values, str) or not isinstance(values, Iterable):
            raise InputError(f'{where}: levels must be a list, for example levels = ["no", "yes"]')
        texts = tuple(_text(value) for value in values)
        if None in texts or "" in texts:
            raise InputError(f"{where}: every level must be text that is not empty, or a number")
        if len(texts) < 2 or len(set(texts)) < len(texts):
            raise InputError(f"{where}: give at least two levels, each once")
        return cls(tuple(text for text in texts if text is not None))

    def __len__(self) -> int:
        """Return the number of levels."""
        return len(self.values)

    def indicators(self, column: str) -> tuple[str, ...]:
        """Return the names of the indicator columns: `sex=M`."""
        return tuple(f"{column}{_SIGN}{value}" for value in self.values[1:])

    @property
    def centre(self) -> float:
        """The middle of every indicator: what it is in a row that is all levels alike."""
        return 1 / len(self)

    @property
    def scale(self) -> float:
        """The largest distance of a row of indicators from the centre; 1/2 for two levels.

        Where the first level holds, it is √(K − 1)/K, elsewhere √(K² − K − 1)/K, which is not smaller.
        """
        k = len(self)
        return math.sqrt(k * k - k - 1) / k

    def code(self, value: Any) -> float:
        """Return the place of a value among the levels; NaN for a value that is none of them."""
        text = _text(value)
        return float(self.values.index(text)) if text in self.values else math.nan

    def codes(self, cells: Iterable[Any]) -> NDArray[np.float64]:
        """Return the codes of cells; a cell that is met again is not looked at twice."""
        known: dict[Any, float] = {}
        found = []
        for cell in cells:
            kind = (type(cell), cell)  # True and 1 are equal, and are not the same level
            if kind not in known:
                known[kind] = self.code(cell)
            found.append(known[kind])
        return np.array(found, dtype=np.float64)

    def expand(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return indicators (rows, K − 1) of codes (rows,); NaN where a code is."""
        places = np.arange(1, len(self), dtype=codes.dtype)
        found = (codes[:, None] == places).astype(codes.dtype)
        found[np.isnan(codes)] = np.nan
        return np.asarray(found)


def levels_for(
    stated: Mapping[str, Any], columns: Sequence[str], where: str = "levels"
) -> dict[str, Levels]:
    """Return the levels of the columns that have some: stated by name, or else by the first pattern."""
    checked = {
        name: value if isinstance(value, Levels) else Levels.of(value, f"{where} of {name!r}")
        for name, value in stated.items()
    }
    found = {}
    for column in columns:
        pattern = column if column in checked else None
        pattern = pattern or next((p for p in checked if fnmatchcase(column, p)), None)
        if pattern is not None:
            found[column] = checked[pattern]
    present = set(columns)
    for column, levels in found.items():
        twice = next((name for name in levels.indicators(column) if name in present), None)
        if twice is not None:
            raise InputError(
                Argument("levels"),
                f" of {column!r} make a column {twice!r}, and there is one of that name; rename it",
            )
    return found


def _text(value: Any) -> str | None:
    """Spell a cell or a level as text: 1, 1.0 and "1" are one level, and so are true and "true"."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, str):
        text = value.strip()
        return _number(text) or text
    if isinstance(value, int | float | np.integer | np.floating):
        return _number(str(value))
    return None


def _number(text: str) -> str | None:
    """Spell a number in one way; None if the text is not a finite number."""
    if not text[:1].isdigit() and text[:1] not in ("-", "+", "."):
        return None  # "nan", "infinity" and words
    try:
        number = float(text)
    except ValueError:
        return None
    if not math.isfinite(number):
        return None
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
