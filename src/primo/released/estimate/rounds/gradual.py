"""Many small steps, where most of the covariance is lost in its noise.

With hundreds of features and a few thousand rows, all but a few eigenvalues of XᵀX lie below the noise
of Â, and its eigenvectors there are those of the noise. An estimator that works along them can do no
more than the few directions that it sees. Residuals need no covariance: G_t = κ_t·A(w − W_t) + e_t holds
with the true A, so a small step along G_t moves the coefficients along the *true* directions. Hence

    W_{t+1} = W_t + V diag(1/(ã + λ)) VᵀG_t/κ_t,

with ã the expected vᵀAv along the noisy eigenvectors (`spectrum.possible_spectrum`): a full step along the directions that stand out, and a gradient step of length 1/λ elsewhere. λ is at
least half the radius of the noise, so that steps are stable. And the way of all steps, T/λ, is no longer
than 1/a₀ with a₀ = `WAY`·σ̄/τ: beyond it, directions with a < a₀, in which noise outweighs signal, would
be fitted (early stopping). τ² is the variance of a coefficient by the method of moments on the pooled
association. The result is the mean of the last steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.released.estimate.rounds.lengths import residual_lengths
from primo.released.estimate.rounds.pooling import pool
from primo.released.estimate.spectrum import possible_spectrum
from primo.released.rounds import ReleasedRound

__all__ = ["LOST", "gradual_coefficients", "gradual_step", "is_gradual", "lost_in_noise"]

Matrix = NDArray[np.float64]

MANY = 12  # rounds, at least, for steps this small
LOST = 4.0  # radius of the covariance's noise over the mean eigenvalue of rows of full length
DAMPING = 0.5  # of the radius
WAY = 1.4
AVERAGED = 0.2  # of the steps, the last ones


def is_gradual(plan: Plan) -> bool:
    """Whether the rounds of a plan take small steps; from public numbers alone."""
    if plan.rounds is None or plan.rounds.count < MANY or not plan.covariance_noisy:
        return False
    return lost_in_noise(plan, rounds=plan.rounds.count) > LOST


def lost_in_noise(plan: Plan, *, rounds: int = 1) -> float:
    """Return the radius of the noise of Â, pooled, over the mean eigenvalue of rows of full length."""
    radius = plan.covariance_sigma * math.sqrt(2 * plan.width / rounds)
    return radius * plan.width / (plan.n * plan.feature_norm**2)


def gradual_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the coefficients (width, l) that the step after the given rounds leads to.

    Guarantee: a deterministic function of released numbers.
    Cost: one decomposition of the covariance and four products of width² by l.
    """
    last, pooled = rounds[-1], pool(plan, rounds)
    kappa = residual_lengths(plan, rounds).slopes
    values, vectors = np.linalg.eigh(pooled.covariance)
    sigma = pooled.scales.covariance
    expected = possible_spectrum(values, sigma)
    radius = sigma * math.sqrt(2 * len(values))
    total = vectors.T @ pooled.association
    stop = _stop(total, expected, pooled.scales.association, done=len(rounds) / plan.round_count)
    damping = max(DAMPING * radius, plan.round_count * stop)
    step = vectors.T @ (last.association / kappa[-1])
    step /= (expected + damping)[:, None]
    return np.asarray(last.coefficients + vectors @ step)


def gradual_coefficients(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the mean of the coefficients (width, l) after the last steps."""
    kept = max(1, round(AVERAGED * len(rounds)))
    steps = [*(released.coefficients for released in rounds[1:]), gradual_step(plan, rounds)]
    return np.asarray(np.mean(steps[-kept:], axis=0))


def _stop(total: Matrix, expected: Matrix, noise: float, *, done: float) -> float:
    """Return a₀: the eigenvalue at which noise outweighs signal once all rounds are released.

    `total` (width, l) is the pooled association along the noisy eigenvectors, `noise` its scale, and
    `done` the share of the rounds that it is made of.
    """
    d, l = total.shape
    energy = float(np.einsum("ij,ij->", total, total)) / l - d * noise**2
    strength = max(energy, 0.0) / max(float(expected @ expected), 1e-300)  # τ²
    # Without a trace of signal a step is as short as can be.
    return WAY * noise * math.sqrt(done / strength) if strength > 0 else float(expected.max())
