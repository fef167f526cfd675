"""Everything that is fixed before the first row is read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from primo.bounds import Bounds, Clip, missing_bounds
from primo.errors import InputError
from primo.grid import SMALLEST_VARIANCE_BITS, Grid, choose_grid
from primo.privacy.budget import Budget
from primo.privacy.calibration import lattice_margin, mu_of, split_ratio
from primo.privacy.protection import Protection
from primo.quantise import Quantiser

__all__ = ["FULL_OUTCOME_MOMENTS", "Plan", "make_plan"]

#: Up to this many outcomes all of YᵀY is released, beyond it only its diagonal.
FULL_OUTCOME_MOMENTS = 512


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The public contract of one release; `make_plan` builds it.

    Guarantee: moments of rows quantised by `feature_quantiser` and `outcome_quantiser`, plus discrete
    Gaussian noise of the variances of `grid` on every private block, satisfy `budget` for
    `protection` under replace-one.
    """

    n: int
    d: int
    l: int
    protection: Protection
    budget: Budget
    mu: float
    split: float
    features: Clip
    outcomes: Clip
    intercept: bool
    full_outcome_moments: bool
    missing: str
    grid: Grid

    @property
    def width(self) -> int:
        """Rows of the covariance: the features and, last, the constant if there is an intercept."""
        return self.d + self.intercept

    @property
    def feature_norm(self) -> float:
        """Bound on a row of features in scaled units, with the constant."""
        return self.features.norm * (math.sqrt(1 + 1 / self.d) if self.intercept else 1.0)

    @property
    def feature_step(self) -> float:
        """Grid step of the features in scaled units."""
        return self.feature_norm / math.sqrt(self.grid.feature_radius_squared)

    @property
    def outcome_step(self) -> float:
        """Grid step of the outcomes in scaled units."""
        return self.outcomes.norm / math.sqrt(self.grid.outcome_radius_squared)

    @cached_property
    def constant_steps(self) -> int | None:
        """The constant feature in grid steps.

        It is as long as a typical feature (norm/√d), so that a row grows by the share of one more
        feature and the intercept is no noisier than its neighbours.
        """
        if not self.intercept:
            return None
        return math.floor(self.features.norm / math.sqrt(self.d) / self.feature_step)

    @property
    def constant(self) -> float:
        """The constant feature in scaled units; 0 without an intercept."""
        return (self.constant_steps or 0) * self.feature_step

    @property
    def covariance_sigma(self) -> float:
        """Noise scale on svec(XᵀX) in scaled units; 0 where the features are public."""
        if not self.protection.features_private:
            return 0.0
        return _power(self.grid.covariance_variance_bits) * self.feature_step**2

    @property
    def association_sigma(self) -> float:
        """Noise scale on every entry of XᵀY in scaled units."""
        return _power(self.grid.association_variance_bits) * self.feature_step * self.outcome_step

    @property
    def outcome_sigma(self) -> float:
        """Noise scale on svec(YᵀY) in scaled units; 0 where the outcomes are public."""
        if not self.protection.outcomes_private:
            return 0.0
        return _power(self.grid.outcome_variance_bits) * self.outcome_step**2

    def feature_quantiser(self) -> Quantiser:
        """Return the map from rows of features to integer rows."""
        return Quantiser(
            clip=self.features,
            step=self.feature_step,
            radius_squared=self.grid.feature_radius_squared,
            constant=self.constant_steps,
            missing=self.missing,
            block="features",
        )

    def outcome_quantiser(self) -> Quantiser:
        """Return the map from rows of outcomes to integer rows."""
        return Quantiser(
            clip=self.outcomes,
            step=self.outcome_step,
            radius_squared=self.grid.outcome_radius_squared,
            constant=None,
            missing=self.missing,
            block="outcomes",
        )


def make_plan(
    *,
    n: int,
    d: int,
    l: int,
    epsilon: float,
    delta: float,
    protection: Protection | str = Protection.BOTH,
    feature_bounds: Bounds | None,
    outcome_bounds: Bounds | None,
    intercept: bool = True,
    split: float | None = None,
    outcome_moments: str = "auto",
    missing: str = "error",
) -> Plan:
    """Fix the noise of a release from public numbers alone; no data is touched.

    Parameters
    ----------
    n, d, l
        Rows, features, outcomes.
    epsilon, delta
        The budget of the whole release, for all outcomes together.
    protection
        "both", "features" or "outcomes".
    feature_bounds, outcome_bounds
        Public bounds of either block.
    intercept
        Whether a constant feature is part of the release.
    split
        k = q/p in (0, 2]; chosen from l if None. At 2 the covariance is free.
    outcome_moments
        "full" (all of YᵀY), "diagonal", or "auto" (full up to 512 outcomes).
    missing
        "error" or "centre": what to do with NaN and infinity.
    """
    protection = Protection.parse(protection)
    budget = Budget(epsilon=epsilon, delta=delta)
    for name, value in (("n", n), ("d", d), ("l", l)):
        if value < 1:
            raise InputError(f"{name}={value} must be at least 1")
    if missing not in ("error", "centre"):
        raise InputError(f'missing={missing!r} is unknown; choose "error" or "centre"')
    if outcome_moments not in ("auto", "full", "diagonal"):
        raise InputError(
            f'outcome_moments={outcome_moments!r} is unknown; choose "auto", "full" or "diagonal"'
        )
    for block, bounds in (("features", feature_bounds), ("outcomes", outcome_bounds)):
        if bounds is None:
            raise missing_bounds(block)
    assert feature_bounds is not None  # for the type checker; raised above
    assert outcome_bounds is not None
    full = outcome_moments == "full" or (outcome_moments == "auto" and l <= FULL_OUTCOME_MOMENTS)
    width = d + bool(intercept)
    count = width * (width + 1) // 2 + width * l + (l * (l + 1) // 2 if full else l)
    mu = mu_of(budget, margin=lattice_margin(count, SMALLEST_VARIANCE_BITS))
    ratio = _split(split, l, protection)
    return Plan(
        n=n,
        d=d,
        l=l,
        protection=protection,
        budget=budget,
        mu=mu,
        split=ratio,
        features=feature_bounds.clip(d, "features"),
        outcomes=outcome_bounds.clip(l, "outcomes"),
        intercept=bool(intercept),
        full_outcome_moments=full,
        missing=missing,
        grid=choose_grid(mu=mu, split=ratio, n=n),
    )


def _power(variance_bits: int) -> float:
    """Return the standard deviation of a variance 2**variance_bits."""
    return math.exp2(variance_bits / 2)


def _split(split: float | None, l: int, protection: Protection) -> float:
    if split is not None and not 0.001 <= split <= 2:
        raise InputError(
            f"split={split!r} must lie between 0.001 and 2: at 2 the covariance already costs "
            "nothing, above it the association would only get noisier"
        )
    if protection is Protection.OUTCOMES:
        # The covariance is exact and public, so nothing is to be split; 2 minimises σ₂.
        return 2.0
    return split_ratio(l) if split is None else float(split)
