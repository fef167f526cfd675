"""Many small steps, where most of the covariance is lost in its noise.

With hundreds of features and a few thousand rows, all but a few eigenvalues of XᵀX lie below the noise
of Â, and its eigenvectors there are those of the noise. An estimator that works along them can do no
more than the few directions that it sees. Residuals need no covariance: G_t = κ_t·A(w − W_t) + e_t holds
with the true A, so a small step along G_t moves the coefficients along the *true* directions. Hence

    W_{t+1} = W_t + V diag(1/(ã + λ)) VᵀG_t/κ_t,

with ã the expected vᵀAv along the noisy eigenvectors (`spectrum.possible_spectrum`): a full step along
the directions that stand out, and a gradient step of length 1/λ elsewhere. λ is at least half the radius
of the noise, so that steps are stable. The result is the mean of the last steps.

N equal steps with gain g = 1/(ã + λ) leave the share r^N, r = 1 − gã, of what a direction lacked, and
have gathered noise of variance g²Nσ̄²(1 − r^2N)/(1 − r²), with σ̄ the noise of the association once all
rounds are released: early stopping. What the mean of the last K makes of both is known too (`_error`).
λ is where the expected error of that mean, summed over all directions, is least, divided by a factor
that was found by trial (`LONGER`): eigenvectors of the noise mix directions, and true ones take longer.
τ², the variance of a coefficient, is by the method of moments on the pooled association.

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
DAMPINGS = np.geomspace(DAMPING, 50, 24)  # that are tried, in units of the radius
AVERAGED = 0.2  # of the steps, the last ones
#: The damping with the least expected error is divided by a + b/m, for residuals of m directions.
LONGER = (1.2, 0.8)


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
    found = residual_lengths(plan, rounds)
    kappa = found.slopes
    values, vectors = np.linalg.eigh(pooled.covariance)
    sigma = pooled.scales.covariance
    expected = possible_spectrum(values, sigma)
    radius = sigma * math.sqrt(2 * len(values))
    # The constant is one of the directions here, so what was added back is replaced.
    shown = pooled.association - expected_product(plan, pooled.covariance, sigma, pooled.offset)
    total = vectors.T @ shown + expected[:, None] * (vectors.T @ pooled.offset)
    precisions = (kappa / np.array([r.association_sigma for r in rounds])) ** 2
    final = precisions.sum() + (plan.round_count - len(rounds)) * precisions[-1]
    damping = _damping(
        expected,
        radius=radius,
        strength=_strength(total, expected, pooled.scales.association),
        noise=1 / math.sqrt(final),
        steps=_steps(plan),
        longer=LONGER[0] + LONGER[1] / found.directions,
    )
    step = vectors.T @ (last.association / kappa[-1])
    step /= (expected + damping)[:, None]
    return np.asarray(last.coefficients + vectors @ step)


def gradual_coefficients(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the mean of the coefficients (width, l) after the last steps."""
    kept = _averaged(_steps(plan))
    steps = [*(released.coefficients for released in rounds[1:]), _small_step(plan, rounds)]
    return np.asarray(np.mean(steps[-kept:], axis=0))


def _steps(plan: Plan) -> int:
    """Return how many small steps there are; the last one follows the last round."""
    return plan.round_count - HELD - TRIED + 1


def _averaged(steps: int) -> int:
    return max(1, round(AVERAGED * steps))


def _strength(total: Matrix, expected: Matrix, noise: float) -> float:
    """Return τ², the variance of a coefficient.

    `total` (width, l) is the pooled association along the noisy eigenvectors, and `noise` its scale.
    """
    d, l = total.shape
    energy = float(np.einsum("ij,ij->", total, total)) / l - d * noise**2
    return float(max(energy, 0.0) / max(float(expected @ expected), 1e-300))


def _damping(
    expected: Matrix,
    *,
    radius: float,
    strength: float,
    noise: float,
    steps: int,
    longer: float,
) -> float:
    """Return λ; infinite, so that no step is taken, where no direction is seen."""
    if expected.max() <= 0:
        return math.inf
    tried = DAMPINGS * radius
    errors = [_error(expected, d, strength=strength, noise=noise, steps=steps) for d in tried]
    return max(float(tried[int(np.argmin(errors))]) / longer, DAMPING * radius)


def _error(expected: Matrix, damping: float, *, strength: float, noise: float, steps: int) -> float:
    """Return Σ a·E(w − W)² for W the mean of the last of so many equal steps.

    Deviations of successive steps are correlated by r, as in an autoregression.
    """
    kept = _averaged(steps)
    gain = 1 / (expected + damping)
    moved = np.maximum(gain * expected, 1e-12)  # 1 − r
    r = 1 - moved
    lacking = r ** (steps - kept + 1) * (1 - r**kept) / (kept * moved)
    last = gain**2 * steps * noise**2 * (1 - r ** (2 * steps)) / (moved * (1 + r))
    mean = ((1 + r) / moved - 2 * r * (1 - r**kept) / (kept * moved**2)) / kept
    return float(expected @ (strength * lacking**2 + last * np.clip(mean, 0.0, 1.0)))
