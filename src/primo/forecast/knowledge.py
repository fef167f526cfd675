"""What better public knowledge would bring: the same release, planned with other bounds.

Noise is proportional to bounds, so knowledge of the columns decides how much noise there is. Every
line of the comparison is a forecast of its own, under the same assumptions about the same rows; only
the bounds differ.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass

import numpy as np

from primo.errors import BoundsError, InputError, WeakGuaranteeWarning
from primo.forecast.assumptions import Signal
from primo.forecast.forecast import MANY, is_forecast, predict
from primo.forecast.law import Block, law_of
from primo.forecast.table import FREQUENCIES, R2_TOLERANCE, Better
from primo.planning.make import extension_plan, make_plan
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import AUTO, Bounds, Clip

__all__ = ["better_knowledge", "bounds_of", "replanned", "without_search"]

_NORM_FACTOR = 1.25  # lengths of a usual row of genotypes, as Bounds.from_frequencies has it


@dataclass(frozen=True, kw_only=True, eq=False)
class _Idea:
    """Bounds that could be given, and how."""

    words: str
    features: Bounds | None = None  # None: as they are
    outcomes: Bounds | None = None


def better_knowledge(
    plan: Plan, *, association: str, estimator: str, signal: Signal, than: float
) -> tuple[Better, ...]:
    """Forecast the release under bounds that say more; return what beats `than`, the best first.

    Nothing is read: means and deviations are those that are assumed or stated. All is forecast as one
    round, with `than` as well. Ideas that are not
    forecast to gain more than `R2_TOLERANCE` are left out. Cost: up to five forecasts, three where many
    features are stood for by fewer.
    """
    if not is_forecast(plan):
        return ()
    law = law_of(plan, signal)
    ideas, most = [], 1 if plan.d > MANY else 2  # of either block; the last says the most
    if plan.covariance_origin is CovarianceOrigin.ROWS and plan.protection.features_private:
        ideas += _feature_ideas(plan.features, law.features)[-most:]
    if plan.protection.outcomes_private:
        ideas += _outcome_ideas(plan.outcomes, law.outcomes)[-most:]
    same_rows = law.stated(plan)
    tried = [(idea, _forecast(plan, idea, association, estimator, same_rows)) for idea in ideas]
    of_features = [pair for pair in tried if pair[0].features is not None]
    of_outcomes = [pair for pair in tried if pair[0].outcomes is not None]
    if of_features and of_outcomes:  # join the best of either block
        x = max(of_features, key=lambda pair: pair[1])[0]
        y = max(of_outcomes, key=lambda pair: pair[1])[0]
        both = _Idea(words=f"{x.words}, and {y.words}", features=x.features, outcomes=y.outcomes)
        tried.append((both, _forecast(plan, both, association, estimator, same_rows)))
    better = [
        Better(knowledge=idea.words, predicted_r2=r2, instead_of=than)
        for idea, r2 in tried
        if r2 > than + R2_TOLERANCE
    ]
    return tuple(sorted(better, key=lambda b: -b.predicted_r2))


def without_search(plan: Plan, *, association: str, signal: Signal) -> float | None:
    """Forecast R² with the norms of the ranges, for a plan that is to find norms; the whole budget.

    None where nothing is to be found, and where a block has no range to be taken instead. Nothing is
    read. Cost: one forecast.
    """
    found = [getattr(plan, block) for block in plan.counted]
    if plan.norm_search is None or not all(clip.box for clip in found) or plan.earlier_mu:
        return None
    idea = _Idea(
        words="",
        features=_with_norm(plan.features, plan.features.longest)
        if "features" in plan.counted
        else None,
        outcomes=_with_norm(plan.outcomes, plan.outcomes.longest)
        if "outcomes" in plan.counted
        else None,
    )
    same_rows = law_of(plan, signal).stated(plan)
    return _forecast(plan, idea, association, "auto", same_rows)


def replanned(
    plan: Plan,
    *,
    epsilon: float | None = None,
    features: Bounds | None = None,
    outcomes: Bounds | None = None,
) -> Plan:
    """Return the plan of the same release at another epsilon, or with other bounds.

    A norm that was, or is to be, found from the rows would be found again.
    """
    epsilon = plan.budget.epsilon if epsilon is None else epsilon
    if outcomes is None:
        outcomes = bounds_of(plan.outcomes, auto="outcomes" in plan.auto_norms)
    if features is None:
        features = bounds_of(plan.features, auto="features" in plan.auto_norms)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakGuaranteeWarning)  # the release itself has warned
        if plan.earlier_mu:  # the covariance is paid for already
            return extension_plan(
                plan, l=plan.l, epsilon=epsilon, delta=plan.budget.delta, outcome_bounds=outcomes
            )
        settings = Settings(
            epsilon=epsilon,
            delta=plan.budget.delta,
            protection=plan.protection,
            feature_bounds=features,
            outcome_bounds=outcomes,
            fit_intercept=plan.intercept,
            split=plan.split if plan.covariance_noisy else None,
            outcome_moments="full" if plan.full_outcome_moments else "diagonal",
            association=plan.association,
        )
        return make_plan(settings, n=plan.n, d=plan.d, l=plan.l)


def bounds_of(clip: Clip, *, auto: bool = False) -> Bounds:
    """Return the bounds that a plan was made with; with `auto`, the norm is to be found."""
    norm = AUTO if auto else clip.norm
    if clip.box:
        return Bounds(lower=clip.centre - clip.scale, upper=clip.centre + clip.scale, norm=norm)
    return Bounds(centre=clip.centre, scale=clip.scale, norm=norm)


def _forecast(plan: Plan, idea: _Idea, association: str, estimator: str, signal: Signal) -> float:
    try:
        made = replanned(plan, features=idea.features, outcomes=idea.outcomes)
        return predict(made, association=association, estimator=estimator, signal=signal).r2
    # Bounds with which the numbers do not fit the integers, or that cannot be found.
    except (InputError, BoundsError):
        return -math.inf


def _feature_ideas(clip: Clip, block: Block) -> list[_Idea]:
    if not block.genotypes.any():
        return _ideas(clip, block, "features")
    known = block.genotypes
    norm = math.sqrt(_NORM_FACTOR**2 * int(known.sum()) + int((~known).sum()))
    bounds = Bounds(
        centre=np.where(known, clip.centre + clip.scale * block.mean, clip.centre),
        scale=np.where(known, clip.scale * block.sd, clip.scale),
        norm=norm,
    )
    return [_Idea(words=FREQUENCIES, features=bounds)]


def _outcome_ideas(clip: Clip, block: Block) -> list[_Idea]:
    return [
        dataclasses.replace(idea, features=None, outcomes=idea.features)
        for idea in _ideas(clip, block, "outcomes")
    ]


def _ideas(clip: Clip, block: Block, name: str) -> list[_Idea]:
    """Return a norm that fits, and means and deviations in place of a range, as ideas for features."""
    width = clip.width
    # With few columns the longest row is further from a usual one.
    room = 1.15 + 1 / math.sqrt(width)
    found = []
    norm = float(f"{room * block.length:.2g}")
    if clip.norm > 1.25 * norm:
        found.append(
            _Idea(words=f"a norm of {norm:g} for the {name}", features=_with_norm(clip, norm))
        )
    if clip.box:
        found.append(
            _Idea(
                words=f"public means and standard deviations of the {name} as centre and scale",
                features=Bounds(
                    centre=clip.centre + clip.scale * block.mean,
                    scale=clip.scale * block.sd,
                    norm=room * math.sqrt(width),
                ),
            )
        )
    return found


def _with_norm(clip: Clip, norm: float) -> Bounds:
    return dataclasses.replace(bounds_of(clip), norm=norm)
