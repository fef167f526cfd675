"""The norms that a release with norm="auto" is expected to find, for its forecast.

Lengths of rows are drawn under the same assumptions as the rows of the forecast (`Law`), counted
without noise, and handed to the very rule that a release uses.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

from primo.forecast.assumptions import Signal
from primo.forecast.law import Block, law_of
from primo.planning.plan import Plan
from primo.privacy.clip import Clip
from primo.privacy.lengths import BINS, bin_of_squared
from primo.released.found_norms import settled_plan
from primo.released.moments import ReleasedLengths

__all__ = ["with_expected_norms"]

_DRAWN = 4000  # lengths
_SEED = 20_261_117


def with_expected_norms(plan: Plan, signal: Signal) -> tuple[Plan, Signal]:
    """Return the plan with norms as they may be expected, and the signal in the data's own units.

    What bounds say of the columns is read off the plan as it is: a norm that was found says nothing
    more. A plan whose norms are stated is returned as it is.
    """
    if not plan.counted:
        return plan, signal
    law = law_of(plan, signal)
    blocks = {
        block: _about_mean(known) if block in plan.centred else known
        for block, known in (("features", law.features), ("outcomes", law.outcomes))
    }
    counts = {
        "features": _counts(blocks["features"], plan.n, directions=signal.rank(plan.d), seed=0),
        "outcomes": _counts(blocks["outcomes"], plan.n, directions=plan.l, seed=1),
    }
    lengths = ReleasedLengths(
        features=counts["features"] if "features" in plan.counted else None,
        outcomes=counts["outcomes"] if "outcomes" in plan.counted else None,
    )
    stated = law.stated(plan)
    settled = settled_plan(plan, lengths)
    settled = dataclasses.replace(
        settled,
        features=_centred(settled.features, law.features, "features" in plan.centred),
        outcomes=_centred(settled.outcomes, law.outcomes, "outcomes" in plan.centred),
        auto_norms=(),
        norm_search=None,
        centre_search=None,
        column_search=None,
    )
    return settled, stated


def _about_mean(block: Block) -> Block:
    """Return a block whose centre was found: about its mean, and in its own scales."""
    return dataclasses.replace(block, mean=np.zeros_like(block.mean))


def _centred(clip: Clip, block: Block, found: bool) -> Clip:
    """Return the clip about the mean that is expected; ranges hardly cut rows about it."""
    if not found or block.cut:
        return clip
    return dataclasses.replace(
        clip, centre=clip.centre + clip.scale * block.mean, box=False, middle=None
    )


def _counts(block: Block, n: int, *, directions: float, seed: int) -> NDArray[np.float64]:
    """Return expected counts of row lengths: a mean, and normals in so many even directions."""
    rng = np.random.default_rng((_SEED, seed))
    offset = float(np.linalg.norm(block.mean))
    spread = float(np.linalg.norm(block.sd)) / math.sqrt(directions)
    along = offset + spread * rng.standard_normal(_DRAWN)
    across = spread**2 * rng.chisquare(max(directions - 1, 1e-9), _DRAWN)
    found = np.bincount(bin_of_squared(along**2 + across), minlength=BINS)
    return np.asarray(found * (n / _DRAWN))
