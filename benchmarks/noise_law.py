"""The law of the noise at scale: counted against exact probabilities, tails included, in bounded memory.

`python -m benchmarks.audit` prints it for 10⁸ draws at each scale.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from primo.wall.noise import RandomBits, add_noise

__all__ = ["HEADER", "Counted", "count_draws", "line"]

#: Chance that a right sampler fails one of the tests.
LEVEL = 1e-5

_CHUNK = 2**22  # draws in memory at once
_FINE = 8  # bins are σ/2**8 wide, or one integer
_REACH = 4.5  # standard deviations, from which on bins are too thin for Pearson's statistic
TAILS = (4.0, 5.0)

HEADER = (
    "σ",
    "draws",
    "Pearson's p",
    "p if σ were 0.3 % less",
    "p if 0.3 % more",
    *(f"{side}{reach:g}σ (expected)" for reach in TAILS for side in ("below −", "above ")),
    "verdict",
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Counted:
    """Counts of many draws: in bins, and beyond ±4σ and ±5σ."""

    variance_bits: int
    counts: NDArray[np.int64]  # (bins + 2,) the first and last are tails
    beyond: dict[tuple[float, int], int]  # by reach and side

    @property
    def draws(self) -> int:
        return int(self.counts.sum())

    def p_value(self, scale: float = 1.0) -> float:
        """Return Pearson's p of the counts, as if σ were `scale` times what it is."""
        expected = _probabilities(self.variance_bits, scale) * self.draws
        statistic = float(((self.counts - expected) ** 2 / expected).sum())
        return float(stats.chi2.sf(statistic, len(expected) - 1))

    def tail(self, reach: float, side: int) -> tuple[int, float, bool]:
        """Return the draws beyond a limit, their expected number, and whether the two agree."""
        expected = _tail(self.variance_bits, reach, side)
        low, high = stats.binom.ppf([LEVEL / 2, 1 - LEVEL / 2], self.draws, expected)
        found = self.beyond[reach, side]
        return found, expected * self.draws, bool(low <= found <= high)

    @property
    def right(self) -> bool:
        """Whether every test accepts the law."""
        tails = all(self.tail(*key)[2] for key in self.beyond)
        return self.p_value() > LEVEL and tails


def count_draws(
    draws: int, *, variance_bits: int, seed: int | None = None, threads: int = 1
) -> Counted:
    """Draw and count, a few million at a time."""
    bits = RandomBits.fresh() if seed is None else RandomBits.seeded(seed)
    sigma = 2.0 ** (variance_bits / 2)
    shift, reach = _bins(variance_bits)
    counts = np.zeros(2 * reach + 2, dtype=np.int64)
    beyond = {(limit, side): 0 for limit in TAILS for side in (-1, 1)}
    for start in range(0, draws, _CHUNK):
        values = np.zeros(min(_CHUNK, draws - start), dtype=np.int64)
        add_noise(
            values, variance_bits=variance_bits, bits=bits, label=f"law {start}", threads=threads
        )
        for limit, side in beyond:
            beyond[limit, side] += int(np.count_nonzero(side * values > limit * sigma))
        values >>= shift
        np.clip(values, -reach - 1, reach, out=values)
        values += reach + 1
        counts += np.bincount(values, minlength=len(counts))
    return Counted(variance_bits=variance_bits, counts=counts, beyond=beyond)


def _bins(variance_bits: int) -> tuple[int, int]:
    """Return the bits that a bin drops and the number of bins on either side of zero."""
    shift = max(0, variance_bits // 2 - _FINE)
    return shift, int(_REACH * 2.0 ** (variance_bits / 2 - shift))


def _cumulative(
    edges: NDArray[np.float64], variance_bits: int, scale: float
) -> NDArray[np.float64]:
    """P(v < edge): exact sums for few integers, Φ (right to 2⁻⁴⁰) for many."""
    sigma = scale * 2.0 ** (variance_bits / 2)
    if variance_bits > 2 * _FINE:
        cumulative: NDArray[np.float64] = special.ndtr(edges / sigma)
        return cumulative
    v = np.arange(-40 * 2 ** (variance_bits // 2 + 1), 40 * 2 ** (variance_bits // 2 + 1) + 1)
    mass = np.exp(-(v**2) / (2 * sigma**2))
    sums = np.concatenate([[0.0], np.cumsum(mass / mass.sum())])
    return sums[np.searchsorted(v, edges)]


def _probabilities(variance_bits: int, scale: float) -> NDArray[np.float64]:
    shift, reach = _bins(variance_bits)
    edges = np.arange(-reach, reach + 1, dtype=np.float64) * 2**shift
    inner = _cumulative(edges, variance_bits, scale)
    # The right tail by symmetry of the law: P(v ≥ e) = P(v < 1 - e).
    last = _cumulative(np.array([1 - edges[-1]]), variance_bits, scale)
    return np.concatenate([inner[:1], np.diff(inner), last])


def _tail(variance_bits: int, reach: float, side: int) -> float:
    """P(side·v > reach·σ), the same on both sides."""
    sigma = 2.0 ** (variance_bits / 2)
    edge = -np.floor(reach * sigma)  # v < -floor(reach·σ) is v < -reach·σ for integers
    return float(_cumulative(np.array([edge]), variance_bits, 1.0)[0])


def line(counted: Counted) -> tuple[str, ...]:
    """Return the cells below `HEADER`."""
    tails = [counted.tail(reach, side) for reach in TAILS for side in (-1, 1)]
    return (
        f"2^{counted.variance_bits / 2:g}",
        f"{counted.draws:.0e}",
        f"{counted.p_value():.2f}",
        f"{counted.p_value(0.997):.0e}",
        f"{counted.p_value(1.003):.0e}",
        *(f"{found} ({expected:.0f})" for found, expected, _ in tails),
        "right" if counted.right else "WRONG",
    )
