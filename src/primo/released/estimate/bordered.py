"""Eigenvectors of a decomposed matrix with one more row and column, without a second decomposition.

For M = Vdiag(λ)Vᵀ known, the matrix (M, b; bᵀ, c) is in the basis (V, 1) an arrowhead: diag(λ), bordered
by z = Vᵀb and c. Its eigenvalues μ are the roots of

    f(μ) = μ − c + Σ z_i²/(λ_i − μ),

one between each two neighbouring λ and one beyond either end; f grows from −∞ to ∞ between them. An
eigenvector is (−z_i/(λ_i − μ), 1) up to length. Roots are found by interpolating f with its two nearest
poles, as distances from the nearer one, so that λ_i − μ has no cancellation. Vectors are those of the
border ẑ for which the roots found are exact (Gu and Eisenstat 1995): they are orthogonal however close
roots lie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["arrowhead"]

Floats = NDArray[np.float64]

ROWS = 64  # roots found at once: their distances from all λ stay in the processor's cache
STEPS = 60  # at most; some five are usual
EXACT = 8 * np.finfo(np.float64).eps  # of the terms of f: nothing below is told apart
CHECKED = 1e-11  # relative error of two products with the result, beyond which it is not used


def arrowhead(values: Floats, border: Floats, corner: float) -> tuple[Floats, Floats] | None:
    """Eigenvalues (d + 1,), ascending, and eigenvectors as rows (d + 1, d + 1) of an arrowhead.

    `values` (d,) are ascending, `border` (d,) is z, `corner` is c. None where values coincide or the
    border has zeros, so that eigenvalues do not lie strictly between the values, and where a check by
    products fails. Cost: some 60·d² operations.
    """
    squares = border**2
    reach = float(np.linalg.norm(border))
    scale = max(float(np.abs(values).max()), abs(corner), reach)
    tiny = np.finfo(np.float64).eps * scale
    if not (np.diff(values) > tiny).all() or not (np.abs(border) > tiny).all():
        return None
    ends = (min(values[0], corner) - 2 * reach, max(values[-1], corner) + 2 * reach)
    poles = np.concatenate([ends[:1], values, ends[1:]])
    gaps = np.empty((len(values) + 1, len(values)))  # λ_i − μ_j
    for first in range(0, len(gaps), ROWS):
        last = min(first + ROWS, len(gaps))
        gaps[first:last] = _gaps(values, squares, corner, poles, first, last)
    if not np.isfinite(gaps).all() or not _between(gaps):
        return None
    exact = np.copysign(np.sqrt(_squares_for(values, gaps)), border)
    rows = np.empty((len(gaps), len(gaps)))
    np.divide(-exact, gaps, out=rows[:, :-1])
    rows[:, -1] = 1.0
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    nearest = np.abs(gaps).argmin(axis=1)
    found = values[nearest] - gaps[np.arange(len(gaps)), nearest]
    return (found, rows) if _holds(values, border, corner, found, rows, scale) else None


def _gaps(
    values: Floats, squares: Floats, corner: float, poles: Floats, first: int, last: int
) -> Floats:
    """Return λ_i − μ_j for the roots from `first` to before `last`, (roots, d)."""
    lower, upper = poles[first:last], poles[first + 1 : last + 1]
    # Root j has the values before j on its left.
    within = slice(first, min(last, len(values)))
    left = np.tril(np.ones((last - first, last - first)), -1)[:, : within.stop - first]

    def at(gaps: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Value of f, its slope by the values on the left and by the others, and the error of f."""
        inverse = 1 / gaps
        value = mu - corner + inverse @ squares
        error = np.abs(mu) + abs(corner) + np.abs(inverse) @ squares
        inverse *= inverse
        whole = inverse @ squares
        before = inverse[:, :first] @ squares[:first]
        before += (inverse[:, within] * left) @ squares[within]
        return value, before, np.maximum(whole - before, 0.0) + 1, EXACT * error

    middle = (lower + upper) / 2
    value, *_ = at(values - middle[:, None], middle)
    origin = np.where(value > 0, lower, upper)
    low, high = np.where(value > 0, 0.0, middle - upper), np.where(value > 0, middle - lower, 0.0)
    offsets = values - origin[:, None]
    tau = (low + high) / 2
    to_lower, to_upper = lower - origin, upper - origin
    for _ in range(STEPS):
        gaps = offsets - tau[:, None]
        value, before, behind, error = at(gaps, origin + tau)
        low, high = np.where(value < 0, tau, low), np.where(value > 0, tau, high)
        step = _step(to_lower - tau, to_upper - tau, value, before, behind)
        new = tau + step
        new = np.where((new > low) & (new < high), new, (low + high) / 2)
        done = (np.abs(value) <= error) | (np.abs(new - tau) <= EXACT / 8 * np.abs(tau))
        if done.all():
            return gaps
        tau = np.where(done, tau, new)
    return np.asarray(offsets - tau[:, None])


def _step(down: Floats, up: Floats, value: Floats, before: Floats, behind: Floats) -> Floats:
    """Return the step to the root of C + α/(down − η) + β/(up − η), with f's value and slopes here."""
    alpha, beta = before * down**2, behind * up**2
    constant = value - before * down - behind * up
    linear = constant * (down + up) + alpha + beta
    product = value * down * up
    root = np.sqrt(np.maximum(linear**2 - 4 * product * constant, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(
            linear <= 0, (linear - root) / (2 * constant), 2 * product / (linear + root)
        )


def _between(gaps: Floats) -> bool:
    """Whether every root lies strictly between its neighbours."""
    d = gaps.shape[1]
    each = np.arange(d)
    return bool((gaps[each, each] > 0).all() and (gaps[each + 1, each] < 0).all())


def _squares_for(values: Floats, gaps: Floats) -> Floats:
    """Return the squared border (d,) for which the roots are exact: products of ratios near 1."""
    d = len(values)
    found = np.ones(d)
    for first in range(0, d, ROWS):
        last = min(first + ROWS, d)
        k = np.arange(first, last)
        # Values before i go with the root on their left, those behind it with the root on their right.
        ratio = gaps[first + 1 : last + 1].copy()
        ratio[:, last:] = gaps[first:last, last:]
        upper = np.triu(np.ones((last - first, last - first), dtype=bool), 1)
        ratio[:, first:last][upper] = gaps[first:last, first:last][upper]
        apart = values - values[k, None]
        apart[k - first, k] = 1.0
        ratio /= apart
        ratio[k - first, k] = -gaps[k, k] * gaps[k + 1, k]
        found *= np.prod(ratio, axis=0)
    return np.abs(found)


def _holds(
    values: Floats, border: Floats, corner: float, found: Floats, rows: Floats, scale: float
) -> bool:
    """Check QQᵀx = x and Q diag(μ)Qᵀx = Mx for one x, of signs that follow no pattern."""
    x = np.where(np.sin(np.arange(len(rows)) ** 2 * 0.7) > 0, 1.0, -1.0)
    along = rows @ x
    image = np.append(values * x[:-1] + border * x[-1], border @ x[:-1] + corner * x[-1])
    same = np.linalg.norm(along @ rows - x)
    moved = np.linalg.norm((found * along) @ rows - image)
    limit = CHECKED * float(np.linalg.norm(x))
    return bool(same <= limit and moved <= limit * scale)
