"""What is assumed about data that nobody has looked at yet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from primo.errors import Argument, InputError
from primo.privacy.budget import is_number

__all__ = ["Signal", "as_signal", "effective_rank_of", "preferred"]

Floats = NDArray[np.float64]

#: Used where nothing is known of the signal: no preferred direction, and along the leading ones.
USUAL_ALIGNMENTS = (0.0, 1.0)


@dataclass(frozen=True, kw_only=True)
class Signal:
    """What is assumed about data nobody has looked at. The user can state every number.

    Parameters
    ----------
    r2
        Share of each outcome's variance that the features explain: what a perfect fit would reach.
    feature_mean, feature_sd
        Means and standard deviations of the features in their own units: one number for all, or one
        per feature. If None, they follow from the bounds (`primo.forecast.law`).
    outcome_mean, outcome_sd
        The same for the outcomes.
    feature_spread
        Mean squared norm of a row of features over its squared bound, instead of standard deviations.
        1 means that every row lies at the bound; loose bounds make it small, and noise relative to
        signal large. If None, it follows from the above; where only a norm is known it is 0.5, which
        fits haplotypes centred by a reference panel and bounded by its longest row.
    outcome_spread
        The same for a row of outcomes; where only a norm is known it is that of bounds at 1.15·√l + 1
        standard deviations.
    effective_rank
        How many directions the features really have: exp of the entropy of the eigenvalues of XᵀX,
        d if the features are uncorrelated. If None, d/(1 + √d/16): 8 of 10, 61 of 100, 144 of 300.
        SNPs picked at random from a few megabases of the 1000 Genomes have 9, 46 and 77; the fewer,
        the easier, so state it for features that are less or more correlated.
    eigenvalues
        The d eigenvalues of XᵀX up to a factor, if known from public data, instead of a rank.
    alignment
        Where the signal lies. 0: no preferred direction, effects equal per standard deviation of a
        feature. 1: along the directions in which the features vary most, as ancestry lies along the
        leading components of genotypes; slopes vary as the eigenvalues do. If None, forecasts are
        averaged over 0 and 1: real signals lie between them.
    outcome_correlation
        Correlation of any two outcomes, in signal and residual alike.

    Examples
    --------
    >>> import primo
    >>> signal = primo.Signal(r2=0.5, effective_rank=2)
    >>> primo.rows_for(0.4, d=3, l=4, epsilon=5, signal=signal, estimator="filter") < 10_000
    True
    """

    r2: float = 0.3
    feature_mean: float | tuple[float, ...] | None = None
    feature_sd: float | tuple[float, ...] | None = None
    outcome_mean: float | tuple[float, ...] | None = None
    outcome_sd: float | tuple[float, ...] | None = None
    feature_spread: float | None = None
    outcome_spread: float | None = None
    effective_rank: float | None = None
    eigenvalues: tuple[float, ...] | None = None
    alignment: float | None = None
    outcome_correlation: float = 0.0

    def __post_init__(self) -> None:
        for name in ("r2", "feature_spread", "outcome_spread"):
            value = getattr(self, name)
            if value is None and name != "r2":
                continue
            if not is_number(value) or not 0 < value <= 1:
                raise InputError(
                    Argument(f"signal.{name}", value), " must lie above 0 and at most at 1"
                )
        for block in ("feature", "outcome"):
            self._check_columns(block)
        rank, correlation = self.effective_rank, self.outcome_correlation
        if rank is not None and not (is_number(rank) and 1 <= rank < math.inf):
            raise InputError(Argument("signal.effective_rank", rank), " must be at least 1")
        if self.eigenvalues is not None:
            if rank is not None:
                raise InputError(
                    "give either ",
                    Argument("signal.effective_rank"),
                    " or ",
                    Argument("signal.eigenvalues"),
                    ", not both",
                )
            values = np.asarray(self.eigenvalues, dtype=np.float64)
            if values.ndim != 1 or not (np.isfinite(values).all() and values.min(initial=1) >= 0):
                raise InputError(
                    Argument("signal.eigenvalues"),
                    " must be finite numbers of at least 0, one per feature",
                )
            if not values.sum() > 0:
                raise InputError(Argument("signal.eigenvalues"), " must not all be 0")
        aligned = self.alignment
        if aligned is not None and not (is_number(aligned) and 0 <= aligned <= 1):
            raise InputError(Argument("signal.alignment", aligned), " must lie in [0, 1]")
        if not is_number(correlation) or not 0 <= correlation < 1:
            raise InputError(
                Argument("signal.outcome_correlation", correlation), " must lie in [0, 1)"
            )

    def _check_columns(self, block: str) -> None:
        """Refuse means and standard deviations that are not numbers, or that come with a spread."""
        for name, least in ((f"{block}_mean", -math.inf), (f"{block}_sd", 0.0)):
            value = getattr(self, name)
            if value is None:
                continue
            try:
                numbers = np.asarray(value, dtype=np.float64)
            except (TypeError, ValueError):
                numbers = np.array(math.nan)
            if numbers.ndim > 1 or not (np.isfinite(numbers) & (numbers > least)).all():
                kind = "positive " if least == 0 else ""
                raise InputError(
                    Argument(f"signal.{name}", value),
                    f" must be one {kind}number, or one per column",
                )
            if numbers.ndim:  # a list would not be hashable
                object.__setattr__(self, name, tuple(numbers.tolist()))
            if getattr(self, f"{block}_spread") is not None:
                raise InputError(
                    "give either ",
                    Argument(f"signal.{name}"),
                    " or ",
                    Argument(f"signal.{block}_spread"),
                    ", not both",
                )

    @classmethod
    def from_public(
        cls, features: NDArray[Any], *, norm: float, r2: float, outcome_correlation: float = 0.0
    ) -> Signal:
        """Read what a *public* panel says about the features, centred and in the bounds' units.

        Calling this on private data would make the plan depend on it, and void the guarantee of
        everything that is chosen by the plan.
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

    def feature_share(self) -> float:
        """Return the mean squared norm of a row of features over its squared bound, stated or usual."""
        return 0.5 if self.feature_spread is None else self.feature_spread

    def outcome_share(self, l: int) -> float:
        """Return the same for a row of l outcomes."""
        if self.outcome_spread is not None:
            return self.outcome_spread
        return float(l / (1.15 * math.sqrt(l) + 1) ** 2)

    def rank(self, d: int) -> float:
        """Return the effective rank of d features."""
        if self.eigenvalues is not None:
            return effective_rank_of(self.spectrum(d))
        if self.effective_rank is not None:
            return min(self.effective_rank, d)
        return d / (1 + math.sqrt(d) / 16)

    @property
    def alignments(self) -> tuple[float, ...]:
        """Powers of the eigenvalues that a forecast is averaged over."""
        return USUAL_ALIGNMENTS if self.alignment is None else (self.alignment,)

    def spectrum(self, d: int) -> Floats:
        """Return d ascending eigenvalues that add up to 1.

        The given ones, or an exponential decay of the given effective rank.
        """
        if self.eigenvalues is not None:
            if len(self.eigenvalues) != d:
                raise InputError(f"there are {len(self.eigenvalues)} eigenvalues for {d} features")
            given = np.sort(np.asarray(self.eigenvalues, dtype=np.float64))
            return np.asarray(given / given.sum())
        return _decay(d, self.rank(d)).copy()


@lru_cache(maxsize=8)  # every plan of a comparison asks for the same one
def _decay(d: int, rank: float) -> Floats:
    """Return d ascending eigenvalues of sum 1 that decay exponentially and have this effective rank."""
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


def effective_rank_of(eigenvalues: Floats) -> float:
    """Return exp of the entropy of the eigenvalues' shares, between 1 and their number."""
    shares = eigenvalues[eigenvalues > 0] / eigenvalues.sum()
    return float(np.exp(-shares @ np.log(shares)))


def preferred(values: Floats, spread: Floats, alignment: float) -> Floats:
    """Return the variances of slopes along directions in which features have the variances `values`.

    `spread` holds the variances of the features themselves. At alignment 0 effects are equal per
    standard deviation of a feature, so a slope is smaller where a feature varies more in the units of
    its bounds. Which features make up which direction is not known: the features that vary most are
    assigned to the directions of the largest variance. At 1 slopes vary as the eigenvalues do.
    """
    places = np.linspace(0, len(spread) - 1, len(values))
    alone = np.interp(places, np.arange(len(spread)), np.sort(spread))
    alone = np.maximum(alone / alone.max(), 1e-12)
    relative = np.maximum(values / values.max(), 1e-12)
    variances = relative**alignment * alone ** (alignment - 1)
    return np.asarray(np.where(values > 0, variances / variances.max(), 0.0))


def as_signal(signal: Signal | None) -> Signal:
    """Return the stated assumption, or the default one."""
    if signal is None:
        return Signal()
    if not isinstance(signal, Signal):
        raise InputError(Argument("signal", signal), " is not a primo.Signal")
    return signal
