"""A release of several rounds: their pooled moments, with every round kept beside them."""

from __future__ import annotations

from collections.abc import Sequence

from primo.planning.plan import Plan
from primo.released.estimate.rounds import pool
from primo.released.moments import ReleasedLengths
from primo.released.release import Release
from primo.released.rounds import ReleasedRound

__all__ = ["pooled_release"]


def pooled_release(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    *,
    feature_names: tuple[str, ...],
    outcome_names: tuple[str, ...],
    reproducible: bool,
    backend: str,
    lengths: ReleasedLengths | None = None,
) -> Release:
    """Return the release that all rounds make together; a function of released numbers."""
    pooled = pool(plan, rounds)
    return Release(
        plan=plan,
        feature_names=feature_names,
        outcome_names=outcome_names,
        covariance=pooled.covariance,
        association=pooled.association,
        outcome_moments=pooled.outcome_moments,
        reproducible=reproducible,
        backend=backend,
        lengths=lengths,
        rounds=tuple(rounds),
        scales=pooled.scales,
    )
