"""Whether small steps pay: decided by a few rounds, from released numbers.

Small steps (`gradual`) need residuals that are about normal. Those of a yes-or-no outcome are two heaps:
a clip short enough to gain anything moves the fit toward their median. So where small steps may be
taken, the first rounds (`schedule.held`) look at the outcomes themselves, and the next (until
`schedule.trial_ends`) at residuals, most of them with a short clip. Where these let through much less or
much more than they should, or noise hides it, all later rounds look at the outcomes themselves again,
and what the rounds that decided say of residuals is left out: the rest is one release with nearly the
whole budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from primo._util.remembered import remembered
from primo.planning.plan import Plan
from primo.released.estimate.rounds.lengths import (
    SHORTEST,
    Lengths,
    clipped_squares,
    is_of_outcomes,
    is_stepped,
    residual_lengths,
    square_error,
    squares_of,
)
from primo.released.estimate.rounds.schedule import (
    association_noise,
    far_enough,
    may_be_gradual,
    trial_ends,
)
from primo.released.rounds import ReleasedRound

__all__ = ["is_gradual", "is_used", "short_clips_hold"]

TOLD = 0.05  # noise of what short clips let through, above which it says nothing of residuals
LATEST = 12  # rounds of short clips that are looked at
APART = 0.05  # difference of mean min(‖r‖², c²)/c² from that of normal residuals that is let pass


def is_gradual(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    """Whether rounds take small steps; from public and released numbers."""
    if not _is_decided(plan, rounds):
        return False
    return _seems_normal(plan, rounds[: trial_ends(plan)])


def _is_decided(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    return may_be_gradual(plan) and len(rounds) >= trial_ends(plan)


@remembered
def _seems_normal(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    found = _through_short_clips(plan, rounds, residual_lengths(plan, rounds))
    return association_noise(plan) < far_enough(plan) and found is not None and found.hold(TOLD)


def short_clips_hold(plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths) -> bool:
    """Whether the latest short clips, if any, let through what they should of normal residuals."""
    found = _through_short_clips(plan, rounds, known)
    return found is None or found.hold()


@dataclass(frozen=True, kw_only=True)
class _Through:
    """What short clips let through: mean min(‖r‖², c²)/c², less that of normal residuals."""

    apart: float
    error: float  # standard deviation of its noise

    def hold(self, told: float = math.inf) -> bool:
        return self.error <= told and abs(self.apart) <= APART + 2 * self.error


def _through_short_clips(
    plan: Plan, rounds: Sequence[ReleasedRound], known: Lengths
) -> _Through | None:
    """Compare the latest short clips with the model; None where no round had one."""
    short = [
        (released, length)
        for released, length in zip(rounds, known.lengths, strict=True)
        if is_stepped(plan, released) and released.clip <= SHORTEST * length
    ][-LATEST:]
    if not short:
        return None
    apart = [
        squares_of(released) / (plan.n * released.clip**2)
        - clipped_squares(length, released.clip, known.directions)
        for released, length in short
    ]
    last = short[-1][0]
    error = square_error(plan, last) / last.clip**2 / math.sqrt(len(short))
    return _Through(apart=float(np.mean(apart)), error=error)


def is_used(plan: Plan, rounds: Sequence[ReleasedRound]) -> list[bool]:
    """For every round, whether what it says of residuals is used; its covariance always is."""
    if not _is_decided(plan, rounds) or is_gradual(plan, rounds):
        return [True] * len(rounds)
    return [is_of_outcomes(plan, released) for released in rounds]
