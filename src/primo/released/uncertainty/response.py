"""How the default coefficients respond to a small change of the release: in closed form.

`published` needs the response of an estimator to changes along fresh noise, on average. Running the
estimator again on changed releases tells it for any estimator, and takes a decomposition for each run.
The default one is a filter W = V diag(g) VᵀĜ, and with many features its g hardly changes with the
release. Then the response of W to a change Ω of the covariance is

    V(D ∘ VᵀΩV)VᵀĜ,      D_ik = (g_i − g_k)/(a_i − a_k),   D_ii = g'(a_i),

and the averages over noise are sums over eigenvalues: nothing is drawn. Outcomes that are filtered along
directions of their own (two-sided) respond through the same sums, one for each group of directions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.decomposed import centred_of, filter_of
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.selection import FittedFilter
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.system import System

__all__ = ["Responses", "filter_responses"]

Floats = NDArray[np.float64]

ROWS = 512  # of D at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Responses:
    """Expected responses of every outcome, and the parts of their variances; (l,) each."""

    to_noise: Floats  # the excess that noise makes
    to_chance: Floats  # θ̂'s own response to the sampling error of rows
    noise_variance: Floats
    both_variance: Floats  # of the product of noise and sampling error
    chance_variance: Floats
    together: float  # how much more sampling error varies for the sum over outcomes
    shared_variance: float  # of the sum over outcomes, from the covariance's noise

    def total(self, factor: Floats) -> Floats:
        """Return the response where sampling error counts `factor` times."""
        return self.to_noise + factor * self.to_chance

    def variance(self, factor: Floats) -> Floats:
        """Return the variance of `total` over noise and samples, (l,)."""
        chance = factor**2 * self.chance_variance
        return np.asarray(self.noise_variance + (2 + factor) ** 2 * self.both_variance + chance)

    def pooled_variance(self, factor: Floats, part: NDArray[np.bool_]) -> float:
        """Return the variance of the sum over some outcomes."""
        alone = self.noise_variance + (2 + factor) ** 2 * self.both_variance
        chance = self.together * factor**2 * self.chance_variance
        return float((alone + chance)[part].sum()) + self.shared_variance


def filter_responses(
    release: ReleasedMoments, system: System, correlation: Floats | None, chance: Floats
) -> Responses:
    """Return the responses of estimator="auto".

    `correlation` (l, l) is that of the sampling errors of outcomes, `chance` (d,) their variance along
    the eigenvectors, over the residual variance of a row.
    Cost: O(d²·groups + d·l), and O(l³) where outcomes are rotated.
    """
    found, fitted = centred_of(release), filter_of(release)
    groups, moments = fitted.groups, found.moments
    along = system.posterior.along  # (d, l) as published
    plain = groups.rotate_back(fitted.filtered)
    sizes = np.maximum(np.einsum("ij,ij->j", plain, plain), 1e-300)
    kept = np.sqrt(np.einsum("ij,ij->j", along, along) / sizes)  # shrunk once more
    shares = system.posterior.shares.T  # (groups, l)
    filters, squares = fitted.filters.sum(axis=0) @ shares, fitted.filters**2
    noise, residual = moments.noise_variances, system.residual_variance
    own, values = system.row_variance, np.maximum(fitted.values, 0.0)
    s2 = system.off_variance
    # dW for a change of the covariance, and θᵀΩ dW on average over Ω.
    moved = groups.rotate_back(fitted.association * groups.spread(_sums(fitted)))
    to_covariance = -2 * s2 * kept * np.einsum("ij,ij->j", along, moved)
    gain = kept * residual * _through(groups, chance @ fitted.filters, correlation, residual)
    to_noise, to_chance = 2 * kept * noise * filters + to_covariance, gain
    to_noise = to_noise + 2 * kept * own * ((values @ fitted.filters) @ shares)
    if system.intercept:
        raw = system.association_variance / (system.n * system.covariance[-1, -1])
        raw *= not system.sums_exact
        raw += system.row_variance / system.n
        share = (
            np.minimum(found.outcome_mean_variances / raw, 1.0) if raw > 0 else np.ones(system.l)
        )
        to_noise = to_noise + 2 * system.n * raw * share
        to_chance = to_chance + residual * share
    # A quadratic form in noise varies by the squares of its matrix.
    noise = noise + s2 * np.einsum("ij,ij->j", along, along)
    return Responses(
        to_noise=to_noise,
        to_chance=to_chance,
        noise_variance=8 * (kept * noise) ** 2 * (squares.sum(axis=0) @ shares)
        + 8 * (kept * own) ** 2 * ((values**2 @ squares) @ shares),
        both_variance=kept**2 * noise * residual * ((chance @ squares) @ shares)
        + kept**2 * own * residual * (((chance * values) @ squares) @ shares),
        chance_variance=2 * (kept * residual) ** 2 * ((chance**2 @ squares) @ shares),
        together=1.0 if correlation is None else float(np.sum(correlation**2)) / system.l,
        shared_variance=2 * float(to_covariance.sum()) ** 2 / max(len(fitted.values), 1),
    )


def _sums(fitted: FittedFilter) -> Floats:
    """Σ_i D_ik + D_kk of every direction k, (d, groups)."""
    values, g = fitted.values, fitted.filters
    d = len(values)
    sums = np.gradient(g, values, axis=0) * 2 if d > 1 else np.zeros_like(g)
    for start in range(0, d, ROWS):
        gaps = values[start : start + ROWS, None] - values
        at = np.arange(len(gaps))
        gaps[at, start + at] = np.inf
        inverse = 1 / np.where(gaps == 0, np.inf, gaps)
        sums[start : start + ROWS] += (
            inverse.sum(axis=1)[:, None] * g[start : start + ROWS] - inverse @ g
        )
    return np.asarray(sums)


def _through(
    groups: OutcomeGroups, filtered: Floats, correlation: Floats | None, residual: Floats
) -> Floats:
    """How much of an outcome's sampling error, of variance 1, comes back in its own coefficients, (l,).

    `filtered` (groups,) is that of a direction. Correlated outcomes share their errors.
    """
    each = filtered[groups.group]
    if groups.rotation is None:
        return each
    if correlation is None:
        return groups.rotation**2 @ each
    spread = np.sqrt(np.maximum(residual, 1e-300))
    errors = correlation * (spread / spread[:, None])
    return np.asarray(np.einsum("jq,q,jq->j", groups.rotation, each, errors @ groups.rotation))
