"""Who owns the rows: which columns hold the ids, and how many rows one person owns."""

from __future__ import annotations

from collections import Counter
from typing import Any

from primo.errors import Argument, InputError, Message
from primo.rows.sources.base import Columns, Ids, Source
from primo.rows.sources.canonical import canonical_id

__all__ = ["check_ids", "check_rows_per_person", "id_names_of", "named_by", "rows_per_person_of"]

Names = tuple[str, ...]


def rows_per_person_of(rows: Source | Columns) -> int:
    """Return how many rows one person owns, as the store states it: two for haplotypes, else one."""
    return int(getattr(rows, "rows_per_person", 1))


def id_names_of(columns: Any) -> Names | None:
    """Return the names of the columns that hold the ids, or None where a store has no ids."""
    names: Names | None = getattr(columns, "id_names", None)
    return names


def named_by(source: Source) -> Names | None:
    """Return the same for a source; "" stands for labels without a name.

    Reads the ids only of a source without the attribute `id_names`, which is not primo's own.
    """
    if hasattr(source, "id_names"):
        return id_names_of(source)
    return None if source.ids() is None else ("",)


def check_rows_per_person(source: Source, most: int) -> None:
    """Refuse rows of which one person, by the ids, owns more than `most`.

    Guarantee: if this returns and there are ids, one person can change at most `most` rows.
    Cost: a pass over the ids.
    """
    ids = source.ids()
    if ids is not None:
        check_ids(ids, most)


def check_ids(ids: Ids, most: int) -> None:
    """Refuse empty ids, and ids that more than `most` rows have; do not say which or how many.

    One message for both: a private column may have been given as id column, by mistake or to find out
    something about it.
    """
    rows = Counter(map(canonical_id, ids.tolist()))
    if "" in rows or max(rows.values(), default=0) > most:
        owned = "one row" if most == 1 else f"{most} rows"
        raise InputError(
            f"every row needs an id, and a person may own at most {owned}; these rows break one of "
            "these rules",
            argument="rows_per_person",
            remedy=Message.of(
                "Keep one row of each person, or declare how many rows a person may own (",
                Argument("rows_per_person", ...),
                "): that multiplies the cost of a person by this number. If an individual id is used "
                "in several families, give every person a different id",
            ),
        )
