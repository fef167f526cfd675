"""Answer before any data is read: how accurate, which way, and at what price.

`plan` compares every way to protect, release and estimate; `epsilon_for`, `outcomes_for` and `rows_for`
turn the question round. All of it follows from public numbers and a stated `Signal`, so nothing here
can leak, and nothing has to be charged.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from primo.bounds import Bounds, as_bounds
from primo.errors import InputError
from primo.forecast import Prediction, Signal, predict, predict_all
from primo.plans import Plan, make_plan
from primo.privacy.budget import is_number
from primo.privacy.protection import Protection
from primo.theory import Regime, associations_for, regime

__all__ = [
    "PlanTable",
    "Variant",
    "epsilon_for",
    "outcomes_for",
    "plan",
    "recommend_association",
    "recommend_estimator",
    "rows_for",
]

#: What is compared unless told otherwise; "auto" stands for the one- and the two-sided filter.
COMPARED = ("auto", "filter", "ridge")
#: A simpler way is preferred unless another is predicted to be better by more than this.
MATTERS = 0.005
_MOST_OUTCOMES = 10_000_000
_MOST_ROWS = 50_000_000


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to release and estimate, and what to expect of it."""

    protection: Protection
    association: str  # "gauss" or "projection"
    estimator: str
    covariance_sigma: float  # noise scales, in scaled units; 0 is exact because public
    association_sigma: float
    outcome_sigma: float
    regime: Regime
    predicted_r2: float
    standard_error: float  # of predicted_r2, from the finite simulation
    ols_r2: float  # of least squares without any privacy

    @property
    def lost(self) -> float:
        """Share of the outcomes' variance that privacy costs: excess error over the variance."""
        return self.ols_r2 - self.predicted_r2

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return asdict(self) | {"protection": str(self.protection), "lost": self.lost}


@dataclass(frozen=True, kw_only=True)
class PlanTable:
    """What `plan` returns: every variant considered. Print it to read it."""

    n: int
    d: int
    l: int
    epsilon: float
    delta: float
    signal: Signal
    variants: tuple[Variant, ...]  # the strongest protection first

    @property
    def recommended(self) -> Variant:
        """The best variant under the strongest protection that was asked for.

        A weaker protection is a decision about people, not about accuracy, so it is never
        recommended for being more accurate: see `best` for each.
        """
        return self.best(self.variants[0].protection)

    @property
    def protections(self) -> tuple[Protection, ...]:
        """The protections compared, the strongest first."""
        return tuple(dict.fromkeys(v.protection for v in self.variants))

    def best(self, protection: Protection | str) -> Variant:
        """Return the variant to use under a protection.

        The highest predicted R²; a simpler one (Gauss before projection, "auto", which adapts to
        the release, before a fixed estimator) if that costs no more than `MATTERS`.
        """
        protection = Protection.parse(protection)
        among = [v for v in self.variants if v.protection is protection]
        if not among:
            raise InputError(
                f"protection={str(protection)!r} is not part of this plan, which has "
                + ", ".join(self.protections)
            )
        top = max(v.predicted_r2 for v in among)
        close = [v for v in among if v.predicted_r2 >= top - MATTERS]
        return min(close, key=lambda v: (v.association != "gauss", v.estimator != "auto"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON."""
        return {
            "n": self.n,
            "d": self.d,
            "l": self.l,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "signal": asdict(self.signal),
            "variants": [v.to_dict() for v in self.variants],
            "recommended": self.recommended.to_dict(),
        }

    def __str__(self) -> str:
        """Return a table that needs no knowledge of privacy theory."""
        return "\n".join((*self._head(), "", *self._table(), "", *self._advice(), *self._theory()))

    def _head(self) -> list[str]:
        signal = self.signal
        return [
            f"Plan for {self.n:,} rows, {self.d:,} features, {self.l:,} outcomes; "
            f"epsilon {self.epsilon:g}, delta {self.delta:.3g}. No data was read.",
            *_wrap(
                f"Assumed: the features explain {signal.r2:.0%} of the outcomes' variance; a typical "
                f"row of features has {signal.feature_spread:.0%} of the squared length its bound "
                f"allows, a row of outcomes {signal.outcome_share(self.l):.0%}. If that is not so, "
                "the prediction is not either: state your own with signal=Signal(...)."
            ),
        ]

    def _table(self) -> list[str]:
        best = {protection: self.best(protection) for protection in self.protections}
        header = (
            f"  {'what is secret':<16}{'association':<13}{'estimator':<11}{'predicted R²':<18}"
            f"{'no privacy':<12}{'noise: XᵀX':<12}{'XᵀY':<10}"
        )
        lines = [header.rstrip()]
        for v in self.variants:
            mark = "*" if v is best[v.protection] else " "
            sigma = f"{v.covariance_sigma:.3g}" if v.covariance_sigma else "none"
            score = f"{v.predicted_r2:.3f} ± {2 * v.standard_error:.3f}"
            lines.append(
                f"{mark} {v.protection:<16}{v.association:<13}{v.estimator:<11}{score:<18}"
                f"{v.ols_r2:<12.3f}{sigma:<12}{v.association_sigma:<10.3g}".rstrip()
            )
        lines += _wrap(
            "R²: the share of the variance of all outcomes together that the fit explains, 1 at "
            "best, 0 for predicting the mean, below 0 for worse than that; ± is the precision of "
            "this simulation. * marks the best way to protect what is secret."
        )
        return lines

    def _advice(self) -> list[str]:
        chosen = self.recommended
        text = (
            f"Recommended: protection={str(chosen.protection)!r}, "
            f"association={chosen.association!r}, estimator={chosen.estimator!r}: predicted R² "
            f"{chosen.predicted_r2:.3f}; privacy costs {chosen.lost:.3f}."
        )
        if chosen.predicted_r2 < 0.1 * chosen.ols_r2:
            text += " Little is left of the signal: more rows, fewer outcomes or a larger epsilon."
        for protection in self.protections[1:]:
            other = self.best(protection)
            if other.predicted_r2 > chosen.predicted_r2 + MATTERS:
                public = "outcomes" if protection is Protection.FEATURES else "features"
                text += (
                    f" If the {public} are public anyway, protection={str(protection)!r} gives "
                    f"{other.predicted_r2:.3f}."
                )
        return _wrap(text)

    def _theory(self) -> list[str]:
        lines = [
            "",
            "What the paper's theory says: how excess error grows, without its constants, as a share",
            "of the squared bound of one outcome (1 is no better than predicting the mean).",
        ]
        seen = dict.fromkeys((v.protection, v.association) for v in self.variants)
        for protection, association in seen:
            found = next(
                v.regime
                for v in self.variants
                if (v.protection, v.association) == (protection, association)
            )
            square = found.outcome_bound**2
            price = (
                "as accurate as a single outcome would be (“PRIMO for free”)"
                if found.free
                else f"{found.cost:.3g} times that (the paper's cost: {found.printed_cost})"
            )
            lines += _wrap(
                f"{protection}, {association}: row {found.row} of Table 1, since {found.condition}. "
                f"Error {found.rate / square:.2g}, where {found.lower_bound / square:.2g} is the least "
                f"possible for a single outcome: {price}."
                + (" The bound promises nothing here." * found.trivial)
            )
        return lines


def plan(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    delta: float | None = None,
    protection: Protection | str | None = None,
    feature_bounds: Bounds | float | tuple[Any, Any] | None = None,
    outcome_bounds: Bounds | float | tuple[Any, Any] | None = None,
    signal: Signal | None = None,
    estimators: Sequence[str] = COMPARED,
    intercept: bool = True,
) -> PlanTable:
    """Compare all ways to release and estimate, before any data is read.

    Parameters
    ----------
    n, d, l
        Rows, features, outcomes.
    epsilon, delta
        The budget of the whole release; delta is 1/n² if not given.
    protection
        "both", "features" or "outcomes"; all three are compared if None.
    feature_bounds, outcome_bounds
        Bounds as for the release. They fix the units of the noise scales only: predictions depend
        on how well bounds fit, which is part of `signal`. A row norm of 1 if None.
    signal
        What is assumed of the data.
    estimators
        Which to compare.
    intercept
        Whether the release has a constant feature.

    Returns
    -------
    PlanTable
        Deterministic. Nothing in it depends on data, so it may be published and costs no privacy.
    """
    assumed = _signal(signal)
    protections = tuple(Protection) if protection is None else (Protection.parse(protection),)
    budget_delta = _delta(n, delta)
    variants: list[Variant] = []
    for kind in protections:
        made = make_plan(
            n=_whole("n", n),
            d=_whole("d", d),
            l=_whole("l", l),
            epsilon=epsilon,
            delta=budget_delta,
            protection=kind,
            feature_bounds=_bounds(feature_bounds, "feature"),
            outcome_bounds=_bounds(outcome_bounds, "outcome"),
            intercept=intercept,
        )
        for association in associations_for(kind):
            predictions = predict_all(
                made, association=association, estimators=estimators, signal=assumed
            )
            found = _regime(made, association, assumed)
            variants += [
                _variant(made, association, name, found, prediction)
                for name, prediction in zip(estimators, predictions, strict=True)
            ]
    return PlanTable(
        n=n,
        d=d,
        l=l,
        epsilon=epsilon,
        delta=budget_delta,
        signal=assumed,
        variants=tuple(variants),
    )


def recommend_association(made: Plan, *, signal: Signal | None = None) -> str:
    """Choose the mechanism for XᵀY from a plan alone: what association="auto" stands for.

    Gauss, unless projecting is predicted to raise R² by more than `MATTERS` with estimator="auto".
    """
    choices = associations_for(made.protection)
    assumed = _signal(signal)
    scores = {name: predict(made, association=name, signal=assumed).r2 for name in choices}
    best = max(choices, key=lambda name: scores[name])
    return best if scores[best] > scores["gauss"] + MATTERS else "gauss"


def recommend_estimator(
    made: Plan, *, association: str = "gauss", signal: Signal | None = None
) -> str:
    """Choose the estimator from a plan alone; "auto" unless another is predicted to be better."""
    predictions = predict_all(
        made, association=association, estimators=COMPARED, signal=_signal(signal)
    )
    scores = {name: p.r2 for name, p in zip(COMPARED, predictions, strict=True)}
    best = max(COMPARED, key=lambda name: scores[name])
    return best if scores[best] > scores["auto"] + MATTERS else "auto"


def epsilon_for(
    target_r2: float,
    *,
    n: int,
    d: int,
    l: int,
    delta: float | None = None,
    protection: Protection | str = Protection.BOTH,
    association: str = "auto",
    estimator: str = "auto",
    signal: Signal | None = None,
    intercept: bool = True,
) -> float:
    """Return the least epsilon, to 1 %, at which R² is predicted to reach the target."""
    question = _Question(protection, association, estimator, _signal(signal), intercept)
    question.check(target_r2)
    fixed = {"n": _whole("n", n), "d": _whole("d", d), "l": _whole("l", l)}
    small_delta = _delta(n, delta)

    def reached(epsilon: float) -> float:
        return question.r2(**fixed, epsilon=epsilon, delta=small_delta)

    low, high = 0.01, 100.0
    if (top := reached(high)) < target_r2:
        raise InputError(
            f"target_r2={target_r2:g} cannot be reached: even epsilon={high:g} is predicted to give "
            f"{top:.3f}; more rows or fewer outcomes would help"
        )
    if reached(low) >= target_r2:
        return low
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if reached(middle) >= target_r2 else (middle, high)
    return high


def outcomes_for(
    target_r2: float,
    *,
    n: int,
    d: int,
    epsilon: float,
    delta: float | None = None,
    protection: Protection | str = Protection.BOTH,
    association: str = "auto",
    estimator: str = "auto",
    signal: Signal | None = None,
    intercept: bool = True,
) -> int:
    """Return how many outcomes, to 1 %, one release can carry at the target R²."""
    question = _Question(protection, association, estimator, _signal(signal), intercept)
    question.check(target_r2)
    fixed = {"n": _whole("n", n), "d": _whole("d", d)}
    small_delta = _delta(n, delta)

    def enough(l: int) -> bool:
        return question.r2(**fixed, l=l, epsilon=epsilon, delta=small_delta) >= target_r2

    if not enough(1):
        top = question.r2(**fixed, l=1, epsilon=epsilon, delta=small_delta)
        raise InputError(
            f"target_r2={target_r2:g} cannot be reached: even one outcome is predicted to have "
            f"{top:.3f}; more rows or a larger epsilon would help"
        )
    return _turning_point(enough, most=_MOST_OUTCOMES)[0]


def rows_for(
    target_r2: float,
    *,
    d: int,
    l: int,
    epsilon: float,
    delta: float | None = None,
    protection: Protection | str = Protection.BOTH,
    association: str = "auto",
    estimator: str = "auto",
    signal: Signal | None = None,
    intercept: bool = True,
) -> int:
    """Return how many rows, to 1 %, are needed for the target R²; delta follows n if None."""
    question = _Question(protection, association, estimator, _signal(signal), intercept)
    question.check(target_r2)
    fixed = {"d": _whole("d", d), "l": _whole("l", l)}

    def short(n: int) -> bool:
        return question.r2(**fixed, n=n, epsilon=epsilon, delta=_delta(n, delta)) < target_r2

    fewest = max(2, d + 1)  # below this least squares fits noise exactly
    if not short(fewest):
        return fewest
    low, high = _turning_point(short, least=fewest, most=_MOST_ROWS)
    if low >= _MOST_ROWS:
        raise InputError(
            f"target_r2={target_r2:g} cannot be reached with {_MOST_ROWS:,} rows; fewer outcomes, "
            "fewer features or a larger epsilon would help"
        )
    return high


@dataclass(frozen=True)
class _Question:
    """What stays fixed while an inverse question is bisected."""

    protection: Protection | str
    association: str
    estimator: str
    signal: Signal
    intercept: bool

    def check(self, target_r2: float) -> None:
        if not is_number(target_r2) or not 0 < target_r2 < 1:
            raise InputError(f"target_r2={target_r2!r} must lie between 0 and 1")
        if target_r2 >= self.signal.r2:
            raise InputError(
                f"target_r2={target_r2:g} cannot be reached: the features are assumed to explain "
                f"r2={self.signal.r2:g} of the variance, with or without privacy; ask for less, or "
                "state a stronger signal=Signal(r2=...) if you know of one"
            )

    def r2(self, *, n: int, d: int, l: int, epsilon: float, delta: float) -> float:
        made = make_plan(
            n=n,
            d=d,
            l=l,
            epsilon=epsilon,
            delta=delta,
            protection=self.protection,
            feature_bounds=Bounds(norm=1.0),
            outcome_bounds=Bounds(norm=1.0),
            intercept=self.intercept,
        )
        choices = associations_for(made.protection)
        if self.association != "auto":
            choices = (self.association,)
        return max(
            predict(made, association=name, estimator=self.estimator, signal=self.signal).r2
            for name in choices
        )


def _turning_point(holds: Callable[[int], bool], *, least: int = 1, most: int) -> tuple[int, int]:
    """Bracket, to 1 %, where a condition that holds at `least` ceases to; both are `most` if never."""
    low, high = least, min(4 * least, most)
    while holds(high):
        low, high = high, min(4 * high, most)
        if low == most:
            return most, most
    while high - low > max(1, low // 100):
        middle = min(max(round(math.sqrt(low * high)), low + 1), high - 1)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


def _variant(
    made: Plan, association: str, estimator: str, found: Regime, prediction: Prediction
) -> Variant:
    return Variant(
        protection=made.protection,
        association=association,
        estimator=estimator,
        covariance_sigma=made.covariance_sigma,
        association_sigma=made.association_sigma,
        outcome_sigma=made.outcome_sigma,
        regime=found,
        predicted_r2=prediction.r2,
        standard_error=prediction.standard_error,
        ols_r2=prediction.ols_r2,
    )


def _regime(made: Plan, association: str, signal: Signal) -> Regime:
    return regime(
        n=made.n,
        d=made.d,
        l=made.l,
        epsilon=made.budget.epsilon,
        protection=made.protection,
        association=association,
        feature_norm=made.features.norm,
        outcome_bound=made.outcomes.norm / math.sqrt(made.l),
        coefficient_norm=signal.coefficient_norm(
            d=made.d, l=made.l, feature_norm=made.features.norm, outcome_norm=made.outcomes.norm
        ),
    )


def _signal(signal: Signal | None) -> Signal:
    if signal is None:
        return Signal()
    if not isinstance(signal, Signal):
        raise InputError(f"signal={signal!r} is not a primo.Signal")
    return signal


def _bounds(value: Any, block: str) -> Bounds:
    return Bounds(norm=1.0) if value is None else as_bounds(value, block)


def _delta(n: int, delta: float | None) -> float:
    return 1.0 / _whole("n", n) ** 2 if delta is None else delta


def _whole(name: str, value: Any) -> int:
    if not is_number(value) or value != int(value) or value < 1:
        raise InputError(f"{name}={value!r} must be a whole number of at least 1")
    return int(value)


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, width=98, initial_indent="  ", subsequent_indent="  ")
