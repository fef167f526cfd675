"""Posterior spread of the coefficients that `primo.coefficients` returns by default.

The default estimator is a filter W = V diag(g)VᵀĜ fitted under a prior for the least-squares
coefficients of the rows (`primo.estimate`). Under that prior the error ŵ − w has, along an eigenvector
of Â, the variance

    g²·(B + σ₂²) − 2g·b + t,     B = VᵀASAV,   b = VᵀASV,   t = VᵀSV   (diagonals),

averaged over simulated noise of the covariance: filter noise, covariance noise and what shrinkage
leaves out, in one number per direction and group of outcomes. The closed form of mathematics.md,
1/(a²/v + 1/τ²), is its value for exact eigenvectors and the best g. S is not the prior that the filter
was chosen under but the more careful one of `uncertainty.prior`. Coverage is *on average over
coefficients and outcomes*, as always in empirical Bayes: not for each single one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.estimate.outcomes import OutcomeGroups, group_outcomes, one_group
from primo.estimate.problem import NoisyMoments
from primo.estimate.risk import FilterRisk, Replicas, simulate
from primo.estimate.selection import DOUBT, NUMERICAL_NOISE
from primo.estimate.signal import Signal, SignalModel, prior_shape
from primo.fitted import centred_moments, released_feature_means, shrunk_means
from primo.release import Release
from primo.uncertainty.prior import judged_variances, more_replicas

__all__ = ["Posterior", "posterior_of"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Shrunk coefficients of all outcomes in scaled units, and the variance of their errors.

    In eigen-direction k the error for outcome j has variance (errors @ shares.T)[k, j].
    """

    vectors: Floats  # (d, d) eigenvectors of the centred Â
    filters: Floats  # (d, groups)
    errors: Floats  # (d, groups)
    strengths: Floats  # (d, groups) prior variance of a coefficient along each direction
    values: Floats  # (d,) expected vᵀAv of the true covariance along each direction
    shares: Floats  # (l, groups) squared share of an outcome in each group of directions
    coefficients: Floats  # (d, l)
    feature_means: Floats  # (d,)
    outcome_means: Floats  # (l,)
    mean_variance: float  # of the outcome means' errors
    feature_mean_variance: float  # of the feature means' errors
    n: int

    def variance(self, points: Floats, *, sampling: Floats, outcomes: slice) -> Floats:
        """Variance of the error of pointsᵀw, (points, outcomes), for `points` (d, points).

        `sampling` holds ς_j² of these outcomes, zeros if the target is the rows. Errors along
        different eigenvectors are taken as uncorrelated.
        Cost: O(d²·points + d·points·groups + points·groups·outcomes).
        """
        loadings = (self.vectors.T @ points) ** 2
        shares = self.shares[outcomes]
        variance = (loadings.T @ self.errors) @ shares.T
        if sampling.any():
            inverse = 1 / np.maximum(self.values, 1e-12 * max(self.values.max(), 1e-290))
            extra = np.maximum(2 * self.filters - inverse[:, None], 0.0)
            variance += ((loadings.T @ extra) @ shares.T) * sampling
        return np.asarray(variance)

    def leaning(self, points: Floats, outcomes: slice) -> Floats:
        """Share of the error variance that is shrinkage: what the prior says, not the release."""
        loadings = (self.vectors.T @ points) ** 2
        kept = np.clip(self.filters * self.values[:, None], 0.0, 1.0)
        prior = (1 - kept) ** 2 * self.strengths
        shares = self.shares[outcomes].T
        whole = (loadings.T @ self.errors) @ shares
        part = (loadings.T @ prior) @ shares
        return np.divide(part, whole, out=np.ones_like(part), where=whole > 0)

    def prediction(
        self, points: Floats, *, sampling: Floats, outcomes: slice
    ) -> tuple[Floats, Floats]:
        """Predict at `points` (d, points) of scaled units: means and error variances."""
        away = points - self.feature_means[:, None]
        w = self.coefficients[:, outcomes]
        centre = self.outcome_means[outcomes] + away.T @ w
        variance = self.variance(away, sampling=sampling, outcomes=outcomes)
        size = np.einsum("ij,ij->j", w, w) + self.errors.sum(axis=0) @ self.shares[outcomes].T
        variance += self.mean_variance + self.feature_mean_variance * size + sampling / self.n
        return centre, variance


def posterior_of(release: Release) -> Posterior:
    """Fit the prior, the filter and its errors from a release.

    Guarantee: post-processing; costs no privacy.
    Cost: that of `primo.coefficients`; nothing of size d² per outcome.
    """
    moments, feature_means, outcome_means = centred_moments(release)
    values, vectors = np.linalg.eigh(moments.covariance)
    association = vectors.T @ moments.association
    replicas = simulate(values, moments.covariance_sigma)
    prior = _prior(moments, replicas, association)
    groups = prior.groups
    filters = _filters(replicas, prior)
    replicas = more_replicas(replicas, values, moments.covariance_sigma)
    errors, strengths = _errors(replicas, prior, filters)
    association = prior.association * groups.spread(filters)
    plan = release.plan
    kept, mass = 0.0, plan.n * plan.constant
    mean_sigma = feature_sigma = 0.0
    if plan.intercept:
        if plan.protection.outcomes_private:
            mean_sigma = plan.association_sigma / mass
            kept = shrunk_means(release.association[-1] / mass, mean_sigma)[1]
        feature_sigma = plan.covariance_sigma / mass / np.sqrt(1 + plan.triangle_bits)
        feature_sigma *= np.sqrt(
            shrunk_means(released_feature_means(release, mass), feature_sigma)[1]
        )
    overlap = replicas.overlap()
    return Posterior(
        vectors=vectors,
        filters=filters,
        errors=errors,
        strengths=strengths,
        values=replicas.truth if overlap is None else overlap.T @ replicas.truth,
        shares=_shares(groups, association.shape[1]),
        coefficients=groups.rotate_back(vectors @ association),
        feature_means=feature_means,
        outcome_means=outcome_means,
        mean_variance=kept * mean_sigma**2,
        feature_mean_variance=feature_sigma**2,
        n=plan.n,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Prior:
    """What the association says about the coefficients, and the association along its directions."""

    groups: OutcomeGroups
    association: Floats  # (d, l) rotated
    signal: Signal  # of the groups
    common: Signal  # of the outcomes as they are, all alike
    noise: float  # σ₂²


def _prior(moments: NoisyMoments, replicas: Replicas, association: Floats) -> _Prior:
    """Fit the prior as `primo.estimate.estimate` does for "auto"; a test holds the two together."""
    d, l = moments.shape
    groups = one_group(l)
    energy = groups.energy(association)
    noise = max(moments.association_sigma**2, NUMERICAL_NOISE * energy.sum() / (d * l), 1e-300)
    signal = Signal(gamma=np.zeros(1), strength=np.zeros(1), score=0.0)
    finer = groups
    if replicas.truth[-1] > 0:
        model = SignalModel(replicas, noise_variance=noise, variation=moments.total_variation / l)
        signal = model.fit(energy, groups)
        finer = group_outcomes(moments)
    common = signal
    if len(finer.counts) > 1:
        rotated = finer.rotate(association)
        energy = finer.energy(rotated)
        weighted = model.fit(energy, finer, gammas=signal.gamma)
        alike = model.fit(energy, finer.with_equal_weights(), gammas=signal.gamma)
        if weighted.score > alike.score - DOUBT:
            groups, association = finer, rotated
            signal = model.refine(energy, finer, weighted)
    return _Prior(groups=groups, association=association, signal=signal, common=common, noise=noise)


def _filters(replicas: Replicas, prior: _Prior) -> Floats:
    """Return the filters of `primo.estimate.estimate`, (d, groups)."""
    truth, signal = replicas.truth, prior.signal
    filters = np.zeros((len(truth), len(prior.groups.counts)))
    for gamma in np.unique(signal.gamma) if truth[-1] > 0 else ():
        which = signal.gamma == gamma
        risk = FilterRisk.build(replicas, prior_shape(truth, gamma), prior.noise)
        filters[:, which] = risk.best_filter(signal.strength[which])
    return filters


def _errors(replicas: Replicas, prior: _Prior, filters: Floats) -> tuple[Floats, Floats]:
    """Return error variances and prior variances along the noisy eigenvectors, (d, groups) each."""
    truth, overlap = replicas.truth[:, None], replicas.overlap()
    if truth[-1] <= 0:
        return np.zeros_like(filters), np.zeros_like(filters)
    strengths = judged_variances(
        replicas,
        prior.groups,
        energy=prior.groups.energy(prior.association),
        common=prior.common,
        noise=prior.noise,
    )
    square, cross = truth**2 * strengths, truth * strengths
    if overlap is not None:
        square, cross, strengths = overlap.T @ square, overlap.T @ cross, overlap.T @ strengths
    quadratic = filters**2 * square - 2 * filters * cross + strengths
    return np.maximum(quadratic, 0.0) + filters**2 * prior.noise, strengths


def _shares(groups: OutcomeGroups, l: int) -> Floats:
    """How much of each outcome lies in each group of directions, (l, groups); rows add up to 1."""
    shares = np.zeros((l, len(groups.counts)))
    if groups.rotation is None:
        shares[np.arange(l), groups.group] = 1.0
        return shares
    squares = groups.rotation**2
    for g in range(len(groups.counts)):
        shares[:, g] = squares[:, groups.group == g].sum(axis=1)
    return shares
