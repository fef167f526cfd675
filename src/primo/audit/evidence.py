"""From counts of right and wrong guesses to lower bounds on ε, with a stated confidence.

Two kinds of bound are made from the same attack.

- `epsilon_at_least` uses nothing but the definition: a mechanism that is (ε, δ)-DP has
  P(alarm | row present) ≤ e^ε·P(alarm | row replaced) + δ for every attack. It needs no assumption, but
  cannot prove much more than the logarithm of the number of trials.
- `mu_at_least` uses Gaussian differential privacy: under mu-GDP no guess between two equally likely data
  sets is right more often than Φ(mu/2) (Dong, Roth and Su 2022). It refutes a claimed mu without any
  assumption. Its statement about ε at a small δ assumes a Gaussian privacy profile (Nasr et al. 2023),
  which a mechanism with Gaussian noise has.

`one_run_epsilon` is the bound of Steinke, Nasr and Jagielski (2023) for many canaries in one release.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import betaincinv, expit, ndtri
from scipy.stats import binom

from primo.privacy.calibration import epsilon_of

__all__ = [
    "at_least",
    "at_most",
    "best_threshold",
    "epsilon_at_least",
    "gaussian_epsilon",
    "mu_at_least",
    "one_run_epsilon",
    "one_run_p_value",
]

#: Chances of an alarm (row replaced, row present) above a threshold.
Rates = Callable[[float], tuple[float, float]]


def at_least(hits: int, trials: int, confidence: float) -> float:
    """Return Clopper and Pearson's lower bound on a probability (one-sided, exact)."""
    return 0.0 if hits == 0 else float(betaincinv(hits, trials - hits + 1, 1 - confidence))


def at_most(hits: int, trials: int, confidence: float) -> float:
    """Return Clopper and Pearson's upper bound on a probability (one-sided, exact)."""
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, confidence))


def mu_at_least(right: int, guesses: int, confidence: float) -> float:
    """Return the mu below which so many right guesses refute mu-GDP; 0 if no mu is refuted."""
    return 2 * max(0.0, float(ndtri(at_least(right, guesses, confidence))))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return the ε of mu-GDP at δ; 0 for mu = 0."""
    return epsilon_of(mu, delta) if mu > 0 else 0.0


def epsilon_at_least(
    *,
    false_alarms: int,
    replaced: int,
    alarms: int,
    present: int,
    delta: float,
    confidence: float,
) -> float:
    """Return the ε below which (ε, δ)-DP is refuted by the rates of one attack.

    `false_alarms` of `replaced` trials without the row, `alarms` of `present` trials with it. Each rate
    is bounded with half of the allowed error. The attack's threshold must not depend on these counts.
    """
    each = 1 - (1 - confidence) / 2
    hit = at_least(alarms, present, each) - delta
    false = at_most(false_alarms, replaced, each)
    return max(0.0, math.log(hit / false)) if hit > 0 else 0.0


def best_threshold(rates: Rates, *, trials: int, delta: float, confidence: float) -> float:
    """Return the threshold whose `epsilon_at_least` is expected to be largest under the claimed law.

    It is fixed in advance, from the plan and the number of trials; it does not depend on their results.
    """

    def expected(threshold: float) -> float:
        false, hit = rates(threshold)
        return epsilon_at_least(
            false_alarms=round(false * trials / 2),
            replaced=trials // 2,
            alarms=round(hit * trials / 2),
            present=trials // 2,
            delta=delta,
            confidence=confidence,
        )

    return max((float(t) for t in np.linspace(-2.0, 12.0, 141)), key=expected)


def one_run_p_value(
    *, canaries: int, guesses: int, right: int, epsilon: float, delta: float
) -> float:
    """Bound the chance of so many right guesses in one run of an (ε, δ)-DP mechanism.

    Steinke, Nasr and Jagielski (2023), theorem 5.2: each of `canaries` rows is one of two by a fair
    coin, and the attack guesses `guesses` of the coins after seeing one release.
    """
    chance = float(expit(epsilon))
    tail = float(binom.sf(right - 1, guesses, chance))
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, chance))
    worst = float((below / np.arange(1, right + 1)).max()) if right else 0.0
    return min(1.0, tail + 2 * canaries * delta * worst)


def one_run_epsilon(
    *, canaries: int, guesses: int, right: int, delta: float, confidence: float
) -> float:
    """Return the ε below which one run with so many right guesses refutes (ε, δ)-DP."""

    def refuted(epsilon: float) -> bool:
        found = one_run_p_value(
            canaries=canaries, guesses=guesses, right=right, epsilon=epsilon, delta=delta
        )
        return found < 1 - confidence

    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2 * high
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
