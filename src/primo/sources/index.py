"""The index of a pandas frame as ids of people; nothing of pandas is imported."""

from __future__ import annotations

from typing import Any

import numpy as np

from primo.errors import InputError
from primo.sources.base import Ids

__all__ = ["index_labels", "index_names"]


def index_names(index: Any) -> tuple[str, ...] | None:
    """Return the names of the levels ("" without), or None for what is no index or names nobody.

    A default index names positions: other rows, or the same in another order, would be the same people.
    """
    if type(index).__module__.partition(".")[0] != "pandas" or not hasattr(index, "nlevels"):
        return None
    if type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1):
        return None
    return tuple("" if name is None else str(name) for name in index.names)


def index_labels(index: Any) -> Ids | None:
    """Return one label per row, or None where `index_names` gives None; levels are joined by a tab.

    Whole numbers are the same people whatever their type: 1, 1.0 and "1". A missing label, or half of
    one, is empty.
    """
    if index_names(index) is None:
        return None
    levels = [index.get_level_values(i).tolist() for i in range(index.nlevels)]
    rows = (tuple(map(_label, row)) for row in zip(*levels, strict=True))
    return np.array(["\t".join(row) if all(row) else "" for row in rows], dtype=np.str_)


def _label(value: Any) -> str:
    """Spell one label; what is missing (NaN, NaT, NA, None) is empty."""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, float | np.floating):
        if np.isnan(value):
            return ""
        if not float(value).is_integer():
            raise InputError(
                "the index of the frame holds numbers that are not whole, which name nobody; make ids "
                "of text or whole numbers the index"
            )
        return str(int(value))
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    return str(value).strip()
