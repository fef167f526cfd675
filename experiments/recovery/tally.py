"""Attacks on the variants of a study, compared with the truth and pooled over studies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from experiments.recovery.summaries import Equations

__all__ = ["Attack", "Tally", "estimating", "solving"]

Vector = NDArray[np.float64]

#: Takes the place of a variant; returns guessed genotypes, and estimates that need not be whole.
Attack = Callable[[int], tuple[Vector, Vector]]


def solving(known: Sequence[Equations], solve: Callable[[Equations], Vector]) -> Attack:
    """Attack by a program: the guess is the genotype nearest to its solution."""

    def attack(variant: int) -> tuple[Vector, Vector]:
        solution = solve(known[variant])
        return np.rint(solution), solution

    return attack


def estimating(study: Split, beliefs: Callable[[int, Vector], Beliefs]) -> Attack:
    """Attack by beliefs, which start from the frequencies in the panel."""

    def attack(variant: int) -> tuple[Vector, Vector]:
        believed = beliefs(variant, frequencies(study.panel.features[:, variant]))
        return believed.guesses, believed.means

    return attack


class Tally:
    """Shares and correlations by variant, pooled over studies; with mu also what no attack exceeds."""

    def __init__(self, mu: float | None = None) -> None:
        self.mu = mu
        self._shares: list[tuple[float, float, float]] = []  # recovered, guessed, correlation
        self._bounds: list[float] = []
        self._found: list[Vector] = []

    def add_all(self, study: Split, attack: Attack) -> None:
        """Attack every variant, then recognise people by all of them."""
        genomes = study.members.features
        estimates = np.empty_like(genomes)
        for variant in range(genomes.shape[1]):
            guesses, estimates[:, variant] = attack(variant)
            self._add(study, variant, guesses, estimates[:, variant])
        self._found.append(identified(estimates, genomes, study.panel.features))

    def _add(self, study: Split, variant: int, guesses: Vector, estimates: Vector) -> None:
        """Compare one variant with the truth."""
        truth = study.members.features[:, variant]
        panel = study.panel.features[:, variant]
        common = frequencies(panel).argmax()
        varies = estimates.std() > 0 and truth.std() > 0
        self._shares.append(
            (
                float((guesses == truth).mean()),
                float((common == truth).mean()),
                float(np.corrcoef(estimates, truth)[0, 1]) if varies else 0.0,
            )
        )
        if self.mu is not None:
            everybody = np.concatenate([truth, panel, study.others.features[:, variant]])
            self._bounds.append(accuracy_bound(frequencies(everybody), self.mu))

    def success(self, *, resamples: int) -> Success:
        """Return the means with their intervals."""
        recovered, guessed, correlation = np.array(self._shares).T
        found = np.concatenate(self._found) if self._found else None
        return success(recovered, guessed, correlation, found, resamples=resamples)

    @property
    def bound(self) -> float | None:
        """The largest share that any attack recovers, mean over the variants."""
        return float(np.mean(self._bounds)) if self._bounds else None
