"""The spectrum under the noise: what XᵀX may have been, given its noisy release.

Adding symmetric Gaussian noise repels eigenvalues from one another: a noisy spectrum is wider than
the true one and may reach below zero. Undoing this on the eigenvalues is possible (they are nearly
deterministic); the eigenvectors stay as they are, since noise has no preferred direction.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "denoised_spectrum",
    "expected_spectrum",
    "possible_spectrum",
    "symmetric_noise",
]

Floats = NDArray[np.float64]


def symmetric_noise(rng: np.random.Generator, *, copies: int, d: int, sigma: float) -> Floats:
    """Draw (copies, d, d) symmetric noise: variance σ² on the diagonal and σ²/2 off it."""
    square = rng.standard_normal((copies, d, d))
    square += square.transpose(0, 2, 1).copy()
    square *= sigma / 2
    return square


def expected_spectrum(values: Floats, sigma: float) -> Floats:
    """Estimate vᵢᵀAvᵢ for the noisy eigenvectors vᵢ of A + noise, from the noisy eigenvalues.

    The rotation-invariant estimator aᵢ − 2(σ²/2)·H(aᵢ), where H is the Hilbert transform of the
    noisy spectrum (Bun, Allez, Bouchaud and Potters 2016) with kernel width σ; at least 0.
    """
    return np.maximum(values - sigma**2 * _repulsion(values, sigma), 0.0)


def possible_spectrum(values: Floats, sigma: float) -> Floats:
    """Return the expected vᵀAv (d,) along noisy eigenvectors, with the sum of the released eigenvalues.

    What is below half the radius of the noise is lowered for that: each may be anything from 0 to the
    noise, so together they may come out several times too large.
    """
    expected = expected_spectrum(values, sigma)
    low = expected < sigma * np.sqrt(2 * len(values)) / 2
    wanted = max(float(values.sum()), 0.0) - float(expected[~low].sum())
    found = float(expected[low].sum())
    if found > 0:
        expected = np.where(low, expected * np.clip(wanted / found, 0.05, 1.5), expected)
    return np.asarray(np.maximum(expected, 1e-6 * float(expected.max())))


def denoised_spectrum(
    values: Floats, noise: Floats, sigma: float, *, rounds: int = 2
) -> tuple[Floats, Floats]:
    """Find non-negative eigenvalues whose noisy version would look like `values`.

    Returns them, and the same before those below 0 were set to 0.

    Starts from second-order perturbation theory, then corrects by the mismatch between `values` and
    the mean spectrum over the given noise draws.

    Parameters
    ----------
    values
        Ascending eigenvalues of the noisy matrix, (d,).
    noise
        Draws of the noise, (copies, d, d).
    sigma
        Its scale.
    rounds
        Corrections to make; each costs one eigenvalue decomposition per draw.
    """
    if sigma == 0:
        cutoff = len(values) * np.finfo(np.float64).eps * np.abs(values).max()
        truth = np.where(values > cutoff, values, 0.0)
        return truth, truth
    truth = np.maximum(np.sort(values - sigma**2 / 2 * _repulsion(values, sigma)), 0.0)
    for _ in range(rounds):
        looks_like = np.linalg.eigvalsh(noise + np.diag(truth)).mean(axis=0)
        centre = np.sort(truth + values - looks_like)
        truth = np.maximum(centre, 0.0)
    return truth, centre


def _repulsion(values: Floats, width: float) -> Floats:
    """Σ_j 1/(aᵢ − a_j), smoothed so that near ties do not explode."""
    if width == 0:
        return np.zeros_like(values)
    gap = values[:, None] - values[None, :]
    return np.asarray((gap / (gap * gap + width * width)).sum(axis=1))
