"""The exact discrete Gaussian: integer tables, and decisions that no rounding error can change.

Guarantee: given uniform bits, the draws are independent and each is v with probability exactly
proportional to ρ(v) = exp(−v²/2σ²) over *all* integers, σ² = 2**variance_bits (Canonne, Kamath and
Steinke 2020). No float is trusted beyond a proven error bound and the support is not cut off.
Cost: 16 bytes of AES-256-CTR and a dozen NumPy passes over a chunk in cache for each draw.

Why the law is exact. An integer v is a sign and a magnitude m ≥ 0: v = m or v = ~m = −1−m, every
integer once. The unit is τ = 2**(variance_bits // 2), so σ = τ or σ = √2·τ. Magnitudes fall into
buckets [iw, (i+1)w), w = τ/2**b, i < M, and a tail m ≥ t = Mw ≥ 2τ. With one scale c and integers
R_i ≤ c·ρ((i+1)w) and W_i ≥ c·ρ(iw), each v of bucket i has R_i ≤ c·ρ(v) ≤ W_i. A proposal picks an
entry with probability weight/2⁶⁴, a sign, and a magnitude:

- floor i, weight R_i: m uniform in bucket i, accepted at once (98.8 % of proposals end here);
- wedge i, weight W_i − R_i: m uniform in bucket i, accepted iff R_i + (W_i − R_i)·U < c·ρ(v);
- tail, weight 2H·2**b, H ≥ c·ρ(t): with probability 2^−(j+1) m is uniform in [t + jτ, t + (j+1)τ),
  accepted iff H·U < 2^j·c·ρ(v); that is at most H, for ρ(v) ≤ ρ(t)·exp(−jτt/σ²) ≤ ρ(t)·e^−j;
- rejection: the few units that are missing from 2⁶⁴.

So v leaves its bucket with probability (R_i + c·ρ(v) − R_i)/(2w·2⁶⁴), or the tail with probability
(2H·2**b/2⁶⁴)·2^−(j+1)·(1/2τ)·2^j·c·ρ(v)/H. Both are c·ρ(v)/(2w·2⁶⁴), the same multiple of ρ(v).
Every place of the output repeats its own proposals until one is accepted, so places are independent.

Entries are picked by an alias table in integers. U is an infinite string of bits, drawn as far as
the comparison needs: 64 decide it in float64 unless the two sides are closer than the proven error
(probability 2⁻⁴⁴ a draw), and then rational bounds on exp and further bits decide it. Hence a
seeded draw is the same on every machine. Time depends on the noise only, never on the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Self

import numpy as np
from numpy.typing import NDArray

from primo.wall.noise.bits import SLACK, Stream, Words

__all__ = ["Sampler", "Scratch", "sampler_for"]

_FLAG = 1 << 63  # marks an entry that is not accepted at once
_TERMS = 12  # of the Taylor series of exp(−δ) in the float comparison
_PRECISION = 128  # bits, for the table


class Scratch:
    """The working memory of one thread, about 2.6 MB, reused from chunk to chunk."""

    def __init__(self, length: int) -> None:
        self.words = np.empty(2 * length + SLACK, dtype="<u8")
        self.column = np.empty(length, dtype=np.int64)
        self.code = np.empty(length, dtype=np.uint64)
        self.second = np.empty(length, dtype=np.bool_)
        self.noise = np.empty(length, dtype=np.int64)


def _exp_bounds(numerator: int, shift: int, precision: int) -> tuple[int, int]:
    """Integers low ≤ 2**precision · exp(−numerator/2**shift) ≤ high, a few units apart.

    Integers with directed rounding, because mpmath's precision is a global that threads share.
    """
    if numerator == 0:
        return 1 << precision, 1 << precision
    halvings = max(0, numerator.bit_length() - shift + 8)  # leaves an argument below 2⁻⁸
    bits = precision + halvings + 8  # each squaring below doubles the error
    one = 1 << bits
    y_low = (numerator << bits) >> (shift + halvings)
    y_high = y_low + 1
    low = high = term_low = term_high = one
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> bits) // n
        term_high = -(-term_high * y_high // (n << bits))
        low, high = low + term_low, high + term_high
    high += 1  # the terms left out: each is below half of the one before, and that was at most 1
    low, high = one * one // high, -(-one * one // low)
    for _ in range(halvings):
        low, high = low * low >> bits, -(-high * high >> bits)
    return low >> (bits - precision), -(-high >> (bits - precision))


def _below(
    stream: Stream,
    prefix: int,
    *,
    v: int,
    variance_bits: int,
    scale: int,
    span: int,
    floor: int = 0,
) -> bool:
    """Decide floor + span·U < scale·ρ(v), exactly.

    U is an infinite string of bits that begins with the 64 of `prefix`; more are drawn until the
    interval that it is known to lie in is wholly on one side: 64 more with probability about 2⁻⁶⁴.
    """
    known = 64
    while True:
        low, high = _exp_bounds(v * v, variance_bits + 1, known + 96)
        left = ((floor << known) + span * prefix) << 96
        if left + (span << 96) <= scale * low:
            return True
        if left >= scale * high:
            return False
        prefix = prefix << 64 | stream.word()
        known += 64


def _exp_series(delta: NDArray[np.float64]) -> NDArray[np.float64]:
    """Approximate exp(−δ) with IEEE +, −, × only; `Sampler._proven_error` bounds the error."""
    series = np.ones_like(delta)
    for n in range(_TERMS, 0, -1):
        series = 1.0 - delta * (1.0 / n) * series
    return series


def _alias(weights: list[int], column: int) -> tuple[list[int], list[int]]:
    """Walker's table in integers: column k is entry k below share[k], entry other[k] from there.

    Every column has the same size, so the weights must add up to len(weights)·column.
    """
    left = list(weights)
    share, other = [0] * len(left), list(range(len(left)))
    small = [k for k, weight in enumerate(left) if weight < column]
    large = [k for k, weight in enumerate(left) if weight > column]
    while small:
        k, donor = small.pop(), large[-1]
        share[k], other[k] = left[k], donor
        left[donor] -= column - left[k]
        if left[donor] <= column:
            large.pop()
            if left[donor] < column:
                small.append(donor)
    return share, other  # a column that one entry fills has share 0 and other itself


@dataclass(frozen=True, kw_only=True, eq=False)
class Sampler:
    """Read-only tables for one σ. Entries: M floors, M wedges, the tail, rejection, unused."""

    variance_bits: int  # σ² = 2**variance_bits
    unit_bits: int  # τ = 2**unit_bits
    place_bits: int  # w = 2**place_bits
    buckets: int  # M
    scale: int  # c
    low: tuple[int, ...]  # (M,) R
    high: tuple[int, ...]  # (M + 1,) W, and last H
    weights: tuple[int, ...]  # one per entry, zeros behind, adding up to 2**64
    column_shift: int  # the bits of a choosing word above this one number its column
    cut: Words  # (columns,) a choosing word from here on takes the column's second entry
    entry: NDArray[np.intp]  # (2·columns,) first and second entry of each column
    code: Words  # (2·columns,) smallest magnitude of the entry, flagged unless it is a floor
    floor: NDArray[np.float64]  # (M,) R_i/(c·ρ(iw))
    span: NDArray[np.float64]  # (M,) (W_i − R_i)/(c·ρ(iw))
    band: float  # proven error of the float comparison

    @classmethod
    def build(
        cls, variance_bits: int, *, fine: int = 6, buckets: int | None = None, band: float = 0.0
    ) -> Self:
        """Make the tables; tests ask for an early tail, or a wide band of exact decisions."""
        unit_bits, odd = divmod(variance_bits, 2)
        b = min(fine, unit_bits)
        count = 2 ** (b + 3) - 1 if buckets is None else buckets  # the entries then fill 2**(b+4)
        if not 2 ** (b + 1) <= count <= 2 ** (b + 3):
            raise ValueError("the tail must begin between 2τ and 8τ")  # the proofs use both
        edges = [_exp_bounds(i * i, 2 * b + 1 + odd, _PRECISION) for i in range(count + 1)]  # ρ(iw)
        blocks = 2 ** (b + 1)
        mass = sum(top for _, top in edges[:-1]) + blocks * edges[-1][1]
        scale = ((2**64 - count - blocks) << _PRECISION) // mass  # room for rounding each weight up
        low = [scale * bottom >> _PRECISION for bottom, _ in edges[1:]]
        high = [-(-scale * top >> _PRECISION) for _, top in edges]
        wedges = [top - bottom for top, bottom in zip(high, low, strict=False)]
        weights = [*low, *wedges, blocks * high[-1]]
        weights.append(2**64 - sum(weights))
        index_bits = (len(weights) - 1).bit_length()
        weights += [0] * (2**index_bits - len(weights))

        shift = 64 - index_bits
        share, other = _alias(weights, 2**shift)
        entry = np.array([(k, second) for k, second in enumerate(other)], dtype=np.intp).ravel()
        places = [i << (unit_bits - b) for i in range(count)]
        codes = np.full(len(weights), _FLAG, dtype=np.uint64)
        codes[:count] = places
        codes[count : 2 * count] |= np.array(places, dtype=np.uint64)
        tops = [Fraction(scale * top, 2**_PRECISION) for top, _ in edges]
        sampler = cls(
            variance_bits=variance_bits,
            unit_bits=unit_bits,
            place_bits=unit_bits - b,
            buckets=count,
            scale=scale,
            low=tuple(low),
            high=tuple(high),
            weights=tuple(weights),
            column_shift=shift,
            cut=np.array([(k << shift) + s for k, s in enumerate(share)], dtype=np.uint64),
            entry=entry,
            code=codes[entry],
            floor=np.array([float(r / top) for r, top in zip(low, tops, strict=False)]),
            span=np.array([float(a / top) for a, top in zip(wedges, tops, strict=False)]),
            band=max(band, cls._proven_error(count / 2**b, 0.5**b)),
        )
        for table in (sampler.cut, sampler.entry, sampler.code, sampler.floor, sampler.span):
            table.setflags(write=False)
        return sampler

    @staticmethod
    def _proven_error(reach: float, width: float) -> float:
        """Bound the error of both sides of the comparison in `_accept_wedge` together.

        Only IEEE +, −, × are used there, with relative error ≤ u = 2⁻⁵³ each. The left side is at
        most 2 and takes few roundings: ≤ 22u. On the right, δ ≤ d with 6 roundings moves exp(−δ)
        by ≤ 6du; the series leaves a remainder ≤ d^(n+1)/(n+1)! (Lagrange); a step of Horner's
        scheme has |p| ≤ e^d and loses ≤ 4u(1 + d)e^d, which the k steps behind it multiply by
        d^k/k!: ≤ 4u(1 + d)e^(2d) in all. 128u = 2⁻⁴⁶ leaves a factor of four to spare.
        """
        d = width * (reach + width)
        return 2.0**-46 * (1 + d) * math.exp(2 * d) + d ** (_TERMS + 1) / math.factorial(_TERMS + 1)

    def fill(self, out: NDArray[np.int64], stream: Stream, scratch: Scratch) -> None:
        """Overwrite `out`, of at most CHUNK places, with independent draws."""
        rejected = self._propose(out, stream, scratch)
        while rejected.size:
            again = np.empty(rejected.size, dtype=np.int64)
            still = self._propose(again, stream, scratch)
            out[rejected] = again
            rejected = rejected[still]

    def _propose(
        self, out: NDArray[np.int64], stream: Stream, scratch: Scratch
    ) -> NDArray[np.intp]:
        """Make one proposal for every place of `out`; return the places where it was rejected."""
        n = out.size
        words = stream.words(2 * n, scratch.words)
        # The body has the sign in the top bit and the place in the bucket in the low ones.
        choice, body = words[:n], words[n:]
        column, code, second = scratch.column[:n], scratch.code[:n], scratch.second[:n]
        magnitude = code.view(np.int64)

        np.right_shift(choice, self.column_shift, out=column.view(np.uint64))
        np.take(self.cut, column, out=code, mode="clip")
        np.greater_equal(choice, code, out=second)
        np.add(column, column, out=column)
        np.add(column, second, out=column)
        np.take(self.code, column, out=code, mode="clip")
        np.bitwise_and(body, 2**self.place_bits - 1, out=out.view(np.uint64))
        np.bitwise_or(magnitude, out, out=magnitude)
        np.right_shift(body.view(np.int64), 63, out=out)  # 0 or −1, and m ^ −1 = ~m
        np.bitwise_xor(magnitude, out, out=out)

        slow = np.flatnonzero(magnitude < 0)
        entry = self.entry[column[slow]]
        accepted = np.zeros(slow.size, dtype=np.bool_)
        out[slow] ^= np.int64(-_FLAG)
        wedge = np.flatnonzero(entry < 2 * self.buckets)
        accepted[wedge] = self._accept_wedge(entry[wedge] - self.buckets, body[slow[wedge]], stream)
        for k in np.flatnonzero(entry == 2 * self.buckets):
            value = self._tail(int(body[slow[k]]), stream)
            if value is not None:
                # int64 holds 32σ; what lies beyond (probability 2⁻⁷³⁸) wraps, see add_noise.
                out[slow[k]] = (value + _FLAG) % (2 * _FLAG) - _FLAG
                accepted[k] = True
        return slow[~accepted]

    def _accept_wedge(
        self, bucket: NDArray[np.intp], body: Words, stream: Stream
    ) -> NDArray[np.bool_]:
        """Decide R + (W − R)·U < c·ρ(v) for wedge proposals, both sides divided by c·ρ(iw).

        With |v| = iw + r the right side is exp(−δ), δ = y(z + y/2)·τ²/σ², y = r/τ, z = iw/τ: small
        enough for a short series, so the bound rests on IEEE arithmetic and not on a library's exp.
        """
        uniform = stream.words(bucket.size)
        place = body & np.uint64(2**self.place_bits - 1)
        place += body >> np.uint64(63)  # the magnitude of ~m is m + 1
        y = place.astype(np.float64) * 0.5**self.unit_bits
        z = bucket * 0.5 ** (self.unit_bits - self.place_bits)
        delta = y * (z + 0.5 * y) * 0.5 ** (self.variance_bits % 2)
        gap = _exp_series(delta) - (self.floor[bucket] + self.span[bucket] * (uniform * 0.5**64))
        accepted = gap > 0
        for k in np.flatnonzero(np.abs(gap) <= self.band):
            i = int(bucket[k])
            v = (i << self.place_bits) + int(place[k])
            accepted[k] = _below(
                stream,
                int(uniform[k]),
                v=v,
                variance_bits=self.variance_bits,
                scale=self.scale,
                span=self.high[i] - self.low[i],
                floor=self.low[i],
            )
        return accepted

    def _tail(self, body: int, stream: Stream) -> int | None:
        """Finish a tail proposal in Python integers: the value, or None for a rejection."""
        block = 0
        while (word := stream.word()) == 0:
            block += 64
        block += (word & -word).bit_length() - 1  # zeros before the first one: 2^−(j+1)
        place = (block << self.unit_bits) + (body & ((1 << self.unit_bits) - 1))
        m = (self.buckets << self.place_bits) + place
        negative = body >> 63
        accepted = _below(
            stream,
            stream.word(),
            v=m + negative,
            variance_bits=self.variance_bits,
            scale=self.scale << block,
            span=self.high[-1],
        )
        return (~m if negative else m) if accepted else None


sampler_for = lru_cache(maxsize=64)(Sampler.build)
