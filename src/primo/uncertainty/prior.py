"""Prior variances to judge errors by: of each feature direction in each group of outcome directions.

The filter is chosen under the prior of `primo.estimate.signal`: one strength and one power of the
eigenvalues per group, held near what all outcomes together say. A rotation of the outcomes by their
moments makes that prior wrong where it hardly matters to the filter and much to its errors: strong
outcome directions gather the signal of strong feature directions, faint ones are left with next to
none of it, and of signal in faint feature directions, which the moments do not show, all get the
same. With exact moments of public outcomes such intervals were 1.3 times too wide. So

1. each group's strength and power are averaged over what its own association allows, more freely;
2. a rotation leaves the sum over outcomes of squared coefficients as it was: along each feature
   direction the groups are scaled to add up to what the outcomes as they are say;
3. feature directions in which the association of all l outcomes cannot show signal are spread evenly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.estimate.outcomes import OutcomeGroups
from primo.estimate.risk import Replicas
from primo.estimate.signal import Signal, prior_shape

__all__ = ["judged_variances"]

Floats = NDArray[np.float64]

GAMMAS = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0])
GAMMA_SPREAD = 1.0  # prior standard deviation of a group's γ around the one of its filter
FACTORS = np.geomspace(1e-3, 30, 51)  # candidate strengths over the one of the filter
LOG_SPREAD = 1.0  # prior standard deviation of their logarithm


def judged_variances(
    replicas: Replicas,
    groups: OutcomeGroups,
    *,
    energy: Floats,
    signal: Signal,
    common: Signal,
    noise: float,
) -> Floats:
    """Return prior variances of coefficients, (d, groups), along the true eigenvectors.

    Parameters
    ----------
    energy
        Sums of squares of the rotated association within each group, (d, groups).
    signal
        The prior that the filter was chosen under.
    common
        The prior of the outcomes as they are, all alike.
    noise
        σ₂², of one entry of the association.
    """
    truth = replicas.truth
    alike = common.strength[0] * _hedged(truth, float(common.gamma[0]))
    if len(groups.counts) == 1:
        return np.asarray(alike[:, None])
    own = _averaged(replicas, groups, energy=energy, signal=signal, noise=noise)
    total = own @ groups.counts
    l = groups.counts.sum()
    own *= np.divide(l * alike, total, out=np.zeros_like(total), where=total > 0)[:, None]
    # (estimated signal-to-noise ratio over its standard error)², from l numbers without much signal
    shown = l / 2 * (truth**2 * alike / noise) ** 2
    shown = (shown / (1 + shown))[:, None]
    return np.asarray(shown * own + (1 - shown) * alike[:, None])


def _averaged(
    replicas: Replicas, groups: OutcomeGroups, *, energy: Floats, signal: Signal, noise: float
) -> Floats:
    """Average strength and γ of each group over their posterior, (d, groups)."""
    truth, overlap = replicas.truth, replicas.overlap()
    whole = np.array([truth @ prior_shape(truth, gamma) for gamma in signal.gamma])
    explained = signal.strength * whole
    shapes = np.stack([prior_shape(truth, gamma) for gamma in GAMMAS], axis=1)
    shapes /= truth @ shapes  # each explains 1
    expected = truth[:, None] ** 2 * shapes
    if overlap is not None:
        expected = overlap.T @ expected
    score = np.empty((len(groups.counts), len(GAMMAS), len(FACTORS)))
    for g, count in enumerate(groups.counts):
        for at in range(len(GAMMAS)):
            variance = np.outer(explained[g] * FACTORS, expected[:, at]) + noise
            misfit = energy[:, g] / variance + count * np.log(variance)
            score[g, at] = -0.5 * misfit.sum(axis=1)
    score -= (np.log(FACTORS) / LOG_SPREAD) ** 2 / 2
    score -= ((GAMMAS - signal.gamma[:, None])[:, :, None] / GAMMA_SPREAD) ** 2 / 2
    weights = np.exp(score - score.max(axis=(1, 2), keepdims=True))
    weights /= weights.sum(axis=(1, 2), keepdims=True)
    return np.asarray(shapes @ (explained[:, None] * (weights @ FACTORS)).T)


def _hedged(truth: Floats, gamma: float) -> Floats:
    """Half-way from the prior shape to the flat one that explains as much.

    γ is chosen from a handful of values by what it does to predictions, where faint directions hardly
    count. Coefficients are mostly made of them: γ = 2 would deny them any signal, γ = −1 grant them a
    thousandfold. Directions that γ > 0 denies get no less than under the flat prior.
    """
    whole = float(truth @ prior_shape(truth, gamma))
    flat = np.full(len(truth), whole / float(truth.sum()))
    if gamma > 0:
        return np.asarray(np.maximum(prior_shape(truth, gamma), flat))
    half = prior_shape(truth, gamma / 2)
    return np.asarray(half * (whole / float(truth @ half)))
