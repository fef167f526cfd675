"""Recovery by the best estimate: what noise of a known scale leaves of everybody's genotypes.

Genotypes are a few numbers with known frequencies and the noise is Gaussian with published scales, so
the attacker need not look for a solution: the posterior says how likely each genotype of each
person is. It is taken in two steps, the first linear over all people, the second by person. Where the
noise is large, as in releases, the first step loses nothing that iterating (expectation propagation)
would find; see docs/recovery.md.
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
from primo.plans import Plan
from primo.release import Release

__all__ = ["CODES", "Beliefs", "Posterior", "ReleaseAttack"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: The three genotypes, as copies of the counted allele.
CODES = np.arange(3.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Beliefs:
    """What an attacker believes of n people at one variant."""

    chances: Matrix  # (n, 3)

    @property
    def means(self) -> Vector:
        """Expected genotypes, for correlations and for recognising people."""
        return np.asarray(self.chances @ CODES)

    @property
    def guesses(self) -> Vector:
        """The most likely genotypes."""
        return CODES[self.chances.argmax(axis=1)]


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Beliefs from values = rows·x + N(0, I), for any number of variants with the same rows.

    Cost: one n×n eigendecomposition, then O(n·(n + rows)) a variant.
    """

    rows: Matrix  # (equations, n) in units of the noise
    values: Vector  # of the Gram matrix of the rows
    vectors: Matrix

    @classmethod
    def of(cls, rows: Matrix) -> Self:
        """Prepare for equations in units of their noise."""
        values, vectors = np.linalg.eigh(rows.T @ rows)
        return cls(rows=rows, values=np.maximum(values, 0.0), vectors=vectors)

    def beliefs(self, seen: Vector, frequencies: Vector, codes: Vector = CODES) -> Beliefs:
        """Return beliefs after seeing the values (equations,), given the three genotypes' frequencies.

        `codes` are the three values that x can have. For the linear step x has the mean and variance
        of the frequencies. What that step says of person i without i's own prior, a Gaussian of
        precision `evidence`, is then weighed against the frequencies.
        """
        mean = float(frequencies @ codes)
        away = codes - mean
        precision = 1 / float(frequencies @ away**2)
        shrunk = 1 / (self.values + precision)
        push = self.rows.T @ (seen - self._sums * mean)
        shift = self.vectors @ (shrunk * (self.vectors.T @ push))
        variance = self._squares @ shrunk
        evidence = np.maximum(1 / variance - precision, 0.0)
        weighted = shift / variance  # the evidence times where it points to, about the mean
        logs = np.log(frequencies) + np.outer(weighted, away) - np.outer(evidence, away**2) / 2
        logs -= logs.max(axis=1, keepdims=True)
        chances = np.exp(logs)
        return Beliefs(chances=chances / chances.sum(axis=1, keepdims=True))

    @cached_property
    def _sums(self) -> Vector:
        return np.asarray(self.rows.sum(axis=1))

    @cached_property
    def _squares(self) -> Matrix:
        return np.asarray(self.vectors**2)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleaseAttack:
    """An attacker who knows everybody's outcomes and sees one of primo's releases.

    The association of a variant is the sum of products with the outcomes, and the noisy covariance
    holds the sum of genotypes, beside the constant feature. Outcomes count as the plan clips them.
    """

    plan: Plan
    posterior: Posterior

    @classmethod
    def of(cls, members: People, plan: Plan) -> Self:
        """Prepare for releases of these members under a plan; only their outcomes are looked at."""
        blind = People(
            features=np.tile(plan.features.centre, (len(members), 1)), outcomes=members.outcomes
        )
        outcomes = View.of(blind, plan).y
        assert outcomes is not None
        rows = [outcomes.T / plan.association_sigma]
        if plan.intercept:
            rows.append(np.full((1, len(members)), plan.constant / _off_diagonal(plan)))
        return cls(plan=plan, posterior=Posterior.of(np.vstack(rows)))

    def beliefs(self, release: Release, variant: int, frequencies: Vector) -> Beliefs:
        """Return beliefs about one variant, given the frequencies of its genotypes in the panel."""
        clip = self.plan.features
        codes = (CODES - clip.centre[variant]) / clip.scale[variant]
        return self.posterior.beliefs(self._seen(release, variant), frequencies, codes)

    def equations(self, release: Release, variant: int) -> tuple[Matrix, Vector]:
        """Return rows and values, in units of the noise, for the genotypes 0, 1, 2 of a variant."""
        clip = self.plan.features
        rows = self.posterior.rows / clip.scale[variant]
        return rows, self._seen(release, variant) + rows.sum(axis=1) * clip.centre[variant]

    def _seen(self, release: Release, variant: int) -> Vector:
        """Return what the release shows of a variant, in units of the noise."""
        seen = release.association[variant] / self.plan.association_sigma
        if self.plan.intercept:
            seen = np.append(seen, release.covariance[-1, variant] / _off_diagonal(self.plan))
        return np.asarray(seen)


def _off_diagonal(plan: Plan) -> float:
    """Noise beside the diagonal of the covariance has half the variance."""
    return plan.covariance_sigma / math.sqrt(2)
