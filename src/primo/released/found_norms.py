"""A plan with the norms that released histograms of row lengths give it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.released.length_law import guessed_lengths
from primo.released.moments import ReleasedLengths
from primo.released.norms import BlockChoice, ChosenNorms, LengthHistogram, choose_norms

__all__ = ["found_norms", "settled_plan"]

LENGTHENED = 2**0.25  # a norm in units of the typical length, where only that is known
SCALED = 2.0  # the same for columns in units of their standard deviations, if nothing else is known


def settled_plan(plan: Plan, lengths: ReleasedLengths) -> Plan:
    """Return the plan with the norms of least predicted error.

    Guarantee: a function of the plan and of released numbers; costs no privacy.
    """
    chosen = found_norms(plan, lengths)
    return replace(
        plan,
        features=_settled("features", plan, chosen.features, lengths.features),
        outcomes=_settled("outcomes", plan, chosen.outcomes, lengths.outcomes),
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


def _settled(
    block: str, plan: Plan, choice: BlockChoice, counts: NDArray[np.float64] | None
) -> Clip:
    """Return the clip with its norm; rows cut to ranges are never longer than their ends."""
    clip: Clip = getattr(plan, block)
    if counts is None or choice.found:
        return replace(clip, norm=min(choice.norm, clip.longest))
    sigma = 0.0 if plan.norm_search is None else plan.norm_search.sigma
    search = plan.column_search
    scaled = search is not None and bool(getattr(search, block))
    limit = clip.longest if not scaled else SCALED * math.sqrt(clip.width)
    norm = _rough_norm(block, counts, sigma=sigma, n=plan.n, limit=limit)
    return replace(clip, norm=norm)


def _rough_norm(
    block: str, counts: NDArray[np.float64], *, sigma: float, n: int, limit: float
) -> float:
    """Return a norm where the counts tell none: one that cannot do harm.

    The longest one that is plausible, where ranges or found scales limit it. Otherwise the same for
    features: beside a norm that is too short for them, slopes would be too long without limit, and one
    that is too long drowns them. For outcomes without a limit the shortest one: slopes and means of
    shortened outcomes are too short, and the noise of a norm that is too long has no limit.
    """
    shortest, longest = guessed_lengths(counts, sigma=sigma, n=n, limit=limit)
    if block == "features" or limit < math.inf:
        return min(LENGTHENED * longest, limit)
    return LENGTHENED * shortest
