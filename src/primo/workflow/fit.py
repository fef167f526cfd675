"""From settings and a source to a release: plan, charge, read. All front ends use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.forecast.compare import choose_plan
from primo.planning.blocks import public_block_starts
from primo.planning.plan import Plan
from primo.planning.reference import reference_covariance
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds, as_bounds
from primo.privacy.budget import is_whole
from primo.privacy.protection import Protection
from primo.released.bundle import Bundle
from primo.released.bundle.write import new_release_id
from primo.released.moments import expect_release
from primo.released.release import Release
from primo.rows.sources.base import Source
from primo.rows.sources.paired import one_block
from primo.rows.sources.row_owners import check_rows_per_person, named_by, rows_per_person_of
from primo.wall.noise import RandomBits
from primo.workflow.extension import (
    as_extension,
    check_bits,
    check_known,
    check_protection,
    plan_of_extension,
)
from primo.workflow.pipeline import make_release
from primo.workflow.rounds import RoundRecord

if TYPE_CHECKING:
    from primo.ledger import Ledger

__all__ = [
    "Account",
    "Engine",
    "Prepared",
    "expect_account",
    "plan_for",
    "prepare",
    "prepare_extension",
    "release_rows",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class Engine:
    """How the work is done; nothing here changes the result."""

    backend: str = "primo"
    threads: int | None = None  # on this machine
    workers: Any = None  # number of local processes, address of a scheduler, or a Dask client
    show_progress: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Account:
    """Who pays for a release: a ledger, and what it notes with the charge.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> limit = primo.Budget(epsilon=10, delta=1e-6)
    >>> ledger = primo.create_ledger("cohort.ledger", limit=limit, by_values=True)
    >>> account = primo.Account(ledger=ledger, purpose="first look")
    >>> release = model.fit(X, Y, account=account).release_
    >>> [(spent.rows, spent.releases) for spent in ledger.spent()]
    [(500, 1)]
    """

    ledger: Ledger
    purpose: str = ""
    user: str | None = None
    dataset: str | None = None  # name for a data set that the ledger does not know yet

    def pay(self, source: Source, plan: Plan, release_id: str, *, again: bool) -> None:
        """Debit the plan's cost from the people of the source, or raise and change nothing.

        Paying for the same release again changes nothing; it is refused unless `again` is True.
        """
        from primo.rows.person_tokens import sketch

        naming = self.ledger.naming
        if not naming.by_values:
            naming.check(named_by(source), self.ledger.where)  # before anything is read
        self.ledger.charge(
            sketch(
                source,
                self.ledger.key,
                by_values=naming.by_values,
                rows_per_person=plan.rows_per_person,
            ),
            plan.cost,
            release_id=release_id,
            purpose=self.purpose,
            user=self.user,
            dataset=self.dataset,
            again=again,
        )


def expect_account(account: Any) -> Account | None:
    """Return the account, or say what one is."""
    if account is not None and not isinstance(account, Account):
        raise InputError(
            Argument("account"),
            " takes primo.Account(ledger=..., purpose=...), not the ledger itself",
        )
    return account


@dataclass(frozen=True, kw_only=True, eq=False)
class Prepared:
    """A release about to be made: all that is fixed before its rows are read."""

    plan: Plan
    covariance: NDArray[np.float64] | None = None  # scaled, where the plan takes it from elsewhere
    earlier: Release | None = None  # the release that this one extends
    bundle: Bundle | None = None  # the bundle that it was read from, which a ledger may know
    public_blocks: NDArray[np.int64] | None = None  # borders; with noise on the outcomes themselves


def prepare(source: Source, settings: Settings) -> Prepared:
    """Plan a release; everything that can be refused is refused here. Reads no private row."""
    plan = plan_for(source, settings)
    covariance = reference_covariance(settings.public_covariance, settings.public_mean, plan)
    return Prepared(
        plan=plan, covariance=covariance, public_blocks=public_block_starts(settings, plan)
    )


def prepare_extension(
    earlier: Release | Bundle,
    source: Source,
    *,
    protection: Protection | str,
    epsilon: float,
    delta: float,
    outcome_bounds: Any,
    rows_per_person: int = 1,
) -> Prepared:
    """Plan the release of new outcomes of the rows of an earlier one. Reads no private row.

    `protection` is what the user states, not what the earlier release says: a file must not decide what
    is read and what is released exactly. It has to be that of the earlier release. Give the bundle of
    the earlier release if a ledger is to be charged: `release_rows` asks the ledger whether it knows
    it.
    """
    bundle = earlier if isinstance(earlier, Bundle) else None
    earlier = expect_release(earlier.release if isinstance(earlier, Bundle) else earlier)
    protection = check_protection(earlier, protection)
    private = protection.outcomes_private
    plan = plan_of_extension(
        earlier,
        source,
        epsilon=epsilon,
        delta=delta,
        outcome_bounds=_bounds(outcome_bounds, "outcome", source, private),
    )
    owned = max(plan.rows_per_person, _rows_per_person(source, rows_per_person))
    plan = replace(plan, rows_per_person=owned)
    covariance = earlier.covariance if len(earlier.covariance) else None
    return Prepared(plan=plan, covariance=covariance, earlier=earlier, bundle=bundle)


def release_rows(
    source: Source,
    prepared: Prepared,
    *,
    bits: RandomBits,
    engine: Engine | None = None,
    account: Account | None = None,
    release_id: str | None = None,
    record: RoundRecord | None = None,
) -> Release:
    """Charge, then read every row once (in each round) and release.

    `record` keeps what finished rounds released, for a resume.

    Guarantee: that of `make_release`; and whatever happens after the charge (a crash, a full disk)
    loses budget, never privacy. An extension is charged only if the ledger knows what it extends.
    """
    engine = engine or Engine()
    account = expect_account(account)
    if prepared.earlier is not None:
        check_bits(prepared.earlier, bits)
        if account is not None:
            check_known(prepared.bundle, account.ledger)
    release_id = release_id or new_release_id()
    # Connect first: a cluster that cannot be reached must fail before anything is charged.
    with nullcontext() if engine.workers is None else _client(engine.workers) as client:
        if account is not None:
            account.pay(source, prepared.plan, release_id, again=bits.unbound)
        else:
            check_rows_per_person(source, prepared.plan.rows_per_person)
        release = make_release(
            source,
            prepared.plan,
            bits=bits,
            covariance=prepared.covariance,
            backend=engine.backend,
            threads=engine.threads,
            client=client,
            show_progress=engine.show_progress,
            record=record,
            public_blocks=prepared.public_blocks,
        )
    return release if prepared.earlier is None else as_extension(release, prepared.earlier)


def plan_for(source: Source, settings: Settings) -> Plan:
    """Make the plan of a release; reads no private row.

    Bounds of a block that the protection leaves public are read off it where none are given: three
    passes over that block.
    """
    protection = Protection.parse(settings.protection)
    features = _bounds(settings.feature_bounds, "feature", source, protection.features_private)
    outcomes = _bounds(settings.outcome_bounds, "outcome", source, protection.outcomes_private)
    return choose_plan(
        replace(
            settings,
            feature_bounds=features,
            outcome_bounds=outcomes,
            rows_per_person=_rows_per_person(source, settings.rows_per_person),
        ),
        n=source.n,
        d=len(source.feature_names),
        l=len(source.outcome_names),
    )


def _rows_per_person(source: Source, declared: Any) -> int:
    """Return how many rows one person may own: as declared, or as the source says (haplotypes)."""
    if not is_whole(declared) or declared < 1:
        raise InputError(
            Argument("rows_per_person", declared), " must be a whole number, at least 1"
        )
    return max(int(declared), rows_per_person_of(source))


def _client(workers: Any) -> AbstractContextManager[Any]:
    from primo.rows.cluster import open_client

    return open_client(workers)


def _bounds(value: Any, block: str, source: Source, private: bool) -> Bounds | None:
    """Return the bounds given by the user, or else, for a public block, those of its rows."""
    if value is not None:
        return as_bounds(value, block)
    if private:
        return None

    def walk() -> Iterator[NDArray[Any]]:
        return one_block(source, "features" if block == "feature" else "outcomes", _ROWS)

    return Bounds.from_public_blocks(walk)


_ROWS = 1024  # at a time, when bounds are read off a public block
