"""The same plan with another mechanism for the association: what forecasts compare."""

from __future__ import annotations

import dataclasses
import math

from primo.planning.plan import Plan
from primo.privacy.perturbation import perturbation

__all__ = ["with_association"]


def with_association(plan: Plan, association: str) -> Plan:
    """Return the plan with another association and the noise that goes with it.

    Guarantee: what it spends is at most `plan.mu`. A plan that is to be released is made by `make_plan`
    instead: the lattice margin depends on the association, by less than the last digits of mu.
    """
    if association != "perturbed":
        return dataclasses.replace(plan, association=association, perturbation=None)
    left = math.sqrt(plan.mu**2 - float(plan.searched)) * (1 - 1e-12)
    noise = perturbation(mu=left, radius_squared=plan.grid.outcome_radius_squared)
    return dataclasses.replace(plan, association=association, perturbation=noise)
