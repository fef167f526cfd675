"""How many rounds pay, from public numbers alone: what rounds="auto" stands for."""

from __future__ import annotations

from primo.planning.plan import Plan
from primo.released.estimate.rounds.gradual import LOST, lost_in_noise

__all__ = ["recommend_rounds"]

FEW, MANY = 3, 25


def recommend_rounds(made: Plan) -> int:
    """Return how many rounds a release should have that could have several.

    `made` is its plan with one round. Guarantee: a function of the plan, so of public numbers alone.
    """
    if made.covariance_noisy and lost_in_noise(made) > LOST:
        return MANY
    return FEW
