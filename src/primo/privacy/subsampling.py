r"""What a covariance of some rows and an association of all rows cost together.

SubSampReuseCov (Algorithm 4 of the paper) draws s of the n rows without replacement, keeps the draw
secret, and releases the covariance of those rows and the association (and outcome moments) of all
rows, each with Gaussian noise. With ``p``, ``q``, ``s`` as in `primo.privacy.sensitivity`, the noise
of the covariance being measured against the *sum over the drawn rows*, and γ = s/n, two bounds on
δ(ε) under replace-one hold at once and the smaller counts.

**Joint.** Fix the draw. The release is then one Gaussian vector, and a replaced row moves it by at
most √joint_distance(p, q, s) if it was drawn and √joint_distance(0, q, s) if not. Both data sets mix
over the same draws with the same weights and hockey-stick divergences are jointly convex, so

    δ(ε) ≤ (1-γ)·δ_gauss(√joint_distance(0, q, s), ε) + γ·δ_gauss(√joint_distance(p, q, s), ε).

At q ≥ 2p both terms agree: the covariance is free, as it is without sub-sampling.

**Composed.** Forget the draw. Covariance and the rest are independent given the data, so their
divergence is that of a product. The covariance alone has the profile

    δ_A(ε) = γ·δ_gauss(√(2p), log(1 + (e^ε - 1)/γ))      for ε ≥ 0

(Balle, Barthe, Gaboardi 2018, theorem 11), and δ_A(-ε) = 1 - e^-ε·(1 - δ_A(ε)) as neighbours are
symmetric. The privacy loss of the rest is at worst z ~ N(m²/2, m²), m² = joint_distance(0, q, s), so

    δ(ε) ≤ E_z δ_A(ε - z).

Here joint_distance(p, q, s) would be wrong: the amplification compares the replaced row with *other*
rows, which may be orthogonal to it even where the row and its replacement are parallel.

δ_A is attained: if all other rows equal the new one, x′, with x ⟂ x′, the two laws are
(1-γ)N(0, 1) + γN(√(2p), 1) and N(0, 1). `least_epsilon` uses such pairs for a bound from below.
`accountant_epsilon` is a second opinion from dp_accounting; it is looser and not used to calibrate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import _ASSUMED_R2
from primo.privacy.sensitivity import joint_distance

__all__ = [
    "SampledScales",
    "accountant_epsilon",
    "calibrate",
    "least_epsilon",
    "true_delta",
    "true_epsilon",
]

Vector = NDArray[np.float64]

_LARGEST_MU = 64.0  # as in `calibration.mu_of`
_LARGEST_SPLIT, _SMALLEST_SPLIT = 2.0, 1e-3
#: The normal distribution is cut into cells of this width between ±_REACH (tail 6e-300).
_CELL, _REACH, _MOST_CELLS = 0.05, 37.0, 100_000
#: Float rounding of the quadrature, about 1e-12, is covered by this much of δ.
_SAFETY = 1 + 1e-9


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
                f"sampled={self.sampled} must lie between 1 and the number of rows, {self.rows}"
            )
        for name in ("covariance", "association", "outcome"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}={getattr(self, name)!r} must be a positive noise scale")

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
        """The mu that holds even if the draw were public; `grid.choose_grid` takes it as its mu."""
        return math.sqrt(joint_distance(*self.squares))

    @property
    def split(self) -> float:
        """K = q/p, as in `calibration.split_ratio`."""
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
    d: int,
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
    d, l
        Features and outcomes; they only choose the split.
    split
        k = q/p in [0.001, 2]. By default the k of a fixed list (2, √2, 1, ...) with the least
        predicted error 1/q + (R²d/2l)/(γ²p), the sum that `calibration.split_ratio` minimises, with
        the covariance's noise multiplied by n/s. All of these are public numbers.
    margin
        The `calibration.lattice_margin` of the mechanism, taken off the budget first.

    Notes
    -----
    Guarantee: ``true_delta(scales, epsilon - 2*margin) <= delta*exp(-2*margin)``.

    The outcome moments get s = q²/4p, which costs nothing in either bound and keeps the relation
    σ₁σ₃ = 2σ₂² of `primo.grid`: ``choose_grid(mu=scales.public_mu, split=scales.split, n=rows)`` gives
    a grid that spends no more, since p, q and s only shrink there and every bound grows with each.
    """
    if split is not None and not _SMALLEST_SPLIT <= split <= _LARGEST_SPLIT:
        raise InputError(
            f"split={split!r} must lie between {_SMALLEST_SPLIT} and {_LARGEST_SPLIT:g}: at 2 the "
            "covariance already costs nothing"
        )
    epsilon = budget.epsilon - 2 * margin
    delta = budget.delta * math.exp(-2 * margin)
    if epsilon <= 0:
        raise InputError(
            f"epsilon={budget.epsilon!r} is too small for a release of this many numbers; "
            "raise epsilon or release fewer outcomes"
        )

    def largest(k: float, steps: int) -> SampledScales:
        """Bisect on mu; `low` always keeps the budget."""
        low, high = 0.0, _LARGEST_MU
        for _ in range(steps):
            middle = 0.5 * (low + high)
            if not low < middle < high:
                break
            if true_delta(_scales(rows, sampled, middle, k), epsilon) <= delta:
                low = middle
            else:
                high = middle
        if low == 0.0:
            raise InputError(
                f"no noise level up to 2**{steps} keeps {budget}; raise epsilon or delta"
            )
        return _scales(rows, sampled, low, k)

    if split is None:
        weight = _ASSUMED_R2 * d / l / 2

        def error(scales: SampledScales) -> float:
            p, q, _ = scales.squares
            return 1 / q + weight / (scales.rate**2 * p)

        # Twenty halvings of 64 tell neighbouring k apart; where they find nothing, noise is so
        # large that any k serves.
        steps = 20 if true_delta(_scales(rows, sampled, 1e-3, 2.0), epsilon) <= delta else 60
        split = min(_SPLITS, key=lambda k: error(largest(k, steps)))
    return largest(split, 60)


def least_epsilon(scales: SampledScales, delta: float) -> float:
    """Return an epsilon such that no smaller one is true: there are neighbours that show it.

    The other rows all equal the new row x′, and y′ = -y; the cosine a of x and x′ is searched.
    """
    p, q, s = scales.squares
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


def accountant_epsilon(scales: SampledScales, delta: float) -> float:
    """Return dp_accounting's epsilon: Rényi, Wang, Balle & Kasiviswanathan (2019), composed.

    Its `noise_multiplier` under REPLACE_ONE is noise over *replace-one* sensitivity (theorem 27 starts
    from the Rényi divergence α/2σ² of neighbours of equal size): √2·b_x² for the covariance and
    √joint_distance(0, q, s) for the rest.
    """
    try:
        import dp_accounting
        from dp_accounting import rdp
    except ImportError as error:
        raise InputError(
            "the accountant needs dp_accounting; install it with: pip install dp-accounting"
        ) from error
    p, q, s = scales.squares
    accountant = rdp.RdpAccountant(
        neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE
    )
    covariance = dp_accounting.GaussianDpEvent(1 / math.sqrt(2 * p))
    accountant.compose(
        dp_accounting.SampledWithoutReplacementDpEvent(scales.rows, scales.sampled, covariance)
    )
    rest = math.sqrt(joint_distance(0.0, q, s))
    if rest > 0:
        accountant.compose(dp_accounting.GaussianDpEvent(1 / rest))
    return float(accountant.get_epsilon(delta))
