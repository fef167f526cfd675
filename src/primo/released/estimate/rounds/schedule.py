"""Which releases take small steps, and what each of their rounds is for: from public numbers alone."""

from __future__ import annotations

import math

from primo.planning.plan import Plan
from primo.privacy.rounds import SMALL_STEP_ROUNDS

__all__ = [
    "LOST",
    "association_noise",
    "far_enough",
    "held",
    "lost_in_noise",
    "may_be_gradual",
    "measures",
    "trial_ends",
]

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
    return lost_in_noise(plan) > LOST


def lost_in_noise(plan: Plan) -> float:
    """Return the radius of the noise of Â, pooled, over the mean eigenvalue of rows of full length."""
    radius = plan.covariance_sigma * math.sqrt(2 * plan.width / plan.round_count)
    return radius * plan.width / (plan.n * plan.feature_norm**2)


def association_noise(plan: Plan) -> float:
    """Return the length of the association's noise over the largest association, n·b_x·b_y.

    It is that of all rounds together, which have the noise of one release.
    """
    noise = plan.association_sigma * math.sqrt(plan.width * plan.l / plan.round_count)
    return noise / (plan.n * plan.feature_norm * plan.outcomes.norm)


def far_enough(plan: Plan) -> float:
    """Return the `association_noise` up to which small steps get far enough to pay.

    With many outcomes and no intercept the estimator's own steps hardly gain anything.
    """
    return FAR if plan.intercept or plan.l < MANY_OUTCOMES else FAR_BESIDE_OTHERS


def held(plan: Plan) -> int:
    """Return how many rounds look at the outcomes themselves before small steps are tried."""
    return max(round(HELD * plan.round_count), FEWEST_HELD)


def trial_ends(plan: Plan) -> int:
    """Return after how many rounds it is decided whether small steps are taken."""
    return held(plan) + max(round(TRIED * plan.round_count), FEWEST_TRIED)


def measures(plan: Plan, number: int) -> bool:
    """Whether a round (0 is the first) has a clip that tells how long residuals are.

    A short one says little of that, and what it says rests on residuals being normal.
    """
    return number < held(plan) + FIRST_MEASURED or number % MEASURED == 0
