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
    counts = {
        "features": _counts(law.features, plan.n, directions=signal.rank(plan.d), seed=0),
        "outcomes": _counts(law.outcomes, plan.n, directions=plan.l, seed=1),
    }
    lengths = ReleasedLengths(
        features=counts["features"] if "features" in plan.counted else None,
        outcomes=counts["outcomes"] if "outcomes" in plan.counted else None,
    )
    settled = dataclasses.replace(settled_plan(plan, lengths), auto_norms=(), norm_search=None)
    return settled, law.stated(plan)


def _counts(block: Block, n: int, *, directions: float, seed: int) -> NDArray[np.float64]:
    """Return expected counts of row lengths: a mean, and normals in so many even directions."""
    rng = np.random.default_rng((_SEED, seed))
    offset = float(np.linalg.norm(block.mean))
    spread = float(np.linalg.norm(block.sd)) / math.sqrt(directions)
    along = offset + spread * rng.standard_normal(_DRAWN)
    across = spread**2 * rng.chisquare(max(directions - 1, 1e-9), _DRAWN)
    found = np.bincount(bin_of_squared(along**2 + across), minlength=BINS)
    return np.asarray(found * (n / _DRAWN))
