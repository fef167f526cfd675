"""From a source to a published bundle: stage, charge, read, release, write.

A run that is killed at any step leaves no half-written bundle, and `resume` finishes the same release:
the ledger recognises the charge by the release's id and does not make it twice, and the noise is bound
to the staged secret and the rows (`primo.wall.sealing`), so it is not drawn twice either.
"""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from pathlib import Path

from primo._util.progress import working
from primo.errors import Advice, Argument, InputError, Message, PrimoError
from primo.planning.plan import Plan
from primo.released.bundle import Bundle, read_bundle
from primo.released.estimation import Estimation
from primo.released.kept import hand_over
from primo.released.ld.panel import LdPanel
from primo.released.release import Release
from primo.rows.sources.base import Source
from primo.variants import Variants
from primo.workflow.fit import Account, Engine, Prepared, release_rows
from primo.workflow.resume import Staging

__all__ = ["begin", "check_begin", "publish"]


def begin(
    out: str | os.PathLike[str], prepared: Prepared, *, config: str, account: Account | None
) -> Staging:
    """Set up the private folder next to `out` from which an interrupted run is finished."""
    check_begin(out, prepared)
    return Staging.begin(out, config=config, plan=_staged(prepared.plan), charge=_payer(account))


def check_begin(out: str | os.PathLike[str], prepared: Prepared) -> None:
    """Refuse what `begin` would refuse, and write nothing."""
    if prepared.plan.calibration != "exact":
        raise InputError(
            Argument("calibration", prepared.plan.calibration),
            " reproduces figures and is not published",
            remedy=Message.of(
                "use PrimoRegressor",
                Advice("of_python", ""),
                ", or ",
                Argument("calibration", "exact"),
            ),
        )
    Staging.check_place(out)


def publish(
    staging: Staging,
    source: Source,
    prepared: Prepared,
    *,
    account: Account | None = None,
    engine: Engine | None = None,
    variants: Variants | None = None,
    ld_panel: LdPanel | None = None,
    estimation: Estimation | None = None,
    config: str | None = None,
) -> Bundle:
    """Finish what was staged, from wherever it stopped, and return the bundle.

    `ld_panel` has its correlations used for the coefficients (`primo.write_bundle`).
    `config` replaces that of the first attempt, where a resumed run changed how missing values count.

    Guarantee: one charge and one draw of noise, however often this is called after a crash; the
    bundle appears whole or not at all, and only after the ledger noted its digest: copies of the
    staging folder cannot publish two different ones. A run that fails before the charge leaves nothing.
    """
    with staging:
        _check_payer(staging, account)
        release: Release | None = None
        if not staging.published:
            staging.check_plan(_staged(prepared.plan))
            if staging.drawn and prepared.plan.perturbation is None:
                # Every cell was read before the draw, so nothing was missing: the same bundle. With
                # noise on the outcomes the public features are read after it.
                config = None
            try:
                release = release_rows(
                    source,
                    prepared,
                    bits=staging.bits(),
                    engine=engine,
                    account=account,
                    release_id=staging.release_id,
                    record=staging,
                )
            except BaseException:
                if not staging.drawn and not _charged(account, staging.release_id):
                    staging.discard()  # there is nothing to resume
                raise
            show = engine is not None and engine.show_progress
            with working("estimating, computing intervals and R², writing the release", show=show):
                staging.write(
                    release,
                    variants=variants,
                    ld_panel=ld_panel,
                    estimation=estimation,
                    config=config,
                    approve=None
                    if account is None
                    else partial(account.ledger.finish, staging.release_id),
                )
        bundle = read_bundle(Path(staging.out))
        if release is not None:
            hand_over(release, bundle.release)
        staging.finish()
        return bundle


def _charged(account: Account | None, release_id: str) -> bool:
    """Whether a release was charged, or may have been: yes if the ledger cannot be read."""
    if account is None:
        return False
    try:
        return account.ledger.find(release_id) is not None
    except PrimoError:
        return True


def _payer(account: Account | None) -> dict[str, str]:
    """Say who pays: where the ledger is, its unique first hash, and why."""
    if account is None:
        return {}
    notes = {"purpose": account.purpose, "dataset": account.dataset, "user": account.user}
    return {
        "ledger": account.ledger.where,
        "first": account.ledger.history()[0].hash,
        **{name: text for name, text in notes.items() if text},
    }


def _check_payer(staging: Staging, account: Account | None) -> None:
    """Refuse to finish a release with another ledger than it was begun with, or with none."""
    if staging.charge.get("first") != _payer(account).get("first"):
        where = staging.charge.get("ledger")
        raise InputError(
            f"release {staging.release_id} was begun "
            + (f"to be paid from the ledger {where}" if where else "without a ledger")
            + "; resume it the same way"
        )


def _staged(plan: Plan) -> Plan:
    """Return the plan without what may still be changed when a run is resumed.

    A fit that stopped at a missing value has released nothing, so it may go on with another way to
    treat missing values: the cost is the same.
    """
    return dataclasses.replace(plan, missing="error")
