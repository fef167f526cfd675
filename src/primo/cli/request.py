"""A release that was asked for (fit, extend): what is checked before ids are compared."""

from __future__ import annotations

import getpass
import os
import shlex
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from primo.cli.data import Opened, named_by
from primo.errors import InputError, PrimoError, WeakGuaranteeWarning
from primo.ledger import open_ledger
from primo.rows.sources.base import Source
from primo.rows.sources.join import too_few
from primo.rows.sources.paired import Unmatched
from primo.workflow.fit import Account, Engine, Prepared
from primo.workflow.publish import check_begin

__all__ = ["Request", "check_naming", "planned"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A release that was asked for, planned, and neither paid for nor read."""

    options: Mapping[str, Any]
    opened: Opened
    prepared: Prepared
    config: str  # TOML, stored with the release

    @property
    def out(self) -> Path:
        """Where the bundle goes."""
        out: Path | None = self.options["out"]
        if out is None:
            raise InputError("give --out: the folder (or .zip file) to write the release to")
        return out

    def account(self) -> Account | None:
        """Open the ledger that pays, if one was named."""
        where = self.options["ledger"]
        if where is None:
            return None
        return Account(
            ledger=open_ledger(where, key_file=self.options["ledger_key"]),
            purpose=self.options["purpose"] or f"release {self.options['out'] or ''}".strip(),
            user=self.options["user"] or getpass.getuser(),
            dataset=self.options["dataset"],
        )

    def engine(self) -> Engine:
        """Return how the options want the work to be done."""
        workers, scheduler = self.options["workers"], self.options["scheduler"]
        if workers is not None and scheduler is not None:
            raise InputError("give --workers (a cluster on this machine) or --scheduler, not both")
        return Engine(
            threads=self.options["threads"], workers=scheduler or workers, show_progress=True
        )


def check_naming(options: Mapping[str, Any]) -> None:
    """Refuse rows that name people by another column than the ledger, before a file is opened.

    A join tells whether a value is in the column that it uses. So only the column that names people
    may be used.
    """
    if options["ledger"] is None:
        return
    _check_ledger(options)
    book = open_ledger(options["ledger"], key_file=options["ledger_key"])
    if not book.naming.by_values:
        book.naming.check(named_by(options), book.where)


def _check_ledger(options: Mapping[str, Any]) -> None:
    """Say how to make the ledger if there is none at a path."""
    where: str = options["ledger"]
    if "://" in where or os.path.lexists(where):
        return
    named = named_by(options)
    people = "--identity-by-values" if named is None else f"--person-column {shlex.quote(named[0])}"
    epsilon, delta = options["epsilon"] or 10, options["delta"] or 1e-6
    raise InputError(
        f"there is no ledger at {where!r}",
        remedy="its steward makes one, with limits for all releases together (here those of this one "
        f"alone):\n  primo ledger init {shlex.quote(where)} --epsilon {epsilon:g} --delta {delta:g} "
        f"{people}",
    )


def planned(request: Request, plan: Callable[[Source], Prepared]) -> Request:
    """Return the request with its people matched, if it is to be run.

    A refusal after the match tells something about the match, and nothing was charged for it. So
    everything that can be refused from public numbers is refused first: `request` was planned as for a
    dry run, its output and its engine are checked, and the ledger is asked whether such a release fits
    any of its limits. Every later refusal has the one message of `too_few`.
    """
    source = request.opened.source
    if request.options["dry_run"] or not isinstance(source, Unmatched):
        return request
    request.engine()
    account = request.account()
    if not request.options["resume"]:
        check_begin(request.out, request.prepared)
        if account is not None:
            account.ledger.check_limits(request.prepared.plan.cost)
    joined = source.join()
    try:
        with warnings.catch_warnings():
            # The warning was given for the upper bound on the rows; it holds with fewer as well.
            warnings.simplefilter("ignore", WeakGuaranteeWarning)
            prepared = plan(joined)
    except PrimoError:
        raise too_few() from None
    return replace(request, opened=replace(request.opened, source=joined), prepared=prepared)
