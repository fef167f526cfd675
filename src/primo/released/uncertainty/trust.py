"""When nominal coverage cannot be relied on, decided at run time from released numbers alone.

The criteria were set where benchmarks/coverage.py first sees coverage leave 93 to 97 %:

- confidence intervals and p-values: eigenvectors of Â with an eigenvalue below 5 times σ₁, the noise
  of the covariance (`system.WELL_DETERMINED`), make more than a tenth of the variance of the estimate
  (`confidence.POORLY_DETERMINED_SHARE`). Intervals are then conservative or unbounded, p-values
  conservative.
- posterior intervals: the prior was fitted to fewer than `FEWEST` coefficients, or shrinkage makes
  more than `MOST_SHRINKAGE` of the error's variance. The shape of the prior then decides, and effects
  need not be Gaussian: with 70 to 95 % of them zero, coverage falls to 90 %. A prediction adds effects
  up, which makes them more Gaussian: its limit is higher.
  A known case outside the benchmark's grid, on the safe side: with public outcomes most of whose
  directions are noise, few features and ε below 1, up to 98 % are covered.
- R² of one outcome: see `fit.goodness_of_fit`. What is not trusted is shown as not determined, [0, 1].
- held-out R² of what is published: a standard error above `published.DETERMINED`.
- bounds that do not fit the rows: see `doubts`. With public standard deviations as scales, rows whose
  tails were shortened show by varying less than these say; with ranges or a norm alone they do not.
- all: the covariance is not that of the rows (a sample of them, or a reference panel).

That benchmark fails if a cell that is not flagged leaves 93 to 97 %.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.released.uncertainty.system import WELL_DETERMINED, System

__all__ = [
    "FEWEST",
    "MOST_SHRINKAGE",
    "doubts",
    "few_for_prior",
    "mostly_prior",
    "trusted_posterior",
]

Floats = NDArray[np.float64]

FEWEST = 20  # coefficients (features × outcomes) that a prior variance can be fitted to
MOST_SHRINKAGE = 0.6  # share of a coefficient's error variance
MOST_SHRINKAGE_PREDICTION = 0.9


def trusted_posterior(system: System, points: Floats, *, prediction: bool) -> NDArray[np.bool_]:
    """Which (points, outcomes) have posterior intervals of nominal coverage on average."""
    posterior = system.posterior
    if system.warnings or posterior.along.size < FEWEST:
        return np.zeros((points.shape[1], system.l), dtype=bool)
    limit = MOST_SHRINKAGE_PREDICTION if prediction else MOST_SHRINKAGE
    return np.asarray(posterior.shrinkage_share(points, system.outcomes) <= limit)


def mostly_prior(system: System) -> NDArray[np.bool_]:
    """Which slopes, (features, outcomes), have a shrunk interval that the prior decides.

    Whether the prior itself is known is another question: see `few_for_prior`.
    """
    shares = system.posterior.shrinkage_share(system.terms[:, : system.d], system.outcomes)
    return np.asarray(shares > MOST_SHRINKAGE)


def few_for_prior(system: System) -> bool:
    """Whether there are too few coefficients to fit the assumed spread of effects to."""
    return system.posterior.along.size < FEWEST


def doubts(system: System) -> tuple[str, ...]:
    """Say in words what cannot be relied on, for a report."""
    said = [f"{reason}: intervals do not account for that" for reason in system.warnings]
    poorly_determined = int(np.sum(~system.well_determined))
    if poorly_determined and system.off_variance == 0:
        said.append("some features are combinations of others: their coefficients are unbounded")
    elif poorly_determined:
        said.append(
            f"{poorly_determined} of {system.width} directions of the features are below "
            f"{WELL_DETERMINED:g} times the"
            " covariance noise:\n     coefficients that depend on them have wide or unbounded"
            " intervals and conservative p-values"
        )
    return tuple(said)
