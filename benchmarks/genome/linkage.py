"""Correlations inside blocks: of the population that a cohort is from, and of a public panel."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from experiments.data import SHARED
from primo.released.ld.find import find_ld_blocks
from primo.released.ld.panel import ld_panel, shrunk_correlations
from primo.variants import Variants

__all__ = ["Linkage", "real_linkage", "simulated_linkage"]

Matrix = NDArray[np.float64]

PANEL = 1_000  # simulated public people
WIDTHS = (30, 70)  # variants in a simulated block
NEIGHBOURS = (0.5, 0.98)  # correlations of neighbours


@dataclass(frozen=True, kw_only=True, eq=False)
class Linkage:
    """Blocks of standardised variants."""

    name: str
    population: list[Matrix]  # correlations among the people of the cohort
    panel: list[Matrix]  # among public people, shrunk

    @property
    def d(self) -> int:
        """Number of variants."""
        return sum(len(matrix) for matrix in self.population)


def simulated_linkage(d: int, seed: int = 1) -> Linkage:
    """Chains of variants whose neighbours are correlated by random amounts; a panel of `PANEL`."""
    rng = np.random.default_rng(seed)
    population: list[Matrix] = []
    left = d
    while left:
        width = min(left, int(rng.integers(*WIDTHS)))
        steps = np.append(0.0, np.cumsum(-np.log(rng.uniform(*NEIGHBOURS, size=width - 1))))
        signs = rng.choice([-1.0, 1.0], size=width)
        population.append(np.exp(-np.abs(steps[:, None] - steps)) * np.outer(signs, signs))
        left -= width
    samples = []
    for matrix in population:
        root = np.linalg.cholesky(matrix)
        seen = np.atleast_2d(np.corrcoef(root @ rng.standard_normal((len(matrix), PANEL))))
        samples.append(seen)
    panel, _ = shrunk_correlations(tuple(samples), PANEL)
    return Linkage(name="simulated", population=population, panel=list(panel))


def real_linkage(d: int, seed: int = 1) -> Linkage | None:
    """1000 Genomes: one half of the people is the population, the other half the public panel.

    The 2 005 common variants of six regions are repeated until there are about d. None without the data.
    """
    path = SHARED / "kg_haplotypes_5008" / "kg_hap5008.npz"
    if not path.exists():
        return None
    with np.load(path) as data:
        common = data["maf"] >= 0.05
        packed, chrom, pos = data["packed"][common], data["chrom"][common], data["pos"][common]
    haplotypes = np.unpackbits(packed, axis=1)[:, :5008].T
    copies = haplotypes[0::2].astype(np.float64) + haplotypes[1::2]
    place = np.lexsort((pos, chrom))
    copies, chrom, pos = copies[:, place], chrom[place], pos[place]
    order = np.random.default_rng(seed).permutation(len(copies))
    half = len(copies) // 2
    variants = Variants(
        names=tuple(map(str, range(len(pos)))),
        chromosome=tuple(map(str, chrom)),
        position=pos.astype(np.int64),
        counted=("A",) * len(pos),
        other=("G",) * len(pos),
    )
    public = copies[order[half:]]
    starts = find_ld_blocks(public, variants, least=20, most=100)
    panel, _ = shrunk_correlations(ld_panel(public, variants, starts).correlations, len(public))
    private = copies[order[:half]]
    population = [np.atleast_2d(np.corrcoef(private[:, a:b].T)) for a, b in pairwise(starts)]
    repeats = max(1, round(d / len(pos)))
    return Linkage(
        name="1000 Genomes", population=population * repeats, panel=list(panel) * repeats
    )
