"""When nominal coverage is not to be relied on, decided at run time from released numbers alone.

The criteria were set where benchmarks/coverage.py first sees coverage leave 93 to 97 %:

- confidence intervals and p-values: eigenvectors of Â with an eigenvalue below 5 times σ₁, the noise
  of the covariance (`system.FIRM`), make more than a tenth of the variance of the estimate
  (`confidence.SOFT_SHARE`). Intervals are then conservative or unbounded, p-values conservative.
- posterior intervals: the prior was fitted to fewer than `FEWEST` coefficients, or the covariance
  is noise for the most part (tr Â below the sum of its noise scales).
- R² of one outcome: see `fit.goodness_of_fit`.
- all: the covariance is not that of the rows (a sample of them, or a reference panel).
"""

from __future__ import annotations

import numpy as np

from primo.uncertainty.system import FIRM, System

__all__ = ["FEWEST", "doubts", "trusted_posterior"]

FEWEST = 20  # coefficients (features × outcomes) that a prior variance can be fitted to


def trusted_posterior(system: System) -> bool:
    """Whether posterior intervals have nominal coverage on average over coefficients."""
    count = system.posterior.coefficients.size
    noise = np.sqrt(2 * system.off_variance) * system.d
    variation = float(np.trace(system.centred[0]))
    return not system.warnings and count >= FEWEST and variation > noise


def doubts(system: System) -> tuple[str, ...]:
    """Say in words what is not to be relied on, for a report."""
    said = [f"{reason}: intervals do not account for that" for reason in system.warnings]
    soft = int(np.sum(~system.firm))
    if soft and system.off_variance == 0:
        said.append("some features are combinations of others: their coefficients are unbounded")
    elif soft:
        said.append(
            f"{soft} of {system.width} directions of the features are below {FIRM:g} times the"
            " covariance noise:\n     coefficients that depend on them have wide or unbounded"
            " intervals and conservative p-values"
        )
    return tuple(said)
