"""Simulated cohorts, drawn under a `Law`, and their releases.

The noise on XᵀX has no preferred direction, so features may be drawn in the basis in which they are
uncorrelated. The simulated outcomes stand for all of them, with the noise that all of
them cause.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from primo.forecast.law import Law
from primo.forecast.reduced import Reduction, SimulatedPlan
from primo.forecast.rows import (
    Sums,
    Truth,
    Unshortened,
    draw_truth,
    sum_rows,
    sum_unshortened,
    wishart_factor,
)
from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.protection import Protection
from primo.released.coefficients import coefficients, for_estimator
from primo.released.decomposed import filter_of
from primo.released.moments import PublicFeatures
from primo.released.projection import Projected, project_onto_features, shares_kept
from primo.released.release import Release
from primo.released.row_space import column_blocks, rank_cutoff, row_space

__all__ = ["Cohort", "Drawn", "draw", "symmetric_noise"]

Floats = NDArray[np.float64]

BULK = 120  # eigenvalues that stand for the residual part of the spectrum of YᵀY
WIDEST = 2**24  # numbers, in a simulated block of public features that outnumber the rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Cohort:
    """Exact sums over the rows of one simulated cohort, and what the rows were drawn from."""

    plan: SimulatedPlan  # of the features and outcomes that are simulated, in scaled units
    outcomes_in_all: int
    truth: Truth
    sums: Sums
    seed: tuple[int, int]

    def r2(self, release: Release, estimator: str) -> float:
        """R², on new rows of the same kind, of the coefficients that a release gives."""
        seen = for_estimator(release, estimator)
        if estimator == "auto":
            filter_of(seen, quick=True)  # kept, and used by what follows
        fitted = coefficients(seen, estimator=estimator)
        return self.truth.score(fitted.slopes, fitted.intercept)

    def release(self, association: str) -> Release:
        """Add the plan's noise, and project if asked."""
        plan, sums = dataclasses.replace(self.plan, association=association), self.sums
        wide = plan.covariance_origin is CovarianceOrigin.ROW_SPACE
        noise = [np.random.default_rng((*self.seed, 1 + block)) for block in range(3)]
        if plan.row_sigma:
            drawn = self._of_perturbed_outcomes(noise[1], wide)
        else:
            drawn = noise[1].standard_normal((plan.l, plan.width)).T * plan.association_sigma
        if plan.intercept and not plan.protection.outcomes_private:
            drawn[-1] = 0.0  # the sums of public outcomes are exact
        outcome = sums.outcome_moments
        if plan.full_outcome_moments:
            outcome = outcome + symmetric_noise(noise[2], plan.l, plan.outcome_sigma)
        else:
            outcome = np.diag(outcome) + noise[2].standard_normal(plan.l) * plan.outcome_sigma
        return Release(
            plan=plan,
            feature_names=("",) * plan.d,
            outcome_names=("",) * plan.l,
            covariance=np.zeros((0, 0)) if wide else self._covariance(noise[0]),
            association=self._association() + drawn,
            outcome_moments=outcome,
            reproducible=True,
            backend="simulated",
            projected=self._projected(drawn) if association == "projection" else None,
            public_features=self._public_features() if wide else None,
        )

    def _of_perturbed_outcomes(self, rng: np.random.Generator, wide: bool) -> Floats:
        """Return XᵀE for noise E on the outcomes themselves: of covariance σ²XᵀX.

        The noise of the means is drawn apart: it is that of all rows, which few of them stand for.
        """
        plan, sums = self.plan, self.sums.feature_sums
        middle = sums / plan.n if plan.intercept else np.zeros(plan.d)
        if wide:
            own = rng.standard_normal((plan.l, plan.n)).T
            drawn = (self.sums.rows - middle).T @ (own * plan.row_sigma)
        else:
            centred = self.sums.covariance - plan.n * np.outer(middle, middle)
            values, vectors = np.linalg.eigh(centred)
            root = vectors * (plan.row_sigma * np.sqrt(np.maximum(values, 0.0)))
            drawn = root @ rng.standard_normal((plan.l, plan.d)).T
        if not plan.intercept:
            return np.asarray(drawn)
        means = plan.mean_sigma * rng.standard_normal(plan.l)
        whole = np.append(sums, plan.n * plan.constant)
        return np.asarray(np.vstack([drawn, np.zeros((1, plan.l))]) + np.outer(whole, means))

    def _association(self) -> Floats:
        """Return the exact association, the constant last."""
        whole = np.empty((self.plan.width, self.plan.l))
        whole[: self.plan.d] = self.sums.association
        whole[self.plan.d :] = self.plan.constant * self.sums.outcome_sums
        return whole

    def _covariance(self, rng: np.random.Generator | None) -> Floats:
        """Return the covariance with the constant last, and its noise; n·c² needs none."""
        plan = self.plan
        whole = np.empty((plan.width, plan.width))
        whole[: plan.d, : plan.d] = self.sums.covariance
        if plan.intercept:
            whole[-1, :-1] = whole[:-1, -1] = plan.constant * self.sums.feature_sums
        if rng is not None:
            whole += symmetric_noise(rng, plan.width, plan.covariance_sigma)
        if plan.intercept:
            whole[-1, -1] = plan.n * plan.constant**2
        return whole

    def exact_covariance(self) -> Floats:
        """Return the covariance with the constant last, without noise."""
        return self._covariance(None)

    def _public_features(self) -> PublicFeatures:
        """Return public features that outnumber the rows, as estimation sees them."""
        plan = self.plan
        means = self.sums.feature_sums / plan.n if plan.intercept else np.zeros(plan.d)
        space = row_space(column_blocks(self.sums.rows - means), n=plan.n, width=plan.d)
        return PublicFeatures(means=means, row_space=space)

    def _projected(self, noise: Floats) -> Projected:
        plan, exact = self.plan, self._association()
        noisy = exact + noise
        root, part = math.sqrt(plan.n), plan.l / self.outcomes_in_all
        if plan.protection is Protection.OUTCOMES:
            radius = root * math.sqrt(part) * plan.outcomes.norm
            return project_onto_features(noisy, self.exact_covariance(), radius=radius)
        radius = root * plan.features.norm
        d = plan.d
        if part == 1:
            moments = self.sums.outcome_moments
            transposed = project_onto_features(noisy[:d].T, moments, radius=radius)
            found, left = transposed.association.T, transposed.noise_left
        else:
            kept, left = self._kept_of_many(radius)
            middle = np.outer(self.sums.feature_sums, self.sums.outcome_sums) / plan.n
            found = middle + kept[:, None] * (exact[:d] - middle) + left * noise[:d]
        return Projected(association=np.vstack([found, noisy[d:]]), noise_left=left)

    def _kept_of_many(self, radius: float) -> tuple[Floats, float]:
        """GaussProj_Y for more outcomes than are simulated: factors of signal (d,) and of noise.

        With many outcomes YᵀY has one strong direction for each direction of the features (the rows
        of A^(1/2)W are nearly orthogonal), and beyond these the spectrum of a Wishart matrix, from
        which a smaller one of the same shape is drawn. Where n < l, most directions are empty: there
        the projection removes all noise.
        """
        plan, l = self.plan, self.outcomes_in_all
        residual = float(np.mean(self.truth.residual**2))
        values = plan.n * self.truth.values
        values = np.where(np.arange(plan.d) < plan.d - plan.n, 0.0, values)  # at most n directions
        per_outcome = values * np.mean(self.truth.slopes**2, axis=1) + residual
        free = max(plan.n - int(np.count_nonzero(values)), 1)
        strong = l * per_outcome + free * residual
        small, large = sorted((free, max(l - plan.d, 1)))
        size = min(small, BULK)
        rng = np.random.default_rng((*self.seed, 9))
        bulk = _wishart_values(rng, size, large * size / small) * residual * small / size
        noise_energy = plan.d * plan.association_sigma**2
        copies = np.append(np.ones(plan.d), np.full(size, small / size))
        energy = np.append(values * l * per_outcome + noise_energy, np.full(size, noise_energy))
        kept = _shares_kept(np.append(strong, bulk), copies * energy, radius)
        return kept[: plan.d], float(np.sqrt(copies @ kept**2 / l))


@dataclass(frozen=True, kw_only=True, eq=False)
class Drawn:
    """Rows of a cohort, summed; every plan with the same shape and bounds can use them."""

    law: Law
    truth: Truth
    sums: Sums
    size: Reduction
    seed: tuple[int, int]

    @cached_property
    def unshortened(self) -> Unshortened:
        """Sums of the same rows before they are shortened: for rounds after the first."""
        return sum_unshortened(self.law, self.truth, n=self.size.n, seed=self.seed)

    def under(self, plan: Plan) -> Cohort:
        """Return the cohort as a plan of the whole size sees it, with the noise of that plan."""
        d, m = self.truth.slopes.shape
        return Cohort(
            plan=self.size.plan(plan, d=d, l=m),
            outcomes_in_all=self.size.l,
            truth=self.truth,
            sums=self.sums,
            seed=self.seed,
        )


def draw(
    plan: Plan, law: Law, m: int, *, seed: tuple[int, int], size: Reduction | None = None
) -> Drawn:
    """Draw the moments of m outcomes under the assumptions, at the sizes that stand for the plan's.

    `law` is that of these sizes; without `size` they are the plan's own.

    The same seed gives the same rows and noise at every budget, so that budgets can be compared.
    Cost: a few thousand rows, or ten for each feature, and their products.
    """
    size = size or Reduction(n=plan.n, d=plan.d, l=plan.l, times=1.0, outcomes_times=1.0)
    wide, n, d = plan.covariance_origin is CovarianceOrigin.ROW_SPACE, size.n, size.d
    if wide and law.signal.eigenvalues is None:  # only their row space matters
        d = min(d, max(n + 1, min(3 * n, WIDEST // n)))
    chosen = np.linspace(0, size.l - 1, m).round().astype(np.intp)
    truth = draw_truth(law, d, chosen, seed)
    sums = sum_rows(law, truth, n=n, l=size.l, keep_rows=wide, seed=seed)
    return Drawn(law=law, truth=truth, sums=sums, size=size, seed=seed)


def _wishart_values(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    """Return the eigenvalues of a Wishart matrix; Bartlett's triangle, or plain normals."""
    factor = wishart_factor(rng, size, degrees)
    return np.asarray(np.linalg.eigvalsh(factor @ factor.T), dtype=np.float64)


def symmetric_noise(rng: np.random.Generator, d: int, sigma: float) -> Floats:
    """Noise of variance σ² on the diagonal and σ²/2 off it."""
    if sigma == 0:
        return np.zeros((d, d))
    square = rng.standard_normal((d, d))
    return np.asarray((square + square.T) * (sigma / 2))


def _shares_kept(values: Floats, energies: Floats, radius: float) -> Floats:
    """Return the share that a projection keeps of each direction, 0 of those without data."""
    kept = np.zeros_like(values)
    seen = values > rank_cutoff(values, len(values))
    kept[seen] = shares_kept(values[seen], energies[seen], radius)
    return kept
