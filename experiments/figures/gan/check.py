"""Whether the GAN's rows look like those it learned from, without being them.

Every number is compared with its floor: the same number for real rows that were held out from training.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.figures.gan.measure import (
    Frequencies,
    LdBin,
    Nearest,
    covariance_error,
    frequencies,
    ld_bins,
    nearest,
)
from experiments.figures.gan.sampler import Sampler
from experiments.figures.gan.settings import FULL, Settings, checked, split
from primo._util.atomic import whole_file

__all__ = ["LOOSE", "STRICT", "Limits", "Match", "check", "compare", "save"]

Rows = NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a GAN must reach, on bins of neighbours up to `reach` SNPs apart where it is about LD."""

    frequency_correlation: float = 0.99
    frequency_error: float = 0.02  # mean over SNPs
    frequency_worst: float = 0.10
    reach: int = 60
    ld_correlation: float = 0.9
    ld_slope: tuple[float, float] = (0.8, 1.2)
    far_excess: float = 0.001  # mean r² of SNPs far apart, above that of the real rows
    run_error: float = 0.25  # of the covariance of 25 SNPs in a row, relative
    set_error: float = 0.15  # of the covariance of 25 SNPs at random, relative
    nearest_ratio: float = 0.9  # to the floor, per row and per patch: nearer would be copying
    diversity: float = 0.9  # nearest other generated row, to that of real rows


STRICT = Limits()

#: For a GAN that trains in seconds on a few hundred SNPs.
LOOSE = Limits(
    frequency_correlation=0.98,
    frequency_error=0.03,
    frequency_worst=0.15,
    ld_correlation=0.8,
    ld_slope=(0.65, 1.3),
    far_excess=0.01,
    run_error=0.4,
    set_error=0.4,
    nearest_ratio=0.8,
    diversity=0.8,
)


@dataclass(frozen=True, kw_only=True)
class Match:
    """Generated rows against training rows, with held-out rows and the untrained GAN beside them."""

    snps: int
    rows: int  # generated and learned from
    held_out: int
    frequency: Frequencies
    frequency_floor: Frequencies
    frequency_untrained: Frequencies
    ld: tuple[LdBin, ...]
    run_error: float  # median relative error of the covariance of 25 SNPs in a row
    run_error_floor: float
    run_error_untrained: float
    set_error: float  # of 25 SNPs chosen at random
    set_error_floor: float
    nearest: Nearest
    limits: Limits

    @property
    def passes(self) -> bool:
        """Whether the GAN is good enough to replace the data."""
        return not self.failures

    @property
    def failures(self) -> tuple[str, ...]:
        """Say what is wrong, with numbers."""
        return (*self._frequency_failures(), *self._ld_failures(), *self._nearest_failures())

    def require(self) -> None:
        """Raise ValueError if the GAN is broken."""
        if self.failures:
            raise ValueError("the GAN does not match its data: " + "; ".join(self.failures))

    def _frequency_failures(self) -> list[str]:
        limits, found = self.limits, self.frequency
        return _failed(
            ("correlation of allele frequencies", found.correlation,
             limits.frequency_correlation, np.inf),
            ("mean error of allele frequencies", found.mean_error, 0, limits.frequency_error),
            ("largest error of allele frequencies", found.max_error, 0, limits.frequency_worst),
        )  # fmt: skip

    def _ld_failures(self) -> list[str]:
        limits = self.limits
        rules: list[tuple[str, float, float, float]] = []
        for found in self.ld:
            what = f"SNPs {found.least} to {found.most} apart"
            if found.most <= limits.reach:
                rules.append(
                    (f"correlation of r, {what}", found.correlation, limits.ld_correlation, np.inf)
                )
                rules.append((f"slope of r, {what}", found.slope, *limits.ld_slope))
                rules.append(
                    (f"gain of the correlation of r by training, {what}",
                     found.correlation - found.untrained, 0.1, np.inf)
                )  # fmt: skip
            else:
                excess = found.mean_r2 - found.real_r2
                rules.append((f"excess of mean r², {what}", excess, -np.inf, limits.far_excess))
        rules.append(("error of the covariance of runs", self.run_error, 0, limits.run_error))
        rules.append(("error of the covariance of sets", self.set_error, 0, limits.set_error))
        return _failed(*rules)

    def _nearest_failures(self) -> list[str]:
        limits, found = self.limits, self.nearest
        return _failed(
            ("distance to the nearest training row, to its floor",
             _ratio(found.median, found.median_floor), limits.nearest_ratio, np.inf),
            ("smallest such distances, to their floor",
             _ratio(found.closest, found.closest_floor), limits.nearest_ratio, np.inf),
            ("distance to the nearest training patch, to its floor",
             _ratio(found.patch, found.patch_floor), limits.nearest_ratio, np.inf),
            ("distance between generated rows, to that between real ones",
             _ratio(found.between, found.between_floor), limits.diversity, np.inf),
        )  # fmt: skip


def _ratio(distance: float, floor: float) -> float:
    if floor == 0:  # real rows that are twins
        return 1.0 if distance == 0 else np.inf
    return distance / floor


def _failed(*rules: tuple[str, float, float, float]) -> list[str]:
    # Written so that a NaN fails.
    return [
        f"{what} is {value:.4g}, not in [{low:g}, {high:g}]"
        for what, value, low, high in rules
        if not low <= value <= high
    ]


def compare(
    haplotypes: Rows,
    drawn: Callable[[int], Rows],
    untrained: Callable[[int], Rows],
    *,
    limits: Limits = STRICT,
) -> Match:
    """Compare generated rows with the real ones, which are split as they were for training.

    Parameters
    ----------
    haplotypes
        All rows, (rows, snps).
    drawn, untrained
        Give a number of rows by the trained and by the untrained generator.
    """
    kept, left = split(len(haplotypes))
    train, held_out = haplotypes[kept], haplotypes[left]
    fake, before = drawn(len(train)), untrained(len(train))
    return Match(
        snps=train.shape[1],
        rows=len(train),
        held_out=len(held_out),
        frequency=frequencies(fake, train),
        frequency_floor=frequencies(held_out, train),
        frequency_untrained=frequencies(before, train),
        ld=ld_bins(fake, train, held_out, before),
        run_error=covariance_error(fake, train, runs=True),
        run_error_floor=covariance_error(held_out, train, runs=True),
        run_error_untrained=covariance_error(before, train, runs=True),
        set_error=covariance_error(fake, train, runs=False),
        set_error_floor=covariance_error(held_out, train, runs=False),
        nearest=nearest(fake, train, held_out),
        limits=limits,
    )


def check(haplotypes: Rows, settings: Settings, *, cache: Path, progress: bool = False) -> Match:
    """Compare the GAN of the cache, trained first if it is not there, and save the table beside it."""
    from experiments.figures.gan.train import checkpoint, load_or_train, untrained

    learned = checked(haplotypes, settings)
    trained = load_or_train(haplotypes, settings, cache=cache, progress=progress)
    match = compare(
        learned,
        _whole_rows(trained, settings.seed),
        _whole_rows(untrained(haplotypes, settings), settings.seed),
        limits=STRICT if settings == FULL else LOOSE,
    )
    save(match, checkpoint(haplotypes, settings, cache=cache))
    return match


def _whole_rows(sampler: Sampler, seed: int) -> Callable[[int], Rows]:
    return lambda n: sampler.draw(np.arange(sampler.snps), n, np.random.default_rng(seed))


def save(match: Match, beside: Path) -> None:
    """Write everything as JSON and the LD by distance as Parquet, beside the checkpoint."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: dict[str, Any] = asdict(match) | {
        "passes": match.passes,
        "failures": list(match.failures),
    }
    text = json.dumps(found, indent=2) + "\n"
    beside.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(beside.with_suffix(".json")) as file:
        file.write(text.encode())
    table = pa.Table.from_pylist([asdict(row) for row in match.ld])
    with whole_file(beside.with_suffix(".parquet")) as file:
        pq.write_table(table, file)
