"""Which releases take small steps, and what each of their rounds is for: from public numbers alone."""

from __future__ import annotations

import math

from primo.planning.plan import Plan
from primo.privacy.rounds import SMALL_STEP_ROUNDS

__all__ = ["LOST", "far_enough", "held", "lost_in_noise", "may_be_gradual", "measures", "tried"]

LOST = 4.0  # radius of the covariance's noise over the mean eigenvalue of rows of full length
#: Of all rounds, and at least: those of the outcomes themselves, and those of residuals that decide.
HELD, FEWEST_HELD = 0.03, 4
TRIED, FEWEST_TRIED = 0.05, 3
FAR, FAR_BESIDE_OTHERS, MANY_OUTCOMES = 0.05, 0.15, 20
MEASURED = 12  # of so many rounds of small steps one has a long clip
FIRST_MEASURED = 2  # and so many before any short clip


def may_be_gradual(plan: Plan) -> bool:
    """Whether the rounds of a plan may take small steps (`trial`)."""
    if plan.rounds is None or plan.rounds.count < SMALL_STEP_ROUNDS or not plan.covariance_noisy:
        return False
    return lost_in_noise(plan, rounds=plan.rounds.count) > LOST


def lost_in_noise(plan: Plan, *, rounds: int = 1) -> float:
    """Return the radius of the noise of Â, pooled, over the mean eigenvalue of rows of full length."""
    radius = plan.covariance_sigma * math.sqrt(2 * plan.width / rounds)
    return radius * plan.width / (plan.n * plan.feature_norm**2)


def far_enough(plan: Plan) -> float:
    """Return the noise of the association up to which small steps get far enough to pay.

    It is that of all rounds, over the largest association that is possible. With many outcomes and no
    intercept the estimator's own steps hardly gain anything.
    """
    return FAR if plan.intercept or plan.l < MANY_OUTCOMES else FAR_BESIDE_OTHERS


def held(plan: Plan) -> int:
    """Return how many rounds look at the outcomes themselves before small steps are tried."""
    return max(round(HELD * plan.round_count), FEWEST_HELD)


def tried(plan: Plan) -> int:
    """Return how many rounds decide whether small steps are taken."""
    return max(round(TRIED * plan.round_count), FEWEST_TRIED)


def measures(plan: Plan, number: int) -> bool:
    """Whether a round (0 is the first) has a clip that tells how long residuals are.

    A short one says little of that, and what it says rests on residuals being normal.
    """
    return number < held(plan) + FIRST_MEASURED or number % MEASURED == 0
