"""What the published coefficients explain of *new* rows, estimated from the release alone.

For coefficients θ̂ (slopes and, last, the intercept's) the variation that they explain in rows like
these, the intercept's error included, is

    N_j = 2θ̂_jᵀG_j − θ̂_jᵀAθ̂_j − n·ȳ_j²,

which is negative where they predict worse than the mean. With the released Â and Ĝ in place of A and
G it is too large, because θ̂ was made from their noise. By Stein's identity the excess of any estimator
is its response to a small change of the release along fresh noise: with θ̂⁺ the coefficients of
Ĝ + tω and Â + tΩ,

    excess = E[2(θ̂⁺ − θ̂)ᵀω − (θ̂⁺ᵀΩθ̂⁺ − θ̂ᵀΩθ̂)]/t.

ω holds the noise of the association and the sampling error ς·A^½z of rows drawn from a population:
what fits these rows by chance is taken off as well. So the estimator is run again a few times and
nothing is assumed about it, nor about the coefficients. Discontinuities of an estimator are left out.
With many features the response of the default estimator has a closed form instead (`response`).
After rounds the residuals of the last ones are another way to the pooled R² (`variation`), in which the
covariance has no part: both are combined by their precision.
The numbers are for rows as clipped, so nothing is trusted where `columns.bounds_fit` sees that features
were cut, and no outcome that was cut itself or whose own variation is lost in noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.released.coefficients import Coefficients, estimate_coefficients
from primo.released.estimate.large import LARGE
from primo.released.estimation import Estimation
from primo.released.kept import kept
from primo.released.moments import ReleasedMoments, expect_release
from primo.released.uncertainty.columns import bounds_fit
from primo.released.uncertainty.fit import NOT_DETERMINED
from primo.released.uncertainty.response import Responses, filter_responses
from primo.released.uncertainty.system import (
    MOST_EXPLAINED,
    System,
    system_of,
)
from primo.released.uncertainty.variation import (
    explained_by_residuals,
    mostly_usable,
    residuals_agree,
    rows_whole,
)
from primo.released.uncertainty.words import r2_words

__all__ = ["PublishedRSquared", "published_r_squared"]

Floats = NDArray[np.float64]

SEED = 20_270_203  # public side: no privacy depends on it
STEP = 0.05  # t, of one standard deviation of the noise
MOST_RUNS, FEWEST_RUNS = 60, 4
DIRECTIONS = 1_500  # runs × width to aim for: each direction of the features is one sample
WORK = 2e7  # runs × width × outcomes not to exceed
DETERMINED = 0.03  # standard error up to which 90 % of the estimates are within 0.05
MOST_SPENT = 0.9  # degrees of freedom per row
UNKNOWN_ERROR = 1.0  # standard error where rows were cut or lost in noise: R² could be anything
WIDEST = 0.25  # standard error above which not even a range is worth showing
BISECTIONS = 50  # to more digits than matter
UNSURE = (
    3.0  # times the middle error: outcomes above it do not decide where the others are drawn to
)
CORRELATED = 2_000  # outcomes up to which their correlation is used


@dataclass(frozen=True, kw_only=True, eq=False)
class PublishedRSquared:
    """Held-out R² of the published predictors, (l,) each; negative where the mean predicts better."""

    outcome_names: tuple[str, ...]
    r_squared: Floats
    standard_error: Floats
    trusted: NDArray[np.bool_]  # whether it is determined to about 0.05
    usable: NDArray[np.bool_]  # neither cut nor lost in noise: what `pooled` is about
    pooled: float  # of all usable outcomes together, in scaled units
    pooled_error: float
    pooled_trusted: bool

    @property
    def worse_than_mean(self) -> bool:
        """Whether the mean surely predicts new rows better, all outcomes together."""
        return self.pooled + 2 * self.pooled_error < 0

    @property
    def together(self) -> str:
        """R² of all usable outcomes together in words: a number, a range, or "not determined"."""
        if self.pooled_trusted:
            return f"about {r2_words(self.pooled)}"
        if self.pooled_error > WIDEST:
            return NOT_DETERMINED
        low, high = (self.pooled + z * self.pooled_error for z in (-2, 2))
        return f"{r2_words(low)} to {r2_words(min(high, 1.0))}"

    @property
    def about(self) -> str:
        """Which outcomes that is about, in words; empty for a single one."""
        used, l = int(self.usable.sum()), len(self.usable)
        if l == 1:
            return ""
        return "all outcomes together" if used in (0, l) else f"{used} of {l} outcomes together"


def published_r_squared(
    release: ReleasedMoments,
    *,
    estimator: str = "auto",
    ridge_lambda: float | str | None = None,
    coefficient_norm: float | None = None,
    solver: str = "fast",
) -> PublishedRSquared:
    """Estimate R² that `primo.coefficients` with these arguments has on new rows of the same kind.

    Parameters
    ----------
    release
        All that is read; the data may be gone.
    estimator
        As given to `primo.coefficients`.
    ridge_lambda
        As given to `primo.coefficients`.
    coefficient_norm
        As given to `primo.coefficients`.
    solver
        As given to `primo.coefficients`.

    Returns
    -------
    PublishedRSquared
        Estimates with standard errors that count noise, sampling and this simulation. Usable outcomes
        are shrunk toward their common mean by as much as these errors warrant. Without an intercept R²
        is about the public centres, not about the means, which are not released then.

    Notes
    -----
    Guarantee: post-processing; costs no privacy. Deterministic.
    Cost: 4 to 60 runs of `primo.coefficients`, once for each release; O(d² + d·l) for the default
    estimator beyond 400 features.
    """
    estimation = Estimation(
        estimator=estimator,
        ridge_lambda=ridge_lambda,
        coefficient_norm=coefficient_norm,
        solver=solver,
    )
    expect_release(release)
    return kept(release, ("published", estimation), lambda: _published(release, estimation))


def _published(release: ReleasedMoments, estimation: Estimation) -> PublishedRSquared:
    def fitted(of: ReleasedMoments) -> Coefficients:
        return estimate_coefficients(of, estimation)

    system = system_of(release)
    theta = _scaled(release, fitted(release))
    means, mean_variance = _means(system)
    explained = _gain(theta, system.covariance, system.association)
    explained -= system.n * (means**2 - mean_variance)
    responses: Responses | _Simulated
    if estimation.estimator == "auto" and system.d > LARGE:
        chance = _chance(system, system.posterior.moments.spectrum[0])
        correlation = _correlation(system, release.outcome_moments)
        responses = filter_responses(release, system, correlation, chance)
    else:
        responses = _responses(release, system, theta, fitted)
    in_rows = explained - responses.to_noise
    factor = _chance_factor(in_rows, responses.to_chance, system)
    explained = explained - responses.total(factor)
    excess_variance = responses.variance(factor)
    own, shared = _noise(system, theta, means)
    variation, variation_variance = system.seen_variation
    found = np.minimum(explained / variation, 1.0)
    inside = np.clip(found, 0.0, 1.0)
    relative = variation_variance / variation**2
    error = np.sqrt(
        (own + shared + excess_variance) / variation**2
        + found**2 * relative
        + 4 * inside * (1 - inside) ** 2 / system.n
    )
    fits = bounds_fit(release)
    # A number for all is about the usable outcomes; with none of them it is about all, and not trusted.
    part = fits.usable if fits.usable.any() else np.ones(system.l, dtype=bool)
    total = float(variation[part].sum())
    pooled = min(float(explained[part].sum()) / total, 1.0)
    kept = min(max(pooled, 0.0), 1.0)
    pooled_variance = responses.pooled_variance(factor, part)
    pooled_error = np.sqrt(
        (own[part].sum() + _shared_sum(system, theta[:, part]) + pooled_variance) / total**2
        + pooled**2 * variation_variance[part].sum() / total**2
        + 4 * kept * (1 - kept) ** 2 / (system.n * min(int(part.sum()), 10))
    )
    by_moments, pooled_error = pooled, float(pooled_error)
    if estimation == Estimation():  # rounds take residuals of what the default publishes
        in_rows_alone = float((in_rows - explained)[part].sum()) / total
        pooled, pooled_error = _with_residuals(
            release, pooled, pooled_error, in_rows_alone, fits.usable
        )
    # What the covariance's noise does to one outcome it does to all, and residuals are free of it.
    found[part] = np.minimum(found[part] + (pooled - by_moments), 1.0)
    if part.sum() == 1:
        error[part] = pooled_error
    found[part], error[part] = _toward_common(found[part], error[part], pooled_error)
    agreed = residuals_agree(release, by_moments, fits.usable)
    sound = not system.warnings and rows_whole(release) and agreed
    # Errors of noise and sampling say nothing where rows were cut, or the law of noise is incomplete.
    if not (fits.stated_together and sound):
        pooled_error = max(pooled_error, UNKNOWN_ERROR)
    stated = fits.usable & (fits.stated_together or fits.stated) & sound
    error = np.where(stated, error, np.maximum(error, UNKNOWN_ERROR))
    return PublishedRSquared(
        outcome_names=release.outcome_names,
        r_squared=found,
        standard_error=error,
        trusted=np.asarray((error <= DETERMINED) & fits.stated),
        usable=fits.usable,
        pooled=pooled,
        pooled_error=pooled_error,
        pooled_trusted=bool(pooled_error <= DETERMINED),
    )


def _with_residuals(
    release: ReleasedMoments,
    pooled: float,
    error: float,
    in_rows_alone: float,
    usable: NDArray[np.bool_],
) -> tuple[float, float]:
    """Combine the pooled R² with what the residuals of the last rounds say, by precision.

    Residuals are those of the rows, whose R² is larger by `in_rows_alone` than that of new ones.
    """
    if not release.rounds or not mostly_usable(release, usable):
        return pooled, error
    other, other_error = explained_by_residuals(release)
    share = 1 / (1 + (other_error / max(error, 1e-300)) ** 2)
    return pooled + share * (other - in_rows_alone - pooled), error * math.sqrt(1 - share)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Simulated:
    """Responses of an estimator in several runs, (runs, l) each.

    The mean of `noise` is the excess that noise makes; `chance` is θ̂'s own, ζᵀ(θ̂⁺ − θ̂)/t.
    """

    noise: Floats
    chance: Floats

    @property
    def to_noise(self) -> Floats:
        return np.asarray(self.noise.mean(axis=0))

    @property
    def to_chance(self) -> Floats:
        return np.asarray(self.chance.mean(axis=0))

    def total(self, factor: Floats) -> Floats:
        """Return the response where sampling error counts `factor` times, (l,)."""
        return np.asarray((self.noise + self.chance * factor).mean(axis=0))

    # A response ωᵀJω scatters over draws as the same form in the release's own noise does.

    def variance(self, factor: Floats) -> Floats:
        """Return the variance of `total` over noise and samples, with the error of so few runs, (l,)."""
        runs = self.noise + self.chance * factor
        return np.asarray(runs.var(axis=0, ddof=1) * (1 + 1 / len(runs)))

    def pooled_variance(self, factor: Floats, part: NDArray[np.bool_]) -> float:
        """Return the variance of the sum over some outcomes."""
        runs = (self.noise + self.chance * factor)[:, part].sum(axis=1)
        return float(runs.var(ddof=1)) * (1 + 1 / len(runs))


def _scaled(release: ReleasedMoments, fitted: Coefficients) -> Floats:
    """Coefficients in scaled units with that of the constant last, (width, l)."""
    plan = release.plan
    slopes = fitted.slopes * plan.features.scale[:, None] / plan.outcomes.scale
    if not plan.intercept:
        return np.asarray(slopes)
    at_centre = fitted.intercept + plan.features.centre @ fitted.slopes - plan.outcomes.centre
    return np.vstack([slopes, at_centre / (plan.outcomes.scale * plan.constant)])


def _gain(theta: Floats, covariance: Floats, association: Floats) -> Floats:
    """2θᵀG − θᵀAθ of every outcome, (l,)."""
    products = 2 * association - covariance @ theta
    return np.asarray(np.einsum("ij,ij->j", theta, products))


def _means(system: System) -> tuple[Floats, float]:
    """Released means of the outcomes in scaled units and the variance of their noise; 0 without."""
    if not system.intercept:
        return np.zeros(system.l), 0.0
    mass = np.sqrt(system.n * system.covariance[-1, -1])
    variance = 0.0 if system.sums_exact else system.association_variance / mass**2
    variance += system.row_variance / system.n
    return np.asarray(system.association[-1] / mass), float(variance)


def _noise(system: System, theta: Floats, means: Floats) -> tuple[Floats, Floats]:
    """Variance of the plug-in for fixed θ: of its association and of its covariance, (l,) each."""
    away = theta.copy()
    if system.intercept:
        away[-1] -= means / np.sqrt(system.covariance[-1, -1] / system.n)
        away[-1] *= not system.sums_exact
    sizes = np.einsum("ij,ij->j", theta, theta)
    association = 4 * system.association_variance * np.einsum("ij,ij->j", away, away)
    if system.row_variance > 0:
        along = np.einsum("ij,ij->j", away, system.covariance @ away)
        association = association + 4 * system.row_variance * np.maximum(along, 0.0)
    return np.asarray(association), 2 * system.off_variance * sizes**2


def _shared_sum(system: System, theta: Floats) -> float:
    """Variance that the covariance's noise gives the sum over outcomes: they have it in common."""
    narrow = theta.T @ theta if theta.shape[1] < len(theta) else theta @ theta.T
    return float(2 * system.off_variance * np.sum(narrow**2))


def _responses(
    release: ReleasedMoments,
    system: System,
    theta: Floats,
    fitted: Callable[[ReleasedMoments], Coefficients],
) -> _Simulated:
    """Run the estimator again on releases that are changed along noise and along sampling error."""
    width, l = theta.shape
    runs = int(min(DIRECTIONS // width, WORK / (width * l), MOST_RUNS))
    runs = max(runs, FEWEST_RUNS)
    rng = np.random.default_rng(SEED)
    draw_sampling = _sampling(system, release.outcome_moments)
    to_noise, to_chance = np.empty((runs, l)), np.empty((runs, l))
    for run in range(runs):
        square = rng.standard_normal((width, width))
        covariance = np.sqrt(system.off_variance / 2) * (square + square.T)
        association = np.sqrt(system.association_variance) * rng.standard_normal((width, l))
        if system.row_variance > 0:
            values, vectors = system.spectrum
            root = vectors * np.sqrt(system.row_variance * np.maximum(values, 0.0))
            association = root @ rng.standard_normal((width, l))
        if system.intercept:
            covariance[-1, -1] = 0.0
            association[-1] *= not system.sums_exact
        sampled = draw_sampling(rng)
        moved = replace(
            release,
            covariance=system.covariance + STEP * covariance,
            association=system.association + STEP * (association + sampled),
        )
        there = _scaled(release, fitted(moved))
        change = _gain(there, covariance, association) - _gain(theta, covariance, association)
        to_noise[run] = change / STEP
        to_chance[run] = np.einsum("ij,ij->j", there - theta, sampled) / STEP
    return _Simulated(noise=to_noise, chance=to_chance)


def _chance_factor(explained: Floats, to_chance: Floats, system: System) -> Floats:
    """Return the factor of a response to sampling error, (l,): once on these rows, once on new ones.

    Least squares with d features gains ς²·d on its own rows by chance and loses ς²·d/(1 − d/n) on new
    ones: the covariance that it divides by is that of its own rows. The degrees of freedom d are read
    off the responses. `explained` shows ς² to be smaller than assumed where noise hid the fit.
    """
    assumed = np.maximum(system.residual_variance, 1e-300)
    per_row = float(np.mean(to_chance / assumed)) / system.n
    per_row = min(max(per_row, 0.0), MOST_SPENT)
    rate = float(explained.sum() / system.variation.sum())
    left = system.variation * (1 - min(max(rate, 0.0), MOST_EXPLAINED))
    left /= system.n * (1 - per_row)
    return np.asarray(np.minimum(left / assumed, 1.0) * (1 + 1 / (1 - per_row)))


def _sampling(system: System, outcome_moments: Floats) -> Callable[[np.random.Generator], Floats]:
    """Return what draws the sampling error of the association, (width, l): covariance ς_j²·A."""
    _, _, means = system.centred
    values, vectors = system.centred_spectrum
    root = vectors * np.sqrt(_chance(system, values))
    spread = np.sqrt(system.residual_variance)
    together = _together(system, outcome_moments)

    def draw(rng: np.random.Generator) -> Floats:
        free = rng.standard_normal((system.width, system.l))
        if together is not None:
            free = free @ together
        free *= spread
        if not system.intercept:
            return np.asarray(root @ free)
        sums = np.sqrt(system.covariance[-1, -1]) * free[-1]
        return np.vstack([root @ free[:-1] + np.outer(means, sums), sums])

    return draw


def _chance(system: System, values: Floats) -> Floats:
    """Variances of the sampling error along directions of the features, over ς², (d,)."""
    return np.maximum(_denoised_values(values, system.off_variance), 0.0)


def _together(system: System, outcome_moments: Floats) -> Floats | None:
    """Return what makes residuals as correlated as outcomes are, (l, l); None if they stay apart."""
    if outcome_moments.ndim != 2 or not 1 < system.l <= CORRELATED:
        return None
    means = _means(system)[0]
    half = _root(outcome_moments - system.n * np.outer(means, means))
    size = np.sqrt(np.maximum(np.einsum("ij,ij->i", half, half), 1e-300))
    return np.asarray((half / size[:, None]).T)


def _correlation(system: System, outcome_moments: Floats) -> Floats | None:
    together = _together(system, outcome_moments)
    return None if together is None else together.T @ together


def _denoised_values(values: Floats, off_variance: float) -> Floats:
    """Pull a noisy covariance toward a multiple of the identity by as much as its noise warrants.

    Eigenvalues of the matrix itself are spread by the noise, along the very directions that an
    estimator made from it relies on (Ledoit and Wolf). Eigenvectors stay: given and returned are (d,).
    """
    d, middle = len(values), float(values.mean())
    away = values - middle
    scatter = float(away @ away)
    left = max(0.0, 1 - off_variance * d * (d + 1) / scatter) if scatter > 0 else 0.0
    return np.asarray(middle + left * away)


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _toward_common(found: Floats, error: Floats, common_error: float) -> tuple[Floats, Floats]:
    """Shrink estimates of several outcomes toward their mean as far as their errors explain them.

    The mean is not weighted by the errors: they grow with the coefficients, so that would favour
    outcomes that are explained badly. `common_error` is the standard error of what all have in common.
    """
    l = len(found)
    if l < 4:
        return found, error
    variance = np.maximum(error**2, 1e-300)
    # Outcomes that are hardly known neither move the mean nor hide how far the others differ.
    common = float(found[error <= UNSURE * float(np.median(error))].mean())
    between = _between((found - common) ** 2, variance)
    kept = between / (between + variance)
    # How far outcomes differ is itself uncertain: an error is counted for as far as they might.
    might = between + np.sqrt(2 / (l - 1)) / float(np.mean(1 / variance))
    left = might * variance / (might + variance)
    return common + kept * (found - common), np.sqrt(left + common_error**2)


def _between(squares: Floats, variance: Floats) -> float:
    """Variance between outcomes that makes Σ squares/(it + variance) as expected (Paule, Mandel)."""
    expected = len(squares) - 1
    low, high = 0.0, float(squares.sum()) / expected  # at `high` the sum is below what is expected
    if float(np.sum(squares / variance)) <= expected:
        return 0.0
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if float(np.sum(squares / (middle + variance))) > expected:
            low = middle
        else:
            high = middle
    return high
