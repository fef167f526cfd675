"""Attacks on the variants of a study, compared with the truth and pooled over studies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from experiments.membership.people import Split
from experiments.recovery.estimates import Beliefs
from experiments.recovery.measure import (
    Success,
    accuracy_bound,
    frequencies,
    identified,
    success,
)

__all__ = ["Tally"]

Matrix = NDArray[np.float64]


class Tally:
    """Shares and correlations by variant, pooled over studies; with mu also what no attack exceeds."""

    def __init__(self, mu: float | None = None) -> None:
        self.mu = mu
        self._shares: list[tuple[float, float, float]] = []  # recovered, guessed, correlation
        self._bounds: list[float] = []
        self._found: list[Matrix] = []

    def believed(self, study: Split, beliefs: Beliefs) -> None:
        """Add what an attack by estimates said of the members."""
        self.add(study, beliefs.guesses, beliefs.means)

    def solved(self, study: Split, solution: Matrix) -> None:
        """Add what a program returned: the guess is the nearest genotype."""
        self.add(study, np.rint(solution), solution)

    def add(self, study: Split, guesses: Matrix, estimates: Matrix) -> None:
        """Compare guessed genotypes, and estimates that need not be whole, with the truth."""
        genomes, panel = study.members.features, study.panel.features
        for variant, truth in enumerate(genomes.T):
            shares = frequencies(panel[:, variant])
            estimate = estimates[:, variant]
            varies = estimate.std() > 0 and truth.std() > 0
            self._shares.append(
                (
                    float((guesses[:, variant] == truth).mean()),
                    float((shares.argmax() == truth).mean()),
                    float(np.corrcoef(estimate, truth)[0, 1]) if varies else 0.0,
                )
            )
            if self.mu is not None:
                others = study.others.features[:, variant]
                everybody = np.concatenate([truth, panel[:, variant], others])
                self._bounds.append(accuracy_bound(frequencies(everybody), self.mu))
        self._found.append(identified(estimates, genomes, panel))

    def success(self, *, resamples: int) -> Success:
        """Return the means with their intervals."""
        recovered, guessed, correlation = np.array(self._shares).T
        return success(
            recovered, guessed, correlation, np.concatenate(self._found), resamples=resamples
        )

    @property
    def bound(self) -> float | None:
        """The largest share that any attack recovers, mean over the variants."""
        return float(np.mean(self._bounds)) if self._bounds else None
