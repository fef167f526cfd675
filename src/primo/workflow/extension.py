"""Outcomes that arrive later: pay for their association, use the stored covariance again."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from primo.errors import Argument, InputError, Message, PrivacyError
from primo.planning.guarantee import check_plan
from primo.planning.make import extension_plan
from primo.planning.plan import Plan
from primo.privacy.bounds import Bounds
from primo.privacy.protection import Protection
from primo.released.bundle import Bundle
from primo.released.release import Release
from primo.rows.sources.base import Source
from primo.wall.noise import RandomBits

if TYPE_CHECKING:
    from primo.ledger import Ledger

__all__ = ["as_extension", "check_bits", "check_known", "check_protection", "plan_of_extension"]


def plan_of_extension(
    earlier: Release,
    source: Source,
    *,
    epsilon: float,
    delta: float,
    outcome_bounds: Bounds | None,
) -> Plan:
    """Plan the release of new outcomes of the same rows, in the same order, as `earlier`.

    The new release spends (`epsilon`, `delta`) on the association of the new outcomes alone. What is
    taken from `earlier` (the bounds of the features, their grid, where the covariance comes from) has
    to be what a planner makes: then it cannot weaken the noise of the new release.
    """
    check_plan(earlier.plan)
    plan = extension_plan(
        earlier.plan,
        l=len(source.outcome_names),
        epsilon=epsilon,
        delta=delta,
        outcome_bounds=outcome_bounds,
    )
    check_same_rows(earlier, source)
    return plan


def check_protection(earlier: Release, stated: Protection | str) -> Protection:
    """Return the protection that the user states; refuse an earlier release that has another."""
    protection, kept = Protection.parse(stated), earlier.plan.protection
    if protection is not kept:
        raise PrivacyError(
            Argument("protection", str(protection)),
            f" was asked for, but the release to extend has "
            f"{str(kept)!r}. If that is not what you released, the file was swapped or edited: compare "
            "its digest with the ledger; else state the protection that it has",
        )
    return protection


def check_known(earlier: Bundle | None, ledger: Ledger) -> None:
    """Refuse what is not exactly a release that the ledger knows as published.

    None stands for a release that is not a bundle: it has no digest that a ledger could know.
    """
    if earlier is None:
        raise InputError(
            "with a ledger, a release is extended from its bundle: give primo.read_bundle(path). The "
            "ledger recognises a bundle by its digest, and nothing else"
        )
    known = ledger.find(earlier.manifest["release_id"])
    if known is None or known.digest is None:
        raise InputError(
            f"{earlier.path} is not a release that {ledger.where} knows, so what it says about its "
            "noise and its cost cannot be checked. Use the ledger that it was paid from; if there was "
            "none, have the steward enter it (primo ledger note --release)"
        )
    if known.digest != earlier.digest:
        raise InputError(
            f"{earlier.path} is not what {ledger.where} has under release {known.release_id}: its "
            "digest differs. Use an untouched copy"
        )


def as_extension(release: Release, earlier: Release) -> Release:
    """Note in a release of new outcomes what it extends.

    Guarantee: together with `earlier` (and what that one extended), `plan.total_mu`-GDP: mu² adds up.
    """
    return dataclasses.replace(
        release,
        # If the noise of the stored covariance is known, it stays known, whatever is added now.
        reproducible=release.reproducible or earlier.reproducible,
        earlier_outcomes=earlier.earlier_outcomes + earlier.outcome_names,
    )


def check_bits(earlier: Release, bits: RandomBits) -> None:
    """Refuse known noise for what extends a release that may be published."""
    if bits.reproducible and not earlier.reproducible:
        raise PrivacyError(
            "extending a release that may be published with noise from ",
            Argument("random_state"),
            " would spend budget on numbers that may not",
            remedy=Message.of("leave ", Argument("random_state"), " out"),
        )


def check_same_rows(earlier: Release, source: Source) -> None:
    """Refuse a source that cannot be the rows of the earlier release, as far as its schema shows."""
    plan = earlier.plan
    if source.n != plan.n:
        raise InputError(
            f"the earlier release has {plan.n} rows and these are {source.n}: a release is extended "
            "with the same rows in the same order"
        )
    if source.feature_names != earlier.feature_names:
        raise InputError(
            "the features differ from those of the earlier release: "
            + _first_difference(earlier.feature_names, source.feature_names)
        )
    known = {*earlier.earlier_outcomes, *earlier.outcome_names}
    again = sorted(known.intersection(source.outcome_names))
    if again and plan.protection is not Protection.FEATURES:
        raise PrivacyError(
            f"outcome {again[0]!r} is in the earlier release already; releasing it again would "
            "only spend budget. Leave it out, or rename it if it is another one"
        )


def _first_difference(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """Say which features are gone, which are new, or which stand in another place."""
    gone = [name for name in old if name not in set(new)]
    added = [name for name in new if name not in set(old)]
    if gone or added:
        parts = []
        if gone:
            parts.append(f"{_named(gone)} {'is' if len(gone) == 1 else 'are'} missing now")
        if added:
            parts.append(f"{_named(added)} {'was' if len(added) == 1 else 'were'} not there then")
        return f"{len(old)} then, {len(new)} now; {'; '.join(parts)}"
    i = next(i for i, (a, b) in enumerate(zip(old, new, strict=True)) if a != b)
    return f"feature {i} was {old[i]!r} and is {new[i]!r}; give them in the same order"


def _named(names: list[str]) -> str:
    """Name up to three features, and count the others."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(map(repr, names[:3])) + more
