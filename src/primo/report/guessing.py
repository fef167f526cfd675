"""What mu means for one person: how well the best possible attack can guess.

mu-GDP says that telling two neighbouring data sets apart is no easier than telling N(0, 1) from
N(mu, 1) by one draw (Dong, Roth and Su 2022). Hence every number here is an upper limit, whatever an
attacker knows and computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from primo.planning.plan import Plan

__all__ = ["FALSE_ALARMS", "ForPerson", "for_person", "found_at_most", "right_at_most"]

#: Rates of false alarm for which the page says how much an attack can find.
FALSE_ALARMS = (0.01, 0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class ForPerson:
    """What a release, with those it extends, costs one person with all their rows."""

    mu: float
    epsilon: float  # at the plan's delta


def for_person(plan: Plan) -> ForPerson:
    """Return the guarantee that counts for a person: every release and all of their rows together."""
    return ForPerson(mu=plan.person_mu, epsilon=plan.person_epsilon)


def right_at_most(mu: float) -> float:
    """How often a guess between two equally likely rows can be right: Φ(mu/2)."""
    return float(ndtr(mu / 2))


def found_at_most(mu: float, false_alarms: float) -> float:
    """How often an attack with this rate of false alarms can detect a row: Φ(Φ⁻¹(rate) + mu)."""
    return float(ndtr(ndtri(false_alarms) + mu))
