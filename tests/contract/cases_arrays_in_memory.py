"""Two arrays in memory: the source that all others are compared with."""

import numpy as np

from primo.rows.sources.arrays.memory import ArraySource


def two_arrays(folder):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(41, 3)), rng.normal(size=(41, 2)).astype(np.float32)
    y[3, 1] = np.nan
    source = ArraySource(
        features=x, outcomes=y, feature_names=("a", "b", "c"), outcome_names=("p", "q")
    )
    return source, x, y, None


SOURCES = [two_arrays]
