"""The reference method: draw releases from a pseudo-truth and look at the errors.

Slow; used to check the formulas. True coefficients are drawn from the posterior and releases of them
from the known noise; unshrunk estimates from these releases are compared with the drawn coefficients.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.released.estimate.centring import reflect
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.intervals import Intervals, coefficient_intervals
from primo.released.uncertainty.system import check_level, check_target, system_of

__all__ = ["bootstrap_intervals"]

Floats = NDArray[np.float64]


def bootstrap_intervals(
    release: ReleasedMoments,
    *,
    level: float = 0.95,
    target: str = "population",
    draws: int = 200,
    seed: int = 0,
) -> Intervals:
    """Return studentised parametric-bootstrap intervals of the unshrunk slopes.

    Parameters
    ----------
    draws
        Simulated releases; an end of an interval is a quantile over them, pooled over the outcomes.
    seed
        Of the simulation (public side: no privacy depends on it).
    release
        As for `coefficient_intervals`.
    level
        As for `coefficient_intervals`.
    target
        As for `coefficient_intervals`.

    Notes
    -----
    The quantile of |error|/standard error is taken over draws and outcomes, one for each feature.
    Guarantee: post-processing; costs no privacy.
    Cost: `draws` × that of `coefficient_intervals`, and memory for draws·d·l numbers.
    """
    check_level(level)
    check_target(target)
    if draws < 20:
        raise InputError(
            Argument("draws", draws), " is too few for a quantile", remedy="give at least 20"
        )
    system = system_of(release)
    posterior = system.posterior
    made = coefficient_intervals(release, level=level, target=target)
    rng = np.random.default_rng(seed)
    d, width, l = system.d, system.width, system.l
    # True directions are taken as released, eigenvalues as denoised.
    inner = (posterior.vectors * np.maximum(posterior.values, 1e-9 * posterior.values.max())) @ (
        posterior.vectors.T
    )
    covariance = inner
    axis = posterior.centred.axis
    if system.intercept:
        covariance = np.zeros((width, width))
        covariance[:d, :d] = inner
        covariance[-1, -1] = system.covariance[-1, -1] / axis[-1] ** 2
        covariance = reflect(axis, reflect(axis, covariance).T)
    root = np.linalg.cholesky(covariance + 1e-10 * np.trace(covariance) / width * np.eye(width))
    spread = np.sqrt(posterior.errors @ posterior.shares.T)
    sampling = np.sqrt(system.sampling(target) + system.row_variance)
    tails = np.empty((draws, d, l))
    for draw in range(draws):
        drawn = posterior.along + spread * rng.standard_normal((d, l))
        theta = posterior.centred.restore(posterior.vectors @ drawn)
        square = rng.standard_normal((width, width))
        noise = np.sqrt(system.off_variance / 2) * (square + square.T)
        association = covariance @ theta + sampling * (root @ rng.standard_normal((width, l)))
        added = np.sqrt(system.association_variance) * rng.standard_normal((width, l))
        if system.intercept:
            noise[-1, -1] = 0.0
            added[-1] *= not system.sums_exact
        association += added
        again = dataclasses.replace(release, covariance=covariance + noise, association=association)
        redone = coefficient_intervals(again, level=level, target=target)
        scale = system.unit / release.plan.features.scale[:, None]
        error = redone.estimate[:d] - theta[:d] * scale
        tails[draw] = np.abs(error) / np.maximum(redone.standard_error[:d], 1e-300)
    quantile = np.quantile(tails.transpose(1, 0, 2).reshape(d, -1), level, axis=1)[:, None]
    lost = np.isinf(made.standard_error[:d])
    half = np.where(lost, np.inf, quantile * np.where(lost, 0.0, made.standard_error[:d]))
    return dataclasses.replace(
        made,
        names=made.names[:d],
        estimate=made.estimate[:d],
        standard_error=made.standard_error[:d],
        lower=made.estimate[:d] - half,
        upper=made.estimate[:d] + half,
        z=None if made.z is None else made.z[:d],
        trusted=made.trusted[:d],
    )
