"""The prior that errors are judged by, more careful than the one a filter is chosen under.

A filter is chosen under one strength and one power of the eigenvalues for each group of outcome
directions (`primo.estimate.signal`), held near what all outcomes together say, and with a handful of
simulated eigenbases. That is good enough for the filter, whose error is flat about its optimum, and
not for the size of that error. Three things are done better here.

*Tilted groups.* Outcome directions are grouped by their variance, which includes what the features
explain: a faint direction can have little signal where the features vary much, and as much as any
other where they hardly vary; a strong one has more of the former. So the prior variance s_i of all
outcomes alike becomes f·s_i/(1 + t·a_i·s_i)² in a group, its tilt t and factor f averaged over what
the group's association allows. A power of a_i held near the common one granted noise directions of
exact (public) outcome moments so much signal that intervals were 1.3 times too wide.

*Sums kept.* A rotation of the outcomes leaves the sum over outcomes of squared coefficients as it
was: along each feature direction groups are scaled to add up to what the outcomes as they are say.

*More eigenbases.* They are drawn from a fixed seed, so the error of a few would be the same in every
release: up to 30 % of the variance at d = 4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.estimate.outcomes import OutcomeGroups
from primo.estimate.risk import Replicas
from primo.estimate.signal import Signal, prior_shape
from primo.estimate.spectrum import denoised_spectrum, symmetric_noise

__all__ = ["judged_variances", "more_replicas"]

Floats = NDArray[np.float64]

SEED = 20_261_115
DRAWN_DIRECTIONS = 1600  # replicas × d to aim for
MOST_REPLICAS = 200
TILTS = np.concatenate([[-0.98, -0.95, -0.9, -0.8, -0.6, -0.3, 0.0], 2.0 ** np.arange(-1, 14)])
LOG_SPREAD = 0.5  # prior standard deviation of the logarithm of a group's factor
FACTORS = np.exp(LOG_SPREAD * np.linspace(-3, 3, 25))


def more_replicas(replicas: Replicas, values: Floats, sigma: float) -> Replicas:
    """Draw as many noisy eigenbases as judging needs, for released eigenvalues `values`.

    Deterministic, like `primo.estimate.risk.simulate`. Cost: some 1600/d eigendecompositions.
    """
    d = len(values)
    copies = min(DRAWN_DIRECTIONS // d, MOST_REPLICAS)
    if replicas.bases is None or copies <= len(replicas.bases):
        return replicas
    noise = symmetric_noise(np.random.default_rng(SEED), copies=copies, d=d, sigma=sigma)
    truth = denoised_spectrum(values, noise, sigma)
    return Replicas(truth=truth, bases=np.linalg.eigh(noise + np.diag(truth)).eigenvectors)


def judged_variances(
    replicas: Replicas, groups: OutcomeGroups, *, energy: Floats, common: Signal, noise: float
) -> Floats:
    """Return prior variances of coefficients along the true eigenvectors, (d, groups).

    Parameters
    ----------
    replicas
        Of `more_replicas`.
    groups, energy
        Outcome directions, and sums of squares of the association within each group, (d, groups).
    common
        The prior of the outcomes as they are, all alike.
    noise
        σ₂², of one entry of the association.
    """
    truth, overlap = replicas.truth, replicas.overlap()
    alike = common.strength[0] * _hedged(truth, float(common.gamma[0]))
    explained = truth * alike
    top = float(explained.max())
    if len(groups.counts) == 1 or top <= 0:
        return np.repeat(alike[:, None], len(groups.counts), axis=1)
    shapes = alike[:, None] / (1 + np.outer(explained / top, TILTS)) ** 2
    expected = truth[:, None] ** 2 * shapes
    if overlap is not None:
        expected = overlap.T @ expected
    own = shapes @ _mean_factors(expected, groups.counts, energy=energy, noise=noise)
    own *= (groups.counts.sum() * alike / (own @ groups.counts))[:, None]
    return np.asarray(own)


def _mean_factors(expected: Floats, counts: Floats, *, energy: Floats, noise: float) -> Floats:
    """Posterior mean of each tilt's factor, times the tilt's probability, (tilts, groups).

    `expected` holds the expected square of an entry of the association for each tilt, (d, tilts).
    """
    means = np.empty((len(TILTS), len(counts)))
    variance = FACTORS[:, None] * expected.T[:, None] + noise  # (tilts, factors, d)
    logarithms = np.log(variance).sum(axis=2)
    for g, count in enumerate(counts):
        score = -0.5 * ((energy[:, g] / variance).sum(axis=2) + count * logarithms)
        score -= (np.log(FACTORS) / LOG_SPREAD) ** 2 / 2
        weights = np.exp(score - score.max())
        means[:, g] = weights @ FACTORS / weights.sum()
    return means


def _hedged(truth: Floats, gamma: float) -> Floats:
    """Half-way from the prior shape to the flat one that explains as much.

    γ is chosen from a handful of values by what it does to predictions, where faint directions hardly
    count. Coefficients are mostly made of them: γ = −1 would grant them a thousandfold, γ = 1 deny
    them any signal. Directions that γ > 0 denies get no less than under the flat prior.
    """
    whole = float(truth @ prior_shape(truth, gamma))
    flat = np.full(len(truth), whole / float(truth.sum()))
    if gamma > 0:
        return np.asarray(np.maximum(prior_shape(truth, gamma), flat))
    half = prior_shape(truth, gamma / 2)
    return np.asarray(half * (whole / float(truth @ half)))
