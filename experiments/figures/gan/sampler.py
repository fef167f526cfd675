"""A trained generator as plain arrays: draws any SNPs of any number of rows, without torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["SLOPE", "Sampler", "Weights"]

Array = NDArray[np.float32]
Weights = dict[str, Array]

#: Of the leaky rectifiers, here and in the networks that are trained.
SLOPE = 0.2

#: Streams of random numbers of one draw: latents of all windows, of each window; coins of each SNP.
_SHARED, _LOCAL, _COIN = range(3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler:
    """Rows of the GAN's simulated people.

    Window t of SNPs reads the latents of windows t-1, t and t+1 and the shared ones, so that only the
    windows of the asked-for SNPs are computed. Each window and each SNP has a stream of random numbers
    of its own: the same generator gives the same people whichever of their SNPs are asked for.
    """

    snps: int
    weights: Weights  # of `experiments.figures.gan.model.Generator`

    @property
    def window(self) -> int:
        """SNPs of a window."""
        return int(self.weights["out"].shape[2])

    @property
    def local(self) -> int:
        """Latents of a window."""
        return int(self.weights["first"].shape[1] - self.shared) // 3

    @property
    def shared(self) -> int:
        """Latents of all windows."""
        return int(self.weights["mix"].shape[0])

    def draw(
        self, columns: NDArray[np.int64], n: int, rng: np.random.Generator, *, batch: int = 4096
    ) -> NDArray[np.int8]:
        """Draw n rows of some SNPs, 0 or 1, (n, columns).

        The result is a function of one number from `rng`, whatever the batch and the other columns.
        Cost: O(n · windows of the columns · hidden²); the memory of the result and of a few batches.
        """
        columns = np.asarray(columns, dtype=np.int64)
        if columns.size and not (columns.min() >= 0 and columns.max() < self.snps):
            raise IndexError(
                f"SNPs {columns.min()} to {columns.max()} were asked for, "
                f"but the GAN knows 0 to {self.snps - 1}"
            )
        key = int(rng.integers(2**63))
        chosen, places = np.unique(columns, return_inverse=True)
        streams = _Streams(key=key)
        drawn = np.empty((n, len(chosen)), dtype=np.int8)
        for start in range(0, n, batch):
            part = drawn[start : start + batch]
            shared = self._shared(streams, len(part))
            locals_: dict[int, Array] = {}
            for window, inside in _by_window(chosen, self.window):
                # Windows come in order: what lies behind the last two is not read again.
                for old in [t for t in locals_ if t < window - 1]:
                    del locals_[old]
                for t in (window - 1, window, window + 1):
                    if t not in locals_:
                        locals_[t] = streams.normal(_LOCAL, t + 1, (len(part), self.local))
                near = [locals_[window + step] for step in (-1, 0, 1)]
                logits = self._logits(window, np.hstack([*near, shared]), inside)
                for place, logit in zip(inside.places, logits.T, strict=True):
                    coin = streams.uniform(_COIN, int(chosen[place]), len(part))
                    part[:, place] = coin < _sigmoid(logit)
        return drawn[:, places]

    def _shared(self, streams: _Streams, rows: int) -> Array:
        latents = streams.normal(_SHARED, 0, (rows, self.shared))
        return _leaky(latents @ self.weights["mix"] + self.weights["mix_bias"])

    def _logits(self, window: int, latents: Array, inside: _Inside) -> Array:
        w = self.weights
        hidden = _leaky(latents @ w["first"][window] + w["first_bias"][window])
        hidden = _leaky(hidden @ w["second"][window] + w["second_bias"][window])
        logits: Array = hidden @ w["out"][window][:, inside.offsets]
        logits += w["out_bias"][window][:, inside.offsets]
        return logits


@dataclass(frozen=True, kw_only=True, eq=False)
class _Inside:
    """SNPs of one window that were asked for."""

    places: NDArray[np.int64]  # among all that were asked for
    offsets: NDArray[np.int64]  # within the window


def _by_window(chosen: NDArray[np.int64], window: int) -> Iterator[tuple[int, _Inside]]:
    of = chosen // window
    for t in np.unique(of):
        places = np.flatnonzero(of == t)
        yield int(t), _Inside(places=places, offsets=chosen[places] - t * window)


class _Streams:
    """Independent generators of one draw, by kind and number, each continued from batch to batch."""

    def __init__(self, *, key: int) -> None:
        self._key = key
        self._open: dict[tuple[int, int], np.random.Generator] = {}

    def _at(self, kind: int, number: int) -> np.random.Generator:
        name = (kind, number)
        if name not in self._open:
            self._open[name] = np.random.Generator(np.random.SFC64([self._key, kind, number]))
        return self._open[name]

    def normal(self, kind: int, number: int, shape: tuple[int, int]) -> Array:
        return self._at(kind, number).standard_normal(shape, dtype=np.float32)

    def uniform(self, kind: int, number: int, rows: int) -> Array:
        return self._at(kind, number).random(rows, dtype=np.float32)


def _leaky(x: Array) -> Array:
    """Rectify in place."""
    np.maximum(x, np.float32(SLOPE) * x, out=x)
    return x


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-np.clip(x, -60, 60))), dtype=np.float32)
