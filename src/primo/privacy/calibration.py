"""From a budget to a noise level, on the safe side of every rounding.

The only currency inside primo is mu of Gaussian differential privacy: a release is mu-GDP when no
row can move it, measured in units of its noise, by more than mu. mu-GDP is equivalent to
(epsilon, delta)-DP for the whole curve delta(epsilon) of Balle & Wang (2018), computed here with
fifty digits so that the last step, rounding to a float, can be taken downwards knowingly.
"""

from __future__ import annotations

import math
from functools import lru_cache

import mpmath

from primo.errors import InputError
from primo.privacy.budget import Budget

__all__ = [
    "delta_of",
    "epsilon_of",
    "epsilon_with_margin",
    "lattice_margin",
    "mu_of",
    "split_ratio",
]

_CONTEXT = mpmath.MPContext()
_CONTEXT.dps = 50

#: Largest mu that is ever considered; mu_of(Budget(epsilon=100, delta=0.999)) is below it.
_LARGEST_MU = 64.0


def delta_of(mu: float, epsilon: float) -> float:
    """Return the smallest delta such that mu-GDP implies (epsilon, delta)-DP."""
    return float(_delta(_CONTEXT.mpf(mu), _CONTEXT.mpf(epsilon)))


def _delta(mu: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    ctx = _CONTEXT
    return ctx.ncdf(mu / 2 - epsilon / mu) - ctx.exp(epsilon) * ctx.ncdf(-mu / 2 - epsilon / mu)


@lru_cache(maxsize=256)
def mu_of(budget: Budget, *, margin: float = 0.0) -> float:
    """Return the largest float mu such that mu-GDP implies `budget`.

    Parameters
    ----------
    budget
        What the caller allows to be spent.
    margin
        The `lattice_margin` of the mechanism: how much the log-ratio of its law may deviate from a
        rounded Gaussian's. It is taken off the budget first.

    Notes
    -----
    Guarantee: ``delta_of(mu, epsilon - 2*margin) <= delta*exp(-2*margin)``; never the wrong side.
    Cost: about a hundred evaluations of the normal distribution function at fifty digits.
    """
    ctx = _CONTEXT
    epsilon = ctx.mpf(budget.epsilon) - 2 * ctx.mpf(margin)
    delta = ctx.mpf(budget.delta) * ctx.exp(-2 * ctx.mpf(margin))
    if epsilon <= 0:
        raise InputError(
            f"epsilon={budget.epsilon!r} is too small for a release of this many numbers; "
            "raise epsilon or release fewer outcomes"
        )
    # Bisection on floats: delta is increasing in mu, so `low` always keeps the guarantee and the
    # result is exactly the largest float that does.
    low, high = 0.0, _LARGEST_MU
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return low
        if _delta(ctx.mpf(middle), epsilon) <= delta:
            low = middle
        else:
            high = middle


def epsilon_of(mu: float, delta: float) -> float:
    """Return an epsilon, rounded up, such that mu-GDP implies (epsilon, delta)-DP."""
    ctx = _CONTEXT
    mu_exact, delta_exact = ctx.mpf(mu), ctx.mpf(delta)
    if _delta(mu_exact, ctx.mpf(0)) <= delta_exact:
        return 0.0
    low, high = 0.0, 1.0
    while _delta(mu_exact, ctx.mpf(high)) > delta_exact:
        low, high = high, 2.0 * high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        if _delta(mu_exact, ctx.mpf(middle)) > delta_exact:
            low = middle
        else:
            high = middle


def epsilon_with_margin(mu: float, delta: float, margin: float) -> float:
    """Return the epsilon of mu-GDP at delta, with the lattice margin on top."""
    return epsilon_of(mu, delta * math.exp(-2 * margin)) + 2 * margin


def lattice_margin(count: int, variance_bits: int) -> float:
    """Bound the log-ratio between `count` discrete Gaussians and `count` rounded Gaussians.

    A continuous Gaussian rounded to integers is post-processing of the Gaussian mechanism, so it has
    exactly the curve of `delta_of`. For one coordinate with variance v = 2**variance_bits, the ratio
    of the rounded law to the discrete Gaussian at x is the integral over |u| ≤ 1/2 of
    exp(-u²/2v)·cosh(xu/v), which lies between exp(-1/(8v)) and exp(x²/(8v²)). For |x| ≤ 40·√v its
    logarithm is at most 200/v in size; larger |x| have probability below e⁻⁸⁰⁰. (The two normalising
    constants agree to a factor 1 + e^(-19v).)
    """
    return 200.0 * count * 2.0**-variance_bits


def split_ratio(l: int) -> float:
    """Choose k = q/p, the association's share against the covariance's, from public numbers.

    The noise that matters for outcome j is σ₂² + σ₁²·‖w_j‖²/2 (mathematics.md section 6). At fixed
    mu, σ₂² ∝ 2/k + 2 + k/2 and σ₁² ∝ 2 + 2k + k²/2, so their sum with weight r on the second is least
    at k = 4/(1 + √(1 + 8r)). A signal that is spread evenly would give r of the order d/l; real
    estimators shrink hardest exactly where the covariance is uncertain, and r = 1/√l served the data
    sets of benchmarks/accuracy.py better. Many outcomes drive k to 2, where the covariance is free.
    """
    return 4 / (1 + math.sqrt(1 + 8 / math.sqrt(l)))
