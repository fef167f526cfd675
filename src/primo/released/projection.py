"""GaussProj_X and GaussProj_Y: move a noisy association to the nearest one that data could have.

Where one block of the data is public, not every association is possible. With public features
(protection `outcomes`) it is one of

    K_X = {XᵀZ : ‖Z‖_F ≤ √n·b_y},

and with public outcomes (protection `features`) one of K_Y = {ZᵀY : ‖Z‖_F ≤ √n·b_x}, since every
row of the private block is no longer than its bound. Projecting the noisy association onto this
convex set (Algorithm 2, line 5 of the paper) is post-processing: it costs no privacy, it never
moves away from the truth, and no noise is drawn here. All quantities are sums over rows; the
paper's 1/n scales set and association alike and drops out.

The closed form
---------------
The paper minimises ‖Cz − g̃‖² over a ball for a dl×dn matrix C = I_d ⊗ Yᵀ (or I_l ⊗ Xᵀ), by Hager's
lemma 2.2. All of it happens in the eigenbasis of the small factor. Take K_X; XᵀX = V·diag(s²)·Vᵀ,
T = VᵀG̃ with rows t_i. Stationarity of ‖XᵀZ − G̃‖² + ν‖Z‖² gives Z = (XXᵀ + νI)⁻¹XG̃, hence

    Ĝ = V·diag(f)·T,    f_i = s_i²/(s_i² + ν),    ‖Z‖² = Σ_i s_i²‖t_i‖²/(s_i² + ν)²,

with ν = 0 if the least-norm minimiser, Σ ‖t_i‖²/s_i² over s_i > 0, is in the ball already, and else
the one ν > 0 that puts Z on the sphere; f_i = 0 where s_i = 0. Neither n nor C appears:
O(w³ + w²·l), against O(nl·min(n, l)) in the paper. K_Y is the same with Y for X and G̃ᵀ for G̃.

Why the hard case cannot matter
-------------------------------
A quadratic over a sphere is hard when the linear term has no component along the lowest eigenvectors
of the quadratic; the multiplier then sits at minus the lowest eigenvalue, and the minimiser needs a
multiple of such an eigenvector added to reach the sphere. Here the quadratic CᵀC is positive
semi-definite and the feasible set is the ball, not the sphere, so ν ≥ 0, and only ν = 0 with a
singular C could be hard. But b = 2Cᵀg̃ lies in the range of CᵀC, and what one would add lies in its
kernel: it changes z, not Cz, and Cz is all that is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.privacy.protection import Protection
from primo.released.row_space import Columns, rank_cutoff, row_space, walk

__all__ = [
    "Projected",
    "project_onto_features",
    "project_onto_outcomes",
    "shares_kept",
    "works_on_projected",
]

Floats = NDArray[np.float64]

ROUNDING = 4 * np.finfo(np.float64).eps
MAX_STEPS = 200  # of Newton's method; 20 000 random spectra over 12 decades took 11 at most


@dataclass(frozen=True, kw_only=True, eq=False)
class Projected:
    """An association after projection, and what the projection left of its noise."""

    association: Floats  # (w, l)
    noise_left: float
    """Root mean square, over all entries, of the factor by which noise was multiplied.

    Estimators that weigh signal against noise need this smaller scale."""


def works_on_projected(estimator: str, protection: Protection) -> bool:
    """Whether an estimator is better given the projected association than the one before.

    GaussProj_X multiplies every eigen-direction of the public features by a factor of its own. The
    filters choose such factors themselves, and better, from the association before; the ridge, which
    is the paper's estimator, does not. GaussProj_Y removes noise that no filter of features can reach.
    """
    return estimator == "ridge" or protection is Protection.FEATURES


def project_onto_features(association: Floats, covariance: Floats, *, radius: float) -> Projected:
    """GaussProj_X: project onto the associations that the public features allow.

    Parameters
    ----------
    association
        Noisy XᵀY, (w, l).
    covariance
        XᵀX of the public features, exact, (w, w).
    radius
        √n·b_y, the Frobenius norm that no outcomes exceed.

    Returns
    -------
    Projected
        The nearest point, in Frobenius norm, of {XᵀZ : ‖Z‖_F ≤ radius}. Eigenvalues of the
        covariance up to `rank_cutoff` (8·w·2⁻⁵² of the largest) count as zero.

    Notes
    -----
    Guarantee: deterministic post-processing of the association and of public numbers.
    Cost: one w×w eigendecomposition, one symmetric and one general product of w×w by w×l.
    """
    _check(association, radius)
    w = len(association)
    if covariance.shape != (w, w):
        raise InputError(
            f"the covariance has shape {covariance.shape}; the association, of shape"
            f" {association.shape}, needs {(w, w)}"
        )
    values, vectors = np.linalg.eigh(covariance)
    if values[0] < -rank_cutoff(values, w):
        raise InputError(
            f"the covariance has an eigenvalue of {values[0]:.3g}, so it is not XᵀX of public"
            " features; a covariance with noise cannot be projected onto"
        )
    start = int(np.searchsorted(values, rank_cutoff(values, w), side="right"))
    values, vectors = values[start:], vectors[:, start:]
    # ‖t_i‖² = v_iᵀ(G̃G̃ᵀ)v_i avoids a (w, l) intermediate. Its rounding is that of the eigenvalues.
    energies = np.einsum("ji,ji->i", vectors, (association @ association.T) @ vectors)
    kept = shares_kept(values, np.maximum(energies, 0.0), radius)
    projected = np.asarray(((vectors * kept) @ vectors.T) @ association)
    return Projected(association=projected, noise_left=_noise_left(kept, w))


def project_onto_outcomes(
    association: Floats, columns: Columns, *, n: int, radius: float
) -> Projected:
    """GaussProj_Y: project onto the associations that the public outcomes allow.

    Parameters
    ----------
    association
        Noisy XᵀY, (w, l).
    columns
        Yields the public outcomes, (n, l), as (slice, block of columns) from left to right; called
        once for each pass.
    n
        Number of rows.
    radius
        √n·b_x, the Frobenius norm that no features exceed.

    Returns
    -------
    Projected
        The nearest point, in Frobenius norm, of {ZᵀY : ‖Z‖_F ≤ radius}. Squared singular values of
        Y up to `rank_cutoff` (8·max(n, l)·2⁻⁵² of the largest) count as zero.

    Notes
    -----
    Guarantee: deterministic post-processing of the association and of public numbers.

    With n ≤ l it works with YYᵀ: three passes, O(n²·l + n³ + n·w·l), and memory for 3·n² numbers, the
    association three times and one block of columns. Otherwise with YᵀY: one pass for each block of
    columns and one more, O(n·l² + l³ + w·l²), and memory for 4·l² numbers and two blocks. If YᵀY is at
    hand, `project_onto_features(association.T, YᵀY, radius=radius)` is the same without a pass.
    """
    _check(association, radius)
    l = association.shape[1]
    if n > l:
        gram = _column_gram(columns, n=n, width=l)
        transposed = project_onto_features(association.T, gram, radius=radius)
        return Projected(association=transposed.association.T, noise_left=transposed.noise_left)
    space = row_space(columns, n=n, width=l)
    rotated = space.reduce(association.T)
    energies = np.einsum("ij,ij->i", rotated, rotated)
    kept = shares_kept(space.values, energies, radius)
    rotated *= kept[:, None]
    projected = np.ascontiguousarray(space.expand(rotated).T)
    return Projected(association=projected, noise_left=_noise_left(kept, l))


def _noise_left(kept: Floats, directions: int) -> float:
    """Return the root mean square share over all directions; those without data keep nothing."""
    return float(np.sqrt(kept @ kept / directions))


def shares_kept(values: Floats, energies: Floats, radius: float) -> Floats:
    """Return f_i = s_i²/(s_i² + ν), the share kept of each direction with s_i > 0."""
    if not np.isfinite(energies).all():
        raise InputError("the association contains NaN or infinity: the release is damaged")
    return values / (values + _multiplier(values, energies, radius)) if values.size else values


def _multiplier(values: Floats, energies: Floats, radius: float) -> float:
    """Find the least ν ≥ 0 with ‖Z(ν)‖ ≤ radius, where ‖Z(ν)‖² = Σ s_i²‖t_i‖²/(s_i² + ν)².

    1/‖Z(ν)‖ is increasing, concave and almost linear in ν (Conn, Gould and Toint 2000, section 7.3),
    so Newton's method on 1/‖Z(ν)‖ = 1/radius, started on the left, climbs to the root without ever
    passing it. The bracket comes from replacing every s_i² by the largest or by the smallest; a step
    that rounding throws out of it is replaced by a bisection.
    """
    loads = values * energies
    total = float(np.sqrt(loads.sum()))
    low = max(0.0, total / radius - float(values.max()))
    high = max(low, total / radius - float(values.min()))
    nu = low
    for _ in range(MAX_STEPS):
        terms = loads / (values + nu) ** 2
        length = float(np.sqrt(terms.sum()))
        if length <= radius * (1 + ROUNDING) and (nu == 0 or length >= radius * (1 - ROUNDING)):
            break
        if length > radius:
            low = nu
        else:
            high = nu
        step = (length / radius - 1) * length**2 / float((terms / (values + nu)).sum())
        proposed = nu + step if low < nu + step < high else (low + high) / 2
        if proposed in (low, high):  # the bracket is down to neighbouring numbers
            break
        nu = proposed
    return nu


def _column_gram(columns: Columns, *, n: int, width: int) -> Floats:
    """YᵀY from blocks of columns, never more than two of them in memory."""
    gram = np.empty((width, width))
    for left, block in walk(columns, n=n, width=width):
        for right, other in walk(columns, n=n, width=width):
            if right.start >= left.start:
                gram[left, right] = block.T @ other
                gram[right, left] = gram[left, right].T
    return gram


def _check(association: Floats, radius: float) -> None:
    if association.ndim != 2 or association.size == 0:
        raise InputError(f"the association must be (w, l), not of shape {association.shape}")
    if not (np.isfinite(radius) and radius > 0):
        raise InputError(f"the radius must be finite and positive, not {radius}")
