"""Variances of outcomes behind noisy ones, for errors that count in units of an outcome's own variance.

Outcomes in wide ranges can have variances far below the noise of the released ‖y‖². An error e of such
an outcome costs e/V, and V may be anything up to the noise. So what counts is the *harmonic* mean of V,
1/E[1/V], given what was released. Where ‖y‖² stands well out of its noise, that is ‖y‖² itself. Where it
does not, it is nearly 0: the outcome may have next to no variance. The prior of V is a mixture over a
logarithmic grid, learned from all outcomes together.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from primo.released.estimate.problem import NoisyMoments

__all__ = ["all_the_same", "harmonic_variances", "own_variances"]

Floats = NDArray[np.float64]

SMALLEST = 1e-2  # of the noise: no variance below is told apart from this
STEPS = 4  # of the grid, for every factor of e
ROUNDS = 30  # of expectation-maximisation
SPREAD = (
    1.0  # outcomes that the prior spreads over the whole grid, beside those that it learns from
)
MOST = 4000  # outcomes that the prior is learned from
CERTAIN = 3.0  # standard deviations


def own_variances(moments: NoisyMoments) -> Floats:
    """Return what ‖y‖² of each outcome about its mean counts as, (l,): its harmonic mean.

    It is at least what features explain for certain: the association beyond its noise, along the
    direction in which features vary most, where a given association explains least.

    Guarantee: post-processing; costs no privacy. Cost: O(l) and one sum of squares of the association.
    """
    d, _ = moments.shape
    values, _ = moments.spectrum
    noise = moments.noise_variances + moments.row_variance * max(float(values.mean()), 0.0)
    energy = np.einsum("ij,ij->j", moments.association, moments.association)
    beyond = np.maximum(energy - (d + CERTAIN * np.sqrt(2 * d)) * noise, 0.0)
    explained = beyond / max(float(values[-1]), moments.covariance_sigma, 1e-300)
    found = harmonic_variances(moments.squares, moments.square_errors)
    return np.asarray(np.maximum(found, explained))


def harmonic_variances(squares: Floats, errors: Floats) -> Floats:
    """Return 1/E[1/‖y‖²] of each outcome, (l,), from noisy `squares` and the scales of their noise.

    Cost: O(l·grid) for each of `ROUNDS` rounds; the grid has some 40 points.
    """
    if not np.median(errors) > 0:
        return np.maximum(squares, 0.0)
    grid, logs = _log_likelihood(squares, errors)
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = _learned(likelihood[:: max(1, len(squares) // MOST)])
    return np.asarray(1 / (_shares(likelihood, weights) @ (1 / grid)))


def all_the_same(squares: Floats, errors: Floats) -> bool:
    """Whether one variance for all outcomes is likelier than one of its own for each.

    Either is anywhere on the logarithmic grid with the same probability.
    """
    if not np.median(errors) > 0:
        return bool(np.ptp(squares) == 0)
    _, logs = _log_likelihood(squares, errors)
    points = np.log(logs.shape[1])
    return bool(logsumexp(logs.sum(axis=0)) - points > (logsumexp(logs, axis=1) - points).sum())


def _log_likelihood(squares: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Return the grid of variances, and what each of them says of each outcome, (l, grid)."""
    typical = float(np.median(errors))
    top = max(float(squares.max()), typical)
    count = int(np.ceil(STEPS * np.log(2 * top / (SMALLEST * typical)))) + 1
    grid = SMALLEST * typical * np.exp(np.arange(count) / STEPS)
    scale = np.maximum(errors, typical)[:, None]
    return grid, -(((squares[:, None] - grid) / scale) ** 2) / 2


def _learned(likelihood: Floats) -> Floats:
    """Weights of the grid's points, by expectation-maximisation."""
    count = likelihood.shape[1]
    weights = np.full(count, 1 / count)
    for _ in range(ROUNDS):
        found = _shares(likelihood, weights).sum(axis=0) + SPREAD / count
        weights = found / found.sum()
    return weights


def _shares(likelihood: Floats, weights: Floats) -> Floats:
    share = likelihood * weights
    return np.asarray(share / share.sum(axis=1, keepdims=True))
