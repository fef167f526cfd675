"""How many rounds pay, from public numbers alone: what rounds="auto" stands for."""

from __future__ import annotations

from primo.planning.plan import Plan

__all__ = ["recommend_rounds"]

_A_FEW = 4


def recommend_rounds(made: Plan) -> int:
    """Return how many rounds a release should have that could have several.

    `made` is its plan with one round. Guarantee: a function of the plan, so of public numbers alone.
    """
    return _A_FEW if made.n > 100 * made.width else 1
