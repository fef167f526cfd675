"""Posterior spread of the coefficients that `primo.coefficients` returns by default.

The default estimator is a filter W = V diag(g)VᵀĜ fitted under a prior for the least-squares
coefficients of the rows (`estimate`). Under that prior the error ŵ − w has, along an eigenvector
of Â, the variance

    g²·(B + σ₂²) − 2g·b + t,     B = VᵀASAV,   b = VᵀASV,   t = VᵀSV   (diagonals),

averaged over simulated noise of the covariance: filter noise, covariance noise and what shrinkage
leaves out, in one number per direction and group of outcomes. For exact eigenvectors and the best g
it is the closed form 1/(a²/v + 1/τ²) (mathematics.md section 7). S is not the prior that the filter was
chosen under but the more careful one of `uncertainty.prior`. Coverage is *on average over
coefficients and outcomes*, as always in empirical Bayes: not for each single one.

All of it happens in the coordinates z of `estimate.centring`, which are those of the features with the
constant, x̃, reflected so that the mean of x̃ is one axis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from primo.released.decomposed import centred_of, estimate_of, filter_of
from primo.released.estimate.centring import Centred, mirror
from primo.released.estimate.large import LargeReplicas
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.risk import Replicas, seen_products, seen_squares
from primo.released.estimate.selection import FittedFilter
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.prior import judged_variances, more_replicas

__all__ = ["Outcomes", "Posterior", "posterior_of", "projected"]

Floats = NDArray[np.float64]
Outcomes = slice | NDArray[np.intp]  # a part of all, or their positions
SPARSE = 0.05  # share of entries that are not 0, below which zeros are left out of a product


@dataclass(frozen=True, kw_only=True, eq=False)
class Posterior:
    """Shrunk coefficients of all outcomes in scaled units, and the variance of their errors.

    In eigen-direction k of the covariance of z the error for outcome j has variance
    (errors @ shares.T)[k, j].
    """

    centred: Centred
    vectors: Floats  # (d, d) eigenvectors of the noisy covariance of z
    released: Floats  # (d,) its eigenvalues
    filters: Floats  # (d, groups)
    errors: Floats  # (d, groups)
    strengths: Floats  # (d, groups) prior variance of a coefficient along each direction
    values: Floats  # (d,) expected vᵀAv of the true covariance along each direction
    crossed: Floats  # (d, d) expected (vᵀAu)² between different directions; 0 on the diagonal
    shares: Floats  # (l, groups) squared share of an outcome in each group of directions
    along: Floats  # (d, l) coefficients of z along the directions
    theta: Floats  # (width, l) coefficients of the features and, last, of the constant

    @property
    def moments(self) -> NoisyMoments:
        """Moments of z and of the outcomes about their means."""
        return self.centred.moments

    @property
    def left(self) -> Floats:
        """What rounds had not found of `along`, (d, l): the covariance's noise acts on that alone."""
        started = self.moments.started
        return self.along if started is None else self.along - self.vectors.T @ started

    def loadings(self, points: Floats, along: Floats | None = None) -> Floats:
        """Squared shares of `points` (width, k), combinations of θ, in the directions, (d, k).

        `along` (d, k) are the shares themselves, where they are known.
        """
        latest: list[tuple[Floats, Floats]] = self.__dict__.setdefault("_latest", [])
        for given, known in latest:  # blocks of outcomes ask for the same ones
            if given is points:
                return known
        found = self._shares_along(points) if along is None else along
        found = found * found
        latest[:] = [*latest[-1:], (points, found)]
        return found

    def _shares_along(self, points: Floats) -> Floats:
        """Vᵀ of the reflected points; a reflection only takes off a multiple of one vector."""
        if not len(self.centred.axis):
            return projected(self.vectors, points)
        normal, gap = mirror(self.centred.axis)
        found = projected(self.vectors, points[:-1])
        if gap:
            found -= np.outer(self.vectors.T @ normal[:-1], (normal @ points) / gap)
        return found

    def shrinkage_share(self, points: Floats, outcomes: Outcomes) -> Floats:
        """Share of the error variance that comes from the prior (shrinkage), not from the release."""
        loadings = self.loadings(points)
        kept = np.clip(self.filters * self.values[:, None], 0.0, 1.0)
        prior = (1 - kept) ** 2 * self.strengths
        shares = self.shares[outcomes].T
        whole = (loadings.T @ self.errors) @ shares
        part = (loadings.T @ prior) @ shares
        return np.divide(part, whole, out=np.ones_like(part), where=whole > 0)

    def infer(
        self,
        points: Floats,
        *,
        sampling: Floats,
        outcomes: Outcomes,
        along: Floats | None = None,
    ) -> tuple[Floats, Floats]:
        """Means and error variances of pointsᵀθ, (points, outcomes) each.

        `points` (width, points) are combinations of θ: a slope, or features with the constant at
        which to predict. `sampling` holds ς_j² of these outcomes, zeros if the target is the rows.
        `along` is as in `loadings`.
        Errors along different directions are taken as uncorrelated.
        Cost: O(d²·points + d·points·groups + points·groups·outcomes).
        """
        found = self.centred
        loadings, shares = self.loadings(points, along), self.shares[outcomes]
        variance = (loadings.T @ self.errors) @ shares.T
        if sampling.any():
            inverse = 1 / np.maximum(self.values, 1e-12 * max(self.values.max(), 1e-290))
            extra = np.maximum(2 * self.filters - inverse[:, None], 0.0)
            variance += ((loadings.T @ extra) @ shares.T) * sampling
        if len(found.axis):
            size = (self.along[:, outcomes] ** 2).sum(axis=0) + self.errors.sum(axis=0) @ shares.T
            of_mean = found.outcome_mean_variances[outcomes] + found.feature_mean_variance * size
            of_mean = of_mean + sampling / found.moments.n
            length = self._mean_length
            variance += np.outer((points.T @ found.axis / length) ** 2, of_mean)
        return points.T @ self.theta[:, outcomes], np.asarray(variance)

    @property
    def _mean_length(self) -> float:
        """Length of the mean of the features with the constant: v = m̃/length."""
        found = self.centred
        return float(1 / (found.axis @ found.start))  # since m̃ᵀq = 1


def projected(vectors: Floats, points: Floats) -> Floats:
    """Return vectorsᵀ·points. The points of slopes are single coordinates, almost all zeros."""
    if np.count_nonzero(points) > SPARSE * points.size:
        return np.asarray(vectors.T @ points)
    return np.asarray((csc_array(points).T @ vectors).T)


def posterior_of(release: ReleasedMoments) -> Posterior:
    """Fit the prior, the filter and its errors from a release.

    Guarantee: post-processing; costs no privacy.
    Cost: that of `primo.coefficients`; nothing of size d² per outcome.
    """
    found, fitted = centred_of(release), filter_of(release)
    replicas = more_replicas(fitted, found.moments.covariance_sigma)
    errors, strengths = _errors(fitted, replicas)
    estimate = estimate_of(release)
    coefficients = estimate.coefficients
    assert estimate.along is not None  # of a filter
    shares = _shares(fitted.groups, coefficients.shape[1])
    return Posterior(
        centred=found,
        vectors=fitted.vectors,
        released=fitted.values,
        filters=fitted.filters,
        errors=errors,
        strengths=strengths,
        values=replicas.spread(replicas.mean_values()),
        crossed=_crossed(replicas),
        shares=shares,
        along=estimate.along,
        theta=found.restore(coefficients),
    )


def _errors(fitted: FittedFilter, replicas: Replicas | LargeReplicas) -> tuple[Floats, Floats]:
    """Return error variances and prior variances along the noisy eigenvectors, (d, groups) each."""
    filters, variances = replicas.average(fitted.filters), judged_variances(fitted, replicas)
    square = seen_squares(replicas, variances, fitted.carried)
    cross = seen_products(replicas, variances, fitted.carried)
    strengths = replicas.along(variances)
    quadratic = filters**2 * square - 2 * filters * cross + strengths
    noise = fitted.groups.noise_variance
    if fitted.row_variance > 0:  # σ²a along each direction; the covariance is exact
        noise = noise + fitted.row_variance * replicas.mean_values()[:, None]
    errors = np.maximum(quadratic, 0.0) + filters**2 * noise
    return replicas.spread(errors), replicas.spread(strengths)


def _crossed(replicas: Replicas | LargeReplicas) -> Floats:
    """Return the expected squares of the true covariance off its diagonal, in the noisy basis.

    The noise of the covariance is what makes them, but they can be much smaller than it: where true
    eigenvalues are alike the covariance is diagonal in every basis.
    """
    if isinstance(replicas, LargeReplicas):
        (squares,) = replicas.products(replicas.truths)
        crossed = replicas.spread(replicas.spread(np.maximum(squares, 0.0)).T)
        np.fill_diagonal(crossed, 0.0)
        return crossed
    d = replicas.truths.shape[1]
    crossed = np.zeros((d, d))
    if replicas.bases is None:
        return crossed
    for basis, truth in zip(replicas.bases, replicas.truths, strict=True):
        crossed += (basis.T @ (truth[:, None] * basis)) ** 2
    np.fill_diagonal(crossed, 0.0)
    return np.asarray(crossed / len(replicas.bases))


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
