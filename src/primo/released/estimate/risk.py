"""The error of a filter, computed without ever seeing data, and the filter that makes it least.

A filter is W = V diag(g) VᵀĜ with Â = V diag(a) Vᵀ. Write A for the true covariance, E[wwᵀ] = S for
the prior of an outcome's least-squares coefficients and σ₂ for the noise of Ĝ = Aw + noise (exact:
Xᵀy = Aw). Then the expected excess ‖X(ŵ − w)‖² is quadratic in g,

    tr(AS) − 2·bᵀg + gᵀ(P∘B + σ₂² diag P)g,     P = VᵀAV,   B = VᵀASAV,   b = diag B,

so the best g of all solves a linear system. (Noise on the outcomes themselves acts as sampling error
does: its variance is added to ς² below.) Rows are a sample, and what counts is new rows: the sampling
error of Xᵀy has covariance ς²A, with ς² the residual variance of a row, and adds ς²·gᵀ(P∘P)g. Ridge and
the closed-form filters are points of the same space, so none of them has a smaller simulated error.

A and V are unknown: the expectation over them is an average over simulated replicas of the release.
Each replica has true eigenvalues of its own, drawn from what the release leaves possible, and counts for
as much as the association that was seen is likely under it (`signal.SignalModel.weigh`). That is what
keeps g from dividing by an eigenvalue that the noise may have made.

S is a mixture of several shapes (`signal`), and everything above is linear in S: it is computed once
for each shape.

After several rounds Ĝ = Aw + (Ã − A)W̄ + noise, with Ã what A is expected to be and W̄ what residuals
were taken of (`estimate.rounds`). A filter g₀ found it: W̄ = s·V diag(g₀) VᵀAw up to noise, where s is
the share of the rounds that had something to start from. So Ĝ = Cw + noise with
C = A + s·(Ã − A)·V diag(g₀) VᵀA, and the above holds with B = VᵀCSCᵀV and b = diag(VᵀASCᵀV). Along
directions that were found C is Ã, which is known. Along those that were not, C is A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.large import BINS, LARGE, LargeReplicas, simulate_large
from primo.released.estimate.spectrum import denoised_spectrum, symmetric_noise

__all__ = ["MOST_REPLICAS", "Carried", "FilterRisk", "Replicas", "simulate"]

Floats = NDArray[np.float64]

SEED = 20_240_607
KNOTS = 32
QUICKLY, QUICK_BINS = 64, 64  # features beyond which a forecast draws no matrices; bins of ranks
DRAWN_DIRECTIONS = 800  # replicas × d to aim for: large matrices average over themselves
MOST_REPLICAS = 64
#: Noise of an eigenvalue, in units of σ₁. One that stands alone has 1; eigenvalues of a large matrix
#: hold each other in place.
ALONE, IN_COMPANY = 1.0, 4.0  # the latter over √d
POINTS = 200  # where the law of an eigenvalue is tabulated
REACH = 5.0  # standard deviations that the table covers
SMALLEST = 0.25  # standard deviations below which the prior is flat, so that it has an integral
CERTAIN = 3.0  # standard deviations of the released trace that simulated ones may be above it
HIDDEN = 0.5  # times σ₁√(d/2)
STEEPEST = 20.0  # power that hidden eigenvalues are lowered by
LOWEST = -1.0  # standard deviations: further below 0 a released eigenvalue says nothing more


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """Simulated releases of covariances that may be the one behind the released eigenvalues.

    The true eigenbasis of each is the coordinate basis. Where `bases` is None the covariance is
    exact, and there is one replica.
    """

    truths: Floats  # (copies, d) true eigenvalues, ascending, not negative
    bases: Floats | None  # (copies, d, d) noisy eigenvectors in columns
    weights: Floats | None = None  # (copies,) that add up to 1; None: all count alike
    noisy: Floats | None = None  # (copies, d) noisy eigenvalues, where there are noisy eigenvectors

    @property
    def shares(self) -> Floats:
        """How much each replica counts, (copies,); they add up to 1."""
        copies = len(self.truths)
        return np.full(copies, 1 / copies) if self.weights is None else self.weights

    @property
    def top(self) -> float:
        """Largest true eigenvalue of any replica."""
        return float(self.truths.max())

    # Directions are taken one by one here, and in bins of several by `large.LargeReplicas`.

    @property
    def sizes(self) -> Floats:
        """How many directions each entry of `truths` stands for, (d,)."""
        return np.ones(self.truths.shape[1])

    def collect(self, values: Floats) -> Floats:
        """Add up (d, …) numbers of all directions within the bins."""
        return values

    def average(self, values: Floats) -> Floats:
        """Average (d, …) numbers of all directions within the bins."""
        return values

    def spread(self, values: Floats) -> Floats:
        """Return numbers of the bins for all directions, (d, …)."""
        return values

    def along(self, per_direction: Floats) -> Floats:
        """Average squares along true eigenvectors (copies, d, k) over the noisy ones, (d, k)."""
        if self.bases is None:
            return np.asarray(per_direction[0])
        along = np.zeros_like(per_direction[0])
        for share, basis, squares in zip(self.shares, self.bases, per_direction, strict=True):
            along += share * ((basis**2).T @ squares)
        return np.asarray(along)

    def mean_values(self) -> Floats:
        """Return the expected vᵀAv of the true covariance along each noisy eigenvector, (d,)."""
        return self.along(self.truths[:, :, None])[:, 0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Carried:
    """What earlier rounds had found when the residuals were taken."""

    share: float  # s
    filter: Floats  # (d,) g₀
    expected: Floats  # (d,) Ã along the noisy eigenvectors


def seen_squares(
    replicas: Replicas | LargeReplicas, variances: Floats, carried: Carried | None
) -> Floats:
    """E[(vᵀCw)²] along noisy eigenvectors v, (d, k), for prior variances (copies, d, k) of w.

    `carried` is left out where no matrices were drawn.
    """
    if carried is None or replicas.bases is None:
        return replicas.along(replicas.truths[:, :, None] ** 2 * variances)
    exact = _exact(replicas.truths, replicas.bases)
    seen = _seen(exact, exact @ replicas.bases, carried)
    return np.asarray(np.tensordot(replicas.shares, seen**2 @ variances, 1))


def seen_products(
    replicas: Replicas | LargeReplicas, variances: Floats, carried: Carried | None
) -> Floats:
    """E[(vᵀCw)(vᵀw)] along noisy eigenvectors; as `seen_squares`."""
    if carried is None or replicas.bases is None:
        return replicas.along(replicas.truths[:, :, None] * variances)
    exact = _exact(replicas.truths, replicas.bases)
    seen = _seen(exact, exact @ replicas.bases, carried)
    both = seen * replicas.bases.transpose(0, 2, 1)
    return np.asarray(np.tensordot(replicas.shares, both @ variances, 1))


def _exact(truths: Floats, bases: Floats) -> Floats:
    """VᵀA of every replica, (copies, d, d)."""
    return np.asarray(bases.transpose(0, 2, 1) * truths[:, None, :])


def _seen(exact: Floats, products: Floats, carried: Carried) -> Floats:
    """VᵀC of every replica, given VᵀA and VᵀAV: what the association shows of coefficients."""
    error = np.diag(carried.expected) - products  # Vᵀ(Ã − A)V
    return np.asarray(exact + carried.share * ((error * carried.filter) @ exact))


@dataclass(frozen=True, kw_only=True)
class FilterRisk:
    """Expected excess of a filter as a quadratic form, for priors of unit strength, one per shape."""

    constant: Floats  # (shapes,) tr(AS)
    linear: Floats  # (shapes, d) b
    signal: Floats  # (shapes, d, d) P∘B; (shapes, d) if the covariance is exact
    noise: Floats  # (d,) diag P
    sampling: Floats  # (d, d) P∘P; (d,) if the covariance is exact
    rank: float  # directions in which the features vary

    @classmethod
    def build(
        cls, replicas: Replicas | LargeReplicas, shapes: Floats, carried: Carried | None = None
    ) -> FilterRisk:
        """Average the quadratic form over the replicas.

        `shapes` (shapes, copies, d) are prior variances along the true eigenvectors; `carried` is what
        earlier rounds had found, which makes no difference where the covariance is exact.
        """
        if isinstance(replicas, LargeReplicas):
            return cls._of_spectrum(replicas, shapes[:, 0])
        truths, bases = replicas.truths, replicas.bases
        shares = replicas.shares
        constant = np.einsum("k,ki,ski->s", shares, truths, shapes)
        if bases is None:
            (a,) = truths
            return cls(
                constant=constant,
                linear=a**2 * shapes[:, 0],
                signal=a**3 * shapes[:, 0],
                noise=a,
                sampling=a**2,
                rank=float(np.count_nonzero(a > 0)),
            )
        # All copies at once, shape after shape.
        exact = _exact(truths, bases)
        p = exact @ bases
        weighted = shares[:, None, None] * p
        noise = np.einsum("kii->i", weighted)
        sampling = np.einsum("kij,kij->ij", weighted, p)
        seen = exact if carried is None else _seen(exact, p, carried)
        linear = np.tensordot(shares, (exact * seen) @ shapes.transpose(1, 2, 0), 1).T
        signal = np.empty((len(shapes), *sampling.shape))
        half, b = np.empty_like(seen), np.empty_like(seen)
        for prior, into in zip(np.sqrt(shapes), signal, strict=True):
            np.multiply(seen, prior[:, None, :], out=half)
            # A product with its own transpose takes half the operations.
            np.matmul(half, half.transpose(0, 2, 1), out=b)
            np.einsum("kij,kij->ij", weighted, b, out=into)
        return cls(
            constant=constant,
            linear=linear,
            signal=signal,
            noise=noise,
            sampling=sampling,
            rank=float(np.count_nonzero(noise > 0)),
        )

    @classmethod
    def _of_spectrum(cls, replicas: LargeReplicas, shapes: Floats) -> FilterRisk:
        """Compute the form for filters that are constant in each bin, (m,); `shapes` are (shapes, m)."""
        (a,), sizes = replicas.truths, replicas.sizes
        inner = a**2 * shapes
        products = replicas.products(np.vstack([inner, a]))
        products *= np.outer(sizes, sizes) - np.diag(sizes)
        signal, sampling = products[:-1], products[-1]
        noise, linear = replicas.mean_values(), replicas.along(inner.T[None]).T
        at = np.arange(len(a))
        signal[:, at, at] += sizes * noise * linear
        sampling[at, at] += sizes * noise**2
        return cls(
            constant=shapes @ (sizes * a),
            linear=sizes * linear,
            signal=signal,
            noise=sizes * noise,
            sampling=sampling,
            rank=float(sizes @ (noise > 0)),
        )

    def excess(
        self, g: Floats, strength: Floats, noise_variance: Floats, residual: Floats | float = 0.0
    ) -> Floats:
        """Return the expected excess of filters (d, groups), for one outcome of each group.

        `strength` (shapes, groups) is how much of each shape the prior of a group has,
        `noise_variance` (groups,) its σ₂², `residual` (groups,) its ς²; 0 if the target is the rows.
        """
        if self.signal.ndim == 2:
            curved, chance = self.signal @ g**2, self.sampling @ g**2
        else:
            curved = np.stack([((s @ g) * g).sum(axis=0) for s in self.signal])
            chance = ((self.sampling @ g) * g).sum(axis=0)
        parts = self.constant[:, None] - 2 * self.linear @ g + curved
        noise = noise_variance * (self.noise @ g**2) + residual * chance
        return np.asarray((strength * parts).sum(axis=0) + noise)

    def excess_in_rows(
        self,
        g: Floats,
        strength: Floats,
        noise_variance: Floats,
        residual: Floats,
        row_variance: float = 0.0,
    ) -> Floats:
        """Return ‖X(ŵ − w)‖² for w the least squares of these rows, which has sampling error too.

        `row_variance` is that of noise on the outcomes themselves, which is no part of w.
        """
        of_rows = self.rank - 2 * self.noise @ g
        new_rows = self.excess(g, strength, noise_variance, residual + row_variance)
        return np.asarray(np.maximum(new_rows + residual * of_rows, 0.0))

    def best_filter(
        self, strength: Floats, noise_variance: Floats, residual: Floats | None = None
    ) -> Floats:
        """Return the filters (d, groups) of least expected excess; arguments as for `excess`.

        Where the covariance is noisy and d is large, g is sought as a smooth multiple of the filter
        that ignores off-diagonal terms: d free numbers would fit the noise of a few replicas.
        """
        if residual is None:
            residual = np.zeros_like(noise_variance)
        if self.signal.ndim == 2:
            return self._diagonal_filter(strength, noise_variance, residual)
        weight = strength.sum(axis=0)
        if not weight.any():
            return np.zeros((self.linear.shape[1], len(weight)))
        typical = strength @ weight[:, None] / weight.sum()
        typical_noise = np.array([weight @ noise_variance / weight.sum()])
        typical_residual = np.array([weight @ residual / weight.sum()])
        basis = self._diagonal_filter(typical, typical_noise, typical_residual)
        basis = basis * _hats(self.linear.shape[1], KNOTS)
        signal = basis.T @ self.signal @ basis
        noise = basis.T @ (self.noise[:, None] * basis)
        system = np.tensordot(strength.T, signal, 1) + noise_variance[:, None, None] * noise
        system += residual[:, None, None] * (basis.T @ self.sampling @ basis)
        # A relative ridge of 1e-12 for knots in directions that carry nothing at all.
        trace = np.trace(system, axis1=1, axis2=2)
        system += 1e-12 * trace[:, None, None] * np.eye(system.shape[1])
        right = strength.T @ (self.linear @ basis)
        g = np.maximum(basis @ np.linalg.solve(system, right[:, :, None])[:, :, 0].T, 0.0)
        # What was negative may have been there to balance the rest, which is worse than nothing then.
        worse = self.excess(g, strength, noise_variance, residual) > strength.T @ self.constant
        if worse.any():
            g[:, worse] = self._diagonal_filter(strength, noise_variance, residual)[:, worse]
        return np.asarray(g)

    def _diagonal_filter(
        self, strength: Floats, noise_variance: Floats, residual: Floats
    ) -> Floats:
        if self.signal.ndim == 2:
            diagonal, chance = self.signal, self.sampling
        else:
            diagonal = np.diagonal(self.signal, axis1=1, axis2=2)
            chance = np.diagonal(self.sampling)
        curvature = diagonal.T @ strength + np.outer(self.noise, noise_variance)
        curvature += np.outer(chance, residual)
        gain = self.linear.T @ strength
        return np.divide(gain, curvature, out=np.zeros_like(gain), where=curvature > 0)


def simulate(
    values: Floats,
    sigma: float,
    *,
    seed: int = SEED,
    copies: int | None = None,
    most: int = MOST_REPLICAS,
    certain: bool = False,
    quick: bool = False,
) -> Replicas | LargeReplicas:
    """Draw replicas from released eigenvalues and the scale σ₁ of their noise.

    Beyond `LARGE` eigenvalues no matrix is drawn (`large`). Up to that there are `copies`, or, if none
    are given, as many as few eigenvalues need, at `most`.

    With `certain`, all have the same true eigenvalues: those that the released ones look like. With
    `quick`, matrices are drawn up to `QUICKLY` eigenvalues only: less exact, and a third of the time.

    The generator has a fixed seed on purpose. This is post-processing of public numbers, so the
    draws protect nobody; the seed makes coefficients a deterministic function of the release.
    Cost: four decompositions of a d×d matrix for each of some 800/d copies, up to d = 800.
    """
    d = len(values)
    if sigma == 0:
        truth, _ = denoised_spectrum(values, np.empty((0, d, d)), 0.0)
        return Replicas(truths=truth[None], bases=None)
    if copies is None:
        copies = int(np.clip(-(-DRAWN_DIRECTIONS // d), 1, most))
    rng = np.random.default_rng(seed)
    spread = sigma * min(ALONE, IN_COMPANY / np.sqrt(d))
    trace = float(values.sum())
    if d > (QUICKLY if quick else LARGE):
        return simulate_large(
            values,
            sigma,
            possible=lambda centre: _of_trace(_possible(rng, centre, spread, 1), trace, sigma),
            bins=QUICK_BINS if quick else BINS,
        )
    noise = symmetric_noise(rng, copies=copies, d=d, sigma=sigma)
    truth, centre = denoised_spectrum(values, noise, sigma)
    if certain:
        truths = np.repeat(truth[None], copies, axis=0)
    else:
        truths = np.sort(_possible(rng, centre, spread, copies), axis=1)
        truths = _of_trace(truths, trace, sigma)
    noisy, bases = np.linalg.eigh(noise + truths[:, :, None] * np.eye(d))
    return Replicas(truths=truths, bases=bases, noisy=noisy)


def _possible(rng: np.random.Generator, centre: Floats, spread: float, copies: int) -> Floats:
    """Draw (copies, d) eigenvalues: normal about `centre`, not negative, of unknown order of magnitude.

    The prior density 1/a says the latter. A flat one would expect large values wherever little is
    known, and shrink what depends on them to half. The steeper a^(−1 − 1/d) counts in that association
    was seen, which needs the less variation the fewer directions there are to hold it.
    """
    centre = np.maximum(centre, LOWEST * spread)
    low, high = np.maximum(centre - REACH * spread, 0.0), centre + REACH * spread
    at = low[:, None] + (high - low)[:, None] * ((np.arange(POINTS) + 0.5) / POINTS)
    log_density = -(((at - centre[:, None]) / spread) ** 2) / 2
    log_density -= (1 + 1 / len(centre)) * np.log(at + SMALLEST * spread)
    cumulative = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
    cumulative /= cumulative[:, -1:]
    uniform = rng.random((copies, len(centre)))
    columns = [np.interp(u, c, a) for u, c, a in zip(uniform.T, cumulative, at, strict=True)]
    return np.stack(columns, axis=1)


def _of_trace(truths: Floats, trace: float, sigma: float) -> Floats:
    """Lower eigenvalues (copies, d) that the noise hides, until their mean sum is possible.

    Each hidden one may be anything from 0 to the noise, so together they may come out several times too
    large. Their sum is the trace, which is released with the noise σ₁√d only. Those below `HIDDEN` of
    σ₁√(d/2), above which a single one stands out, are multiplied by a power of what they are of it.
    """
    d = truths.shape[1]
    most = max(trace, 0.0) + CERTAIN * sigma * np.sqrt(d)
    relative = np.clip(truths / (HIDDEN * sigma * np.sqrt(d / 2)), 1e-12, 1.0)
    low, high = 0.0, STEEPEST
    if d == 1 or truths.sum(axis=1).mean() <= most:
        return truths
    for _ in range(30):
        middle = (low + high) / 2
        too_large = (truths * relative**middle).sum(axis=1).mean() > most
        low, high = (middle, high) if too_large else (low, middle)
    return np.asarray(truths * relative**high)


def _hats(d: int, knots: int) -> Floats:
    """Return ≤ `knots` piecewise linear functions of rank that add up to 1, finest at the top."""
    if d <= knots:
        return np.eye(d)
    at = np.unique(np.round(np.linspace(0, np.sqrt(d - 1), knots) ** 2))
    rank_from_top = np.arange(d - 1, -1, -1.0)
    return np.stack([np.interp(rank_from_top, at, unit) for unit in np.eye(len(at))], axis=1)
