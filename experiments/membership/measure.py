"""How well an attack tells members from others, and how well any attack can under mu-GDP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

__all__ = ["FALSE_ALARMS", "Success", "auc_bound", "success", "tpr_bound"]

Vector = NDArray[np.float64]

#: Share of outsiders whom the attacker is willing to accuse.
FALSE_ALARMS = 0.01


@dataclass(frozen=True, kw_only=True)
class Success:
    """An attack's AUC and its true positive rate at 1 % false alarms, each with an interval."""

    auc: float
    auc_interval: tuple[float, float]
    tpr: float
    tpr_interval: tuple[float, float]


def success(
    members: Vector, others: Vector, *, level: float = 0.95, resamples: int = 1000, seed: int = 0
) -> Success:
    """Measure scores (large means "member") of members and of others; bootstrap over people."""
    rng = np.random.default_rng(seed)
    drawn = np.array(
        [
            _measure(rng.choice(members, len(members)), rng.choice(others, len(others)))
            for _ in range(resamples)
        ]
    )
    auc, tpr = _measure(members, others)
    ends = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Success(
        auc=auc,
        auc_interval=(float(ends[0, 0]), float(ends[1, 0])),
        tpr=tpr,
        tpr_interval=(float(ends[0, 1]), float(ends[1, 1])),
    )


def _measure(members: Vector, others: Vector) -> tuple[float, float]:
    m = len(members)
    ranks = rankdata(np.concatenate([members, others]))[:m]
    auc = (ranks.sum() - m * (m + 1) / 2) / (m * len(others))
    threshold = np.quantile(others, 1 - FALSE_ALARMS, method="higher")
    return float(auc), float(np.mean(members > threshold))


def auc_bound(mu: float) -> float:
    """Return the largest AUC of any attack on a mu-GDP release: that of N(0, 1) against N(mu, 1).

    The bound is for a member whose row is replaced under the other hypothesis. People drawn at random
    as members or not are a mixture of such pairs, which is no easier to tell apart.
    """
    return float(norm.cdf(mu / math.sqrt(2)))


def tpr_bound(mu: float, false_alarms: float = FALSE_ALARMS) -> float:
    """Return the largest true positive rate of any attack on a mu-GDP release."""
    return float(norm.cdf(norm.ppf(false_alarms) + mu))
