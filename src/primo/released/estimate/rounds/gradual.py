"""Many small steps, where most of the covariance is lost in its noise.

With hundreds of features and a few thousand rows, all but a few eigenvalues of XᵀX lie below the noise
of Â, and its eigenvectors there are those of the noise. An estimator that works along them can do no
more than the few directions that it sees. Residuals need no covariance: G_t = κ_t·A(w − W_t) + e_t holds
with the true A, so a small step along G_t moves the coefficients along the *true* directions. Hence

    W_{t+1} = W_t + V diag(1/(ã + λ)) VᵀG_t/κ_t,

with ã the expected vᵀAv along the noisy eigenvectors (`spectrum.possible_spectrum`): a full step along
the directions that stand out, and a gradient step of length 1/λ elsewhere. The result is the mean of the
last steps.

N equal steps with gain g = 1/(a + λ) leave the share r^N, r = 1 − ga, of what a direction lacked, and
have gathered noise of variance g²Nσ̄²(1 − r^2N)/(1 − r²), with σ̄ the noise of the association once all
rounds are released: early stopping. What the mean of the last K makes of both is known too (`_error`).
λ is where the expected error of that mean, summed over all directions, is least. Which eigenvalues A has
cannot be seen under the noise, but their sum and their sum of squares can: they are taken to be i^−α
with these two. τ², the variance of a coefficient, follows from ‖XᵀY‖² = τ²·l·Σa², and is at most what
explains all of the outcomes' variance. So steps are short where there is little signal, and none is
longer than noise allows.

Whether residuals are such that small steps pay is decided after a few rounds (`trial`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo._util.remembered import remembered
from primo.planning.plan import Plan
from primo.released.estimate.rounds.lengths import (
    features_kept,
    outcomes_kept,
    residual_lengths,
    square_error,
)
from primo.released.estimate.rounds.pooling import decomposed, expected_product, pool
from primo.released.estimate.rounds.schedule import held, trial_ends
from primo.released.estimate.rounds.trial import is_gradual
from primo.released.estimate.spectrum import possible_spectrum
from primo.released.rounds import Pooled, ReleasedRound

__all__ = ["gradual_coefficients", "gradual_step", "is_anew", "until_anew"]

Matrix = NDArray[np.float64]

DAMPINGS = np.geomspace(1, 1e5, 120)  # that are tried, in units of the mean eigenvalue
#: Damping over the radius of the covariance's noise and over the largest eigenvalue: more than one half
#: of an eigenvalue that is not seen keeps steps from growing.
LEAST = 0.55
#: The damping with the least expected error is divided by this: noise is less by the end than it is said
#: to be at first. By trial, on simulated images and on MNIST.
LONGER = 1.35
AVERAGED = 0.2  # of the steps, the last ones; shorter means and longer ones hardly differ
ANEW = 0.08  # of all rounds: after so many, steps are chosen anew
IN_DOUBT = 0.3  # standard deviation of the sum of squares of eigenvalues over that at α = 1
STEEPNESS = np.linspace(0.7, 1.5, 17)  # α that are tried


def gradual_step(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    estimate: Callable[[Sequence[ReleasedRound]], Matrix],
) -> Matrix:
    """Return the coefficients (width, l) that the round after the given ones looks at; 0: the outcomes.

    `estimate` is the library's own estimator of rounds together.

    Guarantee: a deterministic function of released numbers.
    Cost: two products of width² by l, and every so often (`is_anew`) a decomposition of the covariance.
    """
    count = len(rounds)
    if count == held(plan):
        return estimate(rounds)
    decided = count >= trial_ends(plan)
    if count < held(plan) or (decided and not is_gradual(plan, rounds)):
        return np.zeros_like(rounds[0].coefficients)
    return _small_step(plan, rounds)


def is_anew(plan: Plan, count: int) -> bool:
    """Whether, after so many rounds, small steps are chosen anew, from what all of them showed."""
    return count in (held(plan), plan.round_count) or count % _rhythm(plan) == 0


def until_anew(plan: Plan, rounds: Sequence[ReleasedRound]) -> Sequence[ReleasedRound]:
    """Return the rounds until steps were chosen anew the last time."""
    return rounds[: max(k for k in range(held(plan), len(rounds) + 1) if is_anew(plan, k))]


def _rhythm(plan: Plan) -> int:
    return max(round(ANEW * plan.round_count), 1)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Gain:
    """What small steps are made with until it is chosen anew."""

    expected: Matrix  # (width,) ã
    vectors: Matrix  # (width, width)
    damping: float  # λ


def _small_step(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    last, gain = rounds[-1], _gain(plan, until_anew(plan, rounds))
    step = gain.vectors.T @ (last.association / residual_lengths(plan, rounds).slopes[-1])
    step /= (gain.expected + gain.damping)[:, None]
    return np.asarray(last.coefficients + gain.vectors @ step)


@remembered
def _gain(plan: Plan, rounds: Sequence[ReleasedRound]) -> _Gain:
    pooled = pool(plan, rounds)
    covariance, sigma = pooled.covariance, pooled.scales.covariance
    values, vectors = decomposed(covariance)
    expected = possible_spectrum(values, sigma)
    kappa = residual_lengths(plan, rounds).slopes
    precisions = (kappa / np.array([r.association_sigma for r in rounds])) ** 2
    final = precisions.sum() + (plan.round_count - len(rounds)) * precisions[-1]
    # What was added back is A·W̄ as it is expected to be; Â·W̄ in its place has noise that is known.
    added = expected_product(plan, covariance, sigma, pooled.offset)
    shown = pooled.association - added + covariance @ pooled.offset
    total = float(values.sum())
    squares = float(values @ values) - sigma**2 * len(values) * (len(values) + 1) / 2
    if plan.intercept:  # the constant and the means of features are the strongest direction by far
        constant, largest = vectors[:, -1], float(values[-1])
        shown -= np.outer(constant, constant @ shown)
        total, squares = total - largest, squares - largest**2
    kept, share = features_kept(plan, covariance, sigma)
    law = (kept / share) * _law(total, squares, sigma, len(values))
    damping = _damping(
        law,
        strength=min(_strength(shown, pooled, law), _largest_strength(plan, rounds, law)),
        noise=1 / math.sqrt(final),
        steps=_steps(plan),
    )
    radius = sigma * math.sqrt(2 * len(values))
    least = LEAST * max(radius, float(law[0]))
    return _Gain(expected=expected, vectors=vectors, damping=max(damping, least))


def _law(total: float, squares: float, sigma: float, d: int) -> Matrix:
    """Return eigenvalues i^−α with this sum and, as far as it is known, this sum of squares.

    Before the noise lets that be seen, α is about 1.
    """
    total = max(total, sigma * math.sqrt(d))
    ranks = np.arange(1.0, d + 1)
    usual = float(np.sum(ranks**-2)) * (total / float(np.sum(1 / ranks))) ** 2
    known = 1 / (1 + (sigma**2 * d / (IN_DOUBT * usual)) ** 2)
    squares = known * squares + (1 - known) * usual
    laws = [total * ranks**-steepness / np.sum(ranks**-steepness) for steepness in STEEPNESS]
    return min(laws, key=lambda law: abs(float(law @ law) - squares))


def gradual_coefficients(plan: Plan, rounds: Sequence[ReleasedRound]) -> Matrix:
    """Return the mean of the coefficients (width, l) after the last steps."""
    kept = _averaged(_steps(plan))
    steps = [*(released.coefficients for released in rounds[1:]), _small_step(plan, rounds)]
    return np.asarray(np.mean(steps[-kept:], axis=0))


def _steps(plan: Plan) -> int:
    """Return how many small steps there are; the last one follows the last round."""
    return plan.round_count - held(plan)


def _averaged(steps: int) -> int:
    return max(1, round(AVERAGED * steps))


def _strength(shown: Matrix, pooled: Pooled, law: Matrix) -> float:
    """Return τ², the variance of a coefficient, from ‖XᵀY‖² = τ²·l·Σa²; noise taken off.

    `shown` is XᵀY as Σω_t(G_t/κ_t + ÂW_t): the noise of Â is in it times W̄.
    """
    sigma, offset = pooled.scales.covariance, pooled.offset
    d, l = offset.shape
    noise = d * l * pooled.scales.association**2
    noise += sigma**2 / 2 * (d + 1) * float(np.einsum("ij,ij->", offset, offset))
    energy = float(np.einsum("ij,ij->", shown, shown)) - noise
    return float(max(energy, 0.0) / l / float(law @ law))


def _largest_strength(plan: Plan, rounds: Sequence[ReleasedRound], law: Matrix) -> float:
    """Return the τ² with which slopes explain all of how outcomes vary about their means."""
    own = rounds[: held(plan)]
    square = float(np.mean(residual_lengths(plan, own).lengths ** 2))
    if plan.intercept:
        mass = plan.n * plan.constant
        means = np.mean([released.association[-1] for released in own], axis=0) / mass
        square -= float(means @ means) - plan.l * (own[0].association_sigma / mass) ** 2 / len(own)
    square = max(square, square_error(plan, own[0])) / outcomes_kept(plan, own)[1]
    return plan.n * square / plan.l / float(law.sum())


def _damping(law: Matrix, *, strength: float, noise: float, steps: int) -> float:
    """Return the λ with the least expected error."""
    tried = DAMPINGS * float(law.mean())
    errors = [_error(law, d, strength=strength, noise=noise, steps=steps) for d in tried]
    return float(tried[int(np.argmin(errors))]) / LONGER


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
