"""How well a release will predict, before any data is read: a small simulation on moments alone.

XᵀX and XᵀY are all that an estimator sees, and under a stated assumption about the signal their law is
known: XᵀY = AW + A^(1/2)Z·s for least squares with residual variance s². So the prediction draws moments
of the assumed kind, adds Gaussian noise of the plan's exact scales, runs the real estimators and scores
them. Nothing here sees a row, and the time does not depend on n, nor on l beyond `MOST_OUTCOMES`.

What is left out: rows cut at the bounds, the noise of the means (the intercept), and features or
outcomes that are not what `Signal` says. The noise on A has no preferred direction, so A may be taken
to be diagonal; outcomes beyond `MOST_OUTCOMES` are alike, so a sample of them stands for all, with the
noise that all of them cause.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from primo.errors import InputError
from primo.estimate import ESTIMATORS, NoisyMoments, estimate
from primo.mechanisms.projection import project_onto_features
from primo.plans import Plan
from primo.privacy.budget import is_number
from primo.privacy.protection import Protection
from primo.theory import associations_for

__all__ = ["Prediction", "Projected", "Signal", "effective_rank_of", "predict", "predict_all"]

Floats = NDArray[np.float64]

MOST_OUTCOMES = 200  # simulated; more are represented by these
MOST_REPEATS = 24
FEWEST_REPEATS = 4
BULK = 120  # eigenvalues that stand for the residual part of the spectrum of YᵀY
_SEED = 20_231_107


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What is assumed about data nobody has looked at. Every number is the user's to state.

    Parameters
    ----------
    r2
        Share of the outcomes' variance that the features explain: what a perfect fit would reach.
    feature_spread
        Mean squared norm of a row of features over its squared bound. 1 means that every row lies at
        the bound; loose bounds make it small, and noise relative to signal large. 0.5 fits haplotypes
        centred by a reference panel and bounded by its longest row.
    outcome_spread
        The same for a row of outcomes; if None, bounds at 1.15·√l + 1 standard deviations.
    effective_rank
        How many directions the features really have: exp of the entropy of the eigenvalues of XᵀX,
        d if the features are uncorrelated. If None, d/(1 + √d/16), as for SNPs picked at random from
        a few megabases.
    eigenvalues
        The d eigenvalues of XᵀX up to a factor, if public data tell them, instead of a rank.
    outcome_correlation
        Correlation of any two outcomes, in signal and residual alike.
    """

    r2: float = 0.3
    feature_spread: float = 0.5
    outcome_spread: float | None = None
    effective_rank: float | None = None
    eigenvalues: tuple[float, ...] | None = None
    outcome_correlation: float = 0.0

    def __post_init__(self) -> None:
        for name in ("r2", "feature_spread", "outcome_spread"):
            value = getattr(self, name)
            if value is None and name == "outcome_spread":
                continue
            if not is_number(value) or not 0 < value <= 1:
                raise InputError(f"{name}={value!r} must lie above 0 and at most at 1")
        rank, correlation = self.effective_rank, self.outcome_correlation
        if rank is not None and not (is_number(rank) and 1 <= rank < math.inf):
            raise InputError(f"effective_rank={rank!r} must be at least 1")
        if self.eigenvalues is not None:
            if rank is not None:
                raise InputError("give either effective_rank or eigenvalues, not both")
            values = np.asarray(self.eigenvalues, dtype=np.float64)
            if values.ndim != 1 or not (np.isfinite(values).all() and values.min(initial=1) >= 0):
                raise InputError(
                    "eigenvalues must be finite numbers of at least 0, one per feature"
                )
            if not values.sum() > 0:
                raise InputError("eigenvalues must not all be 0")
        if not is_number(correlation) or not 0 <= correlation < 1:
            raise InputError(f"outcome_correlation={correlation!r} must lie in [0, 1)")

    @classmethod
    def from_public(
        cls, features: NDArray[Any], *, norm: float, r2: float, outcome_correlation: float = 0.0
    ) -> Signal:
        """Read what a *public* panel says about the features, centred and in the bounds' units.

        Calling this on private data would make the plan depend on it, and void the guarantee of
        whatever was chosen by the plan.
        """
        rows = np.asarray(features, dtype=np.float64)
        if rows.ndim != 2 or not rows.size or not np.isfinite(rows).all():
            raise InputError("the panel must be a table of finite numbers, one row per person")
        values = np.maximum(np.linalg.eigvalsh(rows.T @ rows), 0.0)
        return cls(
            r2=r2,
            feature_spread=min(1.0, float(values.sum()) / len(rows) / norm**2),
            eigenvalues=tuple(float(v) for v in values),
            outcome_correlation=outcome_correlation,
        )

    def outcome_share(self, l: int) -> float:
        """Return the mean squared norm of a row of l outcomes over its squared bound."""
        if self.outcome_spread is not None:
            return self.outcome_spread
        return float(l / (1.15 * math.sqrt(l) + 1) ** 2)

    def spectrum(self, d: int) -> Floats:
        """Return d ascending eigenvalues that add up to 1.

        The given ones, or an exponential decay of the given effective rank.
        """
        if self.eigenvalues is not None:
            if len(self.eigenvalues) != d:
                raise InputError(f"there are {len(self.eigenvalues)} eigenvalues for {d} features")
            given = np.sort(np.asarray(self.eigenvalues, dtype=np.float64))
            return np.asarray(given / given.sum())
        rank = d / (1 + math.sqrt(d) / 16) if self.effective_rank is None else self.effective_rank
        if rank >= d * (1 - 1e-9):
            return np.full(d, 1 / d)
        position = np.arange(d) / max(d - 1, 1)

        def values(rate: float) -> Floats:
            decayed = np.exp(rate * (position - 1))
            return np.asarray(decayed / decayed.sum())

        def excess(rate: float) -> float:
            return effective_rank_of(values(rate)) - rank

        steepest = 30.0 * d
        if excess(steepest) >= 0:
            return values(steepest)
        return values(brentq(excess, 0.0, steepest, xtol=1e-6))

    def coefficient_norm(
        self, *, d: int, l: int, feature_norm: float, outcome_norm: float
    ) -> float:
        """Return ‖ŵ‖, root mean squared over outcomes, that these assumptions imply."""
        variance = self.outcome_share(l) * outcome_norm**2 / l
        return math.sqrt(d * self.r2 * variance / self.feature_spread) / feature_norm


def effective_rank_of(eigenvalues: Floats) -> float:
    """Return exp of the entropy of the eigenvalues' shares, between 1 and their number."""
    shares = eigenvalues[eigenvalues > 0] / eigenvalues.sum()
    return float(np.exp(-shares @ np.log(shares)))


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """In-sample R² pooled over outcomes (total and residual sums of squares added up first)."""

    r2: float  # of the private coefficients
    ols_r2: float  # of least squares without privacy, on the same draws
    standard_error: float  # of r2, from the finite number of draws


def predict(
    plan: Plan, *, association: str = "gauss", estimator: str = "auto", signal: Signal | None = None
) -> Prediction:
    """Predict R² for one way to release and estimate; see `predict_all`."""
    return predict_all(
        plan, association=association, estimators=(estimator,), signal=signal or Signal()
    )[0]


def predict_all(
    plan: Plan, *, association: str, estimators: Sequence[str], signal: Signal
) -> tuple[Prediction, ...]:
    """Predict R² for several estimators of the same simulated releases.

    Deterministic: draws come from a fixed seed (nobody is protected by them), and are the same for
    every plan of the same d and l, so that predictions can be compared and bisected.

    Cost: a few calls of each estimator on d features and at most `MOST_OUTCOMES` outcomes.
    """
    if association not in associations_for(plan.protection):
        raise InputError(
            f"association={association!r} does not serve protection={str(plan.protection)!r}: "
            "projecting needs the other block to be public"
        )
    for name in estimators:
        if name not in ESTIMATORS:
            raise InputError(f"unknown estimator {name!r}; choose one of {', '.join(ESTIMATORS)}")
    simulated = min(plan.l, MOST_OUTCOMES)
    if plan.protection is Protection.FEATURES and plan.full_outcome_moments:
        simulated = plan.l  # two-sided filters of exact YᵀY: no part of it stands for the whole
    repeats = min(MOST_REPEATS, max(FEWEST_REPEATS, math.ceil(4 * MOST_REPEATS / simulated)))
    scores = np.empty((repeats, len(estimators)))
    ols = np.empty(repeats)
    for repeat in range(repeats):
        draw = _draw(plan, signal, simulated, seed=(_SEED, repeat))
        moments = draw.release(plan, association)
        ols[repeat] = draw.score(draw.least_squares())
        for column, name in enumerate(estimators):
            scores[repeat, column] = draw.score(estimate(moments, estimator=name).coefficients)
    # Least squares is cheap to draw often, so its luck in these few draws is known and taken out, in
    # proportion to what the estimator reaches of it.
    expected = _expected_ols(plan, signal, simulated)
    share = np.clip(scores.mean(axis=0) / ols.mean(), 0.0, 1.0)
    scores -= np.outer(ols - expected, share)
    errors = scores.std(axis=0, ddof=1) / math.sqrt(repeats)
    return tuple(
        Prediction(r2=float(r2), ols_r2=expected, standard_error=float(error))
        for r2, error in zip(scores.mean(axis=0), errors, strict=True)
    )


@dataclass(frozen=True, kw_only=True)
class Projected:
    """An association after projection, and what the projection left of its noise."""

    association: Floats  # (d, l)
    kept: float  # root mean squared factor by which noise was multiplied

    @classmethod
    def onto_features(cls, association: Floats, values: Floats, radius_squared: float) -> Projected:
        """GaussProj_X in the eigenbasis of XᵀX with eigenvalues `values` (mathematics.md, 5)."""
        energy = np.einsum("ij,ij->i", association, association)
        keep = _shrinkage(values, energy, radius_squared)
        return cls(association=keep[:, None] * association, kept=float(np.sqrt(np.mean(keep**2))))

    @classmethod
    def onto_outcomes(
        cls, association: Floats, outcome_moments: Floats, radius_squared: float
    ) -> Projected:
        """GaussProj_Y, from the exact YᵀY."""
        values, vectors = np.linalg.eigh(outcome_moments)
        values = np.maximum(values, 0.0)
        rotated = association @ vectors
        keep = _shrinkage(values, np.einsum("ij,ij->j", rotated, rotated), radius_squared)
        return cls(association=(rotated * keep) @ vectors.T, kept=float(np.sqrt(np.mean(keep**2))))


@dataclass(frozen=True, kw_only=True)
class _Draw:
    """Exact moments of one simulated cohort, in a basis in which XᵀX is diagonal."""

    values: Floats  # (d,) XᵀX
    association: Floats  # (d, m) XᵀY
    outcome_moments: Floats  # (m, m) YᵀY or (m,)
    signal_variance: float  # τ², of a coefficient
    residual_variance: float  # s²
    seed: tuple[int, int]

    def least_squares(self) -> Floats:
        """Return the coefficients without privacy."""
        seen = self.values > 0
        return np.where(seen, self.association.T / np.where(seen, self.values, 1.0), 0.0).T

    def score(self, coefficients: Floats) -> float:
        """R² of coefficients on this cohort, pooled over outcomes."""
        gain = 2 * np.sum(coefficients * self.association)
        gain -= np.sum(self.values[:, None] * coefficients**2)
        moments = self.outcome_moments
        return float(gain / (np.trace(moments) if moments.ndim == 2 else moments.sum()))

    def release(self, plan: Plan, association: str) -> NoisyMoments:
        """Add the plan's noise, and project if asked."""
        d, m = self.association.shape
        noise = [np.random.default_rng((*self.seed, 1 + block)) for block in range(3)]
        covariance = np.diag(self.values) + _symmetric(noise[0], d, plan.covariance_sigma)
        drawn = noise[1].standard_normal((m, d)).T * plan.association_sigma
        outcome = self.outcome_moments
        if plan.full_outcome_moments:
            outcome = outcome + _symmetric(noise[2], m, plan.outcome_sigma)
        else:
            outcome = np.diag(outcome) if outcome.ndim == 2 else outcome
            outcome = outcome + noise[2].standard_normal(m) * plan.outcome_sigma
        projected = self._projected(plan, association, drawn)
        return NoisyMoments(
            n=plan.n,
            covariance=covariance,
            association=projected.association,
            outcome_moments=outcome,
            covariance_sigma=plan.covariance_sigma,
            association_sigma=plan.association_sigma * projected.kept,
            outcome_sigma=plan.outcome_sigma,
        )

    def _projected(self, plan: Plan, association: str, noise: Floats) -> Projected:
        m = noise.shape[1]
        if association == "gauss":
            return Projected(association=self.association + noise, kept=1.0)
        if plan.protection is Protection.OUTCOMES:
            radius = plan.n * plan.outcomes.norm**2 * m / plan.l
            return Projected.onto_features(self.association + noise, self.values, radius)
        radius = plan.n * plan.feature_norm**2
        if m == plan.l:
            return Projected.onto_outcomes(self.association + noise, self.outcome_moments, radius)
        keep, kept = self._kept_of_many(plan, radius)
        return Projected(association=keep[:, None] * self.association + kept * noise, kept=kept)

    def _kept_of_many(self, plan: Plan, radius_squared: float) -> tuple[Floats, float]:
        """GaussProj_Y for more outcomes than are simulated: factors of signal (d,) and of noise.

        With many outcomes YᵀY has one strong direction for each direction of the features (the rows
        of A^(1/2)W are nearly orthogonal), and beyond these the spectrum of a Wishart matrix, from
        which a smaller one of the same shape is drawn. Where n < l, most directions are empty: there
        the projection removes all noise.
        """
        d, l = len(self.values), plan.l
        per_outcome = self.values * self.signal_variance + self.residual_variance
        free = max(plan.n - int(np.count_nonzero(self.values)), 1)
        strong = l * per_outcome + free * self.residual_variance
        small, large = sorted((free, max(l - d, 1)))
        size = min(small, BULK)
        rng = np.random.default_rng((*self.seed, 9))
        bulk = np.linalg.eigvalsh(_wishart(rng, size, large * size / small))
        bulk *= self.residual_variance * small / size
        noise_energy = d * plan.association_sigma**2
        copies = np.append(np.ones(d), np.full(size, small / size))
        energy = np.append(
            self.values * l * per_outcome + noise_energy, np.full(size, noise_energy)
        )
        keep = _shrinkage(np.append(strong, bulk), copies * energy, radius_squared)
        return keep[:d], float(np.sqrt(copies @ keep**2 / l))


def _scales(plan: Plan, signal: Signal) -> tuple[Floats, float, float]:
    """Return the eigenvalues of XᵀX, τ² and s² that the assumption implies under a plan."""
    n, d = plan.n, plan.d
    values = signal.spectrum(d)
    values = np.where(np.arange(d) < d - n, 0.0, values)  # at most n directions
    values *= n * signal.feature_spread * plan.features.norm**2 / values.sum()
    variance = signal.outcome_share(plan.l) * plan.outcomes.norm**2 / plan.l
    return values, signal.r2 * variance * n / values.sum(), (1 - signal.r2) * variance


def _expected_ols(plan: Plan, signal: Signal, m: int) -> float:
    """Return the expected R² of least squares for m outcomes, from many draws of its law."""
    values, tau2, residual = _scales(plan, signal)
    rng = np.random.default_rng(_SEED)
    draws = max(8, 4000 // m)
    scale = np.sqrt(values * tau2 + residual * (values > 0))[:, None]
    scaled = _correlate(scale * rng.standard_normal((draws, plan.d, m)), signal)
    explained = np.einsum("kij,kij->k", scaled, scaled)
    left = residual * m * max(plan.n - int(np.count_nonzero(values)), 0)
    return float(np.mean(explained / (explained + left)))


def _draw(plan: Plan, signal: Signal, m: int, *, seed: tuple[int, int]) -> _Draw:
    """Draw the moments of m of the plan's outcomes under the assumption."""
    n, d = plan.n, plan.d
    values, tau2, residual = _scales(plan, signal)
    rng = np.random.default_rng((*seed, 0))
    # Drawn outcome by outcome, so that fewer outcomes are a part of more.
    drawn = rng.standard_normal((m, 2, d))
    true, sampling = _correlate(drawn[:, 0].T, signal), _correlate(drawn[:, 1].T, signal)
    root = np.sqrt(values)[:, None]
    scaled = root * math.sqrt(tau2) * true + math.sqrt(residual) * sampling  # A^(1/2)W_ols
    scaled *= values[:, None] > 0
    free = max(n - int(np.count_nonzero(values)), 0)
    left = np.random.default_rng((*seed, 8))
    whole = plan.full_outcome_moments or (not plan.protection.outcomes_private and m == plan.l)
    if whole or signal.outcome_correlation > 0:
        factor = _wishart_factor(left, m, free)
        rest = _correlate(factor.T, signal)
        moments = scaled.T @ scaled + residual * (rest.T @ rest)
        moments = moments if whole else np.diag(moments).copy()
    else:
        rest = left.chisquare(free, size=m) if free else np.zeros(m)
        moments = np.einsum("ij,ij->j", scaled, scaled) + residual * rest
    return _Draw(
        values=values,
        association=root * scaled,
        outcome_moments=moments,
        signal_variance=tau2,
        residual_variance=residual,
        seed=seed,
    )


def _correlate(rows: Floats, signal: Signal) -> Floats:
    """Give independent outcomes (in columns) the assumed correlation."""
    rho, m = signal.outcome_correlation, rows.shape[-1]
    if rho == 0 or m == 1:
        return rows
    own = math.sqrt(1 - rho)
    common = math.sqrt(1 - rho + m * rho) - own
    return np.asarray(own * rows + common * rows.mean(axis=-1, keepdims=True))


def _wishart_factor(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    """Return F, (size, k), such that FFᵀ is Wishart: Bartlett's triangle, or plain normals."""
    if degrees < size:
        return rng.standard_normal((size, int(degrees)))
    factor = np.tril(rng.standard_normal((size, size)), -1)
    factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    return factor


def _wishart(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    factor = _wishart_factor(rng, size, degrees)
    return np.asarray(factor @ factor.T)


def _symmetric(rng: np.random.Generator, d: int, sigma: float) -> Floats:
    """Noise of variance σ² on the diagonal and σ²/2 off it."""
    if sigma == 0:
        return np.zeros((d, d))
    square = rng.standard_normal((d, d))
    return np.asarray((square + square.T) * (sigma / 2))


def _shrinkage(values: Floats, energy: Floats, radius_squared: float) -> Floats:
    """Return v/(v + ν), the factors of the projection in its eigenbasis.

    By `project_onto_features` itself, on one column that carries the energy of each direction.
    """
    lengths = np.sqrt(np.maximum(energy, 1e-300))[:, None]
    radius = math.sqrt(radius_squared)
    return np.asarray(project_onto_features(lengths, np.diag(values), radius=radius) / lengths)[
        :, 0
    ]
