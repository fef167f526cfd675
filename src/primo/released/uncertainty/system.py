"""The released normal equations of all outcomes, with the law of their noise.

With the constant as one more feature, least squares on the rows solves Aθ_j = G_j. Released are
Â = A + E₁ and Ĝ_j = G_j + e_j, hence for the true θ_j, exactly,

    Ĝ_j − Âθ_j = e_j − E₁θ_j ~ N(0, σ₂²I + s²(‖θ_j‖²I + θ_jθ_jᵀ)),      s² = σ₁²/2,

and for the coefficients of the population that the rows were drawn from ς_j²·A more, where ς_j² is
the residual variance of a row. With noise of variance σ² on the outcomes themselves σ₂ is 0, and σ²·A
takes its place, for the rows as for the population. Everything in this package is built on that. Two
entries carry no noise: the constant's own square, and the sums of public outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError, Message
from primo.planning.plan import CovarianceOrigin
from primo.privacy.budget import is_number
from primo.released.estimate.bordered import arrowhead
from primo.released.estimate.centring import mirror, reflect
from primo.released.estimate.large import LARGE
from primo.released.estimate.rounds import is_gradual
from primo.released.estimate.rounds.pooling import IN_DOUBT
from primo.released.kept import kept
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.posterior import Outcomes, Posterior, posterior_of, projected
from primo.released.uncertainty.variation import seen_share, variation_of

__all__ = [
    "INTERCEPT",
    "TARGETS",
    "WELL_DETERMINED",
    "System",
    "check_level",
    "check_target",
    "system_of",
]

Floats = NDArray[np.float64]

INTERCEPT = "(intercept)"
TARGETS = ("population", "rows")
MOST_EXPLAINED = 0.98  # of an outcome's variation, where the residual variance is estimated
WELL_DETERMINED = 5.0  # eigenvalues above this many σ₁ are known well enough to divide by
RANK = 1e-10  # eigenvalues of an exact covariance below this share of the largest are zero


@dataclass(frozen=True, kw_only=True, eq=False)
class System:
    """Released normal equations in scaled units, and how to report them in the data's own.

    A *term* is a reported coefficient: a feature's slope or, last, the intercept. Row t of `terms`
    holds the weights with which θ makes it, up to the outcome's unit.
    """

    n: int
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    intercept: bool
    covariance: Floats  # (width, width) Â
    association: Floats  # (width, l) Ĝ
    off_variance: float  # s², of an off-diagonal entry of Â
    association_variance: float  # σ₂²
    row_variance: float  # σ² of noise on the outcomes themselves, which adds σ²A; σ₂² is then 0
    sums_exact: bool  # whether the constant's row of Ĝ carries no noise
    variation: Floats  # (l,) squared distance of an outcome from its mean, denoised
    variation_variance: Floats  # (l,) of its error
    seen_share: float  # of what slopes explain of whole rows, that Â shows; 1 but after rounds
    terms: Floats  # (width, terms) weights of θ in a term, per unit of the outcome
    unit: Floats  # (l,) the outcome's unit
    centre: Floats  # (l,) added to the intercept
    posterior: Posterior  # of all outcomes
    outcomes: Outcomes  # which of them this system is about
    warnings: tuple[str, ...]  # why the noise law above is incomplete, if it is

    @property
    def width(self) -> int:
        """Equations: the features and, last, the constant if there is an intercept."""
        return len(self.covariance)

    @property
    def d(self) -> int:
        """Number of features."""
        return self.width - self.intercept

    @property
    def l(self) -> int:  # noqa: E743
        """Number of outcomes."""
        return len(self.unit)

    @property
    def term_names(self) -> tuple[str, ...]:
        """Features, then the intercept if the release has one."""
        return self.feature_names + ((INTERCEPT,) if self.intercept else ())

    @property
    def seen_variation(self) -> tuple[Floats, Floats]:
        """What R² divides by what Â shows as explained (l,), and the variance of its error.

        The variation itself, times the share of the explained one that is seen: R² is a ratio.
        """
        share, off = self.seen_share, IN_DOUBT * (1 - self.seen_share) * self.variation
        return share * self.variation, share**2 * self.variation_variance + off**2

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues (ascending) and eigenvectors of Â; exact zeros are zeros."""
        moments = self.posterior.moments
        if moments.covariance is self.covariance:
            values, vectors = moments.spectrum
        elif self._from_features is not None:
            values, vectors = self._from_features[0], self._with_constant(self._from_features[1])
        else:
            values, vectors = np.linalg.eigh(self.covariance)
        if self.off_variance == 0:
            values = np.where(np.abs(values) > RANK * np.abs(values).max(), values, 0.0)
        return values, vectors

    # Reflected, Â is the covariance of z bordered by one row, so it need not be decomposed anew.

    @cached_property
    def _from_features(self) -> tuple[Floats, Floats] | None:
        """Eigenvalues of Â, and its eigenvectors, (width, width) as rows, by those of z and the axis."""
        axis = self.posterior.centred.axis
        if self.d <= LARGE or not len(axis) or self.off_variance == 0:
            return None
        values, vectors = self.posterior.moments.spectrum
        column = reflect(axis, (self.covariance @ axis)[:, None])[:, 0]
        return arrowhead(values, vectors.T @ column[:-1], float(column[-1]))

    def _with_constant(self, rows: Floats) -> Floats:
        """Turn vectors by those of z and the axis, (k, width), into vectors of x̃, (width, k)."""
        whole = np.empty(rows.shape[::-1])
        np.matmul(self.posterior.vectors, rows[:, :-1].T, out=whole[:-1])
        whole[-1] = rows[:, -1]
        normal, gap = mirror(self.posterior.centred.axis)
        if gap:
            whole -= np.outer(normal, (normal @ whole) / gap)
        return whole

    def loadings(self, weights: Floats) -> Floats:
        """Shares of combinations of θ (width, k) along the eigenvectors of Â; of `terms` only once."""
        return self._term_loadings if weights is self.terms else self.spectrum[1].T @ weights

    @cached_property
    def _poor_directions(self) -> Floats:
        return np.asarray(self.spectrum[1][:, ~self.well_determined])

    @cached_property
    def _poor_along(self) -> Floats | None:
        """Shares of these directions in the eigenvectors of z, where they are known, (d, others)."""
        known = self._from_features
        return (
            None if known is None else np.ascontiguousarray(known[1][~self.well_determined, :-1].T)
        )

    @cached_property
    def _term_loadings(self) -> Floats:
        return projected(self.spectrum[1], self.terms)

    @cached_property
    def well_determined(self) -> NDArray[np.bool_]:
        """Which eigenvectors have eigenvalues well above the noise of the covariance, (width,)."""
        values, _ = self.spectrum
        return np.asarray(values > WELL_DETERMINED * np.sqrt(2 * self.off_variance))

    def poorly_determined(self, target: str) -> tuple[Floats, Floats]:
        """Posterior mean and variance of vᵀθ along the other eigenvectors, (others, l)."""
        return self.posterior.infer(
            self._poor_directions,
            along=self._poor_along,
            sampling=self.sampling(target),
            outcomes=self.outcomes,
        )

    @cached_property
    def rotated(self) -> Floats:
        """VᵀĜ, (width, l)."""
        return self.spectrum[1].T @ self.association

    @cached_property
    def centred(self) -> tuple[Floats, Floats, Floats]:
        """Â and Ĝ with the constant eliminated, and the means in units of the constant, (d,).

        With means m the noise of an eliminated association has covariance σ₂²(I + mmᵀ) (σ₂²I where
        the sums are exact).
        """
        if not self.intercept:
            return self.covariance, self.association, np.zeros(self.d)
        means = self.covariance[:-1, -1] / self.covariance[-1, -1]
        return (
            self.covariance[:-1, :-1] - np.outer(means, self.covariance[-1, :-1]),
            self.association[:-1] - np.outer(means, self.association[-1]),
            means,
        )

    @cached_property
    def centred_spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the centred covariance."""
        values, vectors = np.linalg.eigh(self.centred[0])
        return values, vectors

    # With many features one decomposition serves: that of z, in whose coordinates the constant is
    # eliminated with less noise (`estimate.centring`), in place of the covariance that is centred here.

    @property
    def _spectrum_of_features(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the features about their means."""
        return self.posterior.moments.spectrum if self.d > LARGE else self.centred_spectrum

    @cached_property
    def _along_features(self) -> tuple[Floats, Floats]:
        """Eigenvalues of the covariance of z, and the association along its eigenvectors, (d, l)."""
        moments = self.posterior.moments
        return moments.spectrum[0], moments.rotated[:, self.outcomes]

    @cached_property
    def null_spectrum(self) -> tuple[Floats, Floats]:
        """Basis that diagonalises the noise of the centred association of outcomes without slopes.

        With means m that noise has covariance v·(I + mmᵀ) + ς²A at most (`fit.joint_p_values`). Returned
        are the eigenvalues of A, and the association, in the metric of I + mmᵀ, along its eigenvectors.
        """
        if self.d > LARGE:
            return self._along_features
        covariance, association, means = self.centred
        metric = np.eye(self.d)
        if not self.sums_exact and self.row_variance == 0:
            metric += np.outer(means, means)
        root = np.linalg.inv(np.linalg.cholesky(metric))
        values, vectors = np.linalg.eigh(root @ covariance @ root.T)
        return values, vectors.T @ (root @ association)

    @cached_property
    def residual_variance(self) -> Floats:
        """ς_j² of a row, (l,); too large rather than too small where the noise hides the fit.

        What a strongly regularised fit explains, less what its noise would explain, is taken off the
        variation. Where that is inaccurate the noise σ₂² dwarfs ς_j² in every formula that uses it.
        """
        values, vectors = self._spectrum_of_features
        positive = np.maximum(values, 0.0)
        damping = 4 * self.d * self.off_variance
        keep = np.divide(
            positive,
            positive**2 + damping,
            out=np.zeros_like(values),
            where=positive > RANK * positive.max(initial=0.0),
        )
        if self.d > LARGE:
            noise = self.posterior.moments.noise_variances[self.outcomes] * keep.sum()
            noise = noise + self.row_variance * (keep @ positive)
            explained = keep @ self._along_features[1] ** 2 - noise
        else:
            _, association, means = self.centred
            means_noise = (vectors.T @ means) ** 2 * (not self.sums_exact)
            explained = keep @ (vectors.T @ association) ** 2
            explained -= keep @ (self.association_variance * (1 + means_noise))
            explained -= self.row_variance * (keep @ positive)
        left = self.variation - np.clip(explained, 0.0, MOST_EXPLAINED * self.variation)
        return np.asarray(left / max(self.n - self.width, 1))

    def sampling(self, target: str) -> Floats:
        """ς_j² if the target is the population, zeros for the rows themselves."""
        return self.residual_variance if target == "population" else np.zeros(self.l)

    def select(self, outcomes: Outcomes) -> System:
        """Return the same system for some of the outcomes (of all): a slice, or their positions."""
        part = replace(
            self,
            outcome_names=tuple(np.array(self.outcome_names, dtype=object)[outcomes]),
            association=self.association[:, outcomes],
            variation=self.variation[outcomes],
            variation_variance=self.variation_variance[outcomes],
            unit=self.unit[outcomes],
            centre=self.centre[outcomes],
            outcomes=outcomes,
        )
        part.__dict__.update(  # cached values that would be made again
            spectrum=self.spectrum,
            _term_loadings=self._term_loadings,
            _from_features=self._from_features,
            _poor_directions=self._poor_directions,
            _poor_along=self._poor_along,
            rotated=self.rotated[:, outcomes],
            residual_variance=self.residual_variance[outcomes],
        )
        return part


def system_of(release: ReleasedMoments) -> System:
    """Read the normal equations off a release.

    Guarantee: post-processing; costs no privacy. Refuses releases whose noise is not Gaussian
    (projected) or that have more features than rows: nothing here would hold for them.
    Cost: once for each release (`released.kept`), that of `primo.coefficients`.
    """
    return kept(release, "system", lambda: _system(release))


def _system(release: ReleasedMoments) -> System:
    plan = release.plan
    if plan.association == "projection":
        raise InputError(
            "the association of this release was projected, so its noise has no known law and there"
            " are no intervals for it",
            remedy=Message.of("release with ", Argument("association", "gauss")),
        )
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE and plan.width <= plan.n:
        raise InputError(
            "noise is on the outcomes and the public features were summed inside blocks only, so there "
            "are no intervals of joint effects and no R²",
            remedy=Message.of(
                "marginal effects have intervals: primo.summary_statistics, or `primo sumstats`. With ",
                Argument("covariance", "full"),
                " joint effects have them, too",
            ),
        )
    if plan.covariance_origin is CovarianceOrigin.ROW_SPACE:
        raise InputError(
            f"{plan.d} features and {plan.n} rows: single coefficients are not determined by the data,"
            " with or without noise, so they have no intervals"
        )
    if plan.covariance_origin is CovarianceOrigin.BLOCKS:
        raise InputError(
            f"this release holds {release.held}, so there are no intervals of joint effects and no R²",
            remedy="marginal effects have intervals: primo.summary_statistics, or `primo sumstats`",
        )
    variation, variation_variance = variation_of(release)
    scale, centre = plan.features.scale, plan.features.centre
    terms = np.zeros((plan.width, plan.d + plan.intercept))
    terms[: plan.d, : plan.d] = np.diag(1 / scale)
    if plan.intercept:
        terms[: plan.d, -1] = -centre / scale
        terms[-1, -1] = plan.constant
    warnings = []
    if plan.sampled:
        warnings.append(f"the covariance is that of {plan.sampled} sampled rows")
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        warnings.append("the covariance is that of a reference panel")
    if is_gradual(plan, release.rounds):
        warnings.append("the coefficients are those of many small steps, not of the moments")
    return System(
        n=plan.n,
        feature_names=release.feature_names,
        outcome_names=release.outcome_names,
        intercept=plan.intercept,
        covariance=release.covariance,
        association=release.association,
        # An iid triangle (paper) has σ₁² off the diagonal too: taken as svec noise of twice the
        # variance, which overstates the diagonal.
        off_variance=release.covariance_sigma**2 / 2 * (2 - plan.triangle_bits),
        association_variance=release.association_variance,
        row_variance=release.row_variance,
        sums_exact=plan.intercept and not plan.protection.outcomes_private,
        variation=variation,
        variation_variance=variation_variance,
        seen_share=seen_share(release),
        terms=terms,
        unit=plan.outcomes.scale,
        centre=plan.outcomes.centre,
        posterior=posterior_of(release),
        outcomes=slice(0, plan.l),
        warnings=tuple(warnings),
    )


def check_level(level: float) -> float:
    """Return the level; refuse one that is not between 0 and 1."""
    if not (is_number(level) and 0 < level < 1):
        raise InputError(Argument("level", level), " must lie between 0 and 1, for example 0.95")
    return float(level)


def check_target(target: str) -> str:
    """Return the target; refuse an unknown one."""
    if target not in TARGETS:
        raise InputError(
            Argument("target", target), " is unknown", remedy='choose "rows" or "population"'
        )
    return target
