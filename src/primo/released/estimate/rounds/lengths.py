"""How long residuals are, and how much of a small change a clip lets through.

Model: ‖r‖² is s²·χ²_m/m, with s the root mean square length and m the number of directions that
residuals effectively have, (tr C)²/‖C‖² for outcome moments C. A clip at c multiplies what is left in
the residuals by its mean slope

    κ = P(‖r‖ < c) + (1 − 1/m)·E[c/‖r‖; ‖r‖ > c],

because a residual inside passes whole, and one outside keeps only its direction. Dividing by κ is what
makes rounds of different clips comparable. An error in κ multiplies what is left and nothing else, so it
vanishes as rounds go on.

The model is for residuals that are about normal. Others, such as those of a yes-or-no outcome or of
rates with a few high ones, are all about as long as each other, or nearly all short. A clip that many
residuals exceed moves the fit toward one of medians, which is another one for them. So a clip is first
longer than most residuals (`clip_in_lengths`), and shorter only after the model was seen to hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special

from primo._util.remembered import remembered
from primo.planning.plan import Plan
from primo.released.estimate.means import shrunk_means
from primo.released.estimate.rounds.schedule import may_be_gradual, measures
from primo.released.rounds import ReleasedRound

__all__ = [
    "SATURATED",
    "SHORTEST",
    "Lengths",
    "clip_in_lengths",
    "clipped_squares",
    "directions",
    "features_kept",
    "is_of_outcomes",
    "is_stepped",
    "length_of",
    "mean_slope",
    "outcomes_kept",
    "residual_lengths",
    "square_error",
    "squares_of",
]

Matrix = NDArray[np.float64]

#: Above this mean of min(‖r‖², c²)/c² nearly all residuals are clipped, and it says little of s.
SATURATED = 0.97
SEVERAL = 4  # rounds that measure, which together say how long residuals of small steps are
LEAST_OF_SMALL = 0.1  # slope, where several rounds say how long residuals are
LEAST_SLOPE = 0.35  # a smaller one is not believed: dividing by it would make a step longer
SHORTEST = 0.5  # clip in lengths
LONGER = 0.6  # by which the clip of one outcome is longer than its residuals
NOTHING = 1e-9  # times the squared clip: mean ‖y‖² of public outcomes that are all 0


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """What is known of the residuals of every round."""

    lengths: Matrix  # (rounds,) root mean square; of the outcomes themselves in the first round
    slopes: Matrix  # (rounds,) κ
    directions: float  # m
    saturated: bool  # whether nearly all residuals of the last round were clipped


def clip_in_lengths(m: float, *, normal: bool) -> float:
    """Return the clip of a round over the length of its residuals.

    Where the model was seen to hold (`normal`): 0.5 for one outcome, 1 for many. What a clip costs is
    c/κ. For one outcome it is the less the smaller the clip; for many outcomes it hardly depends on it.
    But a clip that all residuals exceed says nothing of how long they are.
    Otherwise 1.6 for one outcome, 1 for many: longer than most residuals.
    """
    return max(1 - 0.7 * m ** (-2 / 3), SHORTEST) if normal else 1 + LONGER / math.sqrt(m)


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
    """Return the s at which E min(‖r‖², c²) is `squares`, below c²."""
    return shared_length(squares, (clip,), m)


@lru_cache(maxsize=1024)  # asked again for every round whenever a round is added
def shared_length(squares: float, clips: tuple[float, ...], m: float) -> float:
    """Return the s at which Σ E min(‖r‖², c²) over these clips is `squares`, below Σc²."""
    unit = max(clips)

    def apart(log: float) -> float:
        s = unit * math.exp(log)
        return sum(c**2 * clipped_squares(s, c, m) for c in clips) - squares

    low, high = math.log(1e-3), math.log(1e3)  # of s over the longest clip
    if apart(low) >= 0 or apart(high) <= 0:
        return unit * math.exp(low if apart(low) >= 0 else high)
    return unit * math.exp(optimize.brentq(apart, low, high, xtol=1e-12))


def clipped_squares(length: float, clip: float, m: float) -> float:
    """Return E min(‖r‖², c²)/c² for residuals of this root mean square length."""
    s = length / clip
    u = m / s**2 / 2
    inside = float(special.gammainc(m / 2 + 1, u))
    return s**2 * inside + float(special.gammaincc(m / 2, u))


@remembered
def directions(plan: Plan, first: ReleasedRound) -> tuple[float, float]:
    """Return m of the outcomes themselves, and of residuals, from the first round; noise taken off.

    For residuals, C is that of the outcomes about their means, and m is from 1 to l.
    """
    means = np.zeros(plan.l)
    if plan.intercept:
        mass = plan.n * plan.constant
        means, _ = shrunk_means(first.association[-1] / mass, first.association_sigma / mass)
    noise = first.outcome_sigma * math.sqrt(plan.l)
    least = max(noise, NOTHING * plan.n * first.clip**2)
    return _directions(plan.n, first.outcome_moments, first.outcome_sigma, means, least)


def _directions(
    n: int, moments: Matrix, sigma: float, means: Matrix, least: float
) -> tuple[float, float]:
    """Return m of n rows, and of the same rows about their means, from their second moments.

    `moments` are (k, k), or (k,) the diagonal alone, with noise of scale `sigma`; `least` is what they
    add up to at least. A far-off mean makes rows long, and all equally long: var ‖y‖² = 2‖C‖² + 4μᵀCμ
    is that of χ² with m = (tr C + ‖μ‖²)²/(‖C‖² + 2μᵀCμ).
    """
    k, length = len(means), n * float(means @ means)
    if moments.ndim == 1:
        total = max(float(moments.sum()) - length, least)
        squares, along = total**2 / k, float(np.maximum(moments - n * means**2, 0.0) @ means**2)
    else:
        about = moments - n * np.outer(means, means)
        total = max(float(np.trace(about)), least)
        squares = float(np.einsum("ij,ij->", about, about)) - sigma**2 * k * (k + 1) / 2
        squares = float(np.clip(squares, total**2 / k, total**2))
        along = max(float(means @ about @ means), 0.0)
    of_rows = (total + length) ** 2 / max(squares + 2 * n * along, 1e-300)
    return max(of_rows, 1.0), total**2 / max(squares, 1e-300)


def outcomes_kept(plan: Plan, rounds: Sequence[ReleasedRound]) -> tuple[float, float]:
    """Return what the outcomes' own clip keeps: κ of their association, and the share of Σ‖y‖².

    Both are 1 where there is one round only, which shortens association and Σ‖y‖² alike. Later rounds
    take residuals of whole outcomes: what they add is then not a part of the same Σ‖y‖².
    Outcomes that are all as long as their bound, such as indicators, look the same as outcomes that are
    all longer. Bounds are taken at their word then, as in one release.
    """
    if not rounds:
        return 1.0, 1.0
    first = rounds[0]
    m, _ = directions(plan, first)
    return _norm_keeps(_mean_square(plan, first), first.clip, m)


def features_kept(plan: Plan, covariance: Matrix, sigma: float) -> tuple[float, float]:
    """Return what the features' norm keeps: κ of the association, and the share of Σ‖x‖².

    `covariance` (width, width) is that of all rounds, with noise of scale `sigma`. Rounds approach the
    slopes of whole rows, and only Σ‖x‖² is that of shortened ones.
    """
    d, norm = plan.d, plan.features.norm
    if plan.features.longest <= norm:
        return 1.0, 1.0
    moments, means = covariance[:d, :d], np.zeros(d)
    if plan.intercept:
        mass = plan.n * plan.constant
        means, _ = shrunk_means(covariance[d, :d] / mass, sigma / mass)
    least = max(sigma * math.sqrt(d), NOTHING * plan.n * norm**2)
    m, _ = _directions(plan.n, moments, sigma, means, least)
    return _norm_keeps(max(float(np.trace(moments)), least) / plan.n, norm, m)


def _norm_keeps(squares: float, norm: float, m: float) -> tuple[float, float]:
    """Return κ and the share of squared lengths for rows whose mean square is `squares` after a norm."""
    if squares >= SATURATED * norm**2:
        return 1.0, 1.0
    length = length_of(squares, norm, m)
    return mean_slope(length, norm, m), min(squares / length**2, 1.0)


@remembered
def residual_lengths(plan: Plan, rounds: Sequence[ReleasedRound]) -> Lengths:
    """Return length and slope of every round, from released numbers.

    The first round's clip is the outcomes' own norm, a stated bound: its slope counts as 1, as it does
    in one release. So does that of any other round of the outcomes themselves. Where there are many
    rounds of small steps, residuals are as long as the last `SEVERAL` rounds that measure say together.
    """
    m = _residual_directions(plan, rounds)
    small = may_be_gradual(plan)
    several, least = (SEVERAL, LEAST_OF_SMALL) if small else (1, LEAST_SLOPE)
    lengths, slopes = [], []
    measured: list[tuple[float, float]] = []  # Σ‖r‖² over n, and the clip
    saturated = False
    for number, released in enumerate(rounds):
        squares, clip = _mean_square(plan, released), released.clip
        saturated = number > 0 and squares >= SATURATED * clip**2
        if is_of_outcomes(plan, released):
            lengths.append(math.sqrt(squares))
            slopes.append(1.0)
            continue
        if not small or not measured or measures(plan, number):
            measured = [*measured, (squares, clip)][-several:]
        clips = tuple(other for _, other in measured)
        most = SATURATED * sum(other**2 for other in clips)
        lengths.append(shared_length(min(sum(found for found, _ in measured), most), clips, m))
        slopes.append(max(mean_slope(lengths[-1], clip, m), least))
    return Lengths(
        lengths=np.array(lengths), slopes=np.array(slopes), directions=m, saturated=saturated
    )


def _residual_directions(plan: Plan, rounds: Sequence[ReleasedRound]) -> float:
    """Return m of residuals, from the second moments of all rounds that took slopes.

    Before there are any it is that of the outcomes about their means. What slopes explain is left out
    of residuals, and often has few directions.
    """
    stepped = [released for released in rounds if is_stepped(plan, released)]
    if not stepped or stepped[0].outcome_moments.ndim == 1:
        return directions(plan, rounds[0])[1]
    clips = np.array([released.clip for released in stepped])
    noise = np.array([released.outcome_sigma for released in stepped]) / clips**2
    sigma = float(np.sum(noise**-2.0) ** -0.5)
    shares = (sigma / noise) ** 2 / clips**2
    moments = sum(w * r.outcome_moments for w, r in zip(shares, stepped, strict=True))
    least = max(sigma * math.sqrt(plan.l), NOTHING * plan.n)
    return _directions(plan.n, np.asarray(moments), sigma, np.zeros(plan.l), least)[1]


def is_of_outcomes(plan: Plan, released: ReleasedRound) -> bool:
    """Whether a round looked at the outcomes themselves, as the first one does."""
    return released.clip == plan.outcomes.norm and not released.coefficients.any()


def is_stepped(plan: Plan, released: ReleasedRound) -> bool:
    """Whether a round took residuals of slopes, not of means alone."""
    return bool(released.coefficients[: plan.d].any())


def squares_of(released: ReleasedRound) -> float:
    """Σ‖r‖² as a round released it; noise may make it negative."""
    moments = released.outcome_moments
    return float(np.trace(moments) if moments.ndim == 2 else moments.sum())


def square_error(plan: Plan, released: ReleasedRound) -> float:
    """Return the standard deviation of the noise of mean ‖r‖² in a round of residuals with this clip.

    Public outcomes have none themselves, but what is left of them in the next round has.
    """
    sigma = released.outcome_sigma
    if sigma == 0:
        sigma = plan.residual_sigma * (released.clip / plan.outcomes.norm) ** 2
    return sigma * math.sqrt(plan.l) / plan.n


def _mean_square(plan: Plan, released: ReleasedRound) -> float:
    """Mean of ‖r‖² after the clip, at least the noise of its sum; never 0 where that is exact."""
    noise = released.outcome_sigma * math.sqrt(plan.l) / plan.n
    return max(squares_of(released) / plan.n, noise, NOTHING * released.clip**2)
