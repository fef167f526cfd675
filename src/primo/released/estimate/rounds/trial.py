"""Whether small steps pay: decided by a few rounds, from released numbers.

Small steps (`gradual`) pay where much is explained, so that residuals become much shorter than outcomes.
Elsewhere they end behind one release: what they have not reached is shrunk. So where most of the
covariance is lost in noise, the first rounds (`HELD`) look at the outcomes themselves, the next
(`TRIED`) at the residuals of what the library's estimator makes of those, and say how long they are.
Where they explain too little (`EXPLAINED`), all later rounds look at the outcomes themselves again, and
what the rounds that decided say of residuals is left out: the rest is one release with nearly the whole
budget.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from primo.planning.plan import Plan
from primo.privacy.rounds import SMALL_STEP_ROUNDS
from primo.released.estimate.rounds.lengths import is_of_outcomes, residual_lengths
from primo.released.rounds import ReleasedRound

__all__ = [
    "HELD",
    "LOST",
    "MANY_OUTCOMES",
    "TRIED",
    "is_gradual",
    "is_lost",
    "is_used",
    "lost_in_noise",
]

LOST = 4.0  # radius of the covariance's noise over the mean eigenvalue of rows of full length
HELD, TRIED = 4, 1  # rounds of the outcomes themselves, and of residuals that decide
#: Share of Σ‖y‖² that has to be explained by then: of few outcomes, and of this many or more, for which
#: one release is the less accurate the more they are.
EXPLAINED, EXPLAINED_BY_MANY, MANY_OUTCOMES = 0.4, 0.25, 20


def is_lost(plan: Plan) -> bool:
    """Whether the rounds of a plan may take small steps; from public numbers alone."""
    if plan.rounds is None or plan.rounds.count < SMALL_STEP_ROUNDS or not plan.covariance_noisy:
        return False
    return lost_in_noise(plan, rounds=plan.rounds.count) > LOST


def lost_in_noise(plan: Plan, *, rounds: int = 1) -> float:
    """Return the radius of the noise of Â, pooled, over the mean eigenvalue of rows of full length."""
    radius = plan.covariance_sigma * math.sqrt(2 * plan.width / rounds)
    return radius * plan.width / (plan.n * plan.feature_norm**2)


def is_gradual(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    """Whether rounds take small steps; from public and released numbers."""
    if len(rounds) < HELD + TRIED or not is_lost(plan):
        return False
    known = residual_lengths(plan, rounds[: HELD + TRIED])
    whole = float(np.mean(known.lengths[:HELD] ** 2)) - _square_of_means(plan, rounds[:HELD])
    left = float(np.mean(known.lengths[HELD:] ** 2))
    least = EXPLAINED if plan.l < MANY_OUTCOMES else EXPLAINED_BY_MANY
    return left < (1 - least) * whole


def _square_of_means(plan: Plan, rounds: Sequence[ReleasedRound]) -> float:
    """Return ‖ȳ‖², noise taken off, from rounds of the outcomes: far-off means explain nothing.

    0 without an intercept, where outcomes count as centred.
    """
    if not plan.intercept:
        return 0.0
    mass = plan.n * plan.constant
    means = np.mean([released.association[-1] for released in rounds], axis=0) / mass
    noise = rounds[0].association_sigma / mass
    return max(float(means @ means) - plan.l * noise**2 / len(rounds), 0.0)


def is_used(plan: Plan, rounds: Sequence[ReleasedRound]) -> list[bool]:
    """For every round, whether what it says of residuals is used; its covariance always is."""
    if len(rounds) < HELD + TRIED or not is_lost(plan) or is_gradual(plan, rounds):
        return [True] * len(rounds)
    return [is_of_outcomes(plan, released) for released in rounds]
