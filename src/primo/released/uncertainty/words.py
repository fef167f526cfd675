"""R² in words, the same on the command line, in the report and where a release is shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["r2_words", "spread_words"]


def r2_words(value: float) -> str:
    """Write an R² with two digits; there is no "-0.00"."""
    return f"{value:.2f}".replace("-0.00", "0.00")


def spread_words(known: NDArray[np.float64], l: int) -> str:
    """Write the R² that are `known` of `l` single outcomes.

    No median where fewer than half are: outcomes of which R² is known are not like the others.
    """
    left = l - len(known)
    if not len(known):
        return f"determined for none of the {l} outcomes alone" if l > 1 else "not determined"
    if 2 * len(known) < l:
        return f"not determined for {left} of {l} single outcomes"
    low, middle, high = np.quantile(known, (0, 0.5, 1)).tolist()
    words = r2_words(middle)
    if len(known) > 1:
        words = f"median {words} (lowest {r2_words(low)}, highest {r2_words(high)})"
    return words + (f"; determined for {len(known)} of {l} outcomes only" if left else "")
