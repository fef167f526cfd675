"""All rounds as one release of the outcomes' own moments (docs/mathematics.md, "Rounds").

Round t released G_t = κ_t·A(w − W_t) + e_t, with A = XᵀX, noise e_t of scale σ_t and κ_t the mean slope
of its clip (`lengths`), and a noisy A. With Â the mean of the noisy covariances by precision, Ã what A
is expected to be given Â, and weights ω_t ∝ κ_t²/σ_t² that add up to 1,

    Ĝ = Σ ω_t (G_t/κ_t + Ã W_t) = Ã w + Σ ω_t e_t/κ_t + (A − Ã)(w − W̄),   W̄ = Σ ω_t W_t:

the noise of the association is that of one release with the budget of all rounds at their clips, and
what is not known of the covariance multiplies only what is left, w − W̄. The share of the weights of
rounds that started from other coefficients than 0 says how much of w that can be. Â in the place of Ã
would bring its noise times W̄ into Ĝ, which looks like the association of a signal W̄: each round would
confirm the errors of the last.

A round with W_t = 0 and the outcomes' own norm for a clip is one of the outcomes themselves: any number
of them make one release with their budgets together.

The directions of the outcome moments come from all rounds, M = Σ v_t (R_tᵀR_t/ρ_t + W_sᵀÃW_s) with ρ_t
the share of Σ‖r‖² that the clip let through and v_t by precision, and their sum from the rounds of the
outcomes themselves, the only ones whose Σ‖y‖² needs no model. s is the first round that took slopes. W_t
of later rounds holds most of the noise of Ĝ, and so do cross terms WᵀG: the directions of outcomes that
look strong would be those of the noise, and Ĝ would seem to have less noise than it has in all others.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo._util.remembered import remembered
from primo.planning.plan import Plan
from primo.released.estimate.centring import constant_part, reflect
from primo.released.estimate.rounds.lengths import (
    Lengths,
    is_of_outcomes,
    is_stepped,
    residual_lengths,
    squares_of,
)
from primo.released.estimate.rounds.trial import is_used
from primo.released.estimate.spectrum import possible_spectrum
from primo.released.rounds import Pooled, ReleasedRound, Scales

__all__ = [
    "IN_DOUBT",
    "decomposed",
    "expected_product",
    "own_outcome_moments",
    "pool",
    "pooled_covariance",
    "sharing_covariance",
]

Matrix = NDArray[np.float64]

IN_DOUBT = 0.25  # share of what the model of a clip adds that counts as its standard deviation

#: All products with one covariance are made from one decomposition of it.
_constant_part = remembered(constant_part)


def pool(plan: Plan, rounds: Sequence[ReleasedRound]) -> Pooled:
    """Return the moments of all rounds together; a deterministic function of released numbers.

    Cost: O(width²·l) for the product ÂW̄, and sums over the rounds.
    """
    covariance, sigma1 = pooled_covariance(rounds)
    rounds = [r for r, used in zip(rounds, is_used(plan, rounds), strict=True) if used]
    found = residual_lengths(plan, rounds)
    kappa = found.slopes
    shares, sigma2 = _weights(np.array([r.association_sigma for r in rounds]) / kappa)
    offset = _mean(shares, [r.coefficients for r in rounds])
    association = _mean(shares / kappa, [r.association for r in rounds]) + expected_product(
        plan, covariance, sigma1, offset
    )
    if plan.intercept and not plan.protection.outcomes_private:
        association[-1] = rounds[0].association[-1]  # exact: sums of public outcomes
    stepped = [is_stepped(plan, r) for r in rounds]
    about = _Means(
        values=association[-1] / (plan.n * plan.constant) if plan.intercept else np.zeros(plan.l),
        error=sigma2 / (plan.n * plan.constant) if plan.intercept else 0.0,
    )
    outcome_moments, sigma3 = _outcome_moments(plan, rounds, found, covariance, sigma1, about)
    return Pooled(
        covariance=covariance,
        association=association,
        outcome_moments=outcome_moments,
        scales=Scales(
            covariance=sigma1,
            association=sigma2,
            outcome=sigma3,
            carried=float(shares[stepped].sum()),
        ),
        offset=offset,
    )


def pooled_covariance(rounds: Sequence[ReleasedRound]) -> tuple[Matrix, float]:
    """Return the mean covariance of rounds, by precision, and the scale of its noise."""
    shares, sigma = _weights(np.array([r.covariance_sigma for r in rounds]))
    if _share(rounds):
        return rounds[0].covariance, sigma
    return _mean(shares, [r.covariance for r in rounds]), sigma


def sharing_covariance(rounds: Sequence[ReleasedRound]) -> list[ReleasedRound]:
    """Return rounds that all hold the mean of their covariances, by precision: one array."""
    if _share(rounds):
        return list(rounds)
    covariance, _ = pooled_covariance(rounds)
    return [dataclasses.replace(released, covariance=covariance) for released in rounds]


def _share(rounds: Sequence[ReleasedRound]) -> bool:
    return all(released.covariance is rounds[0].covariance for released in rounds)


def own_outcome_moments(plan: Plan, rounds: Sequence[ReleasedRound]) -> tuple[Matrix, float]:
    """Return YᵀY, or its diagonal, from the rounds of the outcomes themselves, and its noise scale.

    What later rounds say of the variance of one outcome rests on a model of residuals.
    """
    own = [released for released in rounds if is_of_outcomes(plan, released)]
    shares, sigma = _weights(np.array([released.outcome_sigma for released in own]))
    return _mean(shares, [released.outcome_moments for released in own]), sigma


def expected_product(plan: Plan, covariance: Matrix, sigma: float, coefficients: Matrix) -> Matrix:
    """Return ÃW, (width, l), with Ã what the true covariance is expected to be, given Â.

    With an intercept, W is a constant prediction and the rest, whose predictions have mean 0. The
    constant is multiplied by Â: the estimator takes the same product off again (`centring`).
    """
    if sigma == 0:
        return np.asarray(covariance @ coefficients)
    sigma *= math.sqrt(2 - plan.triangle_bits)  # as for the estimator
    if not plan.intercept:
        values, vectors = decomposed(covariance)
        return _filtered(values, vectors, sigma, coefficients)
    found = _constant_part(plan, covariance, sigma)
    slopes, means = found.slopes(coefficients)
    product = _filtered(found.values, found.vectors, sigma, slopes)
    rest = np.vstack([product, np.zeros_like(means)])
    # Along the axis it is such that the rest has a sum of 0 over the rows.
    rest[-1] = -reflect(found.axis, rest)[-1] / found.axis[-1]
    constant = np.outer(covariance @ found.start, means)
    return np.asarray(constant + reflect(found.axis, rest))


@remembered
def decomposed(covariance: Matrix) -> tuple[Matrix, Matrix]:
    """Return eigenvalues and eigenvectors; asked for in every round."""
    values, vectors = np.linalg.eigh(covariance)
    return values, vectors


def _filtered(values: Matrix, vectors: Matrix, sigma: float, coefficients: Matrix) -> Matrix:
    expected = possible_spectrum(values, sigma)
    return np.asarray(vectors @ (expected[:, None] * (vectors.T @ coefficients)))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Means:
    """Means of the outcomes from all rounds, and the standard deviation of their noise."""

    values: Matrix  # (l,); zeros without an intercept
    error: float


def _outcome_moments(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    found: Lengths,
    covariance: Matrix,
    sigma: float,
    means: _Means,
) -> tuple[Matrix, float]:
    """Return YᵀY, or its diagonal, from all rounds together, and the scale of its noise."""
    moments, alone = own_outcome_moments(plan, rounds)
    if alone == 0:
        return moments, alone
    moments, alone = _with_rounds_about_means(plan, rounds, found, (moments, alone), means)
    stepped = [(r, s) for r, s in zip(rounds, found.lengths, strict=True) if is_stepped(plan, r)]
    if not stepped or moments.ndim == 1:
        return moments, alone
    parts, scales = [moments], [alone]
    first = stepped[0][0].coefficients
    fitted = first.T @ expected_product(plan, covariance, sigma, first)
    fitted = (fitted + fitted.T) / 2
    for released, length in stepped:
        through = squares_of(released) / (plan.n * length**2)
        if through <= 0:  # lost in noise
            continue
        through = min(through, 1.0)
        parts.append(released.outcome_moments / through + fitted)
        scales.append(released.outcome_sigma / through)
    shares, together = _weights(np.array(scales))
    mixed = _mean(shares, parts)
    total = float(np.trace(mixed))
    if total <= 0 or float(np.trace(moments)) <= 0:
        return moments, alone
    factor = float(np.trace(moments)) / total
    return np.asarray(factor * mixed), factor * together


def _with_rounds_about_means(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    found: Lengths,
    own: tuple[Matrix, float],
    means: _Means,
) -> tuple[Matrix, float]:
    """Add what rounds of y − μ_t say: YᵀY = R_tᵀR_t/ρ_t + n·(ȳȳᵀ − (ȳ − μ_t)(ȳ − μ_t)ᵀ).

    What counts is how outcomes vary about ȳ. The noise of ȳ acts on that times ȳ in a round of the
    outcomes themselves, and times ȳ − μ_t here. A part of what the model adds for the clip is in doubt.
    """
    parts, scales = [own[0]], [own[1]]
    offsets = [means.values]
    doubts = [0.0]
    for released, length in zip(rounds, found.lengths, strict=True):
        if is_of_outcomes(plan, released) or is_stepped(plan, released):
            continue
        squares = squares_of(released)
        through = min(squares / (plan.n * length**2), 1.0)
        if through <= 0:  # lost in noise
            continue
        start = released.coefficients[-1] * plan.constant if plan.intercept else 0.0
        left = means.values - start
        moved = np.outer(means.values, means.values) - np.outer(left, left)
        if own[0].ndim == 1:
            moved = np.diagonal(moved)
        parts.append(released.outcome_moments / through + plan.n * moved)
        scales.append(released.outcome_sigma / through)
        offsets.append(left)
        doubts.append(IN_DOUBT * (1 / through - 1) * squares / math.sqrt(plan.l))
    lengths = np.linalg.norm(offsets, axis=1) / math.sqrt(plan.l)
    noise = np.array(scales)
    errors = np.sqrt(noise**2 + np.array(doubts) ** 2 + (2 * plan.n * lengths * means.error) ** 2)
    shares, _ = _weights(errors)
    return _mean(shares, parts), float(np.linalg.norm(shares * noise))


def _weights(scales: Matrix) -> tuple[Matrix, float]:
    """Weights by precision, and the noise scale of the weighted mean; the last one if it is exact."""
    if not scales.all():
        return np.eye(len(scales))[-1], 0.0
    precisions = (scales / scales.min()) ** -2.0
    return precisions / precisions.sum(), float(scales.min() / np.sqrt(precisions.sum()))


def _mean(shares: Matrix, values: list[Matrix]) -> Matrix:
    return np.asarray(sum(share * value for share, value in zip(shares, values, strict=True)))
