"""From a release to coefficients: the one entry point of the package."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.estimate.closed_forms import closed_form_filter, default_ridge_lambda, ridge_filter
from primo.estimate.outcomes import OutcomeGroups, group_outcomes, one_group
from primo.estimate.problem import Estimate, NoisyMoments
from primo.estimate.risk import FilterRisk, Replicas, simulate
from primo.estimate.signal import Signal, SignalModel, prior_shape

__all__ = ["ESTIMATORS", "estimate"]

Floats = NDArray[np.float64]

ESTIMATORS = ("auto", "ridge", "filter", "one-sided", "two-sided")
DOUBT = 2.0  # nats of evidence against it at which auto gives up the two-sided filter
NUMERICAL_NOISE = 1e-24  # of the mean squared association: stands in for σ₂² = 0


def estimate(
    moments: NoisyMoments, *, estimator: str = "auto", ridge_lambda: float | None = None
) -> Estimate:
    """Turn released moments into coefficients.

    Parameters
    ----------
    moments
        The release. Nothing else is read, so whatever is done here costs no privacy.
    estimator
        - ``"ridge"``: (Â⁺ + λI)⁻¹Ĝ, with Â⁺ the covariance made positive semi-definite.
        - ``"filter"``: the closed-form filter a⁺/(a⁺² + λ²) of mathematics.md, section 6.
        - ``"one-sided"``: the filter of least expected error, simulated from the release.
        - ``"two-sided"``: the same after rotating the outcomes by their released moments, with its
          own prior for each group of outcome directions of similar variance. It is one-sided where
          those moments are all noise, or there is one outcome only.
        - ``"auto"``: two-sided, unless the released association speaks against outcome directions
          of larger variance carrying more signal; then one-sided.
    ridge_lambda
        λ of ``"ridge"``, in units of XᵀX (sums over rows); √(d/2)·σ₁ if not given.

    Returns
    -------
    Estimate
        A deterministic function of the arguments.

    Notes
    -----
    Cost: a few d×d eigendecompositions and two products of d×d by d×l; two-sided, where the whole
    outcome moments were released, one l×l eigendecomposition and two products of d×l by l×l more.
    """
    if estimator not in ESTIMATORS:
        raise InputError(f"unknown estimator {estimator!r}; choose one of {', '.join(ESTIMATORS)}")
    if ridge_lambda is not None and estimator != "ridge":
        raise InputError(f'ridge_lambda belongs to estimator="ridge", not to {estimator!r}')
    values, vectors = np.linalg.eigh(moments.covariance)
    association = vectors.T @ moments.association
    if estimator not in {"ridge", "filter"}:
        return _simulated(moments, estimator, values, vectors, association)
    if estimator == "ridge":
        if ridge_lambda is None:
            ridge_lambda = default_ridge_lambda(moments)
        g, parameters = ridge_filter(values, ridge_lambda), {"lambda": ridge_lambda}
    else:
        g, tau2 = closed_form_filter(values, moments)
        parameters = {"tau2": tau2}
    association *= g[:, None]
    return Estimate(
        coefficients=vectors @ association,
        name=estimator,
        parameters=parameters,
        predicted_excess=None,
    )


def _simulated(
    moments: NoisyMoments, estimator: str, values: Floats, vectors: Floats, association: Floats
) -> Estimate:
    """Fit the signal, choose the sides, and apply the filter of least simulated error."""
    d, l = moments.shape
    groups = one_group(l)
    energy = groups.energy(association)
    noise_variance = max(moments.association_sigma**2, NUMERICAL_NOISE * energy.sum() / (d * l))
    replicas = simulate(values, moments.covariance_sigma)
    if replicas.truth[-1] <= 0 or noise_variance == 0:
        return _nothing(moments)  # not a trace of variation in the features, or of association
    model = SignalModel(
        replicas, noise_variance=noise_variance, variation=moments.total_variation / l
    )
    name = "one-sided"
    signal = model.fit(energy, groups)
    finer = groups if estimator == "one-sided" else group_outcomes(moments)
    if len(finer.counts) > 1:
        rotated = finer.rotate(association)
        energy = finer.energy(rotated)
        weighted = model.fit(energy, finer, gammas=signal.gamma)
        alike = model.fit(energy, finer.with_equal_weights(), gammas=signal.gamma)
        if estimator == "two-sided" or weighted.score > alike.score - DOUBT:
            name, groups, association = "two-sided", finer, rotated
            signal = model.refine(energy, finer, weighted)
    tau2 = float(groups.counts @ signal.strength) / l
    if tau2 == 0:
        return _nothing(moments)
    g, excess = _best_filters(replicas, signal, groups, noise_variance)
    association *= groups.spread(g)  # our own product, not the caller's array
    return Estimate(
        coefficients=groups.rotate_back(vectors @ association),
        name=name,
        parameters={
            "tau2": tau2,
            "gamma": float(groups.counts @ signal.gamma) / l,
            "groups": float(len(groups.counts)),
        },
        predicted_excess=excess,
    )


def _best_filters(
    replicas: Replicas, signal: Signal, groups: OutcomeGroups, noise_variance: float
) -> tuple[Floats, float]:
    """Return filters of least expected excess, (d, groups), and that excess over all outcomes."""
    g = np.empty((len(replicas.truth), len(groups.counts)))
    excess = 0.0
    for gamma in np.unique(signal.gamma):
        which = signal.gamma == gamma
        risk = FilterRisk.build(replicas, prior_shape(replicas.truth, gamma), noise_variance)
        strength = signal.strength[which]
        g[:, which] = risk.best_filter(strength)
        excess += float(groups.counts[which] @ risk.excess(g[:, which], strength))
    return g, max(excess, 0.0)


def _nothing(moments: NoisyMoments) -> Estimate:
    """Predict the mean: the right answer where no signal stands out of the noise."""
    return Estimate(
        coefficients=np.zeros(moments.shape),
        name="one-sided",
        parameters={"tau2": 0.0, "gamma": 0.0, "groups": 1.0},
        predicted_excess=0.0,
    )
