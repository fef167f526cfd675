"""Many small steps, where most of the covariance is lost in its noise.

With hundreds of features and a few thousand rows, all but a few eigenvalues of XᵀX lie below the noise
of Â, and its eigenvectors there are those of the noise. An estimator that works along them can do no
more than the few directions that it sees. Residuals need no covariance: G_t = κ_t·A(w − W_t) + e_t holds
with the true A, so a small step along G_t moves the coefficients along the *true* directions. Hence

    W_{t+1} = W_t + V diag(1/(ã + λ)) VᵀG_t/κ_t,

with ã the expected vᵀAv along the noisy eigenvectors (`spectrum.possible_spectrum`): a full step along
the directions that stand out, and a gradient step of length 1/λ elsewhere. λ is at least half the radius
of the noise, so that steps are stable. A way S of many short steps fits the share f = 1 − exp(−aS) of a
direction, whose error is aτ²(1 − f)² + σ̄²f²/a; S is where the sum of that over all directions is least
(early stopping), with τ² the variance of a coefficient by the method of moments on the pooled
association and σ̄ its noise once all rounds are released. A round goes as much of the way as it has of
the precision: residuals become shorter, and the first steps know least. The result is the mean of the
last steps.

Whether any small step is taken is decided after a few rounds (`trial`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.released.estimate.rounds.lengths import residual_lengths
from primo.released.estimate.rounds.pooling import expected_product, pool
from primo.released.estimate.rounds.trial import HELD, TRIED, is_gradual
from primo.released.estimate.spectrum import possible_spectrum
from primo.released.rounds import ReleasedRound

__all__ = ["gradual_coefficients", "gradual_step"]

Matrix = NDArray[np.float64]

DAMPING = 0.5  # of the radius
WAYS = np.geomspace(0.01, 1000, 120)  # that are tried, in units of 1/(the largest eigenvalue)
AVERAGED = 0.2  # of the steps, the last ones


def gradual_step(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    estimate: Callable[[Sequence[ReleasedRound]], Matrix],
) -> Matrix:
    """Return the coefficients (width, l) that the round after the given ones looks at; 0: the outcomes.

    `estimate` is the library's own estimator of rounds together.

    Guarantee: a deterministic function of released numbers.
    Cost: one decomposition of the covariance and four products of width² by l.
    """
    if len(rounds) == HELD:
        return estimate(rounds)
    if HELD < len(rounds) < HELD + TRIED:
        return rounds[-1].coefficients
    if not is_gradual(plan, rounds):
        return np.zeros_like(rounds[0].coefficients)
    return _small_step(plan, rounds)


def _small_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    last, pooled = rounds[-1], pool(plan, rounds)
    kappa = residual_lengths(plan, rounds).slopes
    values, vectors = np.linalg.eigh(pooled.covariance)
    sigma = pooled.scales.covariance
    expected = possible_spectrum(values, sigma)
    radius = sigma * math.sqrt(2 * len(values))
    # The constant is one of the directions here, so what was added back is replaced.
    shown = pooled.association - expected_product(plan, pooled.covariance, sigma, pooled.offset)
    total = vectors.T @ shown + expected[:, None] * (vectors.T @ pooled.offset)
    precisions = (kappa / np.array([r.association_sigma for r in rounds])) ** 2
    final = precisions.sum() + (plan.round_count - len(rounds)) * precisions[-1]
    way = _way(total, expected, pooled.scales.association, final=1 / math.sqrt(final))
    damping = max(DAMPING * radius, final / (precisions[-1] * way))
    step = vectors.T @ (last.association / kappa[-1])
    step /= (expected + damping)[:, None]
    return np.asarray(last.coefficients + vectors @ step)


def gradual_coefficients(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the mean of the coefficients (width, l) after the last steps."""
    kept = max(1, round(AVERAGED * len(rounds)))
    steps = [*(released.coefficients for released in rounds[1:]), _small_step(plan, rounds)]
    return np.asarray(np.mean(steps[-kept:], axis=0))


def _way(total: Matrix, expected: Matrix, noise: float, *, final: float) -> float:
    """Return S, the length of all steps together, at which the expected error is least.

    `total` (width, l) is the pooled association along the noisy eigenvectors, `noise` its scale, and
    `final` that scale once all rounds are released.
    """
    d, l = total.shape
    top = float(expected.max())
    if top <= 0:  # no direction is seen: no step
        return 1e-300
    energy = float(np.einsum("ij,ij->", total, total)) / l - d * noise**2
    strength = max(energy, 0.0) / float(expected @ expected)  # τ²
    if strength == 0:  # without a trace of signal the way is as short as can be
        return 1 / top
    ways, a = WAYS / top, np.maximum(expected, 1e-12 * top)
    fitted = -np.expm1(-np.outer(ways, a))
    errors = (1 - fitted) ** 2 @ a * strength + fitted**2 @ (1 / a) * final**2
    return float(ways[np.argmin(errors)])
