"""A smaller problem with the same answer: what makes the time of a forecast independent of its size.

How well a release predicts follows from ratios: rows to features, every eigenvalue of XᵀX to the noise
of the whole covariance (which grows with √d), every entry of XᵀY to its noise, outcomes to features. All
of them stay as they are if rows, features and outcomes are divided by k, each simulated feature standing
for k, and features and outcomes are measured in units k^¼ times smaller. Eigenvalues of XᵀX are then √k
times smaller, and so is the noise √d·σ₁ with the σ₁ of the plan; entries of XᵀY keep their size and
their noise. So the noise scales of the plan are used unchanged. A constant k^¾ times as long makes the
noise of the means what it was. What is lost is of order 1/d' for d' simulated features: less than chance
and assumptions do to a forecast (`ACCURACY`, measured by `python -m benchmarks.forecast_size`).

With few outcomes the estimator knows the strength of the signal from d·l numbers, and fewer would make
it shrink more. There outcomes are multiplied by k, so that as many numbers say how strong it is.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.forecast.law import Block, Law
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.privacy.protection import Protection

__all__ = [
    "ACCURACY",
    "LARGEST",
    "MOST_WHOLE",
    "Reduction",
    "SimulatedPlan",
    "reduced_law",
    "reduction_of",
    "whole_outcomes",
]

Floats = NDArray[np.float64]

LARGEST = 320  # directions that are simulated as they are
REDUCED = 256  # directions that stand for more
MOST_FEATURES = 2 * REDUCED  # simulated, where they outnumber the rows
FEWEST_ROWS = 24
FEWEST_OUTCOMES = 50  # that stand for more
MOST_WHOLE = 1024  # outcomes whose exact moments are decomposed
FEWEST_DIRECTIONS = 20  # to which a problem of so many outcomes is reduced
ACCURACY = 0.01  # that a reduced forecast of R² differs by from that of the whole size


@dataclass(frozen=True, kw_only=True)
class SimulatedPlan(Plan):
    """A plan of fewer rows and columns that has the noise of a larger one."""

    noise: tuple[float, float, float]  # of the covariance, the association and the outcome moments
    length: float  # of the constant
    residual_noise: float  # on the moments of residuals as long as outcomes
    row_noise: float = 0.0  # on every entry of the outcomes
    mean_noise: float = 0.0  # on the mean of an outcome, if there is noise on every entry
    scale_fits: bool = False  # what the bounds of the whole say, whose scales are 1 here
    may_be_shortened: bool = False  # the same of the norm of the features

    @property
    def covariance_sigma(self) -> float:
        """Noise scale on the diagonal of XᵀX in scaled units."""
        return self.noise[0]

    @property
    def association_sigma(self) -> float:
        """Noise scale on every entry of XᵀY in scaled units."""
        return self.noise[1]

    @property
    def outcome_sigma(self) -> float:
        """Noise scale on svec(YᵀY) in scaled units."""
        return self.noise[2]

    @property
    def residual_sigma(self) -> float:
        """Noise scale on svec(RᵀR) of residuals as long as outcomes, in scaled units."""
        return self.residual_noise

    @property
    def row_sigma(self) -> float:
        """Noise scale on every entry of the outcomes in scaled units."""
        return self.row_noise

    @property
    def mean_sigma(self) -> float:
        """Noise scale of the mean of an outcome: that of all rows."""
        return self.mean_noise if self.row_noise else super().mean_sigma

    @property
    def outcome_scale_fits(self) -> bool:
        """Whether the bounds of the whole name a spread of outcomes and a norm that fits it."""
        return self.scale_fits

    @property
    def features_may_be_shortened(self) -> bool:
        """Whether the bounds of the whole have a norm of features beside others."""
        return self.may_be_shortened

    @property
    def constant(self) -> float:
        """The constant feature in scaled units; 0 without an intercept."""
        return self.length


@dataclass(frozen=True, kw_only=True)
class Reduction:
    """Sizes of the simulated problem, and the factors of its units."""

    n: int
    d: int
    l: int
    times: float  # k: how many features one stands for; 1 if nothing is reduced
    outcomes_times: float  # how many outcomes one stands for

    @property
    def unit(self) -> float:
        """Factor of features and outcomes, k^¼."""
        return math.sqrt(math.sqrt(self.times))

    def norm_factor(self, block: str) -> float:
        """Factor of a row norm: the new unit, of fewer columns."""
        times = self.times if block == "features" else self.outcomes_times
        return self.unit / math.sqrt(times)

    def plan(self, plan: Plan, *, d: int, l: int) -> SimulatedPlan:
        """Return the plan of d features and l outcomes, in scaled units, that stand for all."""
        size: dict[str, object] = {
            "n": self.n,
            "d": d,
            "l": l,
            "features": _plain(plan.features.norm * self.norm_factor("features"), d),
            "outcomes": _plain(plan.outcomes.norm * self.norm_factor("outcomes"), l),
        }
        same = {field.name: getattr(plan, field.name) for field in dataclasses.fields(Plan)}
        factor = 1.0
        if self.times > 1:
            # Noise of the whole matrix grows with the root of its width; variances stand alone.
            wide = self.outcomes_times if plan.full_outcome_moments else 1.0
            factor = math.sqrt(wide / self.times)
        return SimulatedPlan(
            **(same | size),
            noise=(plan.covariance_sigma, plan.association_sigma, factor * plan.outcome_sigma),
            residual_noise=factor * plan.residual_sigma,
            length=plan.constant * self.times**0.75,
            row_noise=plan.row_sigma * self.unit,  # on the outcomes, in their unit
            mean_noise=plan.mean_sigma * self.unit if plan.row_sigma else 0.0,
            scale_fits=plan.outcome_scale_fits,
            may_be_shortened=plan.features_may_be_shortened,
        )

    @property
    def words(self) -> str:
        """Say what was simulated in place of the whole; empty if it was the whole."""
        if self.times == 1:
            return ""
        sizes = f"{self.n:,} rows, {self.d:,} features and {self.l:,} outcomes"
        words = f"{sizes} are simulated and stand for all"
        if self.n < self.d:
            return f"{words}: a rough guide, with more features than rows"
        return f"{words}, which moves a forecast by up to {ACCURACY:g}"


def reduction_of(plans: Sequence[Plan]) -> Reduction:
    """Return the sizes at which plans of the same n, d and l are simulated.

    One for all of them, so that they share their simulated rows and can be compared.
    """
    n, d, l = plans[0].n, plans[0].d, plans[0].l
    directions = min(n, d)
    times = directions / REDUCED if directions > LARGEST else 1.0
    times = max(times, d / MOST_FEATURES)
    if any(whole_outcomes(plan) for plan in plans) and l / times > MOST_WHOLE:
        times = max(times, min(l / MOST_WHOLE, directions / FEWEST_DIRECTIONS))
    if times <= 1:
        return Reduction(n=n, d=d, l=l, times=1.0, outcomes_times=1.0)
    # As many numbers vouch for the signal as before: of fewer features, those of more outcomes.
    outcomes = max(round(l / times), min(round(l * times), FEWEST_OUTCOMES))
    features = max(1, round(d / times))
    return Reduction(
        n=max(round(n / times), min(n, FEWEST_ROWS)),
        d=features,
        l=outcomes,
        times=d / features,
        outcomes_times=l / outcomes,
    )


def _plain(norm: float, width: int) -> Clip:
    """Return the bounds of columns that are in scaled units already."""
    return Clip(centre=np.zeros(width), scale=np.ones(width), norm=norm, box=False)


def whole_outcomes(plan: Plan) -> bool:
    """Whether exact YᵀY is decomposed: no part of its spectrum stands for the whole."""
    return plan.protection is Protection.FEATURES and plan.full_outcome_moments


def reduced_law(law: Law, to: Reduction) -> Law:
    """Return what is assumed of the simulated columns."""
    if to.times == 1:
        return law
    values = law.signal.spectrum(len(law.features.mean))
    # Each simulated direction has the variance of those it stands for together.
    up_to = np.append(0.0, np.cumsum(values))
    parts = np.diff(np.interp(np.linspace(0, len(values), to.d + 1), np.arange(len(up_to)), up_to))
    signal = dataclasses.replace(law.signal, eigenvalues=tuple(parts.tolist()), effective_rank=None)
    return Law(
        features=_part(law.features, to.d, to.unit),
        outcomes=_part(law.outcomes, to.l, to.unit),
        signal=signal,
    )


def _part(block: Block, width: int, unit: float) -> Block:
    """Return so many of a block's columns, in other units; together they are as long on average."""
    order = np.argsort(block.sd, kind="stable")
    at = np.sort(order[_spread(len(order), width)])
    share = width / len(order)
    mean, sd = block.mean[at], block.sd[at]
    if not block.cut:  # cut columns are what they are
        mean, sd = _of_length(mean, block.mean, share), _of_length(sd, block.sd, share)
    return dataclasses.replace(
        block,
        mean=unit * mean,
        sd=unit * sd,
        norm=block.norm * unit * math.sqrt(share),
        limit=unit,
        genotypes=block.genotypes[at],
        ranges=block.ranges[at],
    )


def _spread(total: int, count: int) -> NDArray[np.intp]:
    """Return `count` of the places below `total`, evenly spread."""
    return ((np.arange(count) + 0.5) * (total / count)).astype(np.intp)


def _of_length(part: Floats, whole: Floats, share: float) -> Floats:
    """Scale some columns so that their squares add up to their share of all."""
    square = float(part @ part)
    return part * math.sqrt(share * float(whole @ whole) / square) if square > 0 else part
