"""The index of a pandas frame as ids of people; nothing of pandas is imported."""

from __future__ import annotations

from typing import Any

from primo.rows.sources.base import Ids
from primo.rows.sources.canonical import joined_ids

__all__ = ["index_labels", "index_names"]


def index_names(index: Any) -> tuple[str, ...] | None:
    """Return the names of the levels ("" without), or None for what is no index or names nobody.

    A default index names positions: other rows, or the same in another order, would be the same people.
    Any other range counts rows too, and has no name, whatever it is called; no ledger takes that.
    """
    if type(index).__module__.partition(".")[0] != "pandas" or not hasattr(index, "nlevels"):
        return None
    if type(index).__name__ == "RangeIndex":
        return None if (index.start, index.step) == (0, 1) else ("",)
    return tuple("" if name is None else str(name) for name in index.names)


def index_labels(index: Any) -> Ids | None:
    """Return one label per row, or None where `index_names` gives None; levels are joined by a tab.

    A missing label, or half of one, is empty.
    """
    if index_names(index) is None:
        return None
    return joined_ids([index.get_level_values(i).tolist() for i in range(index.nlevels)])
