"""Who is attacked: people divided into members, others of the same populations, and a public panel."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import primo
from experiments.cohort import simulate_haplotypes
from experiments.data import SHARED, kg_haplotypes, soybean_lines

__all__ = [
    "Genotypes",
    "People",
    "Split",
    "draw_outcomes",
    "human_genotypes",
    "pruned",
    "soybean",
    "split",
]

Matrix = NDArray[np.float64]
Genotypes = NDArray[np.int8]

#: Neighbouring variants that nearly repeat each other add nothing to a regression.
_LARGEST_CORRELATION = 0.9

#: Share of the panel's rows that the bounds leave as they are.
_UNCLIPPED = 0.95


@dataclass(frozen=True, kw_only=True)
class People:
    """Rows of people, one each."""

    features: Matrix  # (rows, d)
    outcomes: Matrix  # (rows, l)

    def __repr__(self) -> str:
        """Show the shape and no number."""
        rows, d = self.features.shape
        return f"<People rows={rows} d={d} l={self.outcomes.shape[1]} (private)>"

    def __len__(self) -> int:
        """Return the number of people."""
        return len(self.features)

    def of(self, rows: NDArray[np.intp] | slice) -> People:
        """Return some of the people."""
        return People(features=self.features[rows], outcomes=self.outcomes[rows])

    def joined_with(self, other: People) -> People:
        """Return these and the others, in this order."""
        return People(
            features=np.vstack([self.features, other.features]),
            outcomes=np.vstack([self.outcomes, other.outcomes]),
        )


@dataclass(frozen=True, kw_only=True)
class Split:
    """A study: its members, people who were not asked, and a panel that everybody can see.

    The panel has outcomes too. That is generous to the attacker.
    """

    members: People
    others: People
    panel: People

    def bounds(self) -> tuple[primo.Bounds, primo.Bounds]:
        """Return bounds of features and outcomes from the public panel alone."""
        made = []
        for rows in (self.panel.features, self.panel.outcomes):
            centre = rows.mean(axis=0)
            norms = np.linalg.norm(rows - centre, axis=1)
            made.append(primo.Bounds(norm=float(np.quantile(norms, _UNCLIPPED)), centre=centre))
        return made[0], made[1]


def human_genotypes(*, simulated: bool = False) -> tuple[Genotypes, str]:
    """Return genotypes (0, 1, 2) of people, and what they are.

    The 2504 people of the 1000 Genomes if the data are there; otherwise simulated people.
    """
    if simulated or not SHARED.is_dir():
        drawn = simulate_haplotypes(n=4008, panel=1000, megabases=2.0)
        # Haplotypes are shuffled, so parents may be of two continents; that does not affect the attacks.
        haplotypes = np.vstack([drawn.cohort, drawn.panel])
        name = "2504 simulated people (msprime)"
    else:
        haplotypes, name = kg_haplotypes(), "the 2504 people of the 1000 Genomes"
    return (haplotypes[0::2] + haplotypes[1::2]).astype(np.int8), name


def soybean(d: int, rng: np.random.Generator) -> People:
    """Return the soybean lines with all 69 outcomes measured, and d variants at random."""
    genotypes, outcomes = soybean_lines()
    complete = np.flatnonzero(np.isfinite(outcomes).all(axis=1))
    return People(
        features=pruned(genotypes[complete], d, rng).astype(np.float64),
        outcomes=outcomes[complete],
    )


def pruned(genotypes: Genotypes, d: int, rng: np.random.Generator) -> Genotypes:
    """Pick d variants in random order, leaving out those that nearly repeat a chosen one.

    All people are used, before members are drawn, so the choice says nothing about who is a member.
    """
    chosen: list[int] = []
    units = np.empty((len(genotypes), d))
    for variant in rng.permutation(genotypes.shape[1]):
        column = genotypes[:, variant] - genotypes[:, variant].mean()
        column /= np.linalg.norm(column) or 1.0
        known = units[:, : len(chosen)]
        if column.any() and (np.abs(column @ known) < _LARGEST_CORRELATION).all():
            units[:, len(chosen)] = column
            chosen.append(int(variant))
        if len(chosen) == d:
            return genotypes[:, chosen]
    raise ValueError(f"fewer than {d} variants are distinct enough")


def draw_outcomes(
    features: Matrix, l: int, rng: np.random.Generator, *, explained: float | None = None
) -> Matrix:
    """Draw outcomes y = θ·x + N(0, 1) by the paper's model, θ ~ N(0, I/√d).

    `explained` rescales θ so that the features explain that share of the variance: few of the
    thousands of molecules that are measured today have much to do with any hundred variants.
    """
    centred = features - features.mean(axis=0)
    d = features.shape[1]
    scale = d**-0.25
    if explained is not None:
        scale = math.sqrt(explained / (1 - explained) / centred.var(axis=0).sum())
    outcomes: Matrix = centred @ (scale * rng.standard_normal((d, l)))
    outcomes += rng.standard_normal(outcomes.shape)
    return outcomes


def split(people: People, n: int, rng: np.random.Generator) -> Split:
    """Draw n members at random; half of the rest becomes the panel.

    The bound on an attack over many people assumes random membership.
    """
    order = rng.permutation(len(people))
    rest = (len(people) - n) // 2
    return Split(
        members=people.of(order[:n]),
        others=people.of(order[n : n + rest]),
        panel=people.of(order[n + rest :]),
    )
