"""Noisy means, each shrunk by its own evidence: empirical Bayes with a prior of many widths.

A released mean is N(mean, σ²). One share for all would let two outcomes with means of twenty standard
deviations switch off the shrinkage of all others, so the prior is a mixture of centred normals whose
widths run from 0 to the largest mean; how much weight each width has is learned from all means together
(Stephens 2017, "ash"). A mean far outside the noise is kept, one inside it goes to the public centre.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["shrunk_means"]

Floats = NDArray[np.float64]

ROUNDS = 50  # of expectation-maximisation for the weights
CENTRE_WEIGHT = (
    1.0  # pseudo-counts of means at the public centre, beside one spread over all widths
)
IN_DOUBT, UNLIKELY = 1.0, 0.5  # odds of the centre times this; probability of the centre
MOST_AGAINST = 2.0  # nats that one mean may say about the others
BY_CHANCE = 4.0  # nats that noise may say against the centres: the weights were learned from it
MOST_MEANS = 2000  # that weights are learned from


def shrunk_means(
    means: Floats, sigma: float, *, most: float = np.inf, doubt: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Return posterior means and variances of the true means behind noisy `means`, (k,) each.

    Parameters
    ----------
    means, sigma
        What was released, about the public centres, and the standard deviation of its noise.
    most
        How far from its centre a mean can be by the public bounds.
    doubt
        What the odds of a mean at the public centre are multiplied by, less 1, for each or for all
        (`nothing`). Beyond `IN_DOUBT`, a mean that is more likely there than elsewhere is put there.

    Notes
    -----
    Cost: O(k) for each of some 20 widths and `ROUNDS` rounds.
    """
    if sigma == 0 or len(means) == 0:
        return means.copy(), np.zeros(len(means))
    largest = min(max(float(np.abs(means).max()) / sigma, 2.0), most / sigma)
    # In units of the noise; factors of √2 in width are finer than any evidence.
    steps = np.arange(0, max(np.log2(2 * largest), 0.0) + 0.5, 0.5)
    widths = np.append(0.0, min(0.5, largest) * np.exp2(steps))
    z = means / sigma
    prior = np.full(len(widths), 1 / (len(widths) - 1))
    prior[0] = CENTRE_WEIGHT
    likelihood, every = _likelihood(z, widths), max(1, len(z) // MOST_MEANS)
    _, weights = _learned(likelihood[::every], prior)
    more = 1 + np.asarray(doubt) * _left_of_doubt(likelihood, weights)
    likelihood[:, 0] *= more
    learned, weights = _learned(likelihood[::every], prior)
    share = likelihood * weights
    share /= share.sum(axis=1, keepdims=True)
    # Each by what the others say of the prior: its own evidence counts once, in its likelihood.
    learned *= len(z) / len(likelihood[::every])
    share = likelihood * np.maximum(learned + prior - share, 0.0)
    share /= share.sum(axis=1, keepdims=True)
    share[(more > 1 + IN_DOUBT) & (share[:, 0] > UNLIKELY)] = np.eye(len(widths))[0]
    kept = widths**2 / (1 + widths**2)
    first = share @ kept
    second = share @ kept + z**2 * (share @ kept**2) - (z * first) ** 2
    return np.clip(first * means, -most, most), sigma**2 * np.maximum(second, 0.0)


def _learned(likelihood: Floats, prior: Floats) -> tuple[Floats, Floats]:
    """How many means have each width, and the weights that follow with the pseudo-counts `prior`."""
    weights = prior / prior.sum()
    for _ in range(ROUNDS):
        share = likelihood * weights
        share /= share.sum(axis=1, keepdims=True)
        learned = share.sum(axis=0)
        weights = (learned + prior) / (learned + prior).sum()
    return learned, weights


def _left_of_doubt(likelihood: Floats, weights: Floats) -> Floats:
    """Share (k,) that is left of the doubt in each mean, after what the others say against it.

    Many means off their centres, each a little, show together that centres are off. A single one that
    lies far off says hardly more than one that lies a little off.
    """
    against = np.log(likelihood @ weights) - np.log(np.maximum(likelihood[:, 0], 1e-300))
    against = np.clip(against, -MOST_AGAINST, MOST_AGAINST)
    return np.asarray(np.exp(-np.maximum(against.sum() - against - BY_CHANCE, 0.0)))


def _likelihood(z: Floats, widths: Floats) -> Floats:
    """Density of z under each width, (k, widths), up to a factor for each row."""
    variance = 1 + widths**2
    logs = -0.5 * (z[:, None] ** 2 / variance + np.log(variance))
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))
