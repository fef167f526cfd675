"""The prior used to estimate errors, more careful than the one a filter is chosen under.

A filter is chosen under one strength and one power of the eigenvalues for each group of outcome
directions (`estimate.signal`), held near what all outcomes together say, and with a few
simulated eigenbases. That is good enough for the filter, whose error is flat about its optimum, and
not for the size of that error. Three things are done better here.

*Tilted groups.* Outcomes, or their directions, are grouped by their variance, which includes what the
features explain: a faint one can have little signal where the features vary much, and as much as any
other where they hardly vary; a strong one has more of the former. So the prior variance s_i of all
outcomes alike becomes f·s_i/(1 + t·a_i·s_i)² in a group, its tilt t and factor f averaged over what
the group's association allows. A power of a_i held near the common one granted noise directions of
exact (public) outcome moments so much signal that intervals were 1.3 times too wide. Outcomes without
rotation are tilted as well: under one prior for all, intervals of those that vary most covered 92 %.

*Sums kept.* A rotation of the outcomes does not change the sum over outcomes of squared coefficients:
along each feature direction groups are scaled to add up to the sum of the unrotated outcomes.

*More eigenbases.* They are drawn from a fixed seed, so the error of a few would be the same in every
release: up to 30 % of the variance at d = 4. Eigenvalues are taken as denoised: a filter must be safe
against others, but the size of its error is that of the likely ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.large import LargeReplicas
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.risk import Replicas, seen_squares, simulate
from primo.released.estimate.selection import FittedFilter
from primo.released.estimate.signal import GAMMAS, SignalModel

__all__ = ["judged_variances", "more_replicas"]

Floats = NDArray[np.float64]

SEED = 20_261_115
DRAWN_DIRECTIONS = 1600  # replicas × d to aim for
MOST_REPLICAS = 200
TILTS = np.concatenate([[-0.98, -0.95, -0.9, -0.8, -0.6, -0.3, 0.0], 2.0 ** np.arange(-1, 14)])
LOG_SPREAD = 0.5  # prior standard deviation of the logarithm of a group's factor
TINY = 1e-300  # instead of 0, to divide by
FACTORS = np.exp(LOG_SPREAD * np.linspace(-3, 3, 25))


def more_replicas(fitted: FittedFilter, sigma: float) -> Replicas | LargeReplicas:
    """Draw as many replicas as the estimate of errors needs.

    Deterministic, like `primo.released.estimate.risk.simulate`. Cost: some 6400/d eigendecompositions.
    """
    replicas = fitted.replicas
    copies = min(DRAWN_DIRECTIONS // len(fitted.values), MOST_REPLICAS)
    if isinstance(replicas, LargeReplicas) or replicas.bases is None:
        return replicas
    if copies <= len(replicas.bases):
        return replicas
    return simulate(fitted.values, sigma, seed=SEED, copies=copies, certain=True)


def judged_variances(fitted: FittedFilter, replicas: Replicas | LargeReplicas) -> Floats:
    """Return prior variances of coefficients along the true eigenvectors, (copies, d, groups).

    `replicas` are those of `more_replicas`.
    """
    groups, truths = fitted.groups, replicas.truths[:, :, None]
    if not fitted.common.strength.any():
        return np.zeros((*replicas.truths.shape, len(groups.counts)))
    # All unrotated outcomes have one prior, whatever their noise: any group's can be used.
    alike = _hedged(replicas) @ fitted.common.strength[:, :1]  # (copies, d, 1)
    if fitted.name == "one-sided" and np.ptp(groups.weights) == 0:
        return np.repeat(alike, len(groups.counts), axis=2)
    explained = truths * alike
    # Where a replica explains nothing at all, no direction is preferred.
    largest = np.maximum(explained.max(axis=1, keepdims=True), TINY)
    shapes = alike / (1 + explained / largest * TILTS) ** 2
    expected = seen_squares(replicas, shapes, fitted.carried)
    energy = replicas.collect(groups.energy(fitted.association))
    beside = fitted.row_variance * replicas.mean_values()
    own = shapes @ _mean_factors(expected, groups, energy, replicas.sizes, beside)
    own *= groups.counts.sum() * alike / np.maximum((own @ groups.counts)[:, :, None], TINY)
    return np.asarray(own)


def _mean_factors(
    expected: Floats, groups: OutcomeGroups, energy: Floats, sizes: Floats, beside: Floats
) -> Floats:
    """Posterior mean of each tilt's factor, times the tilt's probability, (tilts, groups).

    `expected` holds the expected square of an entry of the association for each tilt, (d, tilts);
    `sizes` (d,) how many directions each stands for, `beside` (d,) noise that differs between them.
    """
    means = np.empty((len(TILTS), len(groups.counts)))
    signal = FACTORS[:, None] * expected.T[:, None]  # (tilts, factors, d)
    for g, (count, noise) in enumerate(zip(groups.counts, groups.noise_variance, strict=True)):
        variance = signal + noise + beside
        misfit = (energy[:, g] / variance).sum(axis=2) + count * (np.log(variance) @ sizes)
        score = -0.5 * misfit - (np.log(FACTORS) / LOG_SPREAD) ** 2 / 2
        weights = np.exp(score - score.max())
        means[:, g] = weights @ FACTORS / weights.sum()
    return means


def _hedged(replicas: Replicas | LargeReplicas) -> Floats:
    """Half-way from each prior shape to the flat one that explains as much, (copies, d, gammas).

    γ is judged by what it does to predictions, where faint directions hardly count. Coefficients are
    mostly made of them: γ = −1 would grant them a thousandfold, γ = 1 deny them any signal.
    Directions that γ > 0 denies get no less than under the flat prior.
    """
    shapes = np.moveaxis(SignalModel(replicas, variation=1.0).shapes, 0, -1)
    truths = (replicas.truths * replicas.sizes)[:, :, None]
    whole = (truths * shapes).sum(axis=1, keepdims=True)
    flat = whole / np.maximum(truths.sum(axis=1, keepdims=True), 1e-300)
    half = np.sqrt(shapes)
    half = half * (whole / np.maximum((truths * half).sum(axis=1, keepdims=True), 1e-300))
    return np.asarray(np.where(GAMMAS > 0, np.maximum(shapes, flat), half))
