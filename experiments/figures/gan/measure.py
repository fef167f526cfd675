"""Distances between two tables of haplotypes: allele frequencies, LD, nearest rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Frequencies",
    "LdBin",
    "Nearest",
    "covariance_error",
    "frequencies",
    "ld_bins",
    "nearest",
]

Rows = NDArray[np.int8]
Floats = NDArray[np.float32]

#: Distances in SNPs that stand for a bin; long rows get one more, far beyond any LD.
_LAGS = ((1, 2, 3, 4), (5, 7, 10, 14, 19), (20, 28, 40, 59), (60, 85, 120, 149), (150, 300, 599))


@dataclass(frozen=True, kw_only=True)
class Frequencies:
    """Allele frequencies against those of the training rows."""

    correlation: float
    mean_error: float
    max_error: float


@dataclass(frozen=True, kw_only=True)
class LdBin:
    """Correlations r of pairs of SNPs at similar distances, against r in the training rows."""

    least: int  # SNPs apart
    most: int
    pairs: int
    correlation: float  # of r between generated and training rows, over pairs
    floor: float  # of r between held-out and training rows
    untrained: float  # the generator before training
    slope: float  # of the generated r on the real one: below 1 where LD is too weak
    slope_floor: float
    mean_r2: float  # generated
    real_r2: float  # training rows


@dataclass(frozen=True, kw_only=True)
class Nearest:
    """Shares of SNPs in which a row differs from the nearest other one; floors are of held-out rows.

    A floor of 0 says that real rows are twins on so few SNPs: copies cannot be told there.
    """

    median: float  # generated row to training row
    median_floor: float
    closest: float  # quantile of 1 %
    closest_floor: float
    patch: float  # mean over patches of 100 neighbouring SNPs, where copying would be local
    patch_floor: float
    between: float  # median, generated row to another generated row
    between_floor: float  # held-out row to another held-out row


def frequencies(rows: Rows, train: Rows) -> Frequencies:
    """Compare allele frequencies."""
    found, real = rows.mean(axis=0), train.mean(axis=0)
    error = np.abs(found - real)
    return Frequencies(
        correlation=_correlation(found, real),
        mean_error=float(error.mean()),
        max_error=float(error.max()),
    )


def ld_bins(fake: Rows, train: Rows, held_out: Rows, before: Rows) -> tuple[LdBin, ...]:
    """Compare r of pairs of SNPs, in bins of their distance."""
    tables = [_standardised(rows) for rows in (fake, train, held_out, before)]
    snps = train.shape[1]
    far = (snps // 2, snps // 3) if snps > 4000 else ()
    bins = []
    for lags in (*_LAGS, tuple(sorted(far))):
        usable = [lag for lag in lags if lag < snps]
        if usable:
            r = [np.concatenate([_lagged(table, lag) for lag in usable]) for table in tables]
            bins.append(_bin(usable[0], usable[-1], *r))
    return tuple(bins)


def _bin(least: int, most: int, fake: Floats, real: Floats, held: Floats, before: Floats) -> LdBin:
    return LdBin(
        least=least,
        most=most,
        pairs=len(real),
        correlation=_correlation(fake, real),
        floor=_correlation(held, real),
        untrained=_correlation(before, real),
        slope=float(fake @ real / (real @ real)),
        slope_floor=float(held @ real / (real @ real)),
        mean_r2=float(np.mean(fake**2)),
        real_r2=float(np.mean(real**2)),
    )


def covariance_error(rows: Rows, train: Rows, *, runs: bool, size: int = 25) -> float:
    """Return the median of |C - C₀|/|C₀| (Frobenius) over sets of SNPs: in a row, or at random."""
    rng = np.random.default_rng(0)
    snps = train.shape[1]
    size = min(size, snps)
    errors = []
    for _ in range(200):
        if runs:
            first = int(rng.integers(snps - size + 1))
            chosen = np.arange(first, first + size)
        else:
            chosen = rng.choice(snps, size=size, replace=False)
        real = np.cov(train[:, chosen], rowvar=False)
        found = np.cov(rows[:, chosen], rowvar=False)
        errors.append(np.linalg.norm(found - real) / np.linalg.norm(real))
    return float(np.median(errors))


def nearest(fake: Rows, train: Rows, held_out: Rows, *, patch: int = 100) -> Nearest:
    """Compare nearest neighbours of as many generated rows as there are held-out ones."""
    fake = fake[: len(held_out)]
    near, near_floor = _to_nearest(fake, train), _to_nearest(held_out, train)
    snps = train.shape[1]
    starts = np.unique(np.linspace(0, max(snps - patch, 0), 40).astype(int))
    cuts = [slice(start, start + patch) for start in starts]
    return Nearest(
        median=float(np.median(near)),
        median_floor=float(np.median(near_floor)),
        closest=float(np.quantile(near, 0.01)),
        closest_floor=float(np.quantile(near_floor, 0.01)),
        patch=float(np.mean([_to_nearest(fake[:, c], train[:, c]).mean() for c in cuts])),
        patch_floor=float(np.mean([_to_nearest(held_out[:, c], train[:, c]).mean() for c in cuts])),
        between=float(np.median(_to_nearest(fake, None))),
        between_floor=float(np.median(_to_nearest(held_out, None))),
    )


def _to_nearest(rows: Rows, others: Rows | None) -> Floats:
    """Return, for each row, the share of SNPs that differ in the nearest other row."""
    signs = rows.astype(np.float32) * 2 - 1
    targets = signs if others is None else others.astype(np.float32) * 2 - 1
    agreement = signs @ targets.T / signs.shape[1]
    if others is None:
        np.fill_diagonal(agreement, -1)
    return np.asarray((1 - agreement.max(axis=1)) / 2)


def _standardised(rows: Rows) -> Floats:
    """Return columns of mean 0 and length 1; a SNP that never varies has r = 0 with all others."""
    table = rows.astype(np.float32)
    table -= table.mean(axis=0)
    table /= np.maximum(np.linalg.norm(table, axis=0), np.float32(1e-6))
    return table


def _lagged(table: Floats, lag: int) -> Floats:
    return np.asarray(np.einsum("ij,ij->j", table[:, :-lag], table[:, lag:]))


def _correlation(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    if a.std() == 0 or b.std() == 0:
        return 0.0
    return float(np.corrcoef(a, b)[0, 1])
