"""λ-ReuseCov, the paper's Algorithm 3 as printed, and its rules for λ.

For the reader who follows the paper line by line; the library itself takes solver ``"fast"``. The
noise of lines 1 and 4 and the projection of lines 5 and 6 happen before the release (`wall`),
so what is left here is line 2 (the ridge), line 3 (QR) and lines 7 to 10 (one back substitution for
each outcome). Moments and λ are sums over rows, as everywhere in primo; the paper's averages are
made, and undone, inside `reuse_cov`.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.released.estimate.closed_forms import ridge_filter

__all__ = [
    "SOLVERS",
    "adassp_lambda",
    "gauss_error",
    "projection_error",
    "reuse_cov",
    "theorem_lambda",
]

Floats = NDArray[np.float64]

SOLVERS = ("qr", "cg", "fast")
CG_TOLERANCE = 1e-14  # of the residual, relative to the right-hand side


def reuse_cov(
    covariance: Floats, association: Floats, *, n: int, ridge_lambda: float, solver: str = "qr"
) -> Floats:
    """Solve (Â + λI)·W = Ĝ for all outcomes with one factorisation of Â + λI.

    Parameters
    ----------
    covariance
        Released XᵀX, (d, d), a sum over rows.
    association
        Released XᵀY, (d, l), projected or not.
    n
        Number of rows: the algorithm works on averages.
    ridge_lambda
        λ in units of XᵀX: n times the paper's.
    solver
        - ``"qr"``: as printed. Solves an indefinite system too, however far its solution runs away.
        - ``"cg"``: conjugate gradients, the alternative of Section 5.3, on all outcomes abreast.
          Needs Â + λI to be positive definite.
        - ``"fast"``: the eigenbasis of Â with negative eigenvalues set to 0, the library's own ridge.

    Returns
    -------
    (d, l)
        Coefficients. Where Â has no negative eigenvalue all solvers agree up to rounding.

    Notes
    -----
    Cost: O(d³ + d²·l); ``"cg"`` O(d²·l) for each of about √κ iterations, κ the condition number (the
    paper says κ).
    """
    d = len(association)
    if covariance.shape != (d, d):
        raise InputError(
            f"the covariance has shape {covariance.shape}; the association, of shape"
            f" {association.shape}, needs {(d, d)}"
        )
    if not (math.isfinite(ridge_lambda) and ridge_lambda >= 0):
        raise InputError(
            Argument("ridge_lambda"), f" must be finite and not negative, not {ridge_lambda}"
        )
    if solver == "fast":
        values, vectors = np.linalg.eigh(covariance)
        scaled = vectors * ridge_filter(values, ridge_lambda)
        return np.asarray((scaled @ vectors.T) @ association)
    information = covariance / n + (ridge_lambda / n) * np.eye(d)  # line 2, Î
    average = association / n  # line 6, ĝ
    if solver == "qr":
        return _solve_qr(information, average)
    if solver == "cg":
        return _solve_cg(information, average)
    raise InputError(
        f"unknown solver {solver!r}",
        argument="solver",
        value=solver,
        remedy=f"choose one of {', '.join(SOLVERS)}",
    )


def _solve_qr(information: Floats, average: Floats) -> Floats:
    """Lines 3 and 7 to 9: Î = QR, then R·w_i = Qᵀg_i by back substitution."""
    q, r = np.linalg.qr(information)
    pivots = np.abs(np.diagonal(r))
    if pivots.min() <= len(r) * np.finfo(np.float64).eps * pivots.max():
        raise InputError(
            "the covariance plus ",
            Argument("ridge_lambda"),
            " is singular to working precision",
            remedy=Message.of(
                "choose a larger ", Argument("ridge_lambda"), ", for example adassp_lambda's"
            ),
        )
    return np.asarray(scipy.linalg.solve_triangular(r, q.T @ average))


def _solve_cg(matrix: Floats, targets: Floats) -> Floats:
    """Conjugate gradients (Hestenes and Stiefel 1952), one column for each outcome."""
    solution = np.zeros_like(targets)
    residual = targets.copy()
    direction = targets.copy()
    energy = np.einsum("ij,ij->j", residual, residual)
    enough = CG_TOLERANCE**2 * energy
    for _ in range(20 * len(matrix) + 100):
        active = energy > enough
        if not active.any():
            return solution
        image = matrix @ direction
        curvature = np.einsum("ij,ij->j", direction, image)
        if (curvature[active] <= 0).any():
            raise InputError(
                "conjugate gradients need a positive definite covariance plus ",
                Argument("ridge_lambda"),
                ", and this one is not",
                remedy=Message.of(
                    "choose a larger ", Argument("ridge_lambda"), ", or ", Argument("solver", "qr")
                ),
            )
        step = np.divide(energy, curvature, out=np.zeros_like(energy), where=active)
        solution += step * direction
        residual -= step * image
        before, energy = energy, np.einsum("ij,ij->j", residual, residual)
        direction *= np.divide(energy, before, out=np.zeros_like(energy), where=active)
        direction += residual
    raise InputError(
        "conjugate gradients did not converge: the covariance plus ",
        Argument("ridge_lambda"),
        " is too badly conditioned",
        remedy=Message.of(
            "choose a larger ", Argument("ridge_lambda"), ", or ", Argument("solver", "qr")
        ),
    )


def theorem_lambda(
    *,
    d: int,
    coefficient_norm: float,
    covariance_sigma: float,
    association_error: float,
    failure: float = 0.05,
) -> float:
    """Return the λ of Theorems 1 to 3, given how large the coefficients are.

    With probability 1 − ρ the excess squared error of an outcome, a sum over rows, is at most a
    constant times (equation "penult" of the paper, with λ_min = 0)

        d·σ₁²·L·‖w‖²/λ + λ·‖w‖² + e/λ,        L = log(2d²/ρ),

    where e bounds the squared error of its association (for Gauss Lemma 6 gives e = d·σ₂²·L, for a
    projection Theorem 2). The minimum is at λ = √(d·σ₁²·L + e/‖w‖²). The paper states this λ in
    bounds and ε; here the noise scales really used stand in their place.

    Parameters
    ----------
    d
        Number of features.
    coefficient_norm
        ‖w‖ of an outcome; for several the root mean square, ‖W‖_F/√l.
    covariance_sigma
        σ₁; 0 where the features are public.
    association_error
        e, from `gauss_error` or `projection_error`.
    failure
        ρ.

    Returns
    -------
    float
        λ in units of XᵀX (sums over rows): the paper's is this over n.
    """
    if not (math.isfinite(coefficient_norm) and coefficient_norm > 0):
        raise InputError(
            Argument("coefficient_norm"), f" must be finite and positive, not {coefficient_norm}"
        )
    covariance_term = d * covariance_sigma**2 * _log_factor(d, failure)
    return math.sqrt(covariance_term + association_error / coefficient_norm**2)


def gauss_error(*, d: int, association_sigma: float, failure: float = 0.05) -> float:
    """Bound ‖ĝ − Xᵀy‖² of one outcome by d·σ₂²·L: the Gaussian mechanism (Theorem 1)."""
    return d * association_sigma**2 * _log_factor(d, failure)


def projection_error(
    *,
    d: int,
    l: int,
    association_sigma: float,
    radius: float,
    public_norm: float,
    private_width: int,
    failure: float = 0.05,
) -> float:
    """Bound ‖Ĝ − XᵀY‖²_F/l after GaussProj_Y or GaussProj_X (Theorem 2), never above `gauss_error`.

    Ĝ and XᵀY both lie in the symmetric convex set K, and Ĝ is the point of K nearest to XᵀY + N, so
    ‖Ĝ − XᵀY‖² ≤ ⟨N, Ĝ − XᵀY⟩ ≤ 2·sup_K ⟨N, ·⟩. For K_Y the supremum is radius·‖YNᵀ‖_F, a function of
    N with Lipschitz constant radius·‖Y‖, so with probability 1 − ρ it is no more than
    radius·σ₂·‖Y‖_F·(√d + √(2·log(1/ρ))); for K_X likewise, with X for Y and l for d. The paper has 4
    for 2, and √d·√log(2/ρ), from a Hanson–Wright inequality, for the sum.

    Parameters
    ----------
    d, l
        Numbers of features and of outcomes.
    association_sigma
        σ₂.
    radius
        Of the ball: √n·b_x for GaussProj_Y, √n·b_y for GaussProj_X.
    public_norm
        Frobenius norm of the public block, ‖Y‖_F or ‖X‖_F.
    private_width
        Columns of the private block: d for GaussProj_Y, l for GaussProj_X.
    failure
        ρ.
    """
    deviation = math.sqrt(private_width) + math.sqrt(2 * math.log(1 / failure))
    projected = 2 * radius * association_sigma * public_norm * deviation / l
    return min(projected, gauss_error(d=d, association_sigma=association_sigma, failure=failure))


def adassp_lambda(covariance: Floats, *, covariance_sigma: float, failure: float = 0.05) -> float:
    """Return AdaSSP's λ = max(0, √(d·log(2d²/ρ))·σ₁ − λ̃_min) (Wang 2018, Algorithm 2).

    Just enough ridge to lift the smallest eigenvalue of XᵀX above the noise, none if it is above it
    already. AdaSSP spends a third of its budget on a private lower bound λ̃_min of that eigenvalue.
    Here it costs nothing: the noisy covariance is released anyway, and this is post-processing of it.
    With u the last eigenvector of XᵀX, λ_min(XᵀX + E₁) ≤ uᵀ(XᵀX + E₁)u = λ_min(XᵀX) + uᵀE₁u, and
    uᵀE₁u ~ N(0, σ₁²), as svec noise has that variance in every fixed direction. So

        λ̃_min = max(0, λ_min(Â) − σ₁·Φ⁻¹(1 − ρ))

    is below λ_min(XᵀX) with probability 1 − ρ: no ‖E₁‖ ≈ √(2d)·σ₁ needs to be taken off.

    Parameters
    ----------
    covariance
        Released XᵀX, (d, d).
    covariance_sigma
        σ₁, the scale of its svec noise: N(0, σ₁²) on the diagonal, N(0, σ₁²/2) off it.
    failure
        ρ.

    Returns
    -------
    float
        λ in units of XᵀX.
    """
    d = len(covariance)
    lowest = float(np.linalg.eigvalsh(covariance)[0])
    margin = covariance_sigma * NormalDist().inv_cdf(1 - failure)
    wanted = math.sqrt(d * _log_factor(d, failure)) * covariance_sigma
    return max(0.0, wanted - max(0.0, lowest - margin))


def _log_factor(d: int, failure: float) -> float:
    """L = log(2d²/ρ) of Lemma 6."""
    if not 0 < failure < 1:
        raise InputError(
            Argument("failure"), f", a probability, must be between 0 and 1, not {failure}"
        )
    return math.log(2 * d**2 / failure)
