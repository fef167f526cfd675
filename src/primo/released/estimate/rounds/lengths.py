"""How long residuals are, and how much of a small change a clip lets through.

Model: ‖r‖² is s²·χ²_m/m, with s the root mean square length and m the number of directions that
residuals effectively have, (tr C)²/‖C‖² for outcome moments C. A clip at c multiplies what is left in
the residuals by its mean slope

    κ = P(‖r‖ < c) + (1 − 1/m)·E[c/‖r‖; ‖r‖ > c],

because a residual inside passes whole, and one outside keeps only its direction. Dividing by κ is what
makes rounds of different clips comparable. An error in κ multiplies what is left and nothing else, so it
vanishes as rounds go on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from primo.planning.plan import Plan
from primo.released.estimate.means import shrunk_means
from primo.released.rounds import ReleasedRound

__all__ = [
    "Lengths",
    "clip_in_lengths",
    "directions",
    "length_of",
    "mean_slope",
    "outcomes_whole",
    "residual_lengths",
]

Matrix = NDArray[np.float64]

#: Above this mean of min(‖r‖², c²)/c² nearly all residuals are clipped, and it says little of s.
SATURATED = 0.97
WHOLE = 0.995  # mean slope of the outcomes' own clip above which it hardly shortens them
FARTHEST = 2.0  # times the expected length: no further is an observed one believed


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """What is known of the residuals of every round."""

    lengths: Matrix  # (rounds,) root mean square; of the outcomes themselves in the first round
    slopes: Matrix  # (rounds,) κ
    directions: float  # m
    saturated: bool  # whether nearly all residuals of the last round were clipped


def clip_in_lengths(m: float) -> float:
    """Return the clip of a round over the length of its residuals: 0.3 for one outcome, 1 for many.

    What a clip costs is c/κ. For one outcome it is the less the smaller the clip; for many outcomes it
    hardly depends on it. But a clip that all residuals exceed says nothing of how long they are: with
    this one about a quarter of them are shorter, whatever m is.
    """
    return float(1 - 0.7 * m ** (-2 / 3))


def mean_slope(length: float, clip: float, m: float) -> float:
    """Return κ of residuals of root mean square length s, in (0, 1]."""
    u = m * (clip / length) ** 2 / 2
    inside = float(special.gammainc(m / 2, u))
    if m <= 1:
        return max(inside, 1e-6)
    half = (m - 1) / 2
    inverse = math.exp(special.gammaln(half) - special.gammaln(m / 2)) * math.sqrt(m / 2) / length
    outside = clip * inverse * float(special.gammaincc(half, u))
    return min(max(inside + (1 - 1 / m) * outside, 1e-6), 1.0)


def length_of(squares: float, clip: float, m: float) -> float:
    """Return the s at which E min(‖r‖², c²) is `squares`, below c²; by bisection."""
    low, high = math.log(1e-3), math.log(1e3)  # of s/c
    for _ in range(60):
        middle = (low + high) / 2
        if _clipped_squares(math.exp(middle), m) < squares / clip**2:
            low = middle
        else:
            high = middle
    return clip * math.exp((low + high) / 2)


def _clipped_squares(s: float, m: float) -> float:
    """E min(‖r‖², 1) for residuals of root mean square length s."""
    u = m / s**2 / 2
    inside = float(special.gammainc(m / 2 + 1, u))
    return s**2 * inside + float(special.gammaincc(m / 2, u))


def directions(plan: Plan, first: ReleasedRound) -> tuple[float, float]:
    """Return m of the outcomes themselves, and of residuals, from the first round; noise taken off.

    For residuals, C is that of the outcomes about their means, and m is from 1 to l. A far-off mean
    makes outcomes long, and all equally long: var ‖y‖² = 2‖C‖² + 4μᵀCμ is that of χ² with
    m = (tr C + ‖μ‖²)²/(‖C‖² + 2μᵀCμ).
    """
    n, l, sigma = plan.n, plan.l, first.outcome_sigma
    moments, means = first.outcome_moments, np.zeros(plan.l)
    if plan.intercept:
        mass = n * plan.constant
        means, _ = shrunk_means(first.association[-1] / mass, first.association_sigma / mass)
    length = n * float(means @ means)
    if moments.ndim == 1:
        total = max(float(moments.sum()) - length, sigma * math.sqrt(l))
        squares, along = total**2 / l, float(np.maximum(moments - n * means**2, 0.0) @ means**2)
    else:
        about = moments - n * np.outer(means, means)
        total = max(float(np.trace(about)), sigma * math.sqrt(l))
        squares = float(np.einsum("ij,ij->", about, about)) - sigma**2 * l * (l + 1) / 2
        squares = float(np.clip(squares, total**2 / l, total**2))
        along = max(float(means @ about @ means), 0.0)
    of_outcomes = (total + length) ** 2 / max(squares + 2 * n * along, 1e-300)
    return max(of_outcomes, 1.0), total**2 / max(squares, 1e-300)


def outcomes_whole(plan: Plan, rounds: Sequence[ReleasedRound]) -> bool:
    """Whether the first round hardly shortened the outcomes; True where there is one round only.

    Otherwise their length is that of a model, which is good enough for steps, but not for R².
    """
    return not rounds or float(residual_lengths(plan, rounds[:1]).slopes[0]) > WHOLE


def residual_lengths(plan: Plan, rounds: Sequence[ReleasedRound]) -> Lengths:
    """Return length and slope of every round, from released numbers.

    A later round's clip was made for a length that was expected. Where enough residuals were not
    clipped, the round itself says how long they are; it is believed up to a factor of `FARTHEST`.
    """
    of_outcomes, m = directions(plan, rounds[0])
    lengths = []
    saturated = False
    for number, released in enumerate(rounds):
        moments, clip = released.outcome_moments, released.clip
        total = float(np.trace(moments) if moments.ndim == 2 else moments.sum())
        squares = max(total, released.outcome_sigma * math.sqrt(len(moments))) / plan.n
        saturated = squares >= SATURATED * clip**2
        own = m if number else of_outcomes
        seen = length_of(min(squares, SATURATED * clip**2), clip, own)
        if number == 0:
            lengths.append(max(seen, math.sqrt(squares)))
            continue
        expected = clip / clip_in_lengths(m)
        if not saturated or seen > expected:
            expected = float(np.clip(seen, expected / FARTHEST, expected * FARTHEST))
        lengths.append(expected)
    slopes = [
        mean_slope(s, released.clip, m if number else of_outcomes)
        for number, (s, released) in enumerate(zip(lengths, rounds, strict=True))
    ]
    return Lengths(
        lengths=np.array(lengths), slopes=np.array(slopes), directions=m, saturated=saturated
    )
