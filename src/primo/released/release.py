"""What leaves the wall: noisy moments, the plan they were made under, and words for both."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.bounds import Clip
from primo.released.projection import Projected
from primo.released.row_space import RowSpace

if TYPE_CHECKING:
    from primo.released.uncertainty import GoodnessOfFit

__all__ = ["PublicFeatures", "Release", "expect_release"]

Matrix = NDArray[np.float64]

#: Work (d³ + 150·d·l, in about nanoseconds) up to which the fit is part of what a release shows.
_QUICK = 5e8


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicFeatures:
    """Public features seen through their row space, where they outnumber the rows."""

    means: Matrix  # (d,) in scaled units
    row_space: RowSpace  # of the features about their means


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noisy sums over rows in scaled units; safe to publish, and all that estimation ever sees.

    Guarantee: `plan.mu`-GDP, hence `plan.budget`, for `plan.protection` under replace-one. Anything
    computed from it costs no further privacy.
    """

    plan: Plan
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    covariance: Matrix  # (width, width) XᵀX, the constant feature last; (0, 0) for a row space
    association: Matrix  # (width, l) XᵀY
    outcome_moments: Matrix  # (l, l) YᵀY, or (l,) its diagonal
    reproducible: bool
    backend: str
    projected: Projected | None = None  # the association after GaussProj
    earlier_outcomes: tuple[str, ...] = ()  # names in the releases that this one extends
    public_features: PublicFeatures | None = None  # more public features than rows

    @property
    def publishable(self) -> bool:
        """Whether the noise is secret, which the guarantee needs."""
        return not self.reproducible

    def __repr__(self) -> str:
        """Show the privacy statement, how well the regressions fit by released numbers, and doubts."""
        items = [("Fit", self._fit), *(("Doubt", said) for said in self._doubts)]
        return "\n".join([self.statement(), *(_item(*item) for item in items)])

    def goodness_of_fit(
        self, *, level: float = 0.95, target: str = "rows", fdr: float = 0.05
    ) -> GoodnessOfFit:
        """Estimate R² of every outcome, with intervals, and say whether signal was found.

        See `released.uncertainty.goodness_of_fit`. Computed from this release alone: costs no privacy.
        """
        from primo.released.uncertainty import goodness_of_fit

        return goodness_of_fit(self, level=level, target=target, fdr=fdr)

    def summary(
        self, outcome: str | int = 0, *, level: float = 0.95, target: str = "population"
    ) -> str:
        """Describe the regression of one outcome, by name or position, in plain text.

        See `released.uncertainty.summary`. Computed from this release alone: costs no privacy.
        """
        from primo.released.uncertainty import summary

        return summary(self, outcome, level=level, target=target)

    def doubts(self) -> tuple[str, ...]:
        """Say which bounds did not fit the rows, each with what to do next time.

        See `released.uncertainty.bound_doubts`. Computed from this release alone: costs no privacy.
        """
        from primo.released.uncertainty import bound_doubts

        return bound_doubts(self)

    @cached_property
    def _doubts(self) -> tuple[str, ...]:
        """The same; never raises."""
        try:
            with np.errstate(all="ignore"):
                return self.doubts()
        except (ArithmeticError, ValueError, IndexError):  # to show a release must always work
            return ()

    @cached_property
    def _fit(self) -> str:
        """Goodness of fit in a sentence; never raises, never takes much longer than a second."""
        plan = self.plan
        if plan.d**3 + 150 * plan.d * plan.l > _QUICK:
            return "R² of every outcome, from the released numbers: release.goodness_of_fit()"
        try:
            with np.errstate(all="ignore"):
                return _fit_sentence(self.goodness_of_fit())
        except InputError as error:
            return f"no R² from the released numbers: {error}"
        except (ArithmeticError, ValueError, IndexError):  # to show a release must always work
            return "no R² from the released numbers: they are not those of a regression"

    def statement(self) -> str:
        """Say in plain words what is protected, how strongly, and on what assumptions."""
        plan = self.plan
        items = [
            ("Protected", plan.protection.sentence),
            ("Guarantee", self._guarantee()),
            ("Neighbours", "data sets that differ by replacing one row"),
            ("Public", self._public()),
            ("Bounds", self._bounds()),
            ("Noise", self._noise()),
        ]
        if plan.rows_per_person > 1:
            items.append(
                (
                    "Per person",
                    f"a person owns {plan.rows_per_person} rows; against replacing all of them at once "
                    f"the guarantee is {_pair(plan.person_epsilon, plan.budget.delta)}",
                )
            )
        if plan.calibration != "exact":
            items.append(
                (
                    "Warning",
                    "noise scales as printed in the paper, which claims "
                    f"epsilon {plan.budget.epsilon:g}; the guarantee above is what they truly give",
                )
            )
        if plan.budget.delta > 1 / plan.n:
            items.append(
                (
                    "Warning",
                    f"delta is above 1/n = {1 / plan.n:.3g}: a mechanism that publishes one whole row "
                    "in the clear now and then would satisfy it. Choose delta well below 1/n",
                )
            )
        if plan.earlier_mu:
            items.append(
                (
                    "Together",
                    f"with the earlier releases of the same rows that this one extends: "
                    f"{_pair(plan.total_epsilon, plan.budget.delta)}-differential privacy, "
                    f"mu = {_up(plan.total_mu, 4)}",
                )
            )
        status = "noise from a cryptographic generator; may be published"
        if self.reproducible:
            status = (
                "reproducible: not for publication. The noise can be recomputed from random_state, "
                "so there is no privacy at all against anyone who knows or guesses it"
            )
        items.append(("Status", status))
        title = f"Privacy statement: {_count(plan.l, 'regression')} on {_count(plan.d, 'feature')}"
        return "\n".join([f"{title}, one release", *(_item(*item) for item in items)])

    def _guarantee(self) -> str:
        plan = self.plan
        mu = f"mu = {_up(plan.mu, 4)}" + (" even if the sample were known" if plan.sampled else "")
        return (
            f"{_pair(plan.epsilon, plan.budget.delta)}-differential privacy for all outcomes "
            f"together ({mu} of Gaussian DP). Whoever sees the release, whatever else they know, can "
            "hardly tell whether any one row was replaced by another"
        )

    def _public(self) -> str:
        plan = self.plan
        public = [f"the number of rows ({plan.n})", "the names of the columns", "the bounds"]
        if not plan.protection.features_private:
            public.append("all features")
        if not plan.protection.outcomes_private:
            public.append("all outcomes")
        if plan.covariance_origin is CovarianceOrigin.REFERENCE:
            public.append("the covariance, from a reference panel")
        return ", ".join(public)

    def _bounds(self) -> str:
        plan = self.plan
        text = f"features {_bound(plan.features)}; outcomes {_bound(plan.outcomes)}"
        if plan.missing == "centre":
            text += "; missing values count as the public centre of their column"
        return text

    def _noise(self) -> str:
        plan = self.plan
        covariance = {
            CovarianceOrigin.ROWS: _sigma(plan.covariance_sigma),
            CovarianceOrigin.REFERENCE: "of the reference panel (public)",
            CovarianceOrigin.EARLIER: f"{_sigma(plan.covariance_sigma)}, of the earlier release",
            CovarianceOrigin.ROW_SPACE: "exact (public)",
        }[plan.covariance_origin]
        if plan.sampled:
            covariance += f", from {plan.sampled} rows drawn in secret"
        projected = ", then projected" if plan.association == "projection" else ""
        return (
            f"discrete Gaussian ({self.backend}), in scaled units: covariance {covariance}; "
            f"association {_sigma(plan.association_sigma)}{projected}; outcome moments "
            f"({'full' if plan.full_outcome_moments else 'diagonal'}) {_sigma(plan.outcome_sigma)}; "
            f"split ratio {plan.split:.3g}"
        )


def _fit_sentence(fit: GoodnessOfFit) -> str:
    found, l = int(fit.found.sum()), len(fit.r_squared)
    if l == 1:
        value, ends = fit.words(0, 2)
        return f"R² {value} from the released numbers ({fit.level:.0%} interval {ends}); " + (
            "signal clearly found" if found else "not distinguishable from noise"
        )
    from primo.released.uncertainty.words import spread_words  # that package imports this module

    words = spread_words(fit.r_squared[fit.trusted], l)
    return (
        f"R² from the released numbers: {words}; signal clearly found for {found} of {l} outcomes"
    )


def expect_release(value: Any) -> Release:
    """Return a release, or say where to find one."""
    if not isinstance(value, Release):
        raise InputError(
            f"expected a release, got {type(value).__name__}; pass model.release_ of a fitted model, or "
            "primo.load_release(path)"
        )
    return value


def _up(value: float, digits: int) -> str:
    """Write a privacy loss with so many digits, rounded up: a statement never flatters."""
    exact = Decimal(value)
    places = exact.adjusted() - digits + 1
    rounded = exact.quantize(Decimal(1).scaleb(places), rounding=ROUND_CEILING)
    # What was asked for in few digits is not spoiled by the float behind it: 1e-06 stays 1e-06.
    shortest = Decimal(repr(value))
    if len(shortest.as_tuple().digits) <= digits:
        rounded = shortest
    return f"{float(rounded):.{digits}g}"


def _pair(epsilon: float, delta: float) -> str:
    return f"(epsilon = {_up(epsilon, 5)}, delta = {_up(delta, 3)})"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number > 1)}"


def _item(name: str, text: str) -> str:
    return textwrap.fill(
        text, width=98, initial_indent=f"  {name:<11} ", subsequent_indent=" " * 14
    )


def _bound(clip: Clip) -> str:
    if clip.box and math.isclose(clip.norm, math.sqrt(clip.width)):
        return "a range per column"
    scaled = clip.box or not clip.is_plain
    return (
        ("a range per column and " if clip.box else "")
        + f"row norm {clip.norm:.4g}"
        + (" in scaled units" if scaled else "")
    )


def _sigma(sigma: float) -> str:
    return f"sigma {sigma:.4g}" if sigma else "exact (public)"
