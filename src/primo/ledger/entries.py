"""What the ledger returns: entries, charges, and what is spent and left."""

from __future__ import annotations

from dataclasses import dataclass

from primo.privacy.accounting import Cost, Left
from primo.privacy.budget import Budget

__all__ = ["Charge", "DataSet", "Entry", "Spent"]


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One line of the history; what does not apply to its kind is None."""

    number: int
    time: str  # UTC, by the writer's clock; the order is that of the numbers
    kind: str  # created, dataset, charge, note, finish, limit
    user: str
    hash: str
    purpose: str | None = None
    dataset: str | None = None
    release_id: str | None = None
    cost: Cost | None = None
    limit: Budget | None = None
    digest: str | None = None


@dataclass(frozen=True, kw_only=True)
class Charge:
    """A release that was paid for."""

    number: int
    time: str
    release_id: str
    dataset: str | None  # None: every data set of the ledger
    cost: Cost
    purpose: str
    user: str
    hash: str
    elsewhere: bool = False  # entered by hand
    digest: str | None = None  # of the published release; None until it is finished


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A set of people that something was charged to."""

    number: int
    label: str
    rows: int
    people: str  # hash of the tokens
    overlaps: frozenset[int]  # data sets known before it that share a person


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What was spent on the people of a data set, with every release that any of them was in."""

    dataset: str
    rows: int
    limit: Budget
    mu: float | None  # None where something other than a Gaussian release was charged
    epsilon: float  # at the limit's delta
    left: Left
    releases: int
    overlaps: tuple[str, ...]  # other data sets that share people with it
