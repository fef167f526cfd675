"""The attack on outcomes that are released with noise on themselves (association="perturbed").

A neighbour changes one row of the outcomes, so what tells a canary is its own released row: the two are
opposite and at the bound. Features are public and different in every row, so the attack knows which
released row is whose, although they are published in another order. Every game is a whole release.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from primo.audit.attack import Flags, NewBits
from primo.audit.laws import OfGaussians
from primo.audit.numbers import Vector
from primo.audit.settings import Setting, as_source
from primo.rows.outcome_rows import fold_outcome_rows
from primo.workflow.perturbed import perturbed_outcomes
from primo.workflow.pipeline import make_release

__all__ = ["PERTURBED_ROWS", "PerturbedAttack"]

#: Rows of the data set: room for all canaries; every game reads them again.
PERTURBED_ROWS = 120


class PerturbedAttack(OfGaussians):
    """All canaries at once, each in a row of its own, as `attack.GaussAttack`."""

    def __init__(self, setting: Setting) -> None:
        (self.plan,) = setting.plans
        plan, count = self.plan, setting.canaries
        self.there = np.arange(count) % 2 == 0
        rng = np.random.default_rng(0)
        self.features = rng.normal(size=(plan.n, plan.d))
        angle = rng.uniform(0, 2 * math.pi, size=count)
        own = plan.outcomes.norm * np.stack([np.cos(angle), np.sin(angle)], axis=1)
        others = rng.normal(size=(plan.n - count, plan.l))
        self.sources = tuple(
            as_source(self.features, np.vstack([np.where(there[:, None], own, -own), others]))
            for there in (self.there, ~self.there)
        )
        one, other = (
            fold_outcome_rows(source, plan, threads=1).outcomes for source in self.sources
        )
        if (one[count:] != other[count:]).any():
            raise AssertionError("a canary moves more than its own row")
        assert plan.perturbation is not None
        noise = plan.perturbation
        moved = np.where(self.there[:, None], 1, -1) * (one - other)[:count]
        self.distances = tuple(
            Fraction(sum(int(v) ** 2 for v in row) * noise.unit**2, 2**noise.variance_bits)
            for row in moved
        )
        self._weights = moved / noise.sigma**2
        self._middle = (one + other)[:count] / 2

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        release = make_release(self.sources[coin], self.plan, bits=new_bits(), threads=1)
        noisy = perturbed_outcomes(release, self.features)[: len(self.there)]
        steps = noisy / self.plan.outcome_step  # the audit's bounds have no centre and no scale
        scores = (self._weights * (steps - self._middle)).sum(axis=1)
        return scores, self.there ^ coin
