from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    features = rng.normal(size=(300, 4)) / 4
    outcomes = features @ rng.normal(size=(4, 3)) + rng.normal(size=(300, 3)) / 4
    return features, outcomes
