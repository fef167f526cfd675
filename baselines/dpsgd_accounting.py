r"""What DP-SGD truly costs under replace-one neighbours, and the noise that a budget asks for.

One step sums the gradients of the rows of a Poisson sample of rate q, each shortened to the clip C, and
adds Gaussian noise of scale z·C. If one row is replaced, the worst pair of laws is, along the gradient
and in units of C,

    P = (1-q)·N(0, z²) + q·N(-1, z²)    and    Q = (1-q)·N(0, z²) + q·N(+1, z²):

the row is drawn with the same probability in both data sets, and its gradient turns round (for Poisson
sampling and Gaussian noise this pair dominates all others: Lebeda et al. 2024; Schuchardt et al. 2024;
tests/baselines search the disk of gradients for a worse one). Steps compose adaptively, so T steps in
each of k runs have the privacy loss of T·k independent draws of that pair.

- `true_epsilon`, `noise_multiplier`: exact composition of privacy loss distributions by dp_accounting,
  discretised pessimistically; at q = 1 the closed form, μ = 2√(T·k)/z of Gaussian differential privacy.
- `noise_multiplier_zcdp`: the paper's way, "composing in zCDP and then converting back to (ε, δ)". With
  every row in every step, a run is ρ-zCDP with ρ = 2T/z², k runs are kρ-zCDP, and that is
  (kρ + 2√(kρ·log(1/δ)), δ)-DP. A sub-sampled Gaussian is ρ-zCDP for no ρ that counts its sub-sampling
  (its Rényi divergence is not linear in the order), and the paper does not say what it did. Here the
  Rényi divergences R(α) of the pair above are added instead and converted by the same rule,
  ε = min_α R(α) + log(1/δ)/(α-1), of which zCDP is the case R(α) = ρα. Either is looser than the exact
  composition; `true_epsilon` says by how much.

Opacus itself counts for add-or-remove neighbours, where a row moves the sum by C and not by 2C; its ε
is not comparable with primo's and is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from scipy.stats import norm

from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, epsilon_of, mu_of

__all__ = [
    "noise_multiplier",
    "noise_multiplier_zcdp",
    "renyi_divergence",
    "true_delta",
    "true_epsilon",
    "zcdp_epsilon",
]

#: Orders of the Rényi divergences; the least over them is a valid bound whatever they are.
ORDERS: NDArray[np.float64] = 1 + np.geomspace(0.02, 600, 90)

#: Relative width at which the search for a noise multiplier ends, on the safe side.
_PRECISION = 1e-5

#: The quadrature's own rounding, absolute and relative, added to the logarithm of every integral.
_ROUNDING = 1e-11


@lru_cache(maxsize=1024)
def true_epsilon(
    noise_multiplier: float, delta: float, *, rate: float, steps: int, compositions: int = 1
) -> float:
    """Return the ε, rounded up, that DP-SGD gives at δ under replace-one.

    Parameters
    ----------
    noise_multiplier
        z: the noise has scale z·C, where C is the clip of a gradient.
    delta
        At which δ.
    rate
        q: probability of a row to be in a step; 1 for all rows in every step.
    steps, compositions
        T steps in each of so many runs on the same rows.
    """
    count = _checked(rate, steps, compositions)
    if noise_multiplier == 0:
        return math.inf
    if rate == 1:
        return epsilon_of(2 * math.sqrt(count) / noise_multiplier, delta)
    return float(_composed(noise_multiplier, rate, count).get_epsilon_for_delta(delta))


@lru_cache(maxsize=1024)
def true_delta(
    noise_multiplier: float, epsilon: float, *, rate: float, steps: int, compositions: int = 1
) -> float:
    """Return the δ, rounded up, that DP-SGD gives at ε under replace-one."""
    count = _checked(rate, steps, compositions)
    if rate == 1:
        return delta_of(2 * math.sqrt(count) / noise_multiplier, epsilon)
    return float(_composed(noise_multiplier, rate, count).get_delta_for_epsilon(epsilon))


@lru_cache(maxsize=1024)
def noise_multiplier(
    epsilon: float, delta: float, *, rate: float, steps: int, compositions: int = 1
) -> float:
    """Return the least z, rounded up, such that all steps of all runs are (ε, δ)-DP together.

    Exact under replace-one; never on the wrong side of the budget.
    """
    count = _checked(rate, steps, compositions)
    mu = mu_of(Budget(epsilon=epsilon, delta=delta))
    guess = 2 * rate * math.sqrt(count) / mu  # exact at rate 1, the central limit below it
    if rate == 1:
        # A few roundings lie between z and μ = 2√count/z; far fewer than this.
        return guess * (1 + 1e-12)

    def within(z: float) -> bool:
        return float(_composed(z, rate, count).get_delta_for_epsilon(epsilon)) <= delta

    return _least(within, guess)


@lru_cache(maxsize=1024)
def noise_multiplier_zcdp(
    epsilon: float, delta: float, *, rate: float, steps: int, compositions: int = 1
) -> float:
    """Return the z of the paper's accounting: zCDP over runs (Rényi if q < 1), then (ε, δ).

    Never smaller than `noise_multiplier`, to rounding: it is a bound on the same thing.
    """
    count = _checked(rate, steps, compositions)
    Budget(epsilon=epsilon, delta=delta)
    rho = (math.sqrt(math.log(1 / delta) + epsilon) - math.sqrt(math.log(1 / delta))) ** 2
    guess = rate * math.sqrt(2 * count / rho)
    if rate == 1:
        return guess * (1 + 1e-12)
    return _least(lambda z: _renyi_epsilon(z, delta, rate, count) <= epsilon, guess)


def zcdp_epsilon(
    noise_multiplier: float, delta: float, *, rate: float, steps: int, compositions: int = 1
) -> float:
    """Return the ε that the paper's accounting claims at δ: zCDP, or Rényi if q < 1."""
    count = _checked(rate, steps, compositions)
    if rate == 1:
        rho = 2 * count / noise_multiplier**2
        return rho + 2 * math.sqrt(rho * math.log(1 / delta))
    return _renyi_epsilon(noise_multiplier, delta, rate, count)


def renyi_divergence(
    noise_multiplier: float, rate: float, orders: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the Rényi divergence of the worst pair of one step, per order above 1, rounded up.

    The trapezium rule on a whole line converges exponentially for such integrands; the grid reaches
    to where P^α·Q^(1-α) has its mass (around 1 - 2α at most) and 40 standard deviations beyond.
    """
    z = noise_multiplier
    if rate == 1:
        return np.asarray(2 * orders / z**2)
    step = z / 8
    x = np.arange(-2 * orders.max() - 40 * z, 2 + 40 * z, step)
    log_p, log_q = (_log_mixture(x, z, rate, centre) for centre in (-1.0, 1.0))
    ratio = log_p - log_q
    integrals = np.array([logsumexp(log_q + order * ratio) for order in orders]) + math.log(step)
    return np.asarray((integrals + _ROUNDING * (1 + np.abs(integrals))) / (orders - 1))


def _log_mixture(
    x: NDArray[np.float64], z: float, rate: float, centre: float
) -> NDArray[np.float64]:
    return np.asarray(
        np.logaddexp(
            math.log1p(-rate) + norm.logpdf(x, scale=z),
            math.log(rate) + norm.logpdf(x, loc=centre, scale=z),
        )
    )


def _renyi_epsilon(z: float, delta: float, rate: float, count: int) -> float:
    divergences = count * renyi_divergence(z, rate, ORDERS)
    return float(np.min(divergences + math.log(1 / delta) / (ORDERS - 1)))


@lru_cache(maxsize=8)
def _composed(z: float, rate: float, count: int) -> Any:
    """Return the privacy loss distribution of all steps, rounded towards more loss."""
    try:
        relation = import_module("dp_accounting").NeighboringRelation.REPLACE_ONE
        distributions = import_module("dp_accounting.pld.privacy_loss_distribution")
    except ImportError:
        raise InputError(
            "sub-sampled DP-SGD is accounted by dp_accounting; install it with: "
            "pip install 'primo-dp[experiments]'"
        ) from None
    # A hundredth of the typical loss of a step: the rounding of so many steps then adds up to
    # about 1e-4 in ε, always upwards.
    interval = min(1e-3, max(1e-7, 2 * rate / z / 100))
    one = distributions.from_gaussian_mechanism(
        z,
        sensitivity=1.0,  # of a clipped gradient; REPLACE_ONE moves it from -1 to +1
        sampling_prob=rate,
        neighboring_relation=relation,
        value_discretization_interval=interval,
    )
    return one.self_compose(count)


def _least(within: Callable[[float], bool], guess: float) -> float:
    """Return a z that keeps the budget while z·(1 - precision) does not."""
    high = max(guess, 0.5)  # far below it the loss is huge and slow to discretise
    while not within(high):
        high *= 1.25
    low = high / 1.25
    while within(low):
        low, high = low / 1.25, low
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if within(middle) else (middle, high)
    return high


def _checked(rate: float, steps: int, compositions: int) -> int:
    if not 0 < rate <= 1:
        raise InputError(f"rate={rate!r} is a probability: above 0, at most 1")
    if steps < 1 or compositions < 1:
        raise InputError(f"steps={steps!r} and compositions={compositions!r} must be at least 1")
    return steps * compositions
