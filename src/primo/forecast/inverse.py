"""Inverse questions of a plan: which budget, how many outcomes or rows, for a target R².

Like `primo.compare_plans`, from public numbers and a stated `Signal` alone: nothing here can leak.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from scipy.optimize import brentq

from primo.errors import Advice, Argument, InputError, Message
from primo.forecast.assumptions import Signal, as_signal
from primo.forecast.compare import as_count, available_associations, public_plan
from primo.forecast.forecast import Draws, predict_ways
from primo.privacy.budget import is_number
from primo.privacy.protection import Protection

__all__ = ["epsilon_for", "outcomes_for", "rows_for"]

_EPSILONS = (0.01, 100.0)  # where a budget is looked for
_FAINTEST = 1e-3  # of the target: R² below is not told apart
_MOST_OUTCOMES = 10_000_000
_MOST_ROWS = 50_000_000


class Assumed(TypedDict, total=False):
    """What may be said about the release besides its sizes; `primo.compare_plans` has the same words.

    `association` may be "auto": whichever mechanism is predicted to do better.
    """

    delta: float | None
    protection: Protection | str
    association: str
    estimator: str
    signal: Signal | None
    feature_bounds: Any
    outcome_bounds: Any
    fit_intercept: bool


def epsilon_for(
    target_r2: float,
    *,
    n: int,
    d: int,
    l: int,
    **assumed: Unpack[Assumed],
) -> float:
    """Return the least epsilon, to 1 %, at which R² is predicted to reach the target.

    The prediction is that of `primo.compare_plans` with the same `signal` and bounds; if no bounds are
    given, of bounds that fit well. Looked for between 0.01 and 100: 0.01 is returned if it suffices.
    Cost: about ten forecasts of the same simulated rows, one or two seconds whatever the sizes.

    Examples
    --------
    >>> import primo
    >>> signal = primo.Signal(r2=0.5)
    >>> primo.epsilon_for(0.3, n=1000, d=2, l=2, signal=signal, estimator="filter") < 1
    True
    """
    target = _Target(target_r2, **assumed)
    draws = Draws()  # of rows, which are the same at every budget
    low, high = _EPSILONS
    if (top := target.r2(n=n, d=d, l=l, epsilon=high, draws=draws)) < target_r2:
        raise target.out_of_reach(
            Message.of("even ", Argument("epsilon", high), f" is predicted to give {top:.3f}"),
            "more rows or fewer outcomes would help",
        )

    def excess(r2: float) -> float:
        # R² grows with a power of ε where it is small: its logarithm is nearly straight.
        return math.log(max(r2, _FAINTEST * target_r2) / target_r2)

    def excess_at(epsilon: float) -> float:
        return excess(target.r2(n=n, d=d, l=l, epsilon=epsilon, draws=draws))

    if (bottom := excess_at(low)) >= 0:
        return low
    return _least(excess_at, (low, bottom), (high, excess(top)))


def outcomes_for(
    target_r2: float,
    *,
    n: int,
    d: int,
    epsilon: float,
    **assumed: Unpack[Assumed],
) -> int:
    """Return how many outcomes, to 1 %, one release can carry at the target R².

    Examples
    --------
    >>> import primo
    >>> signal = primo.Signal(r2=0.5)
    >>> primo.outcomes_for(0.45, n=300, d=2, epsilon=5, signal=signal, estimator="filter") > 10
    True
    """
    target = _Target(target_r2, **assumed)
    if (top := target.r2(n=n, d=d, l=1, epsilon=epsilon)) < target_r2:
        raise target.out_of_reach(
            f"even one outcome is predicted to have {top:.3f}",
            "more rows or a larger epsilon would help",
        )
    return _turning_point(
        lambda l: target.reached(n=n, d=d, l=l, epsilon=epsilon), least=1, most=_MOST_OUTCOMES
    )[0]


def rows_for(
    target_r2: float,
    *,
    d: int,
    l: int,
    epsilon: float,
    **assumed: Unpack[Assumed],
) -> int:
    """Return how many rows, to 1 %, are needed for the target R²; delta follows n if None.

    Examples
    --------
    >>> import primo
    >>> signal = primo.Signal(r2=0.5)
    >>> primo.rows_for(0.45, d=3, l=4, epsilon=5, signal=signal, estimator="filter") < 10_000
    True
    """
    target = _Target(target_r2, **assumed)
    fewest = max(2, as_count("d", d) + 1)  # below this least squares fits noise exactly
    if target.reached(n=fewest, d=d, l=l, epsilon=epsilon):
        return fewest
    low, high = _turning_point(
        lambda n: not target.reached(n=n, d=d, l=l, epsilon=epsilon), least=fewest, most=_MOST_ROWS
    )
    if low >= _MOST_ROWS:
        raise target.out_of_reach(
            f"even {_MOST_ROWS:,} rows are too few",
            "fewer outcomes, fewer features or a larger epsilon would help",
        )
    return high


@dataclass(frozen=True)
class _Target:
    """The R² that is asked for, and what stays fixed while the answer is bisected."""

    r2_wanted: float
    delta: float | None = None
    protection: Protection | str = Protection.BOTH
    association: str = "auto"
    estimator: str = "auto"
    signal: Signal | None = None
    feature_bounds: Any = None
    outcome_bounds: Any = None
    fit_intercept: bool = True

    def __post_init__(self) -> None:
        wanted, assumed = self.r2_wanted, as_signal(self.signal)
        if not is_number(wanted) or not 0 < wanted < 1:
            raise InputError(Argument("target_r2", wanted), " must lie between 0 and 1")
        if wanted >= assumed.r2:
            raise self.out_of_reach(
                f"the features are assumed to explain R² = {assumed.r2:g} of the variance, with or "
                "without privacy",
                Message.of(
                    "ask for less, or state a stronger ",
                    Advice("signal_r2", "signal=Signal(r2=...)"),
                    " if you know of one",
                ),
            )

    def out_of_reach(self, why: str | Message, remedy: str | Message) -> InputError:
        return InputError(
            Argument("target_r2", self.r2_wanted), " cannot be reached: ", why, remedy=remedy
        )

    def reached(self, *, n: int, d: int, l: int, epsilon: float) -> bool:
        return self.r2(n=n, d=d, l=l, epsilon=epsilon) >= self.r2_wanted

    def r2(self, *, n: int, d: int, l: int, epsilon: float, draws: Draws | None = None) -> float:
        made = public_plan(
            n=n,
            d=d,
            l=l,
            epsilon=epsilon,
            delta=self.delta,
            protection=self.protection,
            feature_bounds=self.feature_bounds,
            outcome_bounds=self.outcome_bounds,
            fit_intercept=self.fit_intercept,
        )
        choices = available_associations(made)
        if self.association != "auto":
            choices = (self.association,)
        found = predict_ways(
            [(made, name) for name in choices],
            estimators=(self.estimator,),
            signal=as_signal(self.signal),
            draws=draws,
        )
        return max(only.r2 for (only,) in found)


def _least(
    excess: Callable[[float], float], below: tuple[float, float], above: tuple[float, float]
) -> float:
    """Return, to 1 %, where a function that grows with log(x) becomes at least 0.

    `below` and `above` are points x with their values, or guesses of them. Every value is a simulation,
    which is why Brent's method is worth it: half as many as by bisection.
    """
    seen = {math.log(x): value for x, value in (below, above)}

    def known(log_x: float) -> float:
        if log_x not in seen:
            seen[log_x] = excess(math.exp(log_x))
        return seen[log_x]

    root = brentq(known, math.log(below[0]), math.log(above[0]), xtol=0.004)
    enough = [at for at, value in seen.items() if value >= 0 and at <= root + 0.008]
    return math.exp(min(enough, default=root + 0.004))


def _turning_point(holds: Callable[[int], bool], *, least: int, most: int) -> tuple[int, int]:
    """Bracket, to 1 %, where a condition that holds at `least` stops holding; (most, most) if never."""
    low, high = least, min(4 * least, most)
    while holds(high):
        low, high = high, min(4 * high, most)
        if low == most:
            return most, most
    while high - low > max(1, low // 100):
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high
