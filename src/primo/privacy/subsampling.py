r"""What a covariance of some rows and an association of all rows cost together.

SubSampReuseCov (Algorithm 4 of the paper) draws s of the n rows without replacement, keeps the draw
secret, and releases the covariance of those rows and the association (and outcome moments) of all
rows, each with Gaussian noise. With ``p``, ``q``, ``s`` as in `primo.privacy.sensitivity`, the noise
of the covariance being measured against the *sum over the drawn rows*, and γ = s/n, two bounds on
δ(ε) under replace-one hold at once, and the smaller one is used.

**Joint.** Fix the draw. The release is then one Gaussian vector, and a replaced row moves it by at
most √joint_distance(p, q, s) if it was drawn and √joint_distance(0, q, s) if not. Both data sets mix
over the same draws with the same weights and hockey-stick divergences are jointly convex, so

    δ(ε) ≤ (1-γ)·δ_gauss(√joint_distance(0, q, s), ε) + γ·δ_gauss(√joint_distance(p, q, s), ε).

At q ≥ 2p both terms agree: the covariance is free, as it is without sub-sampling.

**Composed.** Ignore the draw. Covariance and the rest are independent given the data, so their
divergence is that of a product. The covariance alone has the profile

    δ_A(ε) = γ·δ_gauss(√(2p), log(1 + (e^ε - 1)/γ))      for ε ≥ 0

(Balle, Barthe, Gaboardi 2018), and δ_A(-ε) = 1 - e^-ε·(1 - δ_A(ε)) as neighbours are
symmetric. The privacy loss of the rest is at worst z ~ N(m²/2, m²), m² = joint_distance(0, q, s), so

    δ(ε) ≤ E_z δ_A(ε - z)

(as δ_A is convex in e^ε it is the profile of some pair of laws, so a smaller m only helps).

Here joint_distance(p, q, s) would be wrong: the amplification compares the replaced row with *other*
rows, which may be orthogonal to it even where the row and its replacement are parallel.

δ_A is attained: if all other rows equal the new one, x′, with x ⟂ x′, the two laws are
(1-γ)N(0, 1) + γN(√(2p), 1) and N(0, 1). `least_epsilon` uses such pairs for a bound from below.
The tests compare it with dp_accounting, which is looser.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from primo.errors import Argument, InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, mu_of
from primo.privacy.sensitivity import joint_distance

__all__ = [
    "SampledScales",
    "calibrate",
    "least_epsilon",
    "true_delta",
    "true_epsilon",
]

Vector = NDArray[np.float64]

_LARGEST_SPLIT, _SMALLEST_SPLIT = 2.0, 1e-3
#: The normal distribution is cut into cells of this width between ±_REACH (tail 6e-300).
_CELL, _REACH, _MOST_CELLS = 0.05, 37.0, 100_000
#: Relative error of the float64 arithmetic in `_gauss`, `_profile` and `_log_mass`, found with mpmath:
#: below 1e-11 where a probability is above 1e-290 (tests/privacy/test_subsampling_rounding.py).
_ROUNDING = 1e-11
#: Sums of such terms are raised by this factor, so that δ is never rounded down.
_SAFETY = 1 + 1e-9
#: A difference of normal probabilities closer than this is integrated instead of subtracted.
_NEAR = 0.5
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)  # error below 1e-18 over a stretch of _NEAR


@dataclass(frozen=True, kw_only=True)
class SampledScales:
    """Noise scales of a release with a sub-sampled covariance, relative to the bounds.

    `covariance` belongs to the sum over the `sampled` rows; to stand in for XᵀX that sum, noise
    included, is multiplied by rows/sampled. Noise is svec noise (`primo.privacy.sensitivity`); an iid
    triangle costs the same (`primo.privacy.paper`). Infinity means "not released".
    """

    rows: int  # n
    sampled: int  # s, drawn uniformly without replacement by a secret cryptographic generator
    covariance: float  # σ₁/b_x²
    association: float  # σ₂/(b_x·b_y)
    outcome: float = math.inf  # σ₃/b_y²

    def __post_init__(self) -> None:
        """Refuse scales that describe no release."""
        if not 1 <= self.sampled <= self.rows:
            raise InputError(
                Argument("sampled", self.sampled),
                f" must lie between 1 and the number of rows, {self.rows}",
            )
        for name in ("covariance", "association", "outcome"):
            if not getattr(self, name) > 0:
                raise InputError(
                    Argument(f"scales.{name}", getattr(self, name)),
                    " must be a positive noise scale",
                )

    @property
    def rate(self) -> float:
        """The chance γ = s/n that a row is drawn."""
        return self.sampled / self.rows

    @property
    def squares(self) -> tuple[float, float, float]:
        """The p, q, s of `joint_distance`."""
        return self.covariance**-2, self.association**-2, self.outcome**-2

    @property
    def public_mu(self) -> float:
        """The mu of mu-GDP that holds even if the draw were public."""
        return math.sqrt(joint_distance(*self.squares))

    @property
    def split(self) -> float:
        """The split ratio k = q/p of `calibration.split_ratio`."""
        p, q, _ = self.squares
        return q / p


def true_delta(scales: SampledScales, epsilon: float) -> float:
    """Return a delta, rounded up, such that the release is (epsilon, delta)-DP under replace-one.

    Cost: a few milliseconds.
    """
    _, q, s = scales.squares
    rest = math.sqrt(joint_distance(0.0, q, s))
    return min(_joint_delta(scales, rest, epsilon), _composed_delta(scales, rest, epsilon), 1.0)


def true_epsilon(scales: SampledScales, delta: float) -> float:
    """Return an epsilon, rounded up, such that the release is (epsilon, delta)-DP."""
    return _solve(lambda epsilon: true_delta(scales, epsilon), delta, upwards=True)


def calibrate(
    budget: Budget,
    *,
    rows: int,
    sampled: int,
    l: int,
    split: float | None = None,
    margin: float = 0.0,
) -> SampledScales:
    """Return the smallest noise scales of the given split that keep the budget.

    Parameters
    ----------
    budget
        For the whole release.
    rows, sampled
        n and s.
    l
        Outcomes; they only choose the split.
    split
        k = q/p in [0.001, 2]. By default the k of a fixed list (2, √2, 1, ...) with the least
        1/q + r/(2γ²p), r = 1/√l: as for `calibration.split_ratio`, with the covariance's noise
        multiplied by n/s. All of these are public numbers.
    margin
        The `calibration.lattice_margin` of the mechanism, taken off the budget first.

    Notes
    -----
    Guarantee: ``true_delta(scales, epsilon - 2*margin) <= delta*exp(-2*margin)``.
    Cost: about half a second, nearly all of it for the choice of a split.

    The outcome moments get s = q²/4p, as in `privacy.grid`, which costs nothing in either bound. A grid
    ``make_grid(p=p, q=q, n=rows)`` with p, q = scales.squares[:2] spends no more: its p, q and s are
    not larger, and every bound grows with each. A little of mu is left unspent for its float rounding.
    """
    if split is not None and not _SMALLEST_SPLIT <= split <= _LARGEST_SPLIT:
        raise InputError(
            Argument("split", split),
            f" must lie between {_SMALLEST_SPLIT} and {_LARGEST_SPLIT:g}: at 2 the "
            "covariance already costs nothing",
        )
    start = mu_of(budget, margin=margin)  # safe for every split: the joint bound is below it
    epsilon = budget.epsilon - 2 * margin
    delta = budget.delta * math.exp(-2 * margin)

    def keeps(mu: float, k: float) -> bool:
        return true_delta(_scales(rows, sampled, mu, k), epsilon) <= delta

    def largest(k: float, precision: float) -> SampledScales:
        """Bisect on mu; `low` always keeps the budget."""
        low, high = start, 1.1 * start
        while not keeps(low, k):  # by the 1e-9 of `_SAFETY` at most
            low *= 1 - 1e-8
        while keeps(high, k):
            low, high = high, 1.1 * high
        while high - low > precision * low:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if keeps(middle, k) else (low, middle)
        return _scales(rows, sampled, low * (1 - 1e-11), k)

    if split is None:
        weight = 1 / math.sqrt(l)

        def error(scales: SampledScales) -> float:
            p, q, _ = scales.squares
            return 1 / q + weight / (2 * scales.rate**2 * p)

        split = min(_SPLITS, key=lambda k: error(largest(k, 1e-3)))
    return largest(split, 1e-10)


def least_epsilon(scales: SampledScales, delta: float) -> float:
    """Return an epsilon such that no smaller one holds: there are neighbours that show it.

    The other rows all equal the new row x′, and y′ = -y; the cosine a of x and x′ is searched.
    """
    p, q, _ = scales.squares
    best = 0.0
    for a in np.linspace(0.0, 1.0, 11):
        covariance, rest = math.sqrt(2 * p * (1 - a * a)), math.sqrt(2 * q * (1 + a))

        def at_least(epsilon: float, covariance: float = covariance, rest: float = rest) -> float:
            # E_z of an increasing function, from below: its value at the left end of each cell.
            edges, mass = _cells(rest)
            return float(mass @ _attained(scales.rate, covariance, epsilon - edges[:-1]))

        if at_least(best) > delta:
            best = _solve(at_least, delta, upwards=False)
    return best


#: Candidates for k = q/p: 2, √2, 1, ... down to 2^-9.5.
_SPLITS = tuple(2 ** (1 - j / 2) for j in range(22))


def _scales(rows: int, sampled: int, mu: float, split: float) -> SampledScales:
    """Return the scales with public_mu = mu and q = split·p, outcome moments free."""
    p = mu**2 / (2 + 2 * split + split**2 / 2)
    return SampledScales(
        rows=rows,
        sampled=sampled,
        covariance=1 / math.sqrt(p),
        association=1 / math.sqrt(split * p),
        outcome=2 / (split * math.sqrt(p)),
    )


def _joint_delta(scales: SampledScales, rest: float, epsilon: float) -> float:
    """Bound delta by the convexity of the divergence over draws."""
    drawn = delta_of(scales.public_mu, epsilon)
    not_drawn = delta_of(rest, epsilon) if rest > 0 and scales.sampled < scales.rows else 0.0
    return ((1 - scales.rate) * not_drawn + scales.rate * drawn) * _SAFETY


def _composed_delta(scales: SampledScales, rest: float, epsilon: float) -> float:
    """Bound delta by E_z δ_A(ε - z).

    A profile is convex in e^ε, hence between two edges of a cell below its chord in w = e^(ε-z)
    (Doroshenko et al. 2022, "connect the dots"). The chord integrates in closed form: E[w; cell] is
    e^ε times the cell's mass under the other law, N(-m²/2, m²).
    """
    mu = math.sqrt(2) / scales.covariance
    if rest == 0:
        return float(_profile(scales.rate, mu, np.array([epsilon]))[0]) * _SAFETY
    edges, mass = _cells(rest)
    values = _profile(scales.rate, mu, epsilon - edges)  # increasing from cell to cell
    # The share θ of a cell's mass that falls to its left, smaller value, with w relative to the
    # right edge: θ = (E[w; cell]/w_right - mass)/(w_left/w_right - 1).
    log_other = _log_mass(edges / rest + rest / 2)
    with np.errstate(over="ignore", invalid="ignore"):
        gain = np.exp(edges[1:] + log_other) - mass
    # A difference of nearly equal numbers: what rounding may have added to the share of the smaller
    # value is taken off, so that the sum errs upwards.
    gain -= _ROUNDING * mass
    share = np.clip(np.nan_to_num(gain / np.expm1(np.diff(edges)), nan=0.0), 0.0, mass)
    inside = float(share @ values[:-1] + (mass - share) @ values[1:])
    below, above = float(ndtr(-_REACH) * values[0]), float(ndtr(-_REACH))
    return (below + inside + above) * _SAFETY


def _cells(rest: float) -> tuple[Vector, Vector]:
    """Cut the privacy loss N(m²/2, m²) into cells; return their edges and masses."""
    count = min(_MOST_CELLS, math.ceil(2 * _REACH * max(1.0, rest) / _CELL))
    standard = np.linspace(-_REACH, _REACH, count + 1)
    return rest * standard + rest**2 / 2, np.exp(_log_mass(standard))


def _log_mass(edges: Vector) -> Vector:
    """Return the logarithm of the normal mass between edges, to full relative precision."""
    # A cell right of zero is mirrored: differences of small numbers stay accurate.
    right = edges[:-1] > 0
    near = np.where(right, -edges[:-1], edges[1:])
    far = np.where(right, -edges[1:], edges[:-1])
    log_near = log_ndtr(near)
    result: Vector = log_near + np.log(-np.expm1(log_ndtr(far) - log_near))
    return result


def _profile(rate: float, mu: float, epsilon: Vector) -> Vector:
    """Return δ_A: the amplified profile of the covariance alone, of either sign."""
    size = np.abs(epsilon)
    delta = rate * _gauss(mu, _inner(rate, size))
    return np.where(epsilon >= 0, delta, np.exp(-size) * delta - np.expm1(-size))


def _attained(rate: float, mu: float, epsilon: Vector) -> Vector:
    """Return the exact profile of (1-γ)N(0, 1) + γN(mu, 1) against N(0, 1)."""
    apart = -np.expm1(np.minimum(epsilon, 0.0))  # 1 - e^ε, a lower bound of every profile
    # N(mu) is compared with 1 + (e^ε - 1)/γ times N(0); where that is not positive, N(mu) is larger.
    meets = np.expm1(np.minimum(epsilon, 0.0)) > -rate
    inner = _inner(rate, np.where(meets, epsilon, 0.0))
    return np.where(meets, rate * _gauss(mu, inner), apart)


def _inner(rate: float, epsilon: Vector) -> Vector:
    """Return log(1 + (e^ε - 1)/γ), without cancellation."""
    near = np.log1p(np.expm1(np.minimum(epsilon, 40.0)) / rate)
    return np.where(epsilon > 40, epsilon - math.log(rate), near)  # e^-40 is below a rounding


def _gauss(mu: float, epsilon: Vector) -> Vector:
    """Vectorised `calibration.delta_of` in float64, to a relative error below `_ROUNDING`.

    With a = ε/mu - mu/2, b = a + mu, φ the normal density and M(x) = Φ(-x)/φ(x), it is
    φ(a)·(M(a) - M(b)), because e^ε = φ(a)/φ(b). For a small mu the difference is the integral of
    -M′(x) = 1 - x·M(x) from a to b.
    """
    if mu == 0:
        return -np.expm1(np.minimum(epsilon, 0.0))
    a = epsilon / mu - mu / 2
    if mu > _NEAR:
        right = np.maximum(a, 0.0)
        tail = _density(right) * (_mills(right) - _mills(right + mu))
        return np.where(a > 0, tail, ndtr(-a) - np.exp(epsilon + log_ndtr(-a - mu)))
    left = a < -_REACH  # both probabilities are one to all digits
    x = np.where(left, 0.0, a)[:, None] + mu * (1 + _NODES) / 2
    near = _density(a) * ((1 - x * _mills(x)) @ _WEIGHTS) * mu / 2
    return np.where(left, -np.expm1(np.minimum(epsilon, 0.0)), near)


def _density(x: Vector) -> Vector:
    """Return φ(x)."""
    result: Vector = np.exp(-(x**2) / 2) / math.sqrt(2 * math.pi)
    return result


def _mills(x: Vector) -> Vector:
    """Return Φ(-x)/φ(x)."""
    result: Vector = math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
    return result


def _solve(delta_at: Callable[[float], float], delta: float, *, upwards: bool) -> float:
    """Return the epsilon ≥ 0 at which a decreasing curve meets delta, rounded to the asked side."""
    if delta_at(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while delta_at(high) > delta:
        low, high = high, 2 * high
        if high > _LARGEST_EPSILON:
            return math.inf if upwards else low
    while high - low > 1e-10 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if delta_at(middle) > delta else (low, middle)
    return high if upwards else low


#: Beyond this an epsilon protects nothing and is reported as infinite.
_LARGEST_EPSILON = 1e6
