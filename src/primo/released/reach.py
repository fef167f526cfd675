"""How far from the rows that were fitted a prediction reaches.

With ``norm="auto"`` and no ranges, the norm of a row is found near the length of most rows, and longer
rows are shortened before anything is released. Where lengths have a heavy tail (counts of votes, of
visits), a few new rows are hundreds of times longer than any that slopes were made from, and the error
of a slope, times such a row, is larger than all that is to be predicted. So rows are shortened for a
prediction, too: to three times the norm that was found, which rows of an ordinary spread are within.
Where scales are stated, somebody vouches for the units: long rows that are rare are no surprise there,
and predictions stay linear.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from primo.planning.plan import Plan
from primo.privacy.clip import Clip

__all__ = ["FARTHEST", "reach_of", "within_reach"]

Matrix = NDArray[np.float64]

FARTHEST = 3.0  # times the norm that was found


def reach_of(plan: Plan) -> Clip | None:
    """Return the clip of predictions if the features' norm was found, without ranges or scales, or None.

    Its norm is the length that rows are shortened to.
    """
    clip = plan.features
    found = "features" in plan.auto_norms and plan.norm_search is not None
    counted = plan.column_search is not None and plan.column_search.features
    stated = not counted and bool((clip.scale != 1).any())
    if not found or clip.box or stated:
        return None
    return replace(clip, norm=FARTHEST * clip.norm)


def within_reach(features: Matrix, clip: Clip | None) -> Matrix:
    """Return rows (n, d) in data units, those beyond the norm of the clip shortened to it.

    Each row by itself. Cost: one pass where there is a clip, otherwise nothing.
    """
    if clip is None:
        return features
    scaled = (features - clip.centre) / clip.scale
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    far = (length > clip.norm)[:, 0]
    if not far.any():
        return features
    shortened = features.copy()
    shortened[far] = clip.centre + clip.scale * scaled[far] * (clip.norm / length[far])
    return shortened
