"""Recovery by the best estimate: what noise of a known scale leaves of everybody's genotypes.

Genotypes are whole numbers with known frequencies and correlations, and the noise is Gaussian with
published scales, so the attacker need not look for a solution: the posterior says how likely each
genotype of each person is. It is taken in two steps, the first linear over all people and variants,
the second by genotype.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from experiments.membership.people import People
from experiments.membership.releases import View
from experiments.recovery.measure import frequencies
from primo.planning.plan import Plan
from primo.released.release import Release

__all__ = ["CODES", "Beliefs", "Posterior", "ReleaseAttack"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: The three genotypes, as copies of the counted allele.
CODES = np.arange(3.0)

#: Weight of the diagonal in the panel's covariance, which a panel of finite size needs.
_SHRINKAGE = 0.05


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """What an attacker believes of n people at d variants."""

    chances: NDArray[np.float64]  # (n, d, 3)

    @property
    def means(self) -> Matrix:
        """Expected genotypes, for correlations and for recognising people."""
        return np.asarray(self.chances @ CODES)

    @property
    def guesses(self) -> Matrix:
        """The most likely genotypes."""
        return np.asarray(CODES[self.chances.argmax(axis=2)])


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Beliefs from values = rows·X + noise, for the genotypes X (n, d) of n people at d variants.

    Noise is standard normal and independent over equations and variants.
    Cost: one n×n and one d×d eigendecomposition, and products of their size.
    """

    rows: Matrix  # (equations, n) in units of the noise
    values: Vector  # of the Gram matrix of the rows
    vectors: Matrix

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Prepare for equations in units of their noise."""
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return cls(rows=rows, values=np.maximum(values, 0.0), vectors=vectors)

    def beliefs(self, seen: Matrix, panel: Matrix) -> Beliefs:
        """Return beliefs after seeing the values (equations, d), given a public panel (rows, d).

        For the linear step people are independent draws with the panel's means and covariance. What
        that step says of one genotype beyond its own prior, a Gaussian of precision `evidence`, is then
        weighed against the frequencies of the three genotypes.
        """
        means = panel.mean(axis=0)
        covariance = np.atleast_2d(np.cov(panel, rowvar=False))
        own = np.diag(covariance)
        values, turn = np.linalg.eigh((1 - _SHRINKAGE) * covariance + _SHRINKAGE * np.diag(own))
        shrunk = 1 / (self.values[:, None] + 1 / values)
        push = self.rows.T @ (seen - np.outer(self.rows.sum(axis=1), means))
        shift = self.vectors @ (shrunk * (self.vectors.T @ push @ turn)) @ turn.T
        variance = self._squares @ shrunk @ (turn**2).T
        evidence = np.maximum(1 / variance - 1 / own, 0.0)
        weighted = shift / variance  # the evidence times where it points to, about the mean
        away = CODES - means[:, None]  # (d, 3)
        logs = np.log([frequencies(variant) for variant in panel.T])
        logs = logs + weighted[:, :, None] * away - evidence[:, :, None] * away**2 / 2
        chances = np.exp(logs - logs.max(axis=2, keepdims=True))
        return Beliefs(chances=chances / chances.sum(axis=2, keepdims=True))

    @cached_property
    def _squares(self) -> Matrix:
        return np.asarray(self.vectors**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseAttack:
    """An attacker who knows everybody's outcomes and sees one of primo's releases.

    The association of a variant is the sum of products with the outcomes, and the noisy covariance
    holds the sum of genotypes, beside the constant feature. Outcomes count as the plan clips them.
    """

    plan: Plan  # whose bounds of the features have no scale
    posterior: Posterior

    @classmethod
    def of(cls, members: People, plan: Plan) -> Self:
        """Prepare for releases of these members under a plan; only their outcomes are looked at."""
        assert (plan.features.scale == 1).all()
        blind = np.tile(plan.features.centre, (len(members), 1))
        outcomes = View.of(People(features=blind, outcomes=members.outcomes), plan).y
        assert outcomes is not None
        rows = [outcomes.T / plan.association_sigma]
        if plan.intercept:
            rows.append(np.full((1, len(members)), plan.constant / _off_diagonal_sigma(plan)))
        return cls(plan=plan, posterior=Posterior.of(np.vstack(rows)))

    def beliefs(self, release: Release, panel: Matrix) -> Beliefs:
        """Return beliefs about all variants, given a public panel of people."""
        return self.posterior.beliefs(self.values(release), panel)

    def values(self, release: Release) -> Matrix:
        """Return what is seen of rows·genotypes, (equations, d), in units of the noise."""
        plan = self.plan
        seen = release.association[: plan.d].T / plan.association_sigma
        if plan.intercept:
            sums = release.covariance[-1, : plan.d] / _off_diagonal_sigma(plan)
            seen = np.vstack([seen, sums])
        return np.asarray(seen + np.outer(self.posterior.rows.sum(axis=1), plan.features.centre))


def _off_diagonal_sigma(plan: Plan) -> float:
    """Return the noise scale off the diagonal of the covariance: half the variance of the diagonal."""
    return plan.covariance_sigma / math.sqrt(2)
