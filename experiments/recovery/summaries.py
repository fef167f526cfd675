"""What an ordinary association study publishes of one variant, and the sums an attacker reads off it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Equations", "Summary", "equations", "rounded", "summarise"]

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Summary:
    """Summary statistics of one variant with all outcomes, as in any table of a GWAS."""

    slopes: Vector  # (l,) of simple regressions with an intercept
    errors: Vector  # (l,) their standard errors
    frequency: float  # of the counted allele
    digits: int | None = None  # significant digits that are printed; None: all


def summarise(genotypes: Vector, outcomes: Matrix, *, digits: int | None = None) -> Summary:
    """Regress every outcome (n, l) on one variant (n,), as studies do."""
    n = len(genotypes)
    x = genotypes - genotypes.mean()
    y = outcomes - outcomes.mean(axis=0)
    squares = x @ x
    slopes = x @ y / squares
    errors = np.sqrt(((y**2).sum(axis=0) / squares - slopes**2) / (n - 2))
    frequency = float(genotypes.mean() / 2)
    if digits is None:
        return Summary(slopes=slopes, errors=errors, frequency=frequency)
    return Summary(
        slopes=rounded(slopes, digits),
        errors=rounded(errors, digits),
        frequency=float(rounded(np.array([frequency]), digits)[0]),
        digits=digits,
    )


def rounded(values: Vector, digits: int) -> Vector:
    """Round to so many significant digits."""
    unit = _unit(values, digits)
    return np.asarray(np.rint(values / unit) * unit)


def _unit(values: Vector, digits: int) -> Vector:
    """Return the value of the last printed digit; that of 1 for a zero."""
    sizes = np.abs(np.where(values == 0, 1.0, values))
    # A hair is added so that 0.1 counts as a power of ten on every machine.
    return np.asarray(10.0 ** (np.floor(np.log10(sizes) + 1e-12) - digits + 1))


@dataclass(frozen=True, kw_only=True, eq=False)
class Equations:
    """What is known of the genotypes x of n people: rows·x = values, up to ± slack."""

    rows: Matrix  # (equations, n)
    values: Vector
    slack: Vector  # 0: exact


def equations(summary: Summary, outcomes: Matrix) -> Equations:
    """Read a summary back, knowing the outcomes: Σxᵢyᵢⱼ of every outcome about its mean, and Σxᵢ.

    A slope and its error give the variant's sum of squares about its mean, S = S_yy/((n - 2)e² + β²),
    and S·β is the sum of products. If digits were rounded away, S is the median over the outcomes, and
    the rounding that remains is slack. Genotypes are whole numbers, so Σx and Σx² are rounded to whole
    numbers where the digits suffice: then both are exact again.
    """
    n, l = outcomes.shape
    y = outcomes - outcomes.mean(axis=0)
    estimates = (y**2).sum(axis=0) / ((n - 2) * summary.errors**2 + summary.slopes**2)
    squares = float(np.median(estimates))
    total = 2 * n * summary.frequency
    slack = np.zeros(l + 1)
    if summary.digits is not None:
        slack[:l] = squares * _unit(summary.slopes, summary.digits) / 2
        slack[l] = n * _unit(np.array([summary.frequency]), summary.digits)[0]
    if slack[l] < 0.5:
        total, slack[l] = round(total), 0.0
        squares = round(squares + total**2 / n) - total**2 / n
    return Equations(
        rows=np.vstack([y.T, np.ones(n)]),
        values=np.append(squares * summary.slopes, total),
        slack=slack,
    )
