"""A plan with the norms that released histograms of row lengths give it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.privacy.lengths import edges
from primo.released.moments import ReleasedLengths
from primo.released.norms import BlockChoice, ChosenNorms, LengthHistogram, choose_norms

__all__ = ["found_norms", "rough_norm", "settled_plan"]


def settled_plan(plan: Plan, lengths: ReleasedLengths) -> Plan:
    """Return the plan with the norms of least predicted error.

    Guarantee: a function of the plan and of released numbers; costs no privacy.
    """
    chosen = found_norms(plan, lengths)
    return replace(
        plan,
        features=_settled(plan.features, chosen.features, lengths.features),
        outcomes=_settled(plan.outcomes, chosen.outcomes, lengths.outcomes),
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
    together = _all_rounds(plan)
    return choose_norms(
        features=histograms["features"],
        outcomes=histograms["outcomes"],
        feature_norm=b_x,
        outcome_norm=b_y,
        n=plan.n,
        d=plan.d,
        l=plan.l,
        covariance_scale=plan.covariance_sigma / b_x**2 * together,
        association_scale=plan.association_sigma / (b_x * b_y) * together,
        outcome_scale=plan.outcome_sigma / b_y**2 * together,
        intercept=plan.intercept,
        centred=plan.centred,
    )


def _all_rounds(plan: Plan) -> float:
    """Noise of all rounds together over that of the first, if all had the outcomes' norm."""
    if plan.rounds is None:
        return 1.0
    return math.sqrt(plan.grid.q / sum(grid.q for grid in plan.rounds.grids))


def _settled(clip: Clip, choice: BlockChoice, counts: NDArray[np.float64] | None) -> Clip:
    """Return the clip with its norm; rows cut to ranges are never longer than their ends."""
    if clip.box or counts is None or choice.found:
        return replace(clip, norm=min(choice.norm, clip.longest))
    return replace(clip, norm=rough_norm(clip, counts))


def rough_norm(clip: Clip, counts: NDArray[np.float64]) -> float:
    """Return a norm where the counts tell none: that of the ranges, or where half of the counts lie."""
    if clip.box:
        return clip.norm
    seen = np.maximum(counts[1:-1], 0.0)
    half = int(np.searchsorted(np.cumsum(seen), seen.sum() / 2))
    return float(edges()[min(half + 1, len(edges()) - 1)])
