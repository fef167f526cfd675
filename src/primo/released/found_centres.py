"""A plan about the centres that a noisy sum of shortened rows gives it: post-processing.

Where rows lie far off their public centre, nearly all of their length is the offset, and noise is
proportional to it. The mean of shortened rows points where the mean of the rows does, and is shorter
where many rows are shortened. An imperfect centre is no error: it is public, and what is left of the
offset stays in the rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.privacy.clip import Clip
from primo.released.length_law import denoised, guessed_lengths
from primo.released.moments import ReleasedLengths, ReleasedSums

__all__ = ["centred_plan", "found_centre", "plan_for_sums"]

Floats = NDArray[np.float64]

MOST_ROWS = 0.95  # share of the rows that the norm of the sums does not shorten
WIDE_RANGES = 8.0  # their ends over the typical length, where nothing else is known
GRID_BITS = 12  # centres are multiples of the norm's power of two over 2**GRID_BITS


def plan_for_sums(plan: Plan, lengths: ReleasedLengths) -> Plan:
    """Return the plan with the norms to which rows are shortened before they are summed.

    Guarantee: a function of the plan and of released numbers; costs no privacy.
    """
    search = plan.centre_search
    if search is None:
        raise ValueError("the plan finds no centres")
    clips = {}
    for block in ("features", "outcomes"):
        clip: Clip = getattr(plan, block)
        if getattr(search, block):
            counts = getattr(lengths, block)
            law = denoised(counts, sigma=search.counts.sigma, n=plan.n)
            if law is None:
                # A norm that is too short moves the centre little; one too long, by its noise.
                # Ranges that somebody stated are hardly ever much wider than the rows.
                norm, _ = guessed_lengths(
                    counts, sigma=search.counts.sigma, n=plan.n, limit=clip.longest
                )
                if clip.box:
                    norm = max(norm, clip.longest / WIDE_RANGES)
            else:
                norm = law.norm_above(MOST_ROWS)
            clip = replace(clip, norm=min(norm, clip.longest))
        clips[block] = clip
    return replace(plan, features=clips["features"], outcomes=clips["outcomes"])


def centred_plan(plan: Plan, sums: ReleasedSums) -> Plan:
    """Return the plan about the centres that released sums tell; `plan` is that of the sums.

    Guarantee: a function of the plan and of released numbers; costs no privacy. Centres lie inside
    their ranges, and on a grid, so that the last digits of the machine do not show.
    """
    search = plan.centre_search
    if search is None:
        raise ValueError("the plan finds no centres")
    clips = {}
    for block in ("features", "outcomes"):
        clip: Clip = getattr(plan, block)
        if getattr(search, block):
            each = clip.norm / plan.n
            found = found_centre(getattr(sums, block) * each, sigma=search.sigma * each)
            step = math.exp2(math.ceil(math.log2(clip.norm)) - GRID_BITS)
            clip = clip.about(np.round(found / step) * step)
        clips[block] = clip
    return replace(plan, features=clips["features"], outcomes=clips["outcomes"])


def found_centre(mean: Floats, *, sigma: float) -> Floats:
    """Return the centre for the rows from their noisy mean (columns,) with noise sigma on each entry.

    A mean that is no longer than its noise is 0 (James and Stein): the public centre stays.
    """
    squared = math.fsum(mean * mean)
    if squared <= 0:
        return np.zeros_like(mean)
    return np.asarray(mean * max(0.0, 1 - len(mean) * sigma**2 / squared))
