"""How many rounds pay, from public numbers alone: what rounds="auto" stands for."""

from __future__ import annotations

import math

from primo.planning.plan import Plan
from primo.released.estimate.rounds.gradual import LOST, lost_in_noise

__all__ = ["length_noise", "recommend_rounds"]

FEW, MANY = 3, 25

#: Relative noise of the mean squared length of residuals, as a round tells it, above which clips would
#: follow the noise.
TOLD = 0.1


def recommend_rounds(made: Plan) -> int:
    """Return how many rounds a release should have that could have several.

    Many where most of the covariance is lost in noise, otherwise few; one where a round could not tell
    how long residuals are.
    `made` is its plan with one round. Guarantee: a function of the plan, so of public numbers alone.
    """
    lost = made.covariance_noisy and lost_in_noise(made) > LOST
    if lost and length_noise(made, MANY) < TOLD:
        return MANY
    return FEW if length_noise(made, FEW) < TOLD else 1


def length_noise(made: Plan, rounds: int) -> float:
    """Return the noise of Σ‖r‖² in one of so many rounds, over its largest value n·c².

    Noise is in proportion to c², so this holds for every clip.
    """
    noise = made.outcome_sigma * math.sqrt(rounds * made.l)
    return noise / (made.n * made.outcomes.norm**2)
