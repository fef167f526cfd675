"""The index of a pandas frame as ids of people; nothing of pandas is imported."""

from __future__ import annotations

from typing import Any

from primo.rows.sources.base import Ids
from primo.rows.sources.canonical import joined_ids

__all__ = ["index_labels", "index_names"]


def index_names(index: Any) -> tuple[str, ...] | None:
    """Return the names of the levels ("" without a name), or None if this is no index of people.

    A default index numbers positions: other rows, or the same rows in another order, would seem to be
    the same people. Any other range also counts rows; its name is ignored, so no ledger accepts it.
    """
    if type(index).__module__.partition(".")[0] != "pandas" or not hasattr(index, "nlevels"):
        return None
    if type(index).__name__ == "RangeIndex":
        return None if (index.start, index.step) == (0, 1) else ("",)
    return tuple("" if name is None else str(name) for name in index.names)


def index_labels(index: Any) -> Ids | None:
    """Return one label per row, or None where `index_names` gives None; levels are joined by a tab.

    A label that is missing, or has a missing part, is empty.
    """
    if index_names(index) is None:
        return None
    return joined_ids([index.get_level_values(i).tolist() for i in range(index.nlevels)])
