"""What summary statistics are, whatever part of the covariance a release holds."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy.special
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.system import WELL_DETERMINED, check_level
from primo.variants import Variants

__all__ = ["MarginalEffects", "SummaryStatistics", "effective_people"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class MarginalEffects:
    """The effects of all variants on one outcome, per copy of the counted allele; all of it public.

    NaN where the noise hides how much a variant varies (`SummaryStatistics.determined`). The effective
    n is NaN also where the noise hides how much the outcome varies (`effective_people`).
    """

    outcome: str
    effect: Floats  # (variants,) in the outcome's unit per copy of the counted allele
    standard_error: Floats  # (variants,) of privacy noise and sampling together
    effective_n: (
        Floats  # (variants,) people whose study without noise would have this standard error
    )

    @property
    def z(self) -> Floats:
        """Effect over standard error."""
        return self.effect / self.standard_error

    @property
    def neg_log10_p(self) -> Floats:
        """−log₁₀ of the two-sided p-value of a normal z; exact far beyond the smallest float."""
        log_p = math.log(2) + scipy.special.log_ndtr(-np.abs(self.z))
        return np.asarray(np.maximum(-log_p / math.log(10), 0.0))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return both ends of the confidence intervals of the population's effects."""
        width = scipy.special.ndtri((1 + check_level(level)) / 2) * self.standard_error
        return self.effect - width, self.effect + width


def effective_people(
    n: int, *, sampling: Floats, noise: Floats, variation: float, error: float
) -> Floats:
    """Return n·s/(s + v) for variances s of sampling and v of privacy noise, (variants,).

    s grows with the variation of the outcome, of which the release tells an estimate and the standard
    deviation of its error. Their ratio, times v/(s + v), is about the relative error of the effective n:
    where that is above 1/`WELL_DETERMINED` it is not determined, NaN.
    """
    private = noise / (noise + sampling)
    known = private * error * WELL_DETERMINED <= variation
    return np.where(known, n * (1 - private), np.nan)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SummaryStatistics(ABC):
    """Marginal effects of every variant on every outcome of a release; made by `summary_statistics`.

    Guarantee: post-processing of the release; costs no privacy.
    Cost: an outcome is computed when it is asked for, in O(variants · (covariates + 1)).
    """

    release: ReleasedMoments
    variants: Variants
    covariates: tuple[str, ...]  # features that are not variants and were adjusted for
    notes: tuple[str, ...]  # why the standard errors are incomplete, if they are
    _places: NDArray[np.intp]  # of the variants among the features

    def __repr__(self) -> str:
        """Say what it is about."""
        d, l = len(self.variants), len(self.release.outcome_names)
        return f"<SummaryStatistics of {d} variants and {l} outcomes (public)>"

    @property
    def outcome_names(self) -> tuple[str, ...]:
        """Names of the outcomes."""
        return self.release.outcome_names

    @property
    def n(self) -> int:
        """People: rows, or half as many where a row is a haplotype."""
        plan = self.release.plan
        return plan.n // 2 if self.variants.haplotypes else plan.n

    @property
    @abstractmethod
    def determined(self) -> NDArray[np.bool_]:
        """Which variants vary clearly more than the noise, (variants,); the others have no effects."""

    @property
    def frequency(self) -> Floats | None:
        """Frequency of each counted allele by the released means; None without an intercept."""
        plan = self.release.plan
        if not plan.intercept:
            return None
        means, _ = self._means()
        copies = plan.features.centre[self._places] + plan.features.scale[self._places] * means
        return np.asarray(np.clip(copies / self.variants.copies, 0.0, 1.0))

    @property
    def frequency_error(self) -> Floats | None:
        """Standard deviation of the privacy noise in `frequency`, (variants,)."""
        plan = self.release.plan
        if not plan.intercept:
            return None
        _, noise = self._means()
        return np.asarray(plan.features.scale[self._places] * noise / self.variants.copies)

    @abstractmethod
    def outcome(self, which: str | int) -> MarginalEffects:
        """Return the effects on one outcome, by name or position."""

    @abstractmethod
    def _means(self) -> tuple[Floats, float]:
        """Return released means of the variants in scaled units, and their noise; of an intercept."""

    def _position(self, which: str | int) -> int:
        names = self.outcome_names
        if isinstance(which, str):
            if which not in names:
                raise InputError(Argument("outcome", which), " is not in this release")
            return names.index(which)
        if not -len(names) <= which < len(names):
            raise InputError(Argument("outcome", which), f": there are {len(names)} outcomes")
        return which % len(names)
