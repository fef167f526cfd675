"""Private goodness of fit: how much of each outcome the features explain, from released numbers.

In the basis of the released eigenvectors the true covariance A has a diagonal a and, off it, small
random entries B that the noise made (both simulated, `posterior`). For the least-squares coefficients
t of the rows in that basis the released association is h = (a + B)t + e. Summed over the directions F
that are well determined (`_well_determined`; the others are G) exactly

    Σ_F h²/a = S − t_GᵀAt_G + t_FᵀBt_F + 2t_Fᵀe + Σ_F (Bt + e)²/a,      S = tᵀAt explained in all.

So only the well-determined part of t meets the noise to first order, and the last sum is what S is
over-estimated by; its mean and variance are quadratic in S once t²/S is taken from the posterior.
After rounds h = at + Bu + e with u = t − VᵀW̄, what they had not found: the last sum has u in the place
of t, and the terms of first order have at most the variance above.
t_GᵀAt_G comes from the posterior: dividing by the eigenvalues of G would add too much noise. R² = S/C
with the noisy variation C is a ratio again: its interval inverts "S − R²C is 0", so it is asymmetric,
never leaves [0, 1] and contains the estimate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc, ndtri

from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.columns import bounds_fit
from primo.released.uncertainty.multiple import benjamini_hochberg
from primo.released.uncertainty.posterior import Posterior
from primo.released.uncertainty.system import (
    RANK,
    WELL_DETERMINED,
    System,
    check_level,
    check_target,
    system_of,
)
from primo.released.uncertainty.variation import residuals_agree, rows_whole

__all__ = [
    "FOUND",
    "NOT_DETERMINED",
    "NOT_FOUND",
    "GoodnessOfFit",
    "goodness_of_fit",
    "joint_p_values",
]

Floats = NDArray[np.float64]

FOUND = "signal found"
NOT_FOUND = "not distinguishable from noise"
NOT_DETERMINED = "not determined"
MOST_VARIATION_ERROR = 0.2  # relative error of an outcome's variation above which R² is not trusted
MOSTLY = 0.5  # of a released eigenvalue that the features must make: the rest is noise
PRIOR_ERROR = 0.3  # of what the prior says to be explained in poorly determined directions
WIDEST = 0.75  # length of an interval above which R² is not trusted
# Shares in poorly determined directions above which R² is not trusted:
POORLY_DETERMINED_SHARE = 0.2  # of the explained variation
HIDDEN = 0.05  # of the variation, that could be explained there unnoticed


@dataclass(frozen=True, kw_only=True, eq=False)
class GoodnessOfFit:
    """R² of every outcome with an interval, and whether there is any signal; (l,) each."""

    outcome_names: tuple[str, ...]
    r_squared: Floats  # between 0 and 1; a guess where not `trusted`
    lower: Floats  # at most `r_squared`; 0 where not `trusted`
    upper: Floats  # at least `r_squared`; 1 where not `trusted`
    statistic: Floats  # χ² of "no slope differs from 0", d degrees of freedom
    p: Floats
    q: Floats  # Benjamini-Hochberg over the outcomes
    trusted: NDArray[np.bool_]  # whether R² is determined for this outcome
    level: float
    fdr: float
    target: str

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which outcomes have signal, at a false discovery rate of `fdr`."""
        return np.asarray(self.q <= self.fdr)

    @property
    def verdict(self) -> tuple[str, ...]:
        """The same in words."""
        return tuple(FOUND if found else NOT_FOUND for found in self.found)

    def words(self, outcome: int, digits: int = 3) -> tuple[str, str]:
        """R² and interval of one outcome as text: "not determined" where untrusted."""
        if not self.trusted[outcome]:
            return NOT_DETERMINED, "0 to 1"
        ends = f"{self.lower[outcome]:.{digits}f} to {self.upper[outcome]:.{digits}f}"
        return f"{self.r_squared[outcome]:.{digits}f}", ends


def goodness_of_fit(
    release: ReleasedMoments, *, level: float = 0.95, target: str = "rows", fdr: float = 0.05
) -> GoodnessOfFit:
    """Estimate R² of every outcome and say whether signal was found.

    Parameters
    ----------
    release
        All that is read; the data may be gone.
    level
        Nominal coverage of the R² intervals.
    target
        "rows": R² of least squares on these very rows. "population": the share of variance that the
        best linear predictor explains in the population they were drawn from.
    fdr
        False discovery rate of the verdicts.

    Notes
    -----
    The verdict tests "no slope differs from 0 in the population" and does not depend on `target`. It
    holds whatever the noise of the covariance, which is not divided by.
    `trusted` is False where the variation of the outcome is known to no better than 20 %; where more
    than 20 % of what is explained lies in directions of the features lost in covariance noise, or, if
    nothing is seen to be explained, more than 5 % of the variation could be explained there unnoticed;
    and where the interval would be longer than 0.75. R² is then not determined: its interval is [0, 1].
    The same holds where the outcome itself, or any feature, appears to have been cut to its bounds, or
    varies less than the scales of its bounds say (`columns.bounds_fit`); after several rounds, where
    many rows were shortened, or the residuals of the last round say otherwise. Heavy tails that a norm
    alone shortened do not show in a release.
    Interval and estimate always lie in [0, 1], the estimate in the interval.
    Guarantee: post-processing; costs no privacy. Cost: that of `primo.coefficients`.
    """
    check_level(level)
    check_target(target)
    system = system_of(release)
    statistic, p = joint_p_values(system)
    q = benjamini_hochberg(p)
    estimate, lower, upper, trusted = _r_squared(system, level=level, target=target)
    fits = bounds_fit(release)
    trusted &= fits.stated & (not system.warnings) & rows_whole(release)
    share = float(estimate @ system.variation) / max(float(system.variation.sum()), 1e-300)
    trusted &= residuals_agree(release, share, fits.usable)
    return GoodnessOfFit(
        outcome_names=release.outcome_names,
        r_squared=estimate,
        lower=np.where(trusted, lower, 0.0),
        upper=np.where(trusted, upper, 1.0),
        statistic=statistic,
        p=p,
        q=q,
        trusted=trusted,
        level=level,
        fdr=fdr,
        target=target,
    )


def joint_p_values(system: System) -> tuple[Floats, Floats]:
    """Test "no slope differs from 0" for every outcome: χ² with d degrees of freedom, and p.

    Under the null the centred association is noise of covariance
    (σ₂² + s²μ²/c²)·(I + mmᵀ) + ς²A at most, with μ the outcome's mean, c the constant and m the means
    of the features over c; one basis diagonalises it for all outcomes. Noise on the outcomes themselves
    is part of ς².
    """
    values, h = system.null_spectrum
    noise = np.full(system.l, system.association_variance)
    if system.intercept:
        noise += system.off_variance * (system.association[-1] / system.covariance[-1, -1]) ** 2
    residual = system.variation / max(system.n - 1, 1) + system.row_variance
    degrees = system.d
    if system.row_variance > 0:  # no noise where the features do not vary, and nothing to be seen
        varying = values > RANK * values.max(initial=0.0)
        values, h, degrees = values[varying], h[varying], int(varying.sum())
    statistic = np.sum(h**2 / (noise + np.outer(np.maximum(values, 0.0), residual)), axis=0)
    return statistic, np.asarray(chdtrc(degrees, statistic))


def _r_squared(
    system: System, *, level: float, target: str
) -> tuple[Floats, Floats, Floats, NDArray[np.bool_]]:
    """Estimate, lower and upper end, and whether they can be trusted; (l,) each."""
    posterior = system.posterior
    values, s2 = posterior.values, system.off_variance
    known = _well_determined(posterior, s2)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=known)
    h2 = posterior.moments.rotated**2
    errors = posterior.errors @ posterior.shares.T
    second = posterior.along**2 + errors
    weighted = values @ second
    signal = weighted > 1e-12 * system.variation  # where not, nearly nothing is explained
    per_unit = np.divide(second, weighted, out=np.zeros_like(second), where=signal)  # t²/S
    leaked = posterior.crossed @ np.divide(
        posterior.left**2 + errors, weighted, out=np.zeros_like(second), where=signal
    )
    within = np.where(known[:, None], per_unit, 0.0)
    poorly = np.where(known, 0.0, values)
    elsewhere = poorly @ second

    sampling = system.sampling(target)
    # E[raw] = bias + scale·S and Var[raw] = c0 + c1·S + c2·S².
    base, own = posterior.moments.noise_variances, system.row_variance
    raw = inverse @ h2 + elsewhere
    directions = float(inverse @ values)
    bias = base * inverse.sum() + sampling * system.d + own * directions
    scale = 1 + inverse @ leaked
    squares = inverse**2
    # Var t² of t ~ N(m, v) is 2v² + 4vm², and the variances v may be too large or small together.
    c0 = poorly**2 @ (2 * errors**2 + 4 * errors * posterior.along**2)
    c0 = c0 + (PRIOR_ERROR * (poorly @ errors)) ** 2
    c0 = c0 + 2 * base**2 * squares.sum() + 2 * system.d * sampling**2
    c0 = c0 + 2 * own * (own + 2 * sampling) * directions
    c1 = 4 * base * (within.sum(axis=0) + squares @ leaked) + 4 * own * (values @ within)
    c2 = 2 * np.sum(within * (posterior.crossed @ within + s2 * within), axis=0)
    c2 += 2 * squares @ leaked**2
    variation, variation_variance = system.seen_variation
    excess = raw - bias
    estimate = np.clip(excess / (scale * variation), 0.0, 1.0)
    # In terms of R² = S/C, with the error of C.
    c1 = c1 * variation + 4 * sampling * (1 - estimate) ** 2 * variation
    c2 = c2 * variation**2 + scale**2 * variation_variance + 4 * system.n * sampling**2
    kappa = float(ndtri((1 + level) / 2)) ** 2
    lower, upper = _inverted(
        estimate,
        slope=scale * variation,
        constant=c0,
        linear=c1,
        square=c2,
        kappa=kappa,
    )
    trusted = np.sqrt(variation_variance) <= MOST_VARIATION_ERROR * variation
    trusted &= elsewhere <= POORLY_DETERMINED_SHARE * np.maximum(weighted, 1e-300)
    # Where no explained variation is seen, the reason must not be that it lies in the other directions:
    # what could go unnoticed there must be little.
    lost = ~known & (
        values <= 1e-10 * max(float(values.max()), 0.0)
    )  # an exact covariance hides nothing there
    unseen = np.divide(1.0, values, out=np.zeros_like(values), where=~known & ~lost)
    hidden = unseen @ h2 + kappa * (base * unseen.sum() + own * float(unseen @ values))
    hidden = np.where(lost.any() and s2 > 0, np.inf, hidden)
    trusted &= (lower > 0) | (hidden <= HIDDEN * variation)
    # Judged half-way between the ends: near them intervals are short because they stop there.
    halfway = np.sqrt(kappa * (c0 + c1 / 2 + c2 / 4))
    trusted &= 2 * halfway <= WIDEST * scale * variation
    return estimate, lower, upper, trusted


def _well_determined(posterior: Posterior, off_variance: float) -> NDArray[np.bool_]:
    """Which directions are known well enough to divide by what the features vary along them, (d,)."""
    released, values = posterior.released, posterior.values
    top = max(float(values.max()), 0.0)
    known = released > WELL_DETERMINED * np.sqrt(2 * off_variance)
    return np.asarray(known & (values > np.maximum(MOSTLY * released, 1e-10 * top)))


def _inverted(
    estimate: Floats,
    *,
    slope: Floats,
    constant: Floats,
    linear: Floats,
    square: Floats,
    kappa: float,
) -> tuple[Floats, Floats]:
    """Return the ends of {R in [0, 1] : slope²(estimate − R)² ≤ κ(constant + linear·R + square·R²)}.

    `estimate` is the unrestricted one moved into [0, 1]. That only brings it nearer to every R there, so
    the set contains whatever the unrestricted one would have kept, and the estimate itself. All
    arguments are positive or zero, so the set is an interval: aR² − 2bR + c ≤ 0 with b ≥ 0 starts at
    c/(b + √(b² − ac)), or at 0 if c ≤ 0, and goes on to 1 if a ≤ 0. Where the numbers leave float64
    nothing is known: [0, 1].
    """
    with np.errstate(all="ignore"):
        a = slope**2 - kappa * square
        b = slope**2 * estimate + kappa * linear / 2
        c = (slope * estimate) ** 2 - kappa * constant
        far = b + np.sqrt(np.maximum(b**2 - a * c, 0.0))
        lower = np.divide(c, far, out=np.zeros_like(c), where=(c > 0) & (far > 0))
        upper = np.divide(far, a, out=np.ones_like(c), where=a > 0)
    known = np.isfinite(a) & np.isfinite(far) & np.isfinite(c)
    return (
        np.where(known, np.clip(lower, 0.0, estimate), 0.0),
        np.where(known, np.clip(upper, estimate, 1.0), 1.0),
    )
