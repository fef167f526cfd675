"""From a budget to a noise level, with every rounding on the safe side.

Inside primo every cost is measured by mu of Gaussian differential privacy: a release is mu-GDP when
no row can move it, measured in units of its noise, by more than mu. mu-GDP is equivalent to
(epsilon, delta)-DP for the whole curve delta(epsilon) of Balle & Wang (2018), computed here with
fifty digits, so that the last step, rounding to a float, is certain to round down.
"""

from __future__ import annotations

import math
from functools import lru_cache

import mpmath

from primo.errors import Argument, InputError
from primo.privacy.budget import Budget
from primo.privacy.rounds import SMALL_STEP_ROUNDS

__all__ = [
    "delta_of",
    "epsilon_of",
    "epsilon_with_margin",
    "lattice_margin",
    "mu_of",
    "split_ratio",
]

#: Least k where rounds may take small steps: σ₂ is 1 % above its least value there.
SMALL_STEP_RATIO = 1.5

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
            Argument("epsilon", budget.epsilon),
            " is too small for a release of this many numbers; "
            "raise epsilon or release fewer outcomes",
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
    return epsilon_with_margin(mu, delta, 0.0)


@lru_cache(maxsize=256)
def epsilon_with_margin(mu: float, delta: float, margin: float) -> float:
    """Return the epsilon of mu-GDP at delta with the lattice margin on top, rounded up.

    Guarantee: the smallest float with ``delta_of(mu, epsilon - 2*margin) <= delta*exp(-2*margin)``, as
    `mu_of` has it, with fifty digits until the last step.
    Cost: as `mu_of`; a release asks for the same one several times, so it is remembered.
    """
    ctx = _CONTEXT
    mu_exact, offset = ctx.mpf(mu), 2 * ctx.mpf(margin)
    delta_exact = ctx.mpf(delta) * ctx.exp(-offset)

    def keeps(epsilon: float) -> bool:
        return bool(_delta(mu_exact, ctx.mpf(epsilon) - offset) <= delta_exact)

    low = 2.0 * margin  # exact, and nothing smaller is proven
    if keeps(low):
        return low
    high = max(1.0, 2.0 * low)
    while not keeps(high):
        low, high = high, 2.0 * high
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (low, middle) if keeps(middle) else (middle, high)


def lattice_margin(count: int, variance_bits: int) -> float:
    """Bound the log-ratio between `count` discrete Gaussians and `count` rounded Gaussians.

    Guarantee: as long as every noise is at most 40 of its standard deviations; docs/guarantee.md,
    section 2, proves it. Larger noise, in both laws, is covered by the part of delta that `mu_of` leaves
    unspent.
    """
    return 200.0 * count * 2.0**-variance_bits


def split_ratio(l: int, *, rounds: int = 1) -> float:
    """Choose k = q/p, the association's share against the covariance's, from public numbers.

    The noise that matters for outcome j is σ₂² + σ₁²·‖w_j‖²/2 (mathematics.md section 6). At fixed
    mu, σ₂² ∝ 2/k + 2 + k/2 and σ₁² ∝ 2 + 2k + k²/2, so σ₂² + σ₁²·r/2 is least at
    k = 4/(1 + √(1 + 8r)) (mathematics.md section 3). A signal that is spread evenly would give r of the
    order d/l; real estimators shrink hardest exactly where the covariance is uncertain, and r = 1/√l
    served the data sets of benchmarks/accuracy.py better. Many outcomes drive k to 2, where the
    covariance is free. Many small steps live off the association alone.
    """
    ratio = 4 / (1 + math.sqrt(1 + 8 / math.sqrt(l)))
    return max(ratio, SMALL_STEP_RATIO) if rounds >= SMALL_STEP_ROUNDS else ratio
