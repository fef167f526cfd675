"""From a release to coefficients: the one entry point of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.released.estimate.closed_forms import (
    closed_form_filter,
    default_ridge_lambda,
    ridge_filter,
)
from primo.released.estimate.large import LargeReplicas
from primo.released.estimate.outcomes import OutcomeGroups, alike, by_variance, group_outcomes
from primo.released.estimate.problem import Estimate, NoisyMoments
from primo.released.estimate.risk import MOST_REPLICAS, Carried, FilterRisk, Replicas, simulate
from primo.released.estimate.signal import Signal, SignalModel
from primo.released.estimate.spectrum import possible_spectrum

__all__ = ["ESTIMATORS", "FittedFilter", "estimate", "fit_filter"]

Floats = NDArray[np.float64]

ESTIMATORS = ("auto", "ridge", "filter", "one-sided", "two-sided")
CERTAIN = 2.0  # standard deviations
#: Times σ₁: no prior is worth dividing by less. A single eigenvalue has no others to be mixed up with.
SMALLEST_DIVISOR, SMALLEST_ALONE = 1.0, 0.5
MOST_CHANCE = (
    10.0  # times σ₂²: sampling error beyond is not shrunk, so that no noise is least squares
)
LEAST_KNOWN = 0.25  # share of the covariance that counts as other than noise
HALF_WAY = 0.5  # how far the filter goes toward ridge where both have the same simulated error
#: How much further for each unit of doubt times the share of ridge's error that is noise, at most how
#: far, and how many times longer the reach of the doubt is.
FURTHER, MOST_OF_WAY, LONGER = 1.6, 0.85, 4.0
CARRIED_PASSES = 2  # until the filter of earlier rounds and that of all rounds agree
DOUBT = 2.0  # nats of evidence against it at which auto gives up the two-sided filter
GAIN = 2.0  # nats for it over outcomes as they are, where these differ in variance


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
        - ``"filter"``: the closed-form filter a⁺/(a⁺² + λ²) of mathematics.md section 6.
        - ``"one-sided"``: the filter of least expected error, simulated from the release. An outcome of
          small variance is expected to have a small signal (`variances`).
        - ``"two-sided"``: the same after rotating the outcomes by their released moments, with its
          own prior for each group of outcome directions of similar variance. It is one-sided where
          those moments are all noise, or there is one outcome only.
        - ``"auto"``: two-sided where the released association speaks for outcome directions of larger
          variance carrying more signal, otherwise one-sided. Ridge and the closed-form filter
          are members of the family that the simulated filters are the best of. Where few outcomes
          and features leave the prior in doubt, and ridge has nearly the same simulated error, the
          filter is moved toward ridge.
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
        raise InputError(
            f"unknown estimator {estimator!r}",
            argument="estimator",
            value=estimator,
            remedy=f"choose one of {', '.join(ESTIMATORS)}",
        )
    if ridge_lambda is not None and estimator != "ridge":
        raise InputError(
            Argument("ridge_lambda"),
            " belongs to ",
            Argument("estimator", "ridge"),
            f", not to {estimator!r}",
        )
    if estimator not in {"ridge", "filter"}:
        return fit_filter(moments, sides=estimator).estimate(moments)
    values, vectors = moments.spectrum
    association = moments.rotated
    if estimator == "ridge":
        if ridge_lambda is None:
            ridge_lambda = default_ridge_lambda(moments)
        g, parameters = ridge_filter(values, ridge_lambda), {"lambda": ridge_lambda}
    else:
        g, tau2 = closed_form_filter(values, moments)
        parameters = {"tau2": tau2}
    return Estimate(
        coefficients=vectors @ (g[:, None] * association),
        name=estimator,
        parameters=parameters,
        predicted_excess=None,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedFilter:
    """The filter of least simulated error, and the prior that it was chosen under."""

    name: str  # "one-sided" or "two-sided"
    values: Floats  # (d,) eigenvalues of Â
    covariance_sigma: float
    vectors: Floats  # (d, d) its eigenvectors in columns
    association: Floats  # (d, l) along them and along the outcome directions
    groups: OutcomeGroups
    replicas: Replicas | LargeReplicas
    carried: Carried | None  # what earlier rounds had found
    fit_common: Callable[[], Signal]  # for `common`, which only the size of errors needs
    signal: Signal  # of the groups
    filters: Floats  # (d, groups)
    excess: Floats  # (groups,) expected ‖X(ŵ − w)‖² of one outcome direction
    row_variance: float = 0.0  # of noise on the outcomes themselves
    started: Floats | None = None  # (d, l) what rounds started from, as `association`

    @cached_property
    def common(self) -> Signal:
        """Signal of the outcomes as they are, none expected to carry more signal than another.

        What earlier rounds had found is counted in. In `signal` it is not, which is too small after
        rounds: filters are better with that, on rows that were not fitted.
        """
        return self.fit_common()

    @cached_property
    def filtered(self) -> Floats:
        """Coefficients along the eigenvectors and the outcome directions, (d, l).

        After rounds Ĝ = ÃW̄ + (what the residuals showed). Where a direction is lost in the noise of the
        covariance the filter is for the second part alone: W̄ was shrunk for that when it was found.
        """
        filters = self.groups.spread(self.filters)
        filtered = self.association * filters
        if self.started is not None:
            expected = possible_spectrum(self.values, self.covariance_sigma)[:, None]
            radius = self.covariance_sigma * np.sqrt(len(expected) / 2)
            unknown = radius**2 / (expected**2 + radius**2)
            filtered += unknown * np.maximum(1 - filters * expected, 0.0) * self.started
        return np.asarray(filtered)

    def estimate(self, moments: NoisyMoments) -> Estimate:
        """Return the coefficients, shrunk where they would explain more than there is."""
        along = self.groups.rotate_back(self.filtered)
        along = along * (moments.slopes_kept * _possible_share(moments, self.values, along))
        counts = self.groups.counts
        return Estimate(
            coefficients=self.vectors @ along,
            along=along,
            name=self.name,
            parameters={
                "tau2": float(self.signal.strength.sum(axis=0) @ counts / counts.sum()),
                "groups": float(len(counts)),
            },
            predicted_excess=max(float(counts @ self.excess), 0.0),
        )


def fit_filter(
    moments: NoisyMoments,
    *,
    sides: str = "auto",
    quick: bool = False,
    most_replicas: int = MOST_REPLICAS,
) -> FittedFilter:
    """Fit the signal, choose the sides ("auto", "one-sided" or "two-sided") and the filter.

    `quick` is for forecasts and `most_replicas` for rounds, which do this many times (`risk.simulate`).

    Cost: some ten decompositions of d×d matrices, and the products that `estimate` names.
    """
    values, vectors = moments.spectrum
    association = moments.rotated
    replicas = simulate(values, moments.covariance_sigma, most=most_replicas, quick=quick)
    groups, name = by_variance(moments), "one-sided"
    energy = replicas.collect(groups.energy(association))
    same = alike(moments)
    nothing = np.zeros((1, len(groups.counts)))
    signal = Signal(strength=nothing, mean=nothing, score=0.0)
    fit_common: Callable[[], Signal] = partial(replace, signal)
    filters, excess = np.zeros((len(values), len(groups.counts))), np.zeros(len(groups.counts))
    carried = None
    if replicas.top > 0 and energy.any():  # a trace of variation, and of association
        variation = moments.total_variation / moments.shape[1]
        rows = _rows_for_chance(moments, values, variation)
        own = moments.row_variance
        model_of = partial(
            SignalModel, variation=variation, rows=rows, row_variance=own, doubt=moments.doubt
        )
        drawn, of_all = replicas, replicas.collect(same.energy(association))
        replicas = model_of(drawn).weigh(energy, groups)
        model = model_of(replicas)
        signal = model.fit(energy, groups)
        finer = None if sides == "one-sided" else group_outcomes(moments)
        if finer is not None:
            rotated = finer.rotate(association)
            energy = replicas.collect(finer.energy(rotated))
            weighted = model.fit(energy, finer)
            equal = model.fit(energy, finer.with_equal_weights())
            least = equal.score - DOUBT
            if (
                np.ptp(groups.weights) > 0
            ):  # rotation mixes the noise of large outcomes into small ones
                least = max(least, signal.score + GAIN)
            if sides == "two-sided" or weighted.score > least:
                name, groups, association = "two-sided", finer, rotated
                signal = model.refine(energy, finer, weighted)
        risk = FilterRisk.build(replicas, model.shapes)
        residual = model.residual(signal, groups)
        filters = risk.best_filter(signal.strength, groups.noise_variance, residual + own)
        if moments.carried > 0 and moments.covariance_sigma > 0:
            expected = possible_spectrum(values, moments.covariance_sigma)
            for _ in range(CARRIED_PASSES):
                carried = Carried(
                    share=moments.carried,
                    filter=_typical(filters, signal, groups, moments.covariance_sigma),
                    expected=expected,
                )
                risk = FilterRisk.build(replicas, model.shapes, carried)
                filters = risk.best_filter(signal.strength, groups.noise_variance, residual)
        if moments.covariance_sigma > 0:
            divisor = SMALLEST_DIVISOR if len(values) > 1 else SMALLEST_ALONE
            filters = np.minimum(filters, 1 / (divisor * moments.covariance_sigma))
            ridge = ridge_filter(replicas.average(values), default_ridge_lambda(moments))
            filters = _toward_ridge(filters, ridge, risk, signal, groups, residual)
        fit_common = partial(_fit_common, partial(model_of, drawn, carried=carried), of_all, same)
        excess = risk.excess_in_rows(filters, signal.strength, groups.noise_variance, residual, own)
        filters = replicas.spread(filters)
    return FittedFilter(
        name=name,
        values=values,
        vectors=vectors,
        association=association,
        groups=groups,
        replicas=replicas,
        carried=carried,
        fit_common=fit_common,
        signal=signal,
        filters=filters,
        excess=excess,
        row_variance=moments.row_variance,
        covariance_sigma=moments.covariance_sigma,
        started=_along(moments, vectors, groups),
    )


def _fit_common(
    make_model: Callable[[], SignalModel], energy: Floats, groups: OutcomeGroups
) -> Signal:
    return make_model().fit(energy, groups, of_rows=True)


def _along(moments: NoisyMoments, vectors: Floats, groups: OutcomeGroups) -> Floats | None:
    """Return what rounds started from, along the eigenvectors; None where the covariance is exact."""
    if moments.started is None or moments.covariance_sigma == 0:
        return None
    return groups.rotate(vectors.T @ moments.started)


def _typical(filters: Floats, signal: Signal, groups: OutcomeGroups, sigma: float) -> Floats:
    """Return one filter (d,) for those of all groups (d, groups): their mean, weighted by signal."""
    weights = signal.strength.sum(axis=0) * groups.counts
    limited = np.minimum(filters, 1 / (SMALLEST_DIVISOR * sigma))
    return np.asarray(limited @ weights / max(float(weights.sum()), 1e-300))


def _rows_for_chance(moments: NoisyMoments, values: Floats, variation: float) -> float:
    """Return the number of rows that sampling error is counted for, at least n.

    More than n where sampling error would be more than `MOST_CHANCE` times the noise. More, too, where
    little of the released covariance is other than noise: simulated eigenvalues then scatter too much,
    and signal seems fainter than it is already. But sampling error is never left out altogether.
    """
    d, size = len(values), float(values @ values)
    mean = max(float(values.mean()), 0.0)
    chance = variation * mean
    chance /= float(moments.noise_variances.min()) + moments.row_variance * mean
    noise = moments.covariance_sigma**2 * d * (d + 1) / 2
    known = max(1 - noise / size, LEAST_KNOWN) if size > 0 else LEAST_KNOWN
    return max(float(moments.n), chance / MOST_CHANCE) / known


def _toward_ridge(
    filters: Floats,
    ridge: Floats,
    risk: FilterRisk,
    signal: Signal,
    groups: OutcomeGroups,
    residual: Floats,
) -> Floats:
    """Move filters (d, groups) toward ridge (d,) where the simulated errors hardly differ.

    A simulated error is no better known than the prior variance behind it, which d·l squares tell with
    a relative error of √(2/(d·l)). Error is convex, so half-way between two filters is never
    worse than the mean of both, whatever the truth is. What a filter loses of the signal depends on the
    prior, and noise does not. So the more of ridge's error is noise, the less is the ratio of the two
    errors known, and the further the filter goes. But ridge is no refuge where nearly all of its error
    is noise, nor for one feature or very few, whose prior has hardly a shape to be in doubt of.
    """
    other = np.repeat(ridge[:, None], filters.shape[1], axis=1)
    own_excess, ridge_excess = (
        risk.excess(g, signal.strength, groups.noise_variance, residual) for g in (filters, other)
    )
    d = max(risk.rank, 1.0)
    doubt = float(np.sqrt(2 / (d * groups.counts.sum())))
    ratio = np.full_like(own_excess, np.inf)
    np.divide(ridge_excess, own_excess, out=ratio, where=own_excess > 0)
    noise = groups.noise_variance * float(risk.noise @ ridge**2)
    noise /= np.maximum(ridge_excess, 1e-300)
    reach = doubt * (1 + LONGER * doubt * noise)
    share = (1 - 1 / d) ** 2 * np.minimum(HALF_WAY + FURTHER * doubt * noise, MOST_OF_WAY)
    share *= np.clip(1 - (ratio - 1) / reach, 0.0, 1.0) * np.clip(2 * (1 - noise), 0.0, 1.0)
    return np.asarray(filters + share * (other - filters))


def _possible_share(moments: NoisyMoments, values: Floats, along: Floats) -> Floats:
    """Factor (l,) at most 1 that keeps predictions from varying more than the outcomes do.

    `along` (d, l) are coefficients along the eigenvectors. Both sides are noisy; only what is impossible
    by `CERTAIN` standard deviations of that noise counts.
    """
    predicted = (np.maximum(values, 0.0) - CERTAIN * moments.covariance_sigma) @ along**2
    most = moments.most_variation(CERTAIN)
    return np.asarray(np.sqrt(most / np.maximum(predicted, np.maximum(most, 1e-300))))
