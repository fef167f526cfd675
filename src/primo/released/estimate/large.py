"""Replicas of a large covariance without matrices: from its spectrum alone.

A noisy covariance of thousands of features averages over itself: how its eigenvectors mix the true ones,
and what products of them add up to, is known from the eigenvalues (free probability). So for many
features the averages that `risk.Replicas` takes over simulated matrices are computed instead. Ranks are
put into some 200 bins, the largest one by one; the cost is that of matrices of this size.

For true eigenvalues a_i (w_i of them) and noise of variance s² off the diagonal, write ζ = u + iv for
the point at which the spectrum is seen through the noise: v(u) ≥ 0 solves s²Σ w_i/((a_i − u)² + v²) = 1,
the noisy eigenvalue is λ(u) = u + s²Σ w_i(u − a_i)/((a_i − u)² + v²), and v/(πs²) eigenvalues lie there
per unit of λ (Biane 1997). A noisy eigenvector at ζ has the squared share s²w_i/|a_i − ζ|² in the true
directions i (Bun, Allez, Bouchaud and Potters 2016). For two of them, and matrices A and B that are
diagonal in the true basis, E[(vᵀAv')(v'ᵀBv)] follows from the products of two resolvents,

    tr[G A G' B] = tr[MAM'B] + s²·tr[MAM']·tr[MM'B]/(1 − s²tr[MM']),      M = diag 1/(a_i − ζ).

Errors are of order 1/d: with more than 400 features, below those of one or two simulated matrices
(tests/released/estimate/test_large.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "LARGE", "Bins", "LargeReplicas", "simulate_large"]

Floats = NDArray[np.float64]

LARGE = 400  # features, beyond which nothing is simulated
BINS = 200
ROUNDS = 3  # corrections of the true eigenvalues
STEPS = 14  # of Newton's method; each starts below the root and goes up to it
STEPS_AWAY = np.geomspace(0.01, 1.0, 9)  # from an eigenvalue next to a gap, of the gap or the noise
AROUND = np.cos(np.linspace(0, np.pi, 21))  # where an eigenvalue that stands alone is followed


@dataclass(frozen=True, kw_only=True, eq=False)
class Bins:
    """Neighbouring ranks, put together; the largest eigenvalues have bins of their own."""

    edges: NDArray[np.intp]  # (m + 1,) first rank of each, and d

    @classmethod
    def of(cls, d: int, most: int = BINS) -> Bins:
        """Cut d ascending ranks into at most so many bins, finest at the top."""
        from_top = np.unique(np.round(np.linspace(0, np.sqrt(d), most + 1) ** 2)).astype(np.intp)
        return cls(edges=d - from_top[::-1])

    @cached_property
    def sizes(self) -> Floats:
        """Ranks in each bin, (m,)."""
        return np.diff(self.edges).astype(np.float64)

    def sums(self, values: Floats) -> Floats:
        """Add up (d, …) numbers within the bins, (m, …)."""
        return np.asarray(np.add.reduceat(values, self.edges[:-1], axis=0))

    def means(self, values: Floats) -> Floats:
        """Average (d, …) numbers within the bins, (m, …)."""
        return np.asarray((self.sums(values).T / self.sizes).T)

    def spread(self, values: Floats) -> Floats:
        """Interpolate numbers of the bins (m, …) to all ranks, (d, …)."""
        centres = (self.edges[:-1] + self.edges[1:] - 1) / 2
        ranks = np.arange(self.edges[-1])
        upper = np.clip(np.searchsorted(centres, ranks), 1, len(centres) - 1)
        share = (ranks - centres[upper - 1]) / (centres[upper] - centres[upper - 1])
        share = np.clip(share, 0.0, 1.0)
        return np.asarray((values[upper - 1].T * (1 - share) + values[upper].T * share).T)


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeReplicas:
    """What `risk.Replicas` says of a covariance of many features; arrays over bins in place of ranks."""

    bins: Bins
    truths: Floats  # (1, m) true eigenvalues, ascending, not negative
    seen: NDArray[np.complex128]  # (m,) ζ, in the middle of each bin of noisy eigenvalues
    off_variance: float  # s²

    bases = None  # no matrix was drawn
    shares = np.ones(1)  # one replica stands for all

    @property
    def sizes(self) -> Floats:
        """Directions in each bin, (m,)."""
        return self.bins.sizes

    @property
    def top(self) -> float:
        """Largest true eigenvalue."""
        return float(self.truths.max())

    def collect(self, values: Floats) -> Floats:
        """Add up (d, …) numbers of all directions within the bins."""
        return self.bins.sums(values)

    def average(self, values: Floats) -> Floats:
        """Average (d, …) numbers of all directions within the bins."""
        return self.bins.means(values)

    def spread(self, values: Floats) -> Floats:
        """Return numbers of the bins for all directions, (d, …)."""
        return self.bins.spread(values)

    @cached_property
    def overlaps(self) -> Floats:
        """Squared shares of noisy eigenvectors (columns) in bins of true ones, (m, m)."""
        distance = np.abs(self.truths[0][:, None] - self.seen) ** 2
        shares = self.sizes[:, None] / distance
        return np.asarray(shares / shares.sum(axis=0))

    def along(self, per_direction: Floats) -> Floats:
        """Average squares along true eigenvectors (1, m, k) over the noisy ones, (m, k)."""
        return np.asarray(self.overlaps.T @ per_direction[0])

    def mean_values(self) -> Floats:
        """Return the expected vᵀAv of the true covariance along noisy eigenvectors, (m,)."""
        return self.along(self.truths[:, :, None])[:, 0]

    def products(self, others: Floats) -> Floats:
        """E[(vᵀAv')(v'ᵀBv)] of two noisy eigenvectors of the bins, (k, m, m); `others` (k, m) are B.

        Within a bin, of two different ones.
        """
        a, s2 = self.truths[0], self.off_variance
        found = np.zeros((len(others), len(a), len(a)))
        plain, by_a = self._traces(np.ones_like(a)), self._traces(a)
        # With b = a the same traces serve twice.
        by_b = [by_a if b is a or np.array_equal(a, b) else self._traces(b) for b in others]
        by_both = [self._traces(a * b) for b in others]
        for which, sign in ((0, 1.0), (1, -1.0)):
            rest = 1 - s2 * plain[which]
            np.fill_diagonal(rest, 1.0)  # zero for conjugates; see below
            with_a = s2 / rest * by_a[which]
            for k, (with_b, both) in enumerate(zip(by_b, by_both, strict=True)):
                found[k] += sign / 2 * (both[which] + with_a * with_b[which]).real
        found *= s2**2 / np.outer(self.seen.imag, self.seen.imag)
        # On the diagonal both are the same vector: their neighbours stand for different ones.
        for product in found:
            beside = np.diagonal(product, 1)
            np.fill_diagonal(
                product, (np.append(beside[:1], beside) + np.append(beside, beside[-1:])) / 2
            )
        return np.asarray(found)

    @cached_property
    def _resolvent(self) -> tuple[Floats, Floats]:
        """Real and imaginary part of M for every bin of noisy eigenvalues (columns), (m, m) each."""
        found = 1 / (self.truths[0][:, None] - self.seen)
        return np.ascontiguousarray(found.real), np.ascontiguousarray(found.imag)

    def _traces(self, weights: Floats) -> tuple[NDArray[np.complex128], NDArray[np.complex128]]:
        """tr[MBM'*] and tr[MBM'] of all pairs of bins, (m, m) each, B = diag(weights).

        Three real products for two complex ones, since B is symmetric.
        """
        real, imaginary = self._resolvent
        by = (self.sizes * weights)[:, None]
        left = real.T @ (by * real)
        right = imaginary.T @ (by * imaginary)
        across = real.T @ (by * imaginary)
        return (left + right) + 1j * (across.T - across), (left - right) + 1j * (across + across.T)


def simulate_large(
    values: Floats, sigma: float, *, possible: Callable[[Floats], Floats], bins: int = BINS
) -> LargeReplicas:
    """Find what the covariance behind released eigenvalues (d,) may have been.

    `possible` draws true eigenvalues (1, d) about the denoised ones, as `risk.simulate` does.
    Deterministic. Cost: some 10⁷ operations, and O(d).
    """
    s2, cut = sigma**2 / 2, Bins.of(len(values), bins)
    seen = cut.means(values)
    gap = seen[:, None] - seen
    repulsion = (gap / (gap * gap + sigma**2)) @ cut.sizes
    truth = np.maximum(np.sort(seen - s2 * repulsion), 0.0)
    centre = truth
    for _ in range(ROUNDS):
        _, looks_like = _noisy(truth, cut.sizes, s2)
        centre = np.sort(truth + seen - looks_like)
        truth = np.maximum(centre, 0.0)
    drawn = possible(np.sort(values + cut.spread(centre - seen)))
    truths = cut.means(np.sort(drawn, axis=1)[0])[None]
    points, _ = _noisy(truths[0], cut.sizes, s2)
    return LargeReplicas(bins=cut, truths=truths, seen=points, off_variance=s2)


def _noisy(a: Floats, sizes: Floats, s2: float) -> tuple[NDArray[np.complex128], Floats]:
    """Return ζ and the noisy eigenvalue in the middle of each bin, for true eigenvalues `a` (m,)."""
    total = float(sizes.sum())
    u = _followed(a, sizes, np.sqrt(s2))
    v, at = _point(u, a, sizes, s2)
    at = np.maximum.accumulate(at)
    v = np.where(v > 1e-5 * np.sqrt(s2), v, 0.0)  # gaps, which may be wide, hold nothing
    counted = np.append(0.0, np.cumsum(np.diff(at) * (v[1:] + v[:-1]) / 2))
    counted *= total / counted[-1]
    middle = np.cumsum(sizes) - sizes / 2
    found = np.interp(middle, counted, u)
    v, at = _point(found, a, sizes, s2)
    smallest = 1e-3 * np.sqrt(s2)  # at an edge of the spectrum
    return found + 1j * np.maximum(v, smallest), at


def _followed(a: Floats, sizes: Floats, s: float) -> Floats:
    """Return the u at which the spectrum is followed, closely enough to add it up.

    Noise widens an eigenvalue that stands alone by s·√w to either side, all of them by at most s·√d.
    """
    reach = s * np.sqrt(sizes.sum())
    own = s * np.sqrt(sizes)
    beside = np.append(np.diff(a), np.inf)
    apart = np.minimum(beside, np.append(np.inf, beside[:-1])) > own / 2
    alone = a[apart, None] + own[apart, None] * AROUND
    between = np.interp(np.linspace(0, len(a) - 1, 3 * len(a)), np.arange(len(a)), a)
    wide = np.flatnonzero(np.diff(a) > reach / 20)
    steps = np.minimum(np.diff(a)[wide], reach)[:, None] * STEPS_AWAY
    ends = reach * np.append(STEPS_AWAY, np.linspace(0, 1.1, 45))
    parts = (
        alone,
        between,
        a[wide, None] + steps,
        a[wide + 1, None] - steps,
        a[0] - ends,
        a[-1] + ends,
    )
    return np.unique(np.concatenate([part.ravel() for part in parts]))


def _point(u: Floats, a: Floats, sizes: Floats, s2: float) -> tuple[Floats, Floats]:
    """Return v(u) and λ(u); see the module's head."""
    squares = (u[:, None] - a) ** 2
    q = np.maximum(np.max(s2 * sizes - squares, axis=1), 0.0)  # each alone gives at least this
    q = np.maximum(q, 1e-12 * s2)
    for _ in range(STEPS):
        inverse = 1 / (squares + q[:, None])
        whole = s2 * (inverse @ sizes)
        slope = s2 * (inverse**2 @ sizes)
        q = np.maximum(q + whole * (whole - 1) / slope, 1e-12 * s2)  # exact for one eigenvalue
    inverse = 1 / (squares + q[:, None])
    at = u + s2 * (((u[:, None] - a) * inverse) @ sizes)
    return np.sqrt(q), at
