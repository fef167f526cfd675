"""The law of row lengths behind a noisy histogram: where rows are, and how many.

Nearly all of the 642 bins are empty, and each has noise. Sums over all of them say nothing, and a bin or
a window of bins that noise made large must not be taken for rows. So bells of several widths (in
logarithms of lengths) are compared with the counts everywhere on the grid, and the one that explains
most is kept if noise alone does not reach so much anywhere; others follow while they are as certain.
Outside their surroundings all bins are empty. Inside, the counts become the nearest ones that rise to
one peak for each bell and fall after it, are not negative and add up to n, which is public.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array, vstack

from primo.privacy.lengths import BINS, BINS_PER_OCTAVE, centres

__all__ = ["LengthLaw", "denoised", "guessed_lengths", "lit_bins", "nearest_shares"]

Floats = NDArray[np.float64]

#: Standard deviations of its noise that a bell must reach. Noise alone reaches it in one of some 40 000
#: histograms: there are about 500 places and widths that differ.
CERTAIN = 5.3
SMALLEST = 0.01  # share of the rows that every bell after the first must hold, besides
FAR = 4.0  # times the median: longer rows count as if they were so long, ...
FEW = 0.15  # ... if they are no more than this share of the rows
SPREADS = (0.6, 1.5, 3.0, 6.0, 10.0, 16.0)  # standard deviations of the bells, in bins
TAIL = 6.0  # standard deviations beyond which a bell is 0
MOST_BELLS = 4
REACH, LEAST_REACH = 3.0, 6.0  # surroundings of a bell to either side: standard deviations, bins
BEYOND = 14  # bins above a bell that may hold its tail, at least: no bell is certain there
LONG_FAR, LONG_BEYOND = 8.0, 20  # the same two for a long tail, where the counts are quiet ...
QUIET = 0.01  # ... that is, where the noise on a count is at most this share of the rows
PLAUSIBLE = 8.0  # logarithm of the likelihood by which a place may be behind the best one


@dataclass(frozen=True, kw_only=True, eq=False)
class LengthLaw:
    """Lengths and the shares of rows that have them; rows of length 0 included."""

    lengths: Floats  # (points,) ascending
    shares: Floats  # (points,) positive, adding up to 1

    @property
    def longest(self) -> float:
        """Longest length that some rows are known to have."""
        return float(self.lengths[-1])

    def quantile(self, share: float) -> float:
        """Return the length that this share of the rows does not exceed."""
        at = int(np.searchsorted(np.cumsum(self.shares), share * (1 - 1e-12)))
        return float(self.lengths[min(at, len(self.lengths) - 1)])

    def norm_above(self, share: float) -> float:
        """Return a norm that shortens at most the other rows: the upper edge of their bin."""
        return self.quantile(share) * 2 ** (0.5 / BINS_PER_OCTAVE)

    def mean(self, values: Floats) -> Floats:
        """Average values (..., points) over the rows."""
        return np.asarray(values @ self.shares)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Bells:
    """Bells about many places of the grid, in every width; each adds up to 1."""

    place: Floats  # (bells,) bin, not counting the first
    spread: Floats  # (bells,) in bins
    shape: csr_array  # (bells, BINS - 1), without what lies further off than `TAIL` spreads
    square: Floats  # (bells,) squared length of the shape


@dataclass(frozen=True, kw_only=True)
class _Bell:
    """Rows that lie about a place of the grid."""

    place: float
    spread: float
    certain: float  # standard deviations of its noise


def denoised(counts: Floats, *, sigma: float, n: int, long_tail: bool = False) -> LengthLaw | None:
    """Return the law of the lengths, or None where the counts do not tell it from noise.

    Rows longer than `FAR` times the median count as that long: few rows must not decide. Where more
    than a share `FEW` are longer, they are a population of their own and decide, too. With `long_tail`,
    and where the counts are quiet, lengths are told up to `LONG_FAR` times the median.
    """
    long_tail = long_tail and sigma <= QUIET * n
    far, beyond = (LONG_FAR, LONG_BEYOND) if long_tail else (FAR, BEYOND)
    zeros = _zeros(counts, sigma=sigma, n=n)
    bells = _found_bells(counts[1:], sigma=sigma, rows=n - zeros, least=SMALLEST * n)
    if not bells:
        return None  # nothing but zeros, or nothing that is certain
    kept = np.zeros(BINS)
    kept[0] = zeros / n
    near = _surroundings(bells, beyond)
    fitted = np.zeros(BINS - 1)
    for part in near:
        fitted[part] = _one_peak(counts[1:][part])
    inside = np.concatenate([np.arange(BINS - 1)[part] for part in near])
    left = 1 - kept[0]
    kept[1 + inside] = left * nearest_shares(fitted[inside] / (n * left))
    at = np.flatnonzero(kept)
    lengths, shares = centres()[at], kept[at]
    positive = lengths > 0
    rows = LengthLaw(lengths=lengths[positive], shares=shares[positive] / shares[positive].sum())
    longest = max(far * rows.quantile(0.5), rows.quantile(1 - FEW))
    return LengthLaw(lengths=np.minimum(lengths, longest), shares=shares)


def guessed_lengths(
    counts: Floats, *, sigma: float, n: int, limit: float = math.inf
) -> tuple[float, float]:
    """Return the shortest and the longest typical length that the counts leave plausible.

    For counts that tell no law. Between them lies whatever explains the counts nearly as well as the
    best place does, if half of the rows at least lie about one place. No row is longer than `limit`.
    """
    rows = n - _zeros(counts, sigma=sigma, n=n)
    _, explained, _ = _compared(counts[1:], sigma=sigma, rows=rows, least=rows / 2)
    lengths = centres()[1:]
    possible = lengths[_bells().place.astype(int)] <= max(limit, float(lengths[0]))
    best = float(explained[possible].max())
    places = _bells().place[possible & (explained >= best - PLAUSIBLE)]
    return float(lengths[int(places.min())]), float(lengths[int(places.max())])


def _zeros(counts: Floats, *, sigma: float, n: int) -> float:
    """Return how many rows have length 0, at most nearly all; they have no neighbours."""
    seen = float(counts[0])
    certain = seen > max(CERTAIN * sigma, SMALLEST * n)
    return min(seen, (1 - SMALLEST) * n) if certain else 0.0


def _found_bells(counts: Floats, *, sigma: float, rows: float, least: float) -> list[_Bell]:
    """Return the bells that explain the counts, most first; none where noise may have made them."""
    found: list[_Bell] = []
    bells, left = _bells(), counts
    while len(found) < MOST_BELLS and rows > least:
        held, explained, certain = _compared(left, sigma=sigma, rows=rows)
        best = int(np.argmax(explained))
        if certain[best] < CERTAIN or (found and held[best] < least):
            break
        found.append(
            _Bell(
                place=float(bells.place[best]),
                spread=float(bells.spread[best]),
                certain=float(certain[best]),
            )
        )
        left = left - held[best] * bells.shape[[best]].toarray()[0]
        rows -= float(held[best])
    return found


def _compared(
    counts: Floats, *, sigma: float, rows: float, least: float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Compare every bell with the counts.

    Return the rows that each would hold, between `least` and `rows`; the logarithm of the likelihood it
    gains; and its size in standard deviations of its noise, (bells,) each.
    """
    bells = _bells()
    seen = bells.shape @ counts
    held = np.clip(seen / bells.square, least, rows)
    tiny = max(sigma, 1e-6)  # a public block is counted without noise
    explained = held * (2 * seen - held * bells.square) / (2 * tiny**2)
    return held, explained, seen / (np.sqrt(bells.square) * tiny)


@cache
def _bells() -> _Bells:
    """Return all bells that are compared: in half steps of their widths, and single bins."""
    grid = np.arange(BINS - 1)
    places, spreads = [grid.astype(float)], [np.zeros(len(grid))]
    shapes = [eye_array(len(grid), format="csr")]
    for spread in SPREADS:
        place = np.arange(0, BINS - 1, max(1, int(spread / 2)), dtype=float)
        apart = (grid - place[:, None]) / spread
        shape = np.where(np.abs(apart) <= TAIL, np.exp(-0.5 * apart**2), 0.0)
        places.append(place)
        spreads.append(np.full(len(place), spread))
        shapes.append(csr_array(shape / shape.sum(axis=1, keepdims=True)))
    shape = csr_array(vstack(shapes))
    return _Bells(
        place=np.concatenate(places),
        spread=np.concatenate(spreads),
        shape=shape,
        square=np.asarray(shape.power(2).sum(axis=1)),
    )


def _surroundings(bells: list[_Bell], beyond: int) -> list[slice]:
    """Return the bins about each bell, ascending; neighbours share the bins between them.

    Rows have tails to the long side that are too thin to be certain, and a law without them would say
    that a norm shortens less than it does. So `beyond` bins above a bell belong to it, too: counts that
    only fall are averages over many of them, which have little noise.
    """
    ordered = sorted(bells, key=lambda bell: bell.place)
    reach = [max(REACH * bell.spread, LEAST_REACH) for bell in ordered]
    starts = [max(0, int(bell.place - r)) for bell, r in zip(ordered, reach, strict=True)]
    ends = [min(BINS - 1, int(bell.place + r) + 1) for bell, r in zip(ordered, reach, strict=True)]
    parts: list[slice] = []
    for k in range(len(ordered)):
        start, end = starts[k], ends[k]
        if k:
            start = max(start, parts[-1].stop)
        tail = int(ordered[k].place) + beyond + 1
        if k + 1 == len(ordered):
            end = min(BINS - 1, max(end, tail))
        elif end <= starts[k + 1]:
            end = min(starts[k + 1], max(end, tail))
        else:
            apart = ordered[k + 1].place - ordered[k].place
            split = ordered[k].place + apart * reach[k] / (reach[k] + reach[k + 1])
            end = min(end, max(start, int(split) + 1))
        if end > start:
            parts.append(slice(start, end))
    return parts


def _one_peak(counts: Floats) -> Floats:
    """Return the nearest numbers that rise to one peak and fall after it."""
    _, before = _rising(counts)
    _, after = _rising(counts[::-1])
    peak = int(np.argmin(before + after[::-1]))  # bins before it rise, the others fall
    up, _ = _rising(counts[:peak])
    down, _ = _rising(counts[peak:][::-1])
    return np.concatenate([up, down[::-1]])


def _rising(counts: Floats) -> tuple[Floats, Floats]:
    """Return the nearest numbers that do not fall, and the squared error of the first k, (bins + 1,).

    Neighbours that would fall share their mean.
    """
    sums: list[float] = []
    sizes: list[int] = []
    errors: list[float] = []  # of the groups so far
    total = [0.0]
    for count in counts.tolist():
        sums.append(count)
        sizes.append(1)
        errors.append(0.0)
        while len(sums) > 1 and sums[-2] / sizes[-2] > sums[-1] / sizes[-1]:
            apart = sums[-2] / sizes[-2] - sums[-1] / sizes[-1]
            size = sizes[-2] + sizes[-1]
            error = errors[-2] + errors[-1] + apart**2 * sizes[-2] * sizes[-1] / size
            sums[-2:], sizes[-2:], errors[-2:] = [sums[-2] + sums[-1]], [size], [error]
        total.append(math.fsum(errors))
    means = [part / size for part, size in zip(sums, sizes, strict=True)]
    return np.repeat(means, sizes) if means else np.empty(0), np.asarray(total)


def lit_bins(
    counts: Floats,
    *,
    sigma: float,
    windows: tuple[int, ...],
    least: float,
    certain: float,
    lit: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return which bins hold rows: those of windows whose sums noise does not reach, (bins,).

    For columns, of which there are many and which need not have one peak. A window has dark bins only,
    so that rows on one side of the lit ones do not light the other; narrow windows come first. It must
    hold more than `least` rows, too. Bins that are `lit` already stay so.
    """
    lit = np.zeros(len(counts), dtype=bool) if lit is None else lit.copy()
    for width in windows:
        window = np.ones(width)
        enough = max(certain * sigma * math.sqrt(width), least)
        total = np.convolve(counts, window, mode="valid")
        while True:
            dark = np.convolve(lit.astype(float), window, mode="valid") < 0.5
            best = int(np.argmax(np.where(dark, total, -np.inf)))
            if not (dark[best] and total[best] > enough):
                break
            lit[best : best + width] = True
    return lit


def nearest_shares(shares: Floats) -> Floats:
    """Return the nearest numbers that are not negative and add up to 1."""
    descending = np.sort(shares)[::-1]
    over = (np.cumsum(descending) - 1) / np.arange(1, len(shares) + 1)
    last = int(np.flatnonzero(descending > over)[-1])
    return np.asarray(np.maximum(shares - over[last], 0.0))
