"""What identifies a person in a ledger: the same for all its people, so that they can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from primo.errors import Advice, Argument, InputError, Message

__all__ = ["Naming", "Person", "in_words"]

#: Names of the columns, or levels of an index, that hold the ids; "" for labels without a name.
Person = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What people are recognised by; fixed when the ledger is made, or by its first charge.

    Guarantee: all charges of a ledger are compared with each other, because all of them name people by
    the same columns, or all by the values of their rows.
    """

    person: Person | None = None  # None: those of the first charge
    pinned: bool = False  # by the steward
    by_values: bool = False

    @classmethod
    def of(cls, person: str | Sequence[str] | None, by_values: bool) -> Self:
        """Return the naming that a steward asks for."""
        if person is None:
            return cls(by_values=by_values)
        names = (person,) if isinstance(person, str) else tuple(person)
        if not names or not all(isinstance(name, str) and name.strip() for name in names):
            raise InputError(
                Argument("person", person), " must be the name of a column, or several"
            )
        if by_values:
            raise InputError(
                "give ",
                Argument("person"),
                ", the column that names people, or ",
                Argument("by_values", True),
                ", not both: people who are known in two ways cannot be compared",
            )
        return cls(person=names, pinned=True)

    @classmethod
    def from_entry(cls, fields: dict[str, Any]) -> Self:
        """Read what the first entry of a ledger says."""
        person, by_values = fields["person"], fields["by_values"]
        if not isinstance(by_values, bool):
            raise ValueError(by_values)
        return cls(
            person=None if person is None else tuple(person),
            pinned=person is not None,
            by_values=by_values,
        )

    def to_entry(self) -> dict[str, Any]:
        """Return what the first entry of a ledger keeps."""
        return {"person": self.person and list(self.person), "by_values": self.by_values}

    def settled(self, person: Person | None) -> Self:
        """Return what holds after people were charged who are named by these columns."""
        if self.by_values or self.person is not None:
            return self
        return replace(self, person=person)

    def check(self, person: Person | None, where: str) -> None:
        """Refuse people who are named by other columns; None stands for the values of their rows."""
        if self.by_values:
            if person is not None:
                raise InputError(
                    f"{where} recognises people by the values of their rows; make the sketch with ",
                    Argument("by_values", True),
                    argument="by_values",
                )
            return
        remedy = _remedy(self.person)
        if person is None:
            raise InputError(
                f"{where} recognises people by their ids, and these rows have none",
                argument="id_column",
                remedy=Message.of(
                    remedy,
                    ". (A default index counts rows and identifies nobody; rows are recognised by "
                    "their values only in a ledger that its steward made with ",
                    Argument("by_values", True),
                    ".) Nothing was charged",
                ),
            )
        if "" in person:
            raise InputError(
                f"{where} recognises people by ids that have a name, and these ids have none",
                argument="id_column",
                remedy=Message.of(
                    remedy,
                    ". (An index without a name may just count rows, and then the same ids can "
                    "belong to other people; ",
                    Argument("ids", ...),
                    " takes a name with ",
                    Argument("id_name", ...),
                    ") Nothing was charged",
                ),
            )
        if self.person is not None and person != self.person:
            fixed = "its steward pinned" if self.pinned else "its first charge fixed"
            raise InputError(
                f"{where} names people by {in_words(self.person)} ({fixed} that), and these rows name "
                f"them by {in_words(person)}: the same people would be taken for others",
                argument="id_column",
                value=person[0] if len(person) == 1 else person,
                remedy=Message.of(
                    "To charge them, ",
                    remedy,
                    "; or ask the steward for another ledger. Nothing was charged",
                ),
            )

    def __str__(self) -> str:
        """Return a sentence."""
        if self.by_values:
            return "People are recognised by the values of their rows."
        if self.person is None:
            return "People are recognised by their ids; the first charge fixes which column holds them."
        fixed = "pinned by the steward" if self.pinned else "fixed by the first charge"
        return f"A person is named by {in_words(self.person)} ({fixed})."


def in_words(person: Person) -> str:
    """Name the columns, which are public."""
    return " and ".join(repr(name) if name else "labels without a name" for name in person)


def _remedy(person: Person | None) -> Message:
    """Say how to give the ids, with the name of the column if it is fixed."""
    names = ("IID",) if person is None else person
    column = names[0] if len(names) == 1 else list(names)
    example = "for example " if person is None else ""
    return Message.of(
        f"name the column that holds the ids, {example}",
        Argument("id_column", column),
        Advice("index", f", or make it the index of a pandas frame, X.set_index({column!r})"),
    )
