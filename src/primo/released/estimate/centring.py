"""Released moments in coordinates in which features have mean 0 and all noise has one scale.

With an intercept the features x have a constant c beside them, x̃ = (x, c), and the released X̃ᵀX̃ holds
their means in its last column. Subtracting n·m̂m̂ᵀ would turn the noise of the means m̂ into two spikes
of about d·σ₁ where features lie far from their public centres. So nothing is subtracted. Let v be the
unit vector along m̃ = (m, c), the mean of x̃, and H the reflection that takes the axis of the constant
to v. Then z, the first d coordinates of Hx̃, has mean 0. The noise of HÂH is that of Â, because H is
orthogonal. An error in v leaves a small mean in z, which is part of its moments and does no harm. For
the same reason v need not come from the noisy column alone: Âv tells the means with less noise.

A constant prediction of 1 has coefficients q with m̃ᵀq = 1. The constant alone, q = (0, 1/c), predicts 1
for every row. But Ĝ − Âqȳ, the association of an outcome about its mean ȳ, then has the noise of the
constant's column in it, ȳ/c times. The shortest such q, v/‖m̃‖, brings the least noise, and is not
constant where rows differ along v. Both errors grow with ȳ², so the best mixture is the same for all
outcomes, and known from released numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.estimate.means import shrunk_means
from primo.released.estimate.nothing import nothing_to_see
from primo.released.estimate.problem import NoisyMoments
from primo.released.estimate.shortened import share_of_slopes
from primo.released.moments import PublicFeatures, ReleasedMoments

__all__ = ["Centred", "ConstantPart", "centred", "constant_part", "mirror", "reflect"]

Floats = NDArray[np.float64]

REFINEMENTS = 3  # of the means of the features; they settle at once
MOST_CHANCE = 10.0  # times the noise variance of a mean: sampling error beyond is not shrunk
DROWNED = 2.0  # times σ₃: noise at which an outcome's covariance with another is taken as 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Centred:
    """Moments of z and of outcomes about their means, and the way back to the features."""

    moments: NoisyMoments
    axis: Floats  # (width,) v; empty where z is x
    start: Floats  # (width,) q; empty without an intercept
    outcome_means: Floats  # (l,) of new rows, shrunk; zeros without an intercept
    outcome_mean_variances: Floats  # (l,) of their errors as means of these rows
    feature_mean_variance: float  # of the error of z's mean, per coordinate
    public_features: PublicFeatures | None  # where they outnumber the rows

    def restore(self, coefficients: Floats) -> Floats:
        """Turn coefficients of z (d, l) into those of x̃ (width, l), means included."""
        if self.public_features is not None:
            coefficients = self.public_features.row_space.expand(coefficients)
        if not len(self.start):
            return coefficients
        theta = np.outer(self.start, self.outcome_means)
        if len(self.axis):
            whole = np.vstack([coefficients, np.zeros((1, coefficients.shape[1]))])
            return theta + reflect(self.axis, whole)
        assert self.public_features is not None
        theta[:-1] += coefficients
        theta[-1] -= self.start[-1] * (self.public_features.means @ coefficients)
        return theta


@dataclass(frozen=True, kw_only=True, eq=False)
class ConstantPart:
    """Where the constant is in a released covariance with an intercept."""

    axis: Floats  # (width,) v
    length: float  # of (m, c)
    start: Floats  # (width,) q
    covariance: Floats  # (d, d) of z
    values: Floats  # (d,) its eigenvalues
    vectors: Floats  # (d, d) its eigenvectors

    def slopes(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Split coefficients of x̃ (width, l) into those of z (d, l) and mean predictions (l,)."""
        means = self.length * (self.axis @ coefficients)
        rest = coefficients - np.outer(self.start, means)
        return reflect(self.axis, rest)[:-1], means


def constant_part(plan: Plan, covariance: Floats, sigma1: float) -> ConstantPart:
    """Find the axis of the constant and the coefficients of a constant prediction."""
    found = _feature_means(covariance, n=plan.n, constant=plan.constant, s=sigma1 / math.sqrt(2))
    length = math.hypot(plan.constant, float(np.linalg.norm(found)))
    axis = np.append(found, plan.constant) / length
    about = reflect(axis, reflect(axis, covariance).T)[:-1, :-1]
    values, vectors = np.linalg.eigh(about)
    alone = np.append(np.zeros(plan.d), 1 / plan.constant)
    return ConstantPart(
        axis=axis,
        length=length,
        start=_start(covariance, values, axis, length, alone, sigma1),
        covariance=about,
        values=values,
        vectors=vectors,
    )


def reflect(axis: Floats, columns: Floats) -> Floats:
    """Apply the reflection that exchanges the last coordinate axis and `axis` to (width, k)."""
    normal, gap = mirror(axis)
    if gap == 0:
        return columns.copy()
    return np.asarray(columns - np.outer(normal, (normal @ columns) / gap))


def mirror(axis: Floats) -> tuple[Floats, float]:
    """Return w (width,) and half its squared length: the reflection takes x to x − w·(wᵀx)/half."""
    gap = float(axis[:-1] @ axis[:-1]) / (1 + axis[-1])  # 1 − v_c without cancellation
    return np.append(-axis[:-1], gap), gap


def centred(release: ReleasedMoments) -> Centred:
    """Eliminate the constant feature from the released moments, by the reflection above.

    Guarantee: post-processing; costs no privacy. Cost: O(d³ + d·l).
    """
    plan = release.plan
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and release.public_features is None:
        raise InputError(
            (
                "this release has more public features than rows"
                if plan.width > plan.n
                else "the public features of this release were summed inside blocks only"
            )
            + ", and it was loaded without them; attach them first: "
            "release = primo.with_public_features(release, X)"
        )
    if release.blocks is not None:
        raise InputError(
            f"this release holds {release.held}; the whole matrix, which this needs, was not released"
        )
    # The estimators expect svec noise; an iid triangle has twice its variance off the diagonal.
    sigma1 = release.covariance_sigma * math.sqrt(2 - plan.triangle_bits)
    sigma2, association = math.sqrt(release.association_variance), release.association
    if release.projected is not None:
        sigma2 *= release.projected.noise_left
        association = release.projected.association
    centre, doubt = nothing_to_see(release)
    taken = _outcome_means(release, association, sigma2, doubt=centre)
    means, variances = taken.means, taken.variances
    public = release.public_features
    start, axis, feature_variance = np.empty(0), np.empty(0), 0.0
    decomposed, started = None, release.started
    mean_noise = np.zeros(plan.l)
    if plan.intercept:
        start = np.append(np.zeros(plan.d), 1 / plan.constant)
    if public is not None:
        covariance = np.diag(public.row_space.values)
        if plan.intercept and release.row_variance > 0:
            # XᵀỸ of features about their means, whatever is added to the noisy outcomes.
            about = association[-1] / (plan.n * plan.constant)
            association = association[:-1] - plan.n * np.outer(public.means, about)
        elif plan.intercept:
            association = association[:-1] - plan.n * np.outer(public.means, means)
            mean_noise = plan.n**2 * float(np.mean(public.means**2)) * variances
        association = public.row_space.reduce(association)
    elif plan.intercept:
        s = sigma1 / math.sqrt(2)
        found = constant_part(plan, release.covariance, sigma1)
        axis, start, covariance = found.axis, found.start, found.covariance
        feature_variance = (s / (plan.n * found.length)) ** 2
        decomposed = (found.values, found.vectors)
        about = association - np.outer(release.covariance @ start, means)
        association = reflect(axis, about)[:-1]
        # Rounds of residuals about means have those means added back with the same noisy column.
        left = means
        if started is not None:
            started, carried_means = found.slopes(started)
            left = means - carried_means
        mean_noise = s**2 * float(start @ start) * left**2
    else:
        covariance = release.covariance
    return Centred(
        moments=NoisyMoments(
            n=plan.n,
            covariance=covariance,
            association=association,
            outcome_moments=taken.moments,
            covariance_sigma=sigma1,
            association_sigma=sigma2,
            outcome_sigma=release.outcome_sigma,
            mean_noise=mean_noise,
            outcome_errors=taken.errors,
            carried=0.0 if release.scales is None else release.scales.carried,
            row_variance=release.row_variance,
            started=started,
            decomposed=decomposed,
            doubt=doubt,
            slopes_kept=share_of_slopes(release),
            largest_variation=(
                plan.n * plan.outcomes.norm**2 if plan.protection.outcomes_private else math.inf
            ),
        ),
        axis=axis,
        start=start,
        outcome_means=taken.published,
        outcome_mean_variances=variances + (taken.published - means) ** 2,
        feature_mean_variance=feature_variance,
        public_features=public,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _OutcomeMeans:
    """Means of the outcomes, shrunk by their evidence, and the moments about them."""

    means: Floats  # (l,) of these rows
    variances: Floats  # (l,) of their errors
    published: Floats  # (l,) of new rows
    moments: Floats  # of the outcomes about `means`
    errors: Floats  # (l,) noise scale of the variation


def _outcome_means(
    release: ReleasedMoments, association: Floats, sigma: float, *, doubt: Floats
) -> _OutcomeMeans:
    """Estimate the means of the outcomes; zeros without an intercept."""
    plan = release.plan
    if not plan.intercept:
        nothing = np.zeros(plan.l)
        return _OutcomeMeans(
            means=nothing,
            variances=nothing,
            published=nothing,
            moments=release.outcome_moments,
            errors=np.full(plan.l, release.outcome_sigma),
        )
    mass, outcomes = plan.n * plan.constant, plan.outcomes
    noise = sigma / mass if plan.protection.outcomes_private else 0.0
    if release.row_variance:  # noise on the outcomes themselves
        noise = release.mean_sigma
    box = outcomes.box and outcomes.middle is None
    most = min(1.0, outcomes.norm) if box else outcomes.norm
    released = association[-1] / mass
    means, variances = shrunk_means(released, noise, most=most, doubt=doubt)
    moments, errors = _about(
        means, variances, release.outcome_moments, plan.n, release.outcome_sigma
    )
    return _OutcomeMeans(
        means=means,
        variances=variances,
        published=_of_new_rows(released, noise, moments, plan.n, most=most, doubt=doubt),
        moments=moments,
        errors=errors,
    )


def _of_new_rows(
    means: Floats, noise: float, moments: Floats, n: int, *, most: float, doubt: Floats
) -> Floats:
    """Shrink released means (l,) as means of new rows: these rows are a sample.

    `moments` are those of the outcomes about their means. As with slopes, sampling error of more than
    `MOST_CHANCE` times the noise does not count, so that no noise is least squares.
    """
    diagonal = np.diagonal(moments) if moments.ndim == 2 else moments
    chance = max(float(diagonal.mean()), 0.0) / n**2
    sigma = math.sqrt(noise**2 + min(chance, MOST_CHANCE * noise**2))
    return shrunk_means(means, sigma, most=most, doubt=doubt)[0]


def _about(
    means: Floats, variances: Floats, moments: Floats, n: int, sigma: float
) -> tuple[Floats, Floats]:
    """Outcome moments about the means, and standard deviations of their diagonal.

    A far-off mean brings n·mean times the noise of *another* outcome's mean into their covariance. Such
    entries say nothing, and are taken as 0.
    """
    errors = np.sqrt(sigma**2 + 4 * n**2 * means**2 * variances)
    if moments.ndim == 1:
        return moments - n * (means**2), errors
    centred = moments - n * np.outer(means, means)
    cross = np.outer(means**2, variances)
    drowned = n**2 * (cross + cross.T) > (DROWNED * sigma) ** 2
    np.fill_diagonal(drowned, False)
    centred[drowned] = 0.0
    return centred, errors


def _feature_means(covariance: Floats, *, n: int, constant: float, s: float) -> Floats:
    """Means of the features in scaled units, from the whole released matrix, (d,).

    The constant's column tells them with noise s/(n·c) each. With ṽ = (m, c) of length ρ for means m
    known so far, Âṽ/(nρ²) tells them with noise s/(n·ρ), and with the bias A_c·m/(nρ²), A_c the
    covariance about the means. How large that bias is shows in the distance between the two.
    """
    column = covariance[:-1, -1] / (n * constant)
    noise = (s / (n * constant)) ** 2 * len(column)  # squared length of the column's noise
    first, variances = shrunk_means(column, s / (n * constant))
    if s == 0:
        return first
    means = first
    for _ in range(REFINEMENTS):
        axis = np.append(means, constant)
        squared = float(axis @ axis)
        share = constant**2 / squared
        second = (covariance @ axis)[:-1] / (n * squared)
        bias = max(0.0, float(np.sum((second - column) ** 2)) - noise * (1 - share))
        own = float(variances.sum())
        weight = own / (own + noise * share + bias) if own > 0 else 0.0
        means = (1 - weight) * first + weight * second
    return np.asarray(means)


def _start(
    covariance: Floats,
    eigenvalues: Floats,
    axis: Floats,
    length: float,
    constant: Floats,
    sigma1: float,
) -> Floats:
    """Coefficients q of a constant prediction of 1: the best mixture of the two in the module's head.

    `eigenvalues` are those of the covariance of z.
    """
    away = constant - axis / length  # at right angles to the axis
    noise = sigma1**2 / 2 * float(away @ away)
    if noise == 0:
        return constant
    # What one unit of noise in the association does to the predictions of a ridge.
    values = np.maximum(eigenvalues, 0.0)
    gain = float(np.sum(values / (values + math.sqrt(len(values) / 2) * sigma1) ** 2))
    bias = max(float(away @ covariance @ away), 0.0)
    share = gain * noise / (gain * noise + bias) if gain > 0 else 0.0
    return np.asarray(constant - share * away)
