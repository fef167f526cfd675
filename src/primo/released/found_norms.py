"""A plan with the norms that released histograms of row lengths give it."""

from __future__ import annotations

from dataclasses import replace

from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.released.moments import ReleasedLengths
from primo.released.norms import ChosenNorms, LengthHistogram, choose_norms

__all__ = ["found_norms", "settled_plan"]


def settled_plan(plan: Plan, lengths: ReleasedLengths) -> Plan:
    """Return the plan with the norms of least predicted error.

    Guarantee: a function of the plan and of released numbers; costs no privacy.
    """
    chosen = found_norms(plan, lengths)
    return replace(
        plan,
        features=_with_norm(plan.features, chosen.features.norm),
        outcomes=_with_norm(plan.outcomes, chosen.outcomes.norm),
    )


def found_norms(plan: Plan, lengths: ReleasedLengths) -> ChosenNorms:
    """Choose norms, and say what others would have given; `plan` may have its norms already."""
    sigmas = {"features": 0.0, "outcomes": 0.0}  # a public block is counted exactly
    if plan.norm_search is not None:
        for block in sigmas:
            if getattr(plan.norm_search, block):
                sigmas[block] = plan.norm_search.sigma
    histograms = {
        block: None if counts is None else LengthHistogram(counts=counts, sigma=sigmas[block])
        for block, counts in (("features", lengths.features), ("outcomes", lengths.outcomes))
    }
    b_x, b_y = plan.features.norm, plan.outcomes.norm
    return choose_norms(
        features=histograms["features"],
        outcomes=histograms["outcomes"],
        feature_norm=b_x,
        outcome_norm=b_y,
        n=plan.n,
        d=plan.d,
        l=plan.l,
        covariance_scale=plan.covariance_sigma / b_x**2,
        association_scale=plan.association_sigma / (b_x * b_y),
        outcome_scale=plan.outcome_sigma / b_y**2,
        intercept=plan.intercept,
    )


def _with_norm(clip: Clip, norm: float) -> Clip:
    """Return the clip with a norm; rows cut to ranges are never longer than √columns."""
    return replace(clip, norm=min(norm, clip.width**0.5) if clip.box else norm)
