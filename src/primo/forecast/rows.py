"""Simulated rows: drawn under a `Law`, cut and shortened to their bounds, and summed.

A few thousand rows stand for any number. What more rows change is that residuals average out, so the
residuals' part in the sums is made as small as it is for all rows (`Sums`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.forecast.assumptions import preferred
from primo.forecast.law import Block, Law

__all__ = [
    "Sums",
    "Truth",
    "Unshortened",
    "draw_truth",
    "sum_rows",
    "sum_unshortened",
    "wishart_factor",
]

Floats = NDArray[np.float64]
Seed = tuple[int, int]

FEWEST_ROWS, ROWS_PER_FEATURE = 2000, 10  # simulated; they stand for more
BLOCK = 2048  # rows in memory at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Truth:
    """What the rows of a simulated cohort are drawn from, in scaled units.

    Features are independent normals; each outcome is a linear function of them, and a residual.
    """

    mean: Floats  # (d,) of the features
    values: Floats  # (d,) their variances
    slopes: Floats  # (d, m)
    outcome_mean: Floats  # (m,)
    residual: Floats  # (m,) standard deviations

    def score(self, slopes: Floats, intercept: Floats) -> float:
        """Return the R² of coefficients on new rows, not shortened, pooled over outcomes."""
        left = float(self.residual @ self.residual)
        wrong = float(np.sum(self.values @ (slopes - self.slopes) ** 2))
        bias = self.outcome_mean - intercept - self.mean @ slopes
        variance = float(np.sum(self.values @ self.slopes**2)) + left
        return 1 - (wrong + float(bias @ bias) + left) / variance


@dataclass(frozen=True, kw_only=True, eq=False)
class Sums:
    """Sums over the rows of a cohort, after they were shortened."""

    covariance: Floats  # (d, d) XᵀX; (0, 0) if the rows were kept instead
    feature_sums: Floats  # (d,)
    association: Floats  # (d, m) XᵀY
    outcome_sums: Floats  # (m,)
    outcome_moments: Floats  # (m, m) YᵀY
    rows: Floats  # (n, d) X, if it was kept


@dataclass(frozen=True, kw_only=True, eq=False)
class Unshortened:
    """Sums with rows before they are shortened, which residuals are made of.

    X is [x, 1] for the rows of a cohort, X̃ the same with x shortened.
    """

    between: Floats  # (d + 1, d + 1) X̃ᵀX
    association: Floats  # (d + 1, m) X̃ᵀY
    covariance: Floats  # (d + 1, d + 1) XᵀX
    products: Floats  # (d + 1, m) XᵀY
    outcome_moments: Floats  # (m, m) YᵀY


def draw_truth(law: Law, d: int, chosen: NDArray[np.intp], seed: Seed) -> Truth:
    """Draw the regressions of the chosen outcomes: slopes along the directions that are assumed.

    Repeats (the last number of the seed) take the assumed alignments in turn. Every outcome is
    explained to the assumed share exactly. The features are drawn in the basis in which they are
    uncorrelated; their mean has no preferred direction in it.
    """
    signal, block = law.signal, law.features
    if block.cut:  # column by column, so in their own basis
        order = np.argsort(block.sd, kind="stable")
        mean, values = block.mean[order], block.sd[order] ** 2
    else:
        direction = np.random.default_rng((*seed, 0)).standard_normal(d)
        mean = direction * float(np.linalg.norm(block.mean) / np.linalg.norm(direction))
        values = float(block.sd @ block.sd) * signal.spectrum(d)
    # Drawn outcome by outcome, so that fewer outcomes are a part of more.
    slopes = np.random.default_rng((*seed, 4)).standard_normal((len(chosen), d)).T
    alignment = signal.alignments[seed[1] % len(signal.alignments)]
    slopes = _correlated(slopes, law) * np.sqrt(preferred(values, block.sd**2, alignment))[:, None]
    sd = law.outcomes.sd[chosen]
    return Truth(
        mean=mean,
        values=values,
        slopes=slopes * (sd * np.sqrt(signal.r2 / (values @ slopes**2))),
        outcome_mean=law.outcomes.mean[chosen],
        residual=sd * math.sqrt(1 - signal.r2),
    )


def sum_rows(law: Law, truth: Truth, *, n: int, l: int, keep_rows: bool, seed: Seed) -> Sums:
    """Sum n rows whose simulated outcomes stand for l; at most some thousand rows are drawn.

    Write Y = P + Q, where Q is the part of the residuals that is unrelated to the features. If
    N rows stand for n, sums with P grow as n/N. Those of Q with anything else are sums of n
    independent terms and grow as √(n/N); QᵀQ is drawn with n degrees of freedom.
    """
    d, m = truth.slopes.shape
    drawn = _rows_drawn(n, d)
    grow, damp = n / drawn, math.sqrt(drawn / n)
    kept: list[Floats] = []
    total, gram = np.zeros(d), np.zeros((0, 0) if keep_rows else (d, d))
    sums, association, moments = np.zeros(m), np.zeros((d, m)), np.zeros((m, m))
    squares = np.zeros((m, m))
    for x, p, q in _drawn(law, truth, drawn, l, seed):
        if keep_rows:
            kept.append(x)
        else:
            gram += x.T @ x
        y = p + damp * q
        total += x.sum(axis=0)
        sums += y.sum(axis=0)
        association += x.T @ y
        cross = p.T @ (damp * q)
        moments += p.T @ p + cross + cross.T
        squares += q.T @ q
    if damp < 1:
        squares = _of_all(squares, law, n=n, seed=seed)
    return Sums(
        covariance=grow * gram,
        feature_sums=grow * total,
        association=grow * association,
        outcome_sums=grow * sums,
        outcome_moments=grow * (moments + squares),
        rows=np.concatenate(kept) if keep_rows else np.zeros((0, d)),
    )


def sum_unshortened(law: Law, truth: Truth, *, n: int, seed: Seed) -> Unshortened:
    """Sum the rows that `sum_rows` draws with the same seed, before they are shortened."""
    d, m = truth.slopes.shape
    drawn = _rows_drawn(n, d)
    grow, damp = n / drawn, math.sqrt(drawn / n)
    between, covariance = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    association, products = np.zeros((d + 1, m)), np.zeros((d + 1, m))
    moments, squares = np.zeros((m, m)), np.zeros((m, m))
    for z, e in _normals(law, truth, drawn, seed):
        explained = truth.outcome_mean + z @ truth.slopes
        p, q = explained, e
        if law.outcomes.cut:
            p, q = _parts(explained, _cut(explained + e, law.outcomes))
        whole = _with_ones(_cut(truth.mean + z, law.features))
        short = _with_ones(_within(truth.mean + z, law.features, 0.0))
        y = p + damp * q
        between += short.T @ whole
        covariance += whole.T @ whole
        association += short.T @ y
        products += whole.T @ y
        cross = p.T @ (damp * q)
        moments += p.T @ p + cross + cross.T
        squares += q.T @ q
    if damp < 1:
        squares = _of_all(squares, law, n=n, seed=seed)
    return Unshortened(
        between=grow * between,
        association=grow * association,
        covariance=grow * covariance,
        products=grow * products,
        outcome_moments=grow * (moments + squares),
    )


def _rows_drawn(n: int, d: int) -> int:
    """Return how many rows are drawn; they stand for n."""
    enough = max(FEWEST_ROWS, ROWS_PER_FEATURE * d)
    return n if n < 2 * enough else enough


def _of_all(squares: Floats, law: Law, *, n: int, seed: Seed) -> Floats:
    """Draw QᵀQ of n rows, on the scale of the `squares` of those that were drawn."""
    factor = wishart_factor(np.random.default_rng((*seed, 8)), len(squares), n)
    rest = _correlated(factor.T, law) * np.sqrt(np.diag(squares) / n)
    return np.asarray(rest.T @ rest)


def _with_ones(rows: Floats) -> Floats:
    return np.column_stack([rows, np.ones(len(rows))])


def _drawn(
    law: Law, truth: Truth, count: int, l: int, seed: Seed
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield blocks of rows: shortened features, and the two parts of the shortened outcomes."""
    m, unseen = truth.slopes.shape[1], np.random.default_rng((*seed, 7))
    for z, e in _normals(law, truth, count, seed):
        explained = truth.outcome_mean + z @ truth.slopes
        x = _within(truth.mean + z, law.features, 0.0)
        if not (law.outcomes.cut or math.isfinite(law.outcomes.norm)):
            yield x, explained, e
            continue
        beyond = 0.0  # squared length of what is not simulated of a row of outcomes
        if l > m:
            beyond = (l / m - 1) * np.einsum("ij,ij->i", explained, explained)
            beyond += float(np.mean(truth.residual**2)) * unseen.chisquare(l - m, len(z))
        y = _within(explained + e, law.outcomes, beyond)
        yield x, *_parts(explained, y)


def _normals(law: Law, truth: Truth, count: int, seed: Seed) -> Iterator[tuple[Floats, Floats]]:
    """Yield blocks of rows: features about their means, and residuals."""
    streams = [np.random.default_rng((*seed, stream)) for stream in (5, 6)]
    d, m = truth.slopes.shape
    for start in range(0, count, BLOCK):
        size = min(BLOCK, count - start)
        z = streams[0].standard_normal((size, d)) * np.sqrt(truth.values)
        yield z, _correlated(streams[1].standard_normal((size, m)), law) * truth.residual


def _parts(explained: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Separate cut or shortened outcomes into what is explained of them and the rest.

    Shortening mixes the residual and the explained part of a row, so they are separated again: by
    regression of the shortened outcome on its explained part.
    """
    centred = explained - explained.mean(axis=0)
    spread = np.einsum("ij,ij->j", centred, centred)
    along = np.einsum("ij,ij->j", centred, y)
    slope = np.divide(along, spread, out=np.zeros_like(along), where=spread > 0)
    p = y.mean(axis=0) + slope * centred
    return p, y - p


def _within(rows: Floats, block: Block, beyond: Floats | float) -> Floats:
    """Cut and shorten rows as a release does; `beyond` is squared length outside of these columns."""
    rows = _cut(rows, block)
    if math.isinf(block.norm):
        return rows
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows) + beyond)
    return np.asarray(rows * (block.norm / np.maximum(lengths, block.norm))[:, None])


def _cut(rows: Floats, block: Block) -> Floats:
    """Move values beyond their range to its end."""
    return np.clip(rows, -block.limit, block.limit) if block.cut else rows


def _correlated(rows: Floats, law: Law) -> Floats:
    """Give independent outcomes (in columns) the assumed correlation."""
    rho, m = law.signal.outcome_correlation, rows.shape[-1]
    if rho == 0 or m == 1:
        return rows
    own = math.sqrt(1 - rho)
    common = math.sqrt(1 - rho + m * rho) - own
    return np.asarray(own * rows + common * rows.mean(axis=-1, keepdims=True))


def wishart_factor(rng: np.random.Generator, size: int, degrees: float) -> Floats:
    """Return F, (size, k), such that FFᵀ is Wishart: Bartlett's triangle, or plain normals."""
    if degrees < size:
        return rng.standard_normal((size, int(degrees)))
    factor = np.tril(rng.standard_normal((size, size)), -1)
    factor[np.diag_indices(size)] = np.sqrt(rng.chisquare(degrees - np.arange(size)))
    return factor
