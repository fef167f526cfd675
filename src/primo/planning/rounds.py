"""Several rounds under one plan: which releases can have them, and the plan of each."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from primo.errors import Argument, InputError, Message, Part
from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.budget import is_whole
from primo.privacy.grid import joint_grid
from primo.privacy.protection import Protection
from primo.privacy.rounds import (
    FIRST_SHARE,
    LARGEST_CLIP_RATIO,
    MOST_ROUNDS,
    SMALL_STEP_ROUNDS,
    round_shares,
    round_spent,
)

__all__ = [
    "AUTO_ROUNDS",
    "as_one_round",
    "check_rounds",
    "clip_of_round",
    "round_plan",
    "shares_of",
    "why_one_round",
]

#: The number of rounds is chosen from public numbers.
AUTO_ROUNDS = "auto"


def check_rounds(value: Any) -> None:
    """Refuse a number of rounds that is none."""
    if value != AUTO_ROUNDS and not (is_whole(value) and 1 <= value <= MOST_ROUNDS):
        raise InputError(
            Argument("rounds", value),
            f' must be "{AUTO_ROUNDS}" or a whole number from 1 to {MOST_ROUNDS}',
        )


def why_one_round(
    *,
    origin: CovarianceOrigin,
    calibration: str,
    association: str,
    sampled: int | None,
) -> Message | None:
    """Say why a release can have one round only; None where it can have several."""
    reasons: tuple[tuple[bool, tuple[Part, ...]], ...] = (
        (
            calibration != "exact",
            (Argument("calibration", calibration), " is printed for one release"),
        ),
        (sampled is not None, ("a covariance of sampled rows is made in one release",)),
        (association == "projection", ("a projection is made of one release",)),
        (
            association == "perturbed",
            ("outcomes with noise on each of them are all that there is to release",),
        ),
        (
            origin is CovarianceOrigin.REFERENCE,
            ("the covariance of a reference panel is not that of the rows",),
        ),
        (origin is CovarianceOrigin.ROW_SPACE, ("there are more public features than rows",)),
        (
            origin is CovarianceOrigin.BLOCKS,
            ("a covariance inside blocks of features is made in one release",),
        ),
    )
    return next((Message.of(*parts) for holds, parts in reasons if holds), None)


def shares_of(count: int, *, means: bool) -> tuple[float, ...]:
    """Return the shares of mu² of rounds; `means` says whether outcomes have means that are private.

    Where small steps may follow, several rounds of the outcomes themselves come first in any case.
    """
    return round_shares(count, first=FIRST_SHARE if means and count < SMALL_STEP_ROUNDS else 0.0)


def clip_of_round(plan: Plan, clip: float) -> float:
    """Return a clip that a round can use: at most the outcomes' norm, and not too far below it."""
    norm = plan.outcomes.norm
    if not math.isfinite(clip):
        return norm
    return min(max(clip, norm / LARGEST_CLIP_RATIO), norm)


def as_one_round(plan: Plan) -> Plan:
    """Return the plan of one release with the budget of all rounds; a plan of one round as it is.

    Forecasts compare rounds with it.
    """
    if plan.rounds is None:
        return plan
    spent = sum(
        round_spent(grid, covariance_noisy=plan.covariance_noisy) for grid in plan.rounds.grids
    )
    grid = joint_grid(mu=math.sqrt(spent), split=plan.split, n=plan.n)
    return dataclasses.replace(plan, grid=grid, rounds=None)


def round_plan(plan: Plan, number: int, clip: float, *, residuals: bool = True) -> Plan:
    """Return the plan of one round (0 is the first): of one release whose outcomes have norm `clip`.

    Without `residuals` it is one of the outcomes themselves. Residuals of public outcomes are private
    where the features are, so a round of them protects both blocks: that is its plan's protection.

    Guarantee: its mu is that of the round's own noise, rounded up.
    """
    if plan.rounds is None:
        raise InputError("this plan has one round")
    grid = plan.rounds.grids[number]
    spent = round_spent(grid, covariance_noisy=plan.covariance_noisy)
    private = residuals and plan.protection is Protection.FEATURES
    return dataclasses.replace(
        plan,
        protection=Protection.BOTH if private else plan.protection,
        mu=math.sqrt(spent) * (1 + 1e-12),
        grid=grid,
        outcomes=dataclasses.replace(plan.outcomes, norm=clip),
        rounds=None,
        auto_norms=(),
        norm_search=None,
        centre_search=None,
        column_search=None,
    )
