"""Simulated people: haplotypes from a published human demography, outcomes from the paper's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import primo
from primo.errors import InputError

__all__ = [
    "Cohort",
    "Haplotypes",
    "continents",
    "draw_cohort",
    "out_of_africa",
    "simulate_contig",
    "simulate_haplotypes",
]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Haplotypes:
    """A private cohort and a public reference panel from the same populations."""

    cohort: NDArray[np.int8]  # (n, snps) 0/1
    panel: NDArray[np.int8]  # (panel rows, snps) 0/1; public


def simulate_haplotypes(
    n: int = 5008, panel: int = 1000, megabases: float = 4.2, seed: int = 1
) -> Haplotypes:
    """Simulate SNPs of frequency 5 % to 95 % in the panel, three continents mixed."""
    people = continents((n + panel) // 2)
    haplotypes = simulate_contig(people, megabases=megabases, seed=seed).genotype_matrix().T
    haplotypes = haplotypes[np.random.default_rng(seed).permutation(len(haplotypes))]
    known, private = haplotypes[:panel], haplotypes[panel : panel + n]
    frequency = known.mean(axis=0)
    common = (frequency >= 0.05) & (frequency <= 0.95)
    return Haplotypes(
        cohort=private[:, common].astype(np.int8), panel=known[:, common].astype(np.int8)
    )


def continents(people: int) -> dict[str, int]:
    """Distribute people over the three continents of `out_of_africa` as evenly as possible."""
    return {name: people // 3 + (i < people % 3) for i, name in enumerate(("AFR", "EUR", "EAS"))}


def simulate_contig(people: dict[str, int], *, megabases: float, seed: int) -> Any:
    """Simulate one stretch of DNA of some people (two haplotypes each, in the order of `people`).

    Returns
    -------
    tskit.TreeSequence
    """
    msprime = _msprime()
    trees = msprime.sim_ancestry(
        samples=people,
        demography=out_of_africa(),
        sequence_length=megabases * 1e6,
        recombination_rate=1e-8,
        random_seed=seed,
    )
    return msprime.sim_mutations(trees, rate=1.29e-8, random_seed=seed, model="binary")


def out_of_africa() -> Any:
    """Return the Out-of-Africa model of Gutenkunst et al. (2009), 25 years a generation.

    An African, a European and an East Asian population with migration between them.

    Returns
    -------
    msprime.Demography
    """

    def grown(size: float, rate: float, generations: float) -> float:
        return float(size / np.exp(-rate * generations))

    generation = 25
    t_ancient, t_out, t_split = 220e3 / generation, 140e3 / generation, 21.2e3 / generation
    r_europe, r_asia = 0.004, 0.0055
    demography = _msprime().Demography()
    demography.add_population(name="AFR", initial_size=12300)
    demography.add_population(
        name="EUR", initial_size=grown(1000, r_europe, t_split), growth_rate=r_europe
    )
    demography.add_population(
        name="EAS", initial_size=grown(510, r_asia, t_split), growth_rate=r_asia
    )
    demography.add_population(name="OOA", initial_size=2100)
    demography.add_population(name="ANC", initial_size=12300)
    for pair, rate in ((("AFR", "EUR"), 3e-5), (("AFR", "EAS"), 1.9e-5), (("EUR", "EAS"), 9.6e-5)):
        demography.set_symmetric_migration_rate(list(pair), rate)
    demography.add_population_split(time=t_split, derived=["EUR", "EAS"], ancestral="OOA")
    demography.add_symmetric_migration_rate_change(
        time=t_split, populations=["AFR", "OOA"], rate=25e-5
    )
    demography.add_population_split(time=t_out, derived=["OOA", "AFR"], ancestral="ANC")
    demography.add_population_parameters_change(time=t_ancient, population="ANC", initial_size=7300)
    return demography


def _msprime() -> Any:
    try:
        import msprime
    except ImportError:
        raise InputError(
            "simulating people needs msprime: pip install 'primo-dp[experiments]'"
        ) from None
    return msprime


@dataclass(frozen=True, kw_only=True)
class Cohort:
    """One draw of features and outcomes, with bounds that came from public knowledge alone."""

    features: Matrix  # (n, d) 0/1
    outcomes: Matrix  # (n, l)
    feature_bounds: primo.Bounds
    outcome_bounds: primo.Bounds


def draw_cohort(haplotypes: Haplotypes, *, d: int, l: int, rng: np.random.Generator) -> Cohort:
    """Pick d SNPs at random and draw l outcomes: θ ~ N(0, I/√d), y = θ·x + N(0, 1) (the paper).

    Features are centred by the allele frequencies of the public panel and bounded by its longest
    row; outcomes by √l·1.15 + 1 standard deviations of the model on the panel.
    """
    snps = rng.choice(haplotypes.cohort.shape[1], size=d, replace=False)
    features = haplotypes.cohort[:, snps].astype(np.float64)
    panel = haplotypes.panel[:, snps].astype(np.float64)
    frequency = panel.mean(axis=0)
    theta = rng.normal(size=(d, l)) / d**0.25
    outcomes = (features - frequency) @ theta + rng.normal(size=(len(features), l))
    variance = 1 + panel.var(axis=0).sum() / np.sqrt(d)
    longest = np.linalg.norm(panel - frequency, axis=1).max()
    return Cohort(
        features=features,
        outcomes=outcomes,
        feature_bounds=primo.Bounds(norm=float(longest), centre=frequency),
        outcome_bounds=primo.Bounds(norm=float((1.15 * l**0.5 + 1) * np.sqrt(variance))),
    )
