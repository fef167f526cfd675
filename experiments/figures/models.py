"""The paper's models of outcomes given features: y = signal(x) + N(0, 1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["MODELS", "Linear", "Network", "Shape", "Signal"]

Matrix = NDArray[np.float64]

_HIDDEN = 32  # units of a network
_PILOTS = 256  # networks that fix the scale
_DIRECTIONS = 4096  # linear models that fix the bound of unit ones
_ROWS = 4096  # rows that the networks are scaled and centred on
_BLOCK = 4_000_000  # numbers that are held together
_NOISE = 0.3  # standard deviations of the signal of a unit model (the paper does not state its own)


@dataclass(frozen=True, kw_only=True, eq=False)
class Shape:
    """What the models and their bounds need to know of all the rows of features."""

    n: int
    covariance: Matrix  # (d, d) XᵀX
    sums: Matrix  # (d,) Xᵀ1
    longest: float  # largest ‖x‖
    limit: float  # largest |x_ij|

    @classmethod
    def of(cls, features: Matrix) -> Self:
        """Compute it from all rows, without a copy of them."""
        return cls(
            n=len(features),
            covariance=features.T @ features,
            sums=features.sum(axis=0),
            longest=float(np.sqrt(np.einsum("ij,ij->i", features, features).max())),
            limit=float(max(features.max(), -features.min())),
        )

    @property
    def length(self) -> float:
        """Root mean square length of a row."""
        return float(np.sqrt(np.trace(self.covariance) / self.n))

    @property
    def centred(self) -> Matrix:
        """Covariance per row around the means, (d, d)."""
        means = self.sums / self.n
        return np.asarray(self.covariance / self.n - np.outer(means, means))


class Signal(Protocol):
    """Expected outcomes as functions of the features."""

    def of(self, rows: Matrix) -> Matrix:
        """Return the signal of every outcome, (rows, l)."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Linear:
    """θ·x."""

    theta: Matrix  # (d, l)

    def of(self, rows: Matrix) -> Matrix:
        """Return the signal of every outcome, (rows, l)."""
        return np.asarray(rows @ self.theta)


@dataclass(frozen=True, kw_only=True, eq=False)
class Network:
    """a·max(Vx, 0) - offset: two layers of weights, a network of its own for each outcome."""

    inner: Matrix  # (d, l, hidden)
    outer: Matrix  # (l, hidden)
    offset: Matrix  # (l,)

    @classmethod
    def draw(cls, d: int, l: int, rng: np.random.Generator) -> Self:
        """Draw weights so that, over networks, the signal of x has the second moment ‖x‖²/2."""
        return cls(
            inner=rng.standard_normal((d, l, _HIDDEN)),
            outer=rng.standard_normal((l, _HIDDEN)) / np.sqrt(_HIDDEN),
            offset=np.zeros(l),
        )

    def of(self, rows: Matrix) -> Matrix:
        """Return the signal of every outcome, (rows, l), a few outcomes at a time."""
        d, l, hidden = self.inner.shape
        signal = np.empty((len(rows), l))
        step = max(1, _BLOCK // (len(rows) * hidden))
        for first in range(0, l, step):
            some = slice(first, first + step)
            active = np.maximum(rows @ self.inner[:, some].reshape(d, -1), 0)
            active = active.reshape(len(rows), -1, hidden)
            signal[:, some] = np.einsum("ijk,jk->ij", active, self.outer[some])
        return signal - self.offset


class Drawn(NamedTuple):
    """A signal, and the variance of an outcome over models and noise."""

    signal: Signal
    largest: float  # given the longest row
    typical: float  # over all rows


def _linear(features: Matrix, shape: Shape, l: int, rng: np.random.Generator) -> Drawn:
    """Draw θ ~ N(0, I/√d)."""
    d = features.shape[1]
    theta = rng.standard_normal((d, l)) / d**0.25
    root = np.sqrt(d)
    return Drawn(
        signal=Linear(theta=theta),
        largest=1 + shape.longest**2 / root,
        typical=1 + np.trace(shape.centred) / root,
    )


def _unit(features: Matrix, shape: Shape, l: int, rng: np.random.Generator) -> Drawn:
    """Draw directions at random, as long as makes the noise 0.3 standard deviations of the signal.

    That is the paper's model "of unit norm" in units of its noise. The longest row may lie in a strong
    direction or in a weak one, so its largest signal is measured on other random directions, not on
    those of the outcomes.
    """
    theta = _directions(shape, l, rng)
    others = _directions(shape, _DIRECTIONS, rng)
    second = others @ others.T / _DIRECTIONS
    strongest = 0.0
    step = max(1, _BLOCK // features.shape[1])
    for first in range(0, len(features), step):
        rows = features[first : first + step]
        strongest = max(strongest, float(np.einsum("ij,ij->i", rows @ second, rows).max()))
    return Drawn(signal=Linear(theta=theta), largest=1 + 1.1 * strongest, typical=1 + 1 / _NOISE**2)


def _directions(shape: Shape, count: int, rng: np.random.Generator) -> Matrix:
    theta = rng.standard_normal((len(shape.covariance), count))
    spread = np.sqrt(np.einsum("ij,ij->j", theta, shape.centred @ theta))
    return np.asarray(theta / (_NOISE * spread))


def _mlp(features: Matrix, shape: Shape, l: int, rng: np.random.Generator) -> Drawn:
    """Draw networks whose signal varies over the rows as much as that of "linear", on average.

    The means of the signals are subtracted, as they are public by the convention of the experiments.
    """
    n, d = features.shape
    rows = features if n <= _ROWS else features[rng.choice(n, size=_ROWS, replace=False)]
    pilots = Network.draw(d, _PILOTS, rng).of(rows)
    wanted = np.trace(shape.centred) / np.sqrt(d)
    scale = np.sqrt(wanted / pilots.var(axis=0).mean())
    drawn = Network.draw(d, l, rng)
    network = replace(drawn, outer=drawn.outer * scale)
    network = replace(network, offset=network.of(rows).mean(axis=0))
    return Drawn(signal=network, largest=1 + scale**2 * shape.longest**2 / 2, typical=1 + wanted)


MODELS: dict[str, Callable[[Matrix, Shape, int, np.random.Generator], Drawn]] = {
    "linear": _linear,
    "mlp": _mlp,
    "unit": _unit,
}
