"""Simulated stand-ins for 1000 Genomes and dbGaP, of the sizes that the paper used.

Contigs are simulated one after the other until there are SNPs enough. They are independent but for the
populations that the rows come from, as chromosomes are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.cohort import continents, simulate_contig
from experiments.figures.packed import CACHE, PackedSnps, Tell, cached, tell_stderr

__all__ = ["DBGAP", "KG", "Recipe", "dbgap_like", "kg_like", "make_stand_in"]

#: Raise it when the code below draws something else from the same recipe.
_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Everything that a stand-in is a function of, but for the version of msprime."""

    name: str
    people: tuple[
        tuple[str, int], ...
    ]  # of the populations of `out_of_africa`, two haplotypes each
    snps: int  # of minor allele frequency at least `maf`
    maf: float = 0.05
    megabases: float = 4.0  # of one contig
    spacing: int | None = None  # base pairs; at most one SNP in each such window (an array)
    seed: int

    @property
    def n(self) -> int:
        """Number of haplotypes."""
        return 2 * sum(count for _, count in self.people)

    def key(self) -> dict[str, Any]:
        """Return what a cached stand-in is known by."""
        try:
            simulator = version("msprime")
        except PackageNotFoundError:
            simulator = "absent"  # one that was made elsewhere is not taken for ours
        return asdict(self) | {"msprime": simulator, "numpy": np.__version__, "code": _VERSION}


#: 1000 Genomes phase 3: 2504 people; the paper has 78 961 SNPs of it.
KG = Recipe(name="kg-like", people=tuple(continents(2504).items()), snps=79_000, seed=1_000)

#: phs000688: 6042 haplotypes; one population, SNPs as sparse as those of a genotyping array.
DBGAP = Recipe(name="dbgap-like", people=(("EUR", 3021),), snps=16_721, spacing=4_000, seed=2_000)


def kg_like(cache: Path = CACHE, *, tell: Tell = tell_stderr) -> PackedSnps:
    """Return 5008 haplotypes × 79 000 common SNPs of three continents."""
    return make_stand_in(KG, cache, tell=tell)


def dbgap_like(cache: Path = CACHE, *, tell: Tell = tell_stderr) -> PackedSnps:
    """Return 6042 haplotypes × 16 721 common SNPs of one European-like population."""
    return make_stand_in(DBGAP, cache, tell=tell)


def make_stand_in(recipe: Recipe, cache: Path, *, tell: Tell = tell_stderr) -> PackedSnps:
    """Simulate a stand-in, or read it from the cache.

    Cost: below a minute at full size; the memory of one contig and of the packed SNPs.
    """
    return cached(recipe.name, recipe.key(), lambda: _simulate(recipe, tell), cache=cache)


def _simulate(recipe: Recipe, tell: Tell) -> PackedSnps:
    tell(f"simulating {recipe.name}: {recipe.n} haplotypes × {recipe.snps} SNPs (once)")
    order = np.random.default_rng(recipe.seed).permutation(recipe.n)
    packed: list[NDArray[np.uint8]] = []
    contigs: list[int] = []
    positions: list[int] = []
    for number in itertools.count(1):
        for position, haplotypes in _common(recipe, recipe.seed + number):
            packed.append(np.packbits(haplotypes[order]))
            contigs.append(number)
            positions.append(position)
        tell(f"  contig {number}: {min(len(packed), recipe.snps)} of {recipe.snps} SNPs")
        if len(packed) >= recipe.snps:
            break
    kept = recipe.snps
    return PackedSnps(
        n=recipe.n,
        planes=np.array(packed[:kept])[None],
        contig=np.array(contigs[:kept], dtype=np.int32),
        position=np.array(positions[:kept], dtype=np.int64),
    )


def _common(recipe: Recipe, seed: int) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield the position and the haplotypes of the SNPs of one contig that are wanted."""
    trees = simulate_contig(dict(recipe.people), megabases=recipe.megabases, seed=seed)
    # A contig has ten times as many rare SNPs as common ones: they are counted on the trees, and only
    # the others are written out.
    counts = trees.sample_count_stat(
        [trees.samples()],
        lambda x: x,
        1,
        windows="sites",
        polarised=True,
        span_normalise=False,
        strict=False,
    )[:, 0]
    least = np.ceil(recipe.maf * recipe.n - 1e-9)
    common = np.flatnonzero((counts >= least) & (counts <= recipe.n - least))
    if recipe.spacing is not None:
        positions = trees.sites_position[common]
        shuffled = np.random.default_rng(seed).permutation(len(common))
        _, first = np.unique(positions[shuffled] // recipe.spacing, return_index=True)
        common = common[np.sort(shuffled[first])]
    rare = np.setdiff1d(np.arange(trees.num_sites), common)
    for variant in trees.delete_sites(rare).variants():
        yield int(variant.site.position), variant.genotypes != 0
