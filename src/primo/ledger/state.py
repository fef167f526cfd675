"""The state of a ledger: all entries, applied in order from the first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from primo.errors import Advice, Argument, InputError, LedgerError, Message
from primo.ledger.chain import Fields, Row, check_seals, read_chain
from primo.ledger.entries import Charge, DataSet, Entry, Spent
from primo.ledger.key import Key
from primo.ledger.naming import Naming
from primo.privacy.accounting import Cost, epsilon_spent, left, mu_spent
from primo.privacy.budget import Budget

__all__ = ["FORMAT", "State", "read_state"]

FORMAT = 2


@dataclass(kw_only=True)
class State:
    """Everything the entries say; there is no second copy of it that could disagree."""

    limit: Budget
    naming: Naming
    last: Row
    limits: dict[int, Budget] = field(default_factory=dict)  # of single data sets
    datasets: dict[int, DataSet] = field(default_factory=dict)
    charges: dict[str, Charge] = field(default_factory=dict)
    owners: dict[str, int | None] = field(default_factory=dict)  # release_id -> data set
    entries: list[Entry] = field(default_factory=list)

    def limit_of(self, number: int) -> Budget:
        """Return the limit of a data set: its own, or the ledger's."""
        return self.limits.get(number, self.limit)

    def related(self, number: int) -> frozenset[int]:
        """Return the data set and those that share people with it."""
        later = (d.number for d in self.datasets.values() if number in d.overlaps)
        return frozenset({number, *self.datasets[number].overlaps, *later})

    def costs(self, numbers: frozenset[int]) -> list[Cost]:
        """Return what was charged to any of these data sets, or to all."""
        return [
            charge.cost
            for charge in self.charges.values()
            if (owner := self.owners[charge.release_id]) is None or owner in numbers
        ]

    def number_of(self, people: str) -> int | None:
        """Return the data set of exactly these people."""
        return next((d.number for d in self.datasets.values() if d.people == people), None)

    def labelled(self, label: str) -> int:
        """Return the number of a data set by its label."""
        for dataset in self.datasets.values():
            if dataset.label == label:
                return dataset.number
        known = ", ".join(repr(d.label) for d in self.datasets.values()) or "none yet"
        raise InputError(
            Argument("dataset", label), " is not in the ledger", remedy=f"known: {known}"
        )

    def spent(self, number: int) -> Spent:
        """Return what was spent on the people of a data set."""
        related, limit = self.related(number), self.limit_of(number)
        costs = self.costs(related)
        limits = {
            self.limit_of(other) for other in related
        }  # both hold for a person in two of them
        return Spent(
            dataset=self.datasets[number].label,
            rows=self.datasets[number].rows,
            limit=limit,
            mu=mu_spent(costs),
            epsilon=epsilon_spent(costs, limit.delta),
            left=min((left(costs, one) for one in limits), key=lambda rest: rest.mu),
            releases=len(costs),
            overlaps=tuple(self.datasets[other].label for other in sorted(related - {number})),
        )

    def apply(self, fields: Fields, row: Row) -> None:
        """Apply the next entry."""
        entry = Entry(
            number=row.number,
            time=fields["time"],
            kind=fields["kind"],
            user=fields["user"],
            hash=row.hash,
            purpose=fields.get("purpose"),
            release_id=fields.get("release_id"),
            digest=fields.get("digest"),
            dataset=self._label(fields),
            cost=Cost.from_dict(fields["cost"]) if "cost" in fields else None,
            limit=Budget(**fields["limit"]) if "limit" in fields else None,
        )
        match entry.kind:
            case "created":
                pass
            case "dataset":
                self.datasets[fields["dataset"]] = DataSet(
                    number=fields["dataset"],
                    label=fields["label"],
                    rows=fields["rows"],
                    people=fields["people"],
                    overlaps=frozenset(fields["overlaps"]),
                )
                person = fields["person"]
                self.naming = self.naming.settled(None if person is None else tuple(person))
            case "charge" | "note":
                self._charge(entry, fields)
            case "finish":
                charge = self.charges[fields["release_id"]]
                self.charges[charge.release_id] = replace(charge, digest=entry.digest)
            case "limit" if entry.limit is not None:
                if fields["dataset"] is None:
                    self.limit = entry.limit
                else:
                    self.limits[fields["dataset"]] = entry.limit
            case _:
                raise ValueError(entry.kind)
        self.entries.append(entry)
        self.last = row

    def _charge(self, entry: Entry, fields: Fields) -> None:
        if entry.cost is None or entry.release_id is None:
            raise ValueError(entry.kind)
        release_id = entry.release_id
        self.charges[release_id] = Charge(
            number=entry.number,
            time=entry.time,
            release_id=release_id,
            dataset=entry.dataset,
            cost=entry.cost,
            purpose=str(entry.purpose),
            user=entry.user,
            hash=entry.hash,
            elsewhere=entry.kind == "note",
        )
        self.owners[release_id] = fields["dataset"]

    def _label(self, fields: Fields) -> str | None:
        number = fields.get("dataset")
        if number is None:
            return None
        return fields["label"] if "label" in fields else self.datasets[number].label


def read_state(rows: Iterable[Row], key: Key | None, *, where: str) -> State:
    """Check the chain and replay it.

    Cost: about 30 µs an entry.
    """
    rows = list(rows)
    chain = read_chain(rows, where=where)
    number = 1
    try:
        first = chain[0]
        if first["format"] != FORMAT:
            raise LedgerError(
                f"{where} has format {first['format']!r} and this primo writes format {FORMAT}; use "
                "the primo that made it",
                remedy=Message.of(
                    "To use this version, make a new ledger with ",
                    Advice("create_ledger", "create_ledger (primo ledger init)"),
                    " and enter there what was spent (primo ledger note)",
                ),
            )
        if key is not None and key.check != first["key_check"]:
            raise LedgerError(
                f"the key given is not the key of {where}; every ledger has its own, written when "
                "it was made"
            )
        if key is not None:
            check_seals(rows, key, where=where)
        naming = Naming.from_entry(first)
        state = State(limit=Budget(**first["limit"]), naming=naming, last=rows[0])
        for fields, row in zip(chain, rows, strict=True):
            number = row.number
            state.apply(fields, row)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise LedgerError(
            f"entry {number} of {where} cannot be understood; it was written by another program or "
            "a newer primo"
        ) from None
    return state
