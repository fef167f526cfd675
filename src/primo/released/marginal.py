"""Summary statistics of a release: the effect of each variant on each outcome, one variant at a time.

The marginal effect of variant j on outcome m is the slope of y on x_j in a regression on x_j, the
constant and, if asked for, the features that are not variants (age, sex, …). With S those columns it
solves A_S·θ = G_S, so it needs a few entries of the released moments per variant. The law of its error
is that of docs/mathematics.md section 12:

    θ̂ − θ = Â_S⁻¹·(e − Eθ),        variance of entry j: cᵀ(σ₂²I + s²(‖θ‖²I + θθᵀ))c + ς²/a,

with c = Â_S⁻¹e_j, a = 1/c_j what is left of A_jj beside the other columns, and ς² the residual
variance of a row. The first term is the noise of the release, the second sampling.

Guarantee: post-processing of a release; costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.planning.plan import CovarianceOrigin
from primo.released.marginal_blocks import BlockStatistics
from primo.released.marginal_effects import MarginalEffects, SummaryStatistics, effective_people
from primo.released.moments import ReleasedMoments, expect_release
from primo.released.uncertainty.system import MOST_EXPLAINED, WELL_DETERMINED
from primo.released.uncertainty.variation import variation_of
from primo.variants import Variants

__all__ = ["MarginalEffects", "SummaryStatistics", "summary_statistics"]

Floats = NDArray[np.float64]

_SUMMED = "the public features of this release were summed inside blocks only"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class DenseStatistics(SummaryStatistics):
    """Summary statistics of a release that holds the whole covariance."""

    _beside: NDArray[np.intp]  # W: covariates and, last, the constant

    @property
    def determined(self) -> NDArray[np.bool_]:
        """Which variants vary clearly more than the noise, (variants,); the others have no effects."""
        return np.asarray(self._left > WELL_DETERMINED * self._left_error)

    def _means(self) -> tuple[Floats, float]:
        plan = self.release.plan
        mass = plan.n * plan.constant
        means = np.asarray(self._with_constant[self._places] / mass)
        return means, math.sqrt(self._off_variance) / mass

    def outcome(self, which: str | int) -> MarginalEffects:
        """Return the effects on one outcome, by name or position."""
        j = self._position(which)
        plan, release = self.release.plan, self.release
        beside = release.association[self._beside, j]  # (q,)
        left = self._left  # (v,) a
        theta = (release.association[self._places, j] - self._slopes.T @ beside) / left
        # Entries of θ and c in W, one column per variant; the entries of j are theta and 1 / left.
        others = (self._inverse @ beside)[:, None] - self._slopes * theta
        weights = -self._slopes / left
        noise = self._noise(theta, others, 1 / left, weights)
        sampling = self._residual_variance(j, theta, noise) / left
        total = np.sqrt(noise + sampling)
        unit = plan.outcomes.scale[j] / plan.features.scale[self._places]
        known = self.determined
        variation, error = (float(part[j]) for part in self._variation)
        people = effective_people(
            self.n, sampling=sampling, noise=noise, variation=variation, error=math.sqrt(error)
        )
        return MarginalEffects(
            outcome=release.outcome_names[j],
            effect=np.where(known, theta * unit, np.nan),
            standard_error=np.where(known, total * unit, np.nan),
            effective_n=np.where(known, people, np.nan),
        )

    def _noise(self, theta: Floats, others: Floats, weight: Floats, weights: Floats) -> Floats:
        """Privacy noise in θ̂_j, as a variance: cᵀ(σ₂²I + s²(‖θ‖²I + θθᵀ))c without exact entries."""
        plan = self.release.plan
        length = weight**2 + (weights**2).sum(axis=0)
        inner = weight * theta + (weights * others).sum(axis=0)
        size = theta**2 + (others**2).sum(axis=0)
        covariance = length * size + inner**2
        associated = length
        if plan.intercept:
            covariance = covariance - 2 * (weights[-1] * others[-1]) ** 2
            if not plan.protection.outcomes_private:
                associated = length - weights[-1] ** 2
        noise = self.release.association_variance * associated + self._off_variance * covariance
        # Noise of variance σ² on the outcomes themselves: cᵀ(σ²A_S)c = σ²/a.
        return np.asarray(noise + self.release.row_variance * weight)

    def _residual_variance(self, j: int, theta: Floats, noise: Floats) -> Floats:
        """ς² of a row beside each variant: the variation less what the fit explains beyond noise."""
        variation = self._variation[0][j]
        by_variant = np.maximum(theta**2 - noise, 0.0) * self._left
        explained = np.clip(self._explained[j] + by_variant, 0.0, MOST_EXPLAINED * variation)
        return np.asarray(
            (variation - explained) / max(self.release.plan.n - len(self._beside) - 1, 1)
        )

    @property
    def _with_constant(self) -> Floats:
        """Column of XᵀX that belongs to the constant, (width,)."""
        sums = self.release.feature_sums
        return np.asarray(self.release.covariance[:, -1]) if sums is None else sums

    def _crossed(self, rows: NDArray[np.intp], columns: NDArray[np.intp]) -> Floats:
        """Entries of XᵀX; of a row space those of the constant alone are known."""
        if self.release.feature_sums is None:
            return self.release.covariance[np.ix_(rows, columns)]
        return np.tile(self.release.feature_sums[columns], (len(rows), 1))

    @property
    def _off_variance(self) -> float:
        """s², the noise variance of an off-diagonal entry of Â; as in `uncertainty.system`."""
        release = self.release
        return release.covariance_sigma**2 / 2 * (2 - release.plan.triangle_bits)

    @cached_property
    def _inverse(self) -> Floats:
        """Â_WW⁻¹, (q, q)."""
        return np.asarray(np.linalg.inv(self._crossed(self._beside, self._beside)))

    @cached_property
    def _slopes(self) -> Floats:
        """Slopes of each variant on W, Â_WW⁻¹Â_Wj, (q, variants)."""
        return self._inverse @ self._crossed(self._beside, self._places)

    @cached_property
    def _left(self) -> Floats:
        """What is left of Â_jj beside W: a, (variants,)."""
        squares = self.release.feature_squares
        if squares is None:
            squares = np.diagonal(self.release.covariance)
        crossed = self._crossed(self._beside, self._places)
        return np.asarray(squares[self._places] - (crossed * self._slopes).sum(axis=0))

    @cached_property
    def _left_error(self) -> Floats:
        """Standard deviation of the noise in a: that of uᵀEu for u = (1, −slopes)."""
        return np.asarray(math.sqrt(2 * self._off_variance) * (1 + (self._slopes**2).sum(axis=0)))

    @cached_property
    def _variation(self) -> tuple[Floats, Floats]:
        """Σ(y − ȳ)² of each outcome, and the variance of its error, (l,) each."""
        return variation_of(self.release)

    @cached_property
    def _explained(self) -> Floats:
        """What the covariates explain of each outcome's variation, less what their noise does, (l,)."""
        plan, release = self.release.plan, self.release
        count = len(self.covariates)
        if not count:
            return np.zeros(plan.l)
        places = self._beside[:count]
        covariance = release.covariance[np.ix_(places, places)]
        association, noise = release.association[places], np.eye(count)
        if plan.intercept:
            means = release.covariance[places, -1] / release.covariance[-1, -1]
            covariance = covariance - np.outer(means, release.covariance[-1, places])
            association = association - np.outer(means, release.association[-1])
            noise = noise + np.outer(means, means) * plan.protection.outcomes_private
        inverse = np.linalg.inv(covariance)
        bias = release.association_variance * float(np.sum(inverse * noise))
        bias += release.row_variance * count
        return np.asarray(np.sum(association * (inverse @ association), axis=0) - bias)


def summary_statistics(
    release: ReleasedMoments, variants: Variants, *, covariates: str = "adjust"
) -> SummaryStatistics:
    """Compute the marginal effect of every variant on every outcome, as a genome-wide study does.

    Parameters
    ----------
    release
        A release with a covariance and an association.
    variants
        What its genetic features count (`cohort.variants`, `bundle.variants`).
    covariates
        "adjust" for the features that are not variants, or "ignore" them (the intercept alone).

    Notes
    -----
    Guarantee: post-processing; costs no privacy. Standard errors contain the noise of the release and
    the sampling of rows; intervals of two of them cover the population's effects at the stated level
    (`python -m benchmarks.marginal`). Effects are those of rows as they were released: shortened to
    the bounds, missing genotypes at the public centre. After several rounds they are those of residuals
    that were clipped, which differ from least squares on the same rows by some 0.2 standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> from primo.variants import Variants
    >>> rng = np.random.default_rng(0)
    >>> X = rng.binomial(2, 0.3, size=(2000, 2))
    >>> Y = X @ np.array([[0.5], [0.0]]) + rng.uniform(-1, 1, size=(2000, 1))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(0, 2), outcome_bounds=(-1, 2)
    ... )
    >>> variants = Variants(
    ...     names=("x0", "x1"), chromosome=("1", "1"), position=np.array([100, 200]),
    ...     counted=("A", "C"), other=("G", "T"),
    ... )
    >>> statistics = primo.summary_statistics(model.fit(X, Y).release_, variants)
    >>> found = statistics.outcome("y0")
    >>> found.effect.shape, bool(found.neg_log10_p[0] > 8)
    ((2,), True)
    """
    plan = expect_release(release).plan
    _refuse_unusable(release, variants)
    place = {name: i for i, name in enumerate(release.feature_names)}
    places = np.array([place[name] for name in variants.names], dtype=np.intp)
    known = set(variants.names)
    others = [i for i, name in enumerate(release.feature_names) if name not in known]
    if covariates not in ("adjust", "ignore"):
        raise InputError(
            Argument("covariates", covariates), " is unknown", remedy='choose "adjust" or "ignore"'
        )
    others = others if covariates == "adjust" else []
    if release.blocks is not None:
        _refuse_covariates_of_blocks(release, others)
        return _expect_effects(
            BlockStatistics(
                release=release,
                variants=variants,
                covariates=(),
                notes=_notes(release),
                _places=places,
            )
        )
    if others and release.feature_squares is not None:
        raise InputError(
            ("this release has more public features than rows" if plan.width > plan.n else _SUMMED)
            + ", so it does not hold how covariates vary with its variants",
            argument="covariates",
            remedy=Message.of("Leave them out with ", Argument("covariates", "ignore")),
        )
    beside = np.array([*others, *([plan.d] if plan.intercept else [])], dtype=np.intp)
    found = DenseStatistics(
        release=release,
        variants=variants,
        covariates=tuple(release.feature_names[i] for i in others),
        notes=_notes(release),
        _places=places,
        _beside=beside,
    )
    _refuse_hidden_covariates(release, beside, found._off_variance)
    return _expect_effects(found)


def _expect_effects(found: SummaryStatistics) -> SummaryStatistics:
    """Return statistics that have an effect for one variant at least."""
    if not found.determined.any():
        raise InputError(
            "the noise of this release hides how much its variants vary, so none of them has an effect",
            remedy="Release fewer variants, with a larger epsilon, or with public allele frequencies "
            "as bounds",
        )
    return found


def _refuse_covariates_of_blocks(release: ReleasedMoments, others: Sequence[int]) -> None:
    if others:
        raise InputError(
            f"this release holds {release.held}, so effects cannot be adjusted for features that are no "
            "variants",
            argument="covariates",
            remedy=Message.of(
                "Leave them out with ",
                Argument("covariates", "ignore"),
                ", or take them out of the outcomes before the release",
            ),
        )


def _refuse_unusable(release: ReleasedMoments, variants: Variants | None) -> None:
    plan = release.plan
    if variants is None or not len(variants):
        raise InputError(
            "summary statistics are for variants, and this release has none among its features"
        )
    if plan.association == "projection":
        raise InputError(
            "the association of this release was projected, so its noise has no known law and there"
            " are no standard errors for it",
            remedy=Message.of("release with ", Argument("association", "gauss")),
        )
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and release.feature_squares is None:
        raise InputError(
            f"this release has {plan.d} public features and {plan.n} rows, so it holds no covariance to "
            "compute effects from",
            remedy=Message.of(
                "Release at most as many variants as there are rows, or release with ",
                Argument("association", "perturbed"),
            ),
        )
    unknown = set(variants.names).difference(release.feature_names)
    if unknown:
        raise InputError(f"variant {min(unknown)!r} is not a feature of the release")


def _refuse_hidden_covariates(
    release: ReleasedMoments, beside: NDArray[np.intp], off_variance: float
) -> None:
    """Refuse to adjust for covariates that the noise makes look alike."""
    if len(beside) <= release.plan.intercept:
        return
    least = float(np.linalg.eigvalsh(release.covariance[np.ix_(beside, beside)])[0])
    if least <= max(WELL_DETERMINED * math.sqrt(2 * off_variance), 1e-12):
        raise InputError(
            "the noise of this release hides how its covariates vary, so effects cannot be adjusted "
            "for them",
            argument="covariates",
            remedy=Message.of("Leave them out with ", Argument("covariates", "ignore")),
        )


def _notes(release: ReleasedMoments) -> tuple[str, ...]:
    plan, notes = release.plan, []
    if plan.sampled:
        notes.append(
            f"the covariance is that of {plan.sampled} sampled rows; standard errors leave out which "
            "rows were sampled"
        )
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        notes.append(
            "the covariance and the allele frequencies are those of a reference panel; standard errors "
            "leave out how it differs from the cohort"
        )
    if not plan.intercept:
        notes.append("there is no intercept: effects are slopes through the public centres")
    return tuple(notes)
