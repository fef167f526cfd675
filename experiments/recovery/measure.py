"""How much of the genotypes an attack recovers, and how much any attack can under mu-GDP."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.special import betaincinv, ndtr

__all__ = ["Success", "accuracy_bound", "frequencies", "identified", "success"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

#: A genotype that the panel lacks may still occur: half a person has it.
_UNSEEN = 0.5

#: Share of the estimates' variance that is taken for noise at least, so that it can be divided by.
_LEAST_NOISE = 0.02
_TINY = 1e-12


def frequencies(genotypes: Vector) -> Vector:
    """Return how often the genotypes 0, 1, 2 occur among people; none counts as impossible."""
    counts = np.bincount(genotypes.astype(np.intp), minlength=3) + _UNSEEN
    return np.asarray(counts / counts.sum())


@dataclass(frozen=True, kw_only=True)
class Success:
    """What an attack recovered, pooled over variants and studies, with 95 % intervals."""

    recovered: float  # share of genotypes guessed right
    guessed: float  # the same by naming the panel's most common genotype
    gain: float  # the difference, whose interval is narrower than either's
    gain_interval: tuple[float, float]
    correlation: float  # of expected and true genotypes, mean over variants
    correlation_interval: tuple[float, float]
    identified: float  # share of people whose genome leads to their row
    identified_interval: tuple[float, float]


def success(
    recovered: Vector,
    guessed: Vector,
    correlation: Vector,
    found: Vector,
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Success:
    """Pool variants (a share and a correlation each) and people (`found`: 1 if recognised).

    Intervals are from a bootstrap over variants, and for people those of Clopper and Pearson.
    """
    gains = recovered - guessed
    picks = np.random.default_rng(seed).integers(len(gains), size=(resamples, len(gains)))

    def interval(values: Vector) -> tuple[float, float]:
        low, high = np.quantile(values[picks].mean(axis=1), [0.025, 0.975])
        return float(low), float(high)

    return Success(
        recovered=float(recovered.mean()),
        guessed=float(guessed.mean()),
        gain=float(gains.mean()),
        gain_interval=interval(gains),
        correlation=float(correlation.mean()),
        correlation_interval=interval(correlation),
        identified=float(found.mean()),
        identified_interval=_share_interval(int(found.sum()), len(found)),
    )


def _share_interval(hits: int, tried: int) -> tuple[float, float]:
    low = betaincinv(hits, tried - hits + 1, 0.025) if hits else 0.0
    high = betaincinv(hits + 1, tried - hits, 0.975) if hits < tried else 1.0
    return float(low), float(high)


def identified(estimates: Matrix, genomes: Matrix, panel: Matrix) -> Vector:
    """Say of every person's true genome (n, d) whether its own row of estimates is the most alike.

    Whoever holds somebody's genome learns so which row of the study, and which outcomes, are theirs.
    Rows are compared by their correlation over variants, once these are standardised by the panel and
    freed of what neighbouring variants have in common: errors of the estimates are mixtures of other
    people's genotypes and of noise, so their covariance is a·(correlations in the panel) + b·I, with
    a and b fitted to the estimates.
    """
    centre, spread = panel.mean(axis=0), panel.std(axis=0)
    seen, true = ((rows - centre) / spread for rows in (estimates, genomes))
    seen = seen - seen.mean(axis=0)
    linkage = np.corrcoef(panel, rowvar=False).reshape(len(centre), len(centre))
    shown = seen.T @ seen / len(seen)
    beside = linkage - np.diag(np.diag(linkage))
    share = max(0.0, float((beside * shown).sum() / max((beside**2).sum(), _TINY)))
    own = float(np.trace(shown)) / len(shown)
    root = cholesky(
        share * linkage + (max(own - share, _LEAST_NOISE * own) + _TINY) * np.eye(len(shown)),
        lower=True,
    )

    def unit(rows: Matrix) -> Matrix:
        freed = solve_triangular(root, rows.T, lower=True).T
        # A constant estimate resembles nobody.
        return np.asarray(freed / np.maximum(np.linalg.norm(freed, axis=1)[:, None], _TINY))

    best = (unit(seen) @ unit(true).T).argmax(axis=0)
    return np.asarray(best == np.arange(len(genomes)), dtype=np.float64)


def accuracy_bound(shares: Vector, mu: float) -> float:
    """Return the largest share of genotypes that any attack on a mu-GDP release guesses right.

    A person's genotype is g with chance `shares[g]`; all else, everybody else included, may be known.
    Let c be the commonest. Against the person having c, genotype g moves the release by mu at most, so
    P(guess g | g) ≤ Φ(z + mu) where Φ(z) = P(guess g | c). The total is largest where
    shares[g]·φ(z + mu) = shares[c]·φ(z), that is z = -(log(shares[c]/shares[g]) + mu²/2)/mu.
    """
    common = int(shares.argmax())
    total = float(shares[common])
    for g, share in enumerate(shares):
        if g != common and share > 0:
            z = -(math.log(shares[common] / share) + mu**2 / 2) / mu
            total += float(share * ndtr(z + mu) - shares[common] * ndtr(z))
    return total
