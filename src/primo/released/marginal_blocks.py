"""Summary statistics of a release with a covariance inside blocks: the diagonal and the sums are enough.

With s = Σx of a variant, T = Σy, G = Σxy and A = Σx², all with independent noise, the marginal effect is

    θ̂ = g/a,   g = G − sT/n,   a = A − s²/n,

    error of g − θa:   e_G − m·e_T − (ȳ − 2θm)·e_s − θ·e_A,      m = s/n,

and sampling adds ς²/a to the variance. The diagonal is known better than its noise says: genotypes vary
by 2f(1 − f) up to a common factor nearly, and f follows from the sums (`estimate.blocks.diagonal`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.diagonal import shrunk_variances
from primo.released.estimate.blocks.released import blocks_of, outcome_sums, variation_about
from primo.released.marginal_effects import MarginalEffects, SummaryStatistics, effective_people
from primo.released.uncertainty.system import MOST_EXPLAINED, WELL_DETERMINED

__all__ = ["BlockStatistics"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class BlockStatistics(SummaryStatistics):
    """Summary statistics of a release that holds the covariance inside blocks, the diagonal at least."""

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Which variants vary clearly more than the noise, (variants,); the others have no effects."""
        left, error = self._left
        return np.asarray(left > WELL_DETERMINED * np.sqrt(error))

    def outcome(self, which: str | int) -> MarginalEffects:
        """Return the effects on one outcome, by name or position."""
        j = self._position(which)
        plan, release, blocks = self.release.plan, self.release, blocks_of(self.release)
        left, left_error = self._left
        sums, sigma = outcome_sums(release)
        means, _ = self._means()
        average = sums[j] / plan.n
        theta = (release.association[self._places, j] - means * sums[j]) / left
        noise = release.association_sigma**2 + (means * sigma) ** 2 + theta**2 * left_error
        if plan.intercept:
            noise = noise + ((average - 2 * theta * means) * blocks.sums_sigma) ** 2
            noise = noise + (blocks.sums_sigma * sigma / plan.n) ** 2
        noise = noise / left**2
        variation, error = (float(part[j]) for part in variation_about(release))
        explained = np.clip(
            np.maximum(theta**2 - noise, 0.0) * left, 0.0, MOST_EXPLAINED * variation
        )
        sampling = (variation - explained) / max(plan.n - plan.intercept - 1, 1) / left
        unit = plan.outcomes.scale[j] / plan.features.scale[self._places]
        known = self.determined
        people = effective_people(
            self.n, sampling=sampling, noise=noise, variation=variation, error=math.sqrt(error)
        )
        return MarginalEffects(
            outcome=release.outcome_names[j],
            effect=np.where(known, theta * unit, np.nan),
            standard_error=np.where(known, np.sqrt(noise + sampling) * unit, np.nan),
            effective_n=np.where(known, people, np.nan),
        )

    def _means(self) -> tuple[Floats, float]:
        plan, blocks = self.release.plan, blocks_of(self.release)
        if not plan.intercept:
            return np.zeros(len(self._places)), 0.0
        return blocks.sums[self._places] / plan.n, blocks.sums_sigma / plan.n

    @cached_property
    def _left(self) -> tuple[Floats, Floats]:
        """What a variant varies about its mean, a, and the variance of its error, (variants,) each.

        The error is that of the diagonal; that of the mean is the same as in the association, so it
        is counted with it (`outcome`).
        """
        plan, blocks = self.release.plan, blocks_of(self.release)
        diagonal = np.concatenate([np.diagonal(part) for part in blocks.covariance])
        noise = np.repeat(blocks.sigma, np.diff(blocks.starts)) ** 2
        raw, error = diagonal[self._places], noise[self._places]
        if not plan.intercept:
            return shrunk_variances(raw, error)
        means, sigma = self._means()
        raw = raw - plan.n * (means**2 - sigma**2)
        frequency = self.frequency
        assert frequency is not None
        scale = plan.features.scale[self._places]
        f = np.clip(frequency, 0.001, 0.999)
        return shrunk_variances(raw, error, f * (1 - f) / scale**2)
