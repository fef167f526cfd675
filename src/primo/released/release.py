"""A release as users see it: noisy moments with their privacy statement and estimators."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from primo._util.html import facts
from primo.errors import InputError
from primo.released import uncertainty
from primo.released.coefficients import Coefficients, estimate_coefficients
from primo.released.estimation import Estimation
from primo.released.moments import ReleasedMoments
from primo.released.statement import entries, item, statement, title
from primo.released.uncertainty.words import spread_words

__all__ = ["Release"]

#: Work (d³ + 150·d·l, in about nanoseconds) up to which the fit is part of what a release shows.
_QUICK = 5e8


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Release(ReleasedMoments):
    """Noisy moments, all that was learned from the rows; safe to publish, and prints its statement.

    Guarantee: `plan.mu`-GDP, hence `plan.budget`, for `plan.protection` under replace-one. Anything
    computed from it costs no further privacy.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> release = model.fit(X, Y).release_
    >>> release.covariance.shape, release.association.shape  # the constant is one more feature
    ((3, 3), (3, 3))
    >>> print(release.statement().splitlines()[0])
    Privacy statement: 3 regressions on 2 features, one release in 6 rounds
    >>> release.coefficients().slopes.shape
    (2, 3)
    """

    def __repr__(self) -> str:
        """Show the privacy statement, how well the regressions fit by released numbers, and doubts."""
        return "\n".join([self.statement(), *(item(*entry) for entry in self._seen())])

    def _repr_html_(self) -> str:
        """Show the same as a table, in a notebook."""
        return facts(title(self), [*entries(self), *self._seen()])

    def _seen(self) -> list[tuple[str, str]]:
        """Return what the released numbers say: fit and doubts."""
        return [("Fit", self._fit), *(("Doubt", said) for said in self._doubts)]

    def statement(self) -> str:
        """Say in plain words what is protected, how strongly, and on what assumptions."""
        return statement(self)

    def coefficients(
        self,
        *,
        estimator: str = "auto",
        ridge_lambda: float | str | None = None,
        coefficient_norm: float | None = None,
        solver: str = "fast",
    ) -> Coefficients:
        """Estimate slopes and intercepts of all outcomes.

        See `primo.coefficients`. Computed from this release alone: costs no privacy.
        """
        return estimate_coefficients(
            self,
            Estimation(
                estimator=estimator,
                ridge_lambda=ridge_lambda,
                coefficient_norm=coefficient_norm,
                solver=solver,
            ),
        )

    def goodness_of_fit(
        self, *, level: float = 0.95, target: str = "rows", fdr: float = 0.05
    ) -> uncertainty.GoodnessOfFit:
        """Estimate R² of every outcome, with intervals, and say whether signal was found.

        See `released.uncertainty.goodness_of_fit`. Computed from this release alone: costs no privacy.
        """
        return uncertainty.goodness_of_fit(self, level=level, target=target, fdr=fdr)

    def summary(
        self, outcome: str | int = 0, *, level: float = 0.95, target: str = "population"
    ) -> uncertainty.Summary:
        """Describe the regression of one outcome, by name or position, in plain text.

        See `released.uncertainty.summary`. Computed from this release alone: costs no privacy.
        """
        return uncertainty.summary(self, outcome, level=level, target=target)

    def doubts(self) -> tuple[str, ...]:
        """Say which bounds did not fit the rows, each with what to do next time.

        See `released.uncertainty.bound_doubts`. Computed from this release alone: costs no privacy.
        """
        return uncertainty.bound_doubts(self)

    @cached_property
    def _doubts(self) -> tuple[str, ...]:
        """What `doubts` returns; never raises."""
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


def _fit_sentence(fit: uncertainty.GoodnessOfFit) -> str:
    found, l = int(fit.found.sum()), len(fit.r_squared)
    if l == 1:
        value, ends = fit.words(0, 2)
        return f"R² {value} from the released numbers ({fit.level:.0%} interval {ends}); " + (
            "signal clearly found" if found else "not distinguishable from noise"
        )
    words = spread_words(fit.r_squared[fit.trusted], l)
    return (
        f"R² from the released numbers: {words}; signal clearly found for {found} of {l} outcomes"
    )
