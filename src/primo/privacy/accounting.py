r"""What several releases cost together: exact composition, never a sum of epsilons.

A Gaussian release costs mu; squares add up. Something else costs an (ε, δ) pair, which says that it is
at worst randomised response with a leak: with probability δ everything is revealed, otherwise the
privacy loss is +ε with probability 1/(1 + e^-ε) and -ε with probability 1/(1 + e^ε) (Kairouz, Oh &
Viswanath 2015). Independent losses add, so with mu² = Σ mu_i², leak = 1 - Π(1 - δ_i), and L the sum of
the ±ε_i,

    δ(ε) = leak + (1 - leak)·E_L δ_gauss(mu, ε - L),

which is exact: no smaller δ holds for everything that has these costs. It is evaluated here directly,
rounded upwards. (dp_accounting gets the same numbers from a grid and a Fourier transform, whose error
of about 1e-15 is too much for a small delta; the tests compare the two.)

**Lattice margins.** A release with `margin` κ has a law within e^±κ of one that is exactly mu-GDP (see
`calibration.lattice_margin`). Along a sequence of releases these factors multiply, so margins add up,
and δ(ε) ≤ e^2κ·δ₀(ε - 2κ) with the κ of all.

**Adaptive use.** Each release may depend on what earlier ones showed. If the *costs* too are chosen
in the light of earlier releases, "Σ mu² stays below the limit's mu²" still protects (Smith & Thakurta
2022; Koskela, Tobaben & Honkela 2023). Where (ε, δ) pairs take part, the formula above is proven for
costs that were fixed beforehand; docs/ledger.md says what follows from that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from primo.errors import Argument, InputError
from primo.privacy.budget import Budget, is_number
from primo.privacy.calibration import delta_of, epsilon_with_margin, mu_of

__all__ = ["Cost", "Left", "delta_spent", "epsilon_spent", "fits", "left", "mu_spent"]

Vector = NDArray[np.float64]

_MOST_ATOMS = 4096  # different sums of ±ε_i that are kept exactly; beyond, a grid
_GRID = 2**15  # steps of that grid in Σ ε_i
_SAFETY = 1 + 1e-9  # far above the float64 error of the weights
_ROUNDING = 1e-12  # of a normal probability in float64, relative, even at 1e-300

#: Beyond this an epsilon protects nothing and is reported as infinite.
_LARGEST_EPSILON = 1e6


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What one release costs: `mu` (and the lattice `margin`), or an (`epsilon`, `delta`) pair."""

    mu: float | None = None
    margin: float = 0.0
    epsilon: float | None = None
    delta: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is not one of the two kinds, or not finite: it could never be paid."""
        pair = (self.epsilon, self.delta)
        if (self.mu is None) == (None in pair) or (self.mu is not None and pair != (None, None)):
            raise InputError("a cost is either mu (with a margin) or both of epsilon and delta")
        for name in ("mu", "margin", "epsilon", "delta"):
            value = getattr(self, name)
            if value is None:
                continue
            if not is_number(value) or not math.isfinite(value) or value < 0:
                raise InputError(
                    Argument(name, value), " of a cost must be a finite number, at least 0"
                )
            object.__setattr__(self, name, float(value))
        if self.delta is not None and self.delta >= 1:
            raise InputError(Argument("delta", self.delta), " of a cost must be below 1")
        if self.mu is None and self.margin:
            raise InputError("a margin belongs to mu; add it to the epsilon of a pair")

    def __str__(self) -> str:
        """Write the cost as messages show it."""
        if self.mu is not None:
            return f"mu={self.mu:.4g}"
        return f"epsilon={self.epsilon:.4g}, delta={self.delta:.3g}"

    def for_group(self, rows: int) -> Cost:
        """Return the cost for somebody who owns several rows, all of which may be replaced at once.

        The mean of a Gaussian release then moves `rows` times as far; a pair is applied once per row
        (group privacy, Dwork & Roth 2014, theorem 2.2 with its delta summed up).
        """
        if rows == 1:
            return self
        if self.mu is not None:
            return replace(self, mu=rows * self.mu)
        assert self.epsilon is not None
        assert self.delta is not None
        largest = (
            rows - 1
        ) * self.epsilon  # a delta this large says nothing, and exp would overflow
        steps = math.inf if largest > 600 else sum(math.exp(i * self.epsilon) for i in range(rows))
        return Cost(epsilon=rows * self.epsilon, delta=min(steps * self.delta, 1 - 1e-15))

    def to_dict(self) -> dict[str, float]:
        """Return the fields that are set, for a file."""
        if self.mu is not None:
            return {"mu": self.mu, "margin": self.margin}
        assert self.epsilon is not None
        assert self.delta is not None
        return {"epsilon": self.epsilon, "delta": self.delta}

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the cost that `to_dict` wrote."""
        try:
            return cls(**stored)
        except TypeError:
            raise InputError("a cost has the fields mu and margin, or epsilon and delta") from None


@dataclass(frozen=True, kw_only=True)
class Left:
    """The largest Gaussian release that still fits: its mu, and its epsilon at the limit's delta."""

    mu: float
    epsilon: float


def mu_spent(costs: Iterable[Cost]) -> float | None:
    """Return mu of everything together, rounded up, or None where a cost is not Gaussian."""
    whole = _Composed.of(costs)
    return None if whole.pairs else whole.mu


def delta_spent(costs: Iterable[Cost], epsilon: float) -> float:
    """Return a delta, rounded up, such that everything together is (epsilon, delta)-DP.

    Guarantee: never below the exact composition; above it by at most 1e-9 relatively (more only where
    a dozen different epsilons take part).
    """
    return min(1.0, _Composed.of(costs).delta(epsilon))


def epsilon_spent(costs: Iterable[Cost], delta: float) -> float:
    """Return an epsilon, rounded up, such that everything together is (epsilon, delta)-DP.

    Infinite if the deltas of the costs alone are more than `delta`.
    """
    whole = _Composed.of(costs)
    if not whole.pairs:
        return epsilon_with_margin(whole.mu, delta, whole.margin) if whole.squares else 0.0
    if whole.delta(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1.0
    while whole.delta(high) > delta:
        low, high = high, 2 * high
        if high > _LARGEST_EPSILON:
            return math.inf
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return high
        low, high = (middle, high) if whole.delta(middle) > delta else (low, middle)


def fits(costs: Iterable[Cost], limit: Budget) -> bool:
    """Say whether everything together is within the limit.

    Guarantee: never true on the wrong side. Gaussian costs are compared in exact fractions, so a plan
    made for a budget fits a limit of the same size to the last bit.
    """
    return _Composed.of(costs).within(limit)


def left(costs: Iterable[Cost], limit: Budget) -> Left:
    """Return what may still be spent in one Gaussian release (before its tiny lattice margin)."""
    whole = _Composed.of(costs)
    nothing = Left(mu=0.0, epsilon=0.0)
    if not whole.within(limit):
        return nothing
    low, high = 0.0, mu_of(limit)
    if not whole.pairs:
        low = _root(Fraction(_largest_mu(limit, whole.margin)) ** 2 - whole.squares, up=False)
    else:
        for _ in range(40):
            middle = 0.5 * (low + high)
            within = whole.with_mu(middle).within(limit)
            low, high = (middle, high) if within else (low, middle)
    # Rounded down by more than the lattice margin of the release will take.
    epsilon = epsilon_with_margin(low, limit.delta, 0.0) * (1 - 1e-6) if low > 0 else 0.0
    return Left(mu=low, epsilon=epsilon) if epsilon > 0 else nothing


@dataclass(frozen=True, kw_only=True, eq=False)
class _Composed:
    """Everything together: a Gaussian of mu² = `squares`, losses L with their weights, a leak."""

    squares: Fraction
    margin: float
    pairs: int
    leak: float
    losses: tuple[Vector, Vector]  # each the sum of two floats, so that ε - L is exact near zero
    weights: Vector

    @classmethod
    def of(cls, costs: Iterable[Cost]) -> Self:
        costs = list(costs)
        pairs = [
            (c.epsilon, c.delta) for c in costs if c.epsilon is not None and c.delta is not None
        ]
        leak = 0.0
        for _, delta in pairs:
            leak = math.nextafter(leak + delta * (1 - leak), 1.0) if leak else delta
        losses, weights = _losses([epsilon for epsilon, _ in pairs])
        return cls(
            squares=sum((Fraction(c.mu) ** 2 for c in costs if c.mu is not None), Fraction(0)),
            margin=math.fsum(c.margin for c in costs),
            pairs=len(pairs),
            leak=leak,
            losses=losses,
            weights=weights,
        )

    @property
    def mu(self) -> float:
        return _root(self.squares, up=True)

    def with_mu(self, mu: float) -> Self:
        """Return the same with one more Gaussian release."""
        return replace(self, squares=self.squares + Fraction(mu) ** 2)

    def within(self, limit: Budget) -> bool:
        if self.pairs:
            return self.delta(limit.epsilon) <= limit.delta
        return self.squares <= Fraction(_largest_mu(limit, self.margin)) ** 2

    def delta(self, epsilon: float) -> float:
        """Return δ(ε), rounded up."""
        inner = epsilon - 2 * self.margin
        if not self.pairs:
            if not self.squares:
                return 0.0
            return delta_of(self.mu, inner) * math.exp(2 * self.margin) * _SAFETY
        high, low = self.losses
        finite = float(self.weights @ _gauss(self.mu, (inner - high) - low)) * _SAFETY
        total = (self.leak + (1 - self.leak) * finite) * math.exp(2 * self.margin)
        return math.nextafter(total, math.inf) if finite or self.margin else total


def _largest_mu(limit: Budget, margin: float) -> float:
    """Return the largest mu within the limit; 0 where the margins alone use it up."""
    return mu_of(limit, margin=margin) if 2 * margin < limit.epsilon else 0.0


def _losses(epsilons: list[float]) -> tuple[tuple[Vector, Vector], Vector]:
    """Return the law of Σ ±ε_i: exact while it has few values, on a grid and rounded up beyond."""
    atoms = {Fraction(0): 1.0}
    for epsilon in epsilons:
        size, likely = Fraction(epsilon), 1 / (1 + math.exp(-epsilon))
        moved: defaultdict[Fraction, float] = defaultdict(float)
        for loss, weight in atoms.items():
            moved[loss + size] += weight * likely
            moved[loss - size] += weight * (1 - likely)
        if len(moved) > _MOST_ATOMS:
            return _grid_losses(epsilons)
        atoms = moved
    high = np.array([float(loss) for loss in atoms])
    low = np.array([float(loss - Fraction(near)) for loss, near in zip(atoms, high, strict=True)])
    return (high, low), np.array(list(atoms.values()))


def _grid_losses(epsilons: list[float]) -> tuple[tuple[Vector, Vector], Vector]:
    """Return the law of Σ ±ε_i with each ε_i rounded up, which can only make the bound looser."""
    step = math.exp2(math.ceil(math.log2(math.fsum(epsilons) / _GRID)))
    sizes = [math.ceil(epsilon / step) for epsilon in epsilons]
    weights = np.zeros(2 * sum(sizes) + 1)
    weights[sum(sizes)] = 1.0
    for size in sizes:
        likely = 1 / (1 + math.exp(-size * step))
        weights = np.roll(weights, size) * likely + np.roll(weights, -size) * (1 - likely)
    high: Vector = step * np.arange(-sum(sizes), sum(sizes) + 1, dtype=np.float64)
    return (high, np.zeros_like(high)), weights


def _gauss(mu: float, epsilon: Vector) -> Vector:
    """Return δ_gauss(mu, ε) in float64, rounded up; ε of either sign."""
    if mu == 0:
        return -np.expm1(np.minimum(epsilon, 0.0))
    first = ndtr(mu / 2 - epsilon / mu)
    second = np.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    result: Vector = np.maximum(0.0, first - second) + _ROUNDING * first
    return result


def _root(square: Fraction, *, up: bool) -> float:
    """Return the square root as a float, rounded to the asked side."""
    if square <= 0:
        return 0.0
    root = math.sqrt(square)
    while up and Fraction(root) ** 2 < square:
        root = math.nextafter(root, math.inf)
    while not up and Fraction(root) ** 2 > square:
        root = math.nextafter(root, 0.0)
    return root
