"""The numbers that leave the wall: noisy moments, and the plan that they were made under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.released.blocks import ReleasedBlocks
from primo.released.projection import Projected
from primo.released.rounds import ReleasedRound, Scales
from primo.released.row_space import RowSpace

__all__ = [
    "KEPT",
    "PublicFeatures",
    "ReleasedColumns",
    "ReleasedLengths",
    "ReleasedMoments",
    "ReleasedSums",
    "expect_release",
]

Matrix = NDArray[np.float64]
KEPT = "_kept"  # where `kept` stores what was made from a release
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicFeatures:
    """Public features seen through their row space, where they outnumber the rows."""

    means: Matrix  # (d,) in scaled units
    row_space: RowSpace  # of the features about their means


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedColumns:
    """Noisy histograms of the values of every column, over `privacy.values`."""

    features: Matrix | None  # (d, BINS); None where they were not counted
    outcomes: Matrix | None  # (l, BINS)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedLengths:
    """Histograms of row lengths in scaled units, over `privacy.lengths`; noisy for a private block."""

    features: Matrix | None  # (BINS,) rows in each bin; None where the norm was stated
    outcomes: Matrix | None
    columns: ReleasedColumns | None = None  # that centres and scales were found from before, if any


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedSums:
    """Noisy sums of shortened rows, in units of the norm they were shortened to."""

    features: Matrix | None  # (d,); None where no centre is found
    outcomes: Matrix | None  # (l,)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedMoments:
    """Noisy sums over rows in scaled units; safe to publish, and all that estimation ever sees.

    `Release` is these numbers with the methods that users call.

    Guarantee: `plan.mu`-GDP, hence `plan.budget`, for `plan.protection` under replace-one. Anything
    computed from it costs no further privacy.
    """

    plan: Plan
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    covariance: Matrix  # (width, width) XᵀX, the constant feature last; (0, 0) for a row space
    association: Matrix  # (width, l) XᵀY
    outcome_moments: Matrix  # (l, l) YᵀY, or (l,) its diagonal
    reproducible: bool
    backend: str
    projected: Projected | None = None  # the association after GaussProj
    earlier_outcomes: tuple[str, ...] = ()  # names in the releases that this one extends
    public_features: PublicFeatures | None = None  # more public features than rows
    lengths: ReleasedLengths | None = None  # that the norms of the plan were found from
    rounds: tuple[
        ReleasedRound, ...
    ] = ()  # that the moments above were pooled from; () if one release
    scales: Scales | None = None  # noise of pooled moments; None: that of the plan
    blocks: ReleasedBlocks | None = None  # in place of the covariance, which is (0, 0) then
    perturbed: NDArray[np.int32] | None = (
        None  # (n, l) outcomes with noise on each, in `plan.row_step`
    )
    feature_squares: Matrix | None = None  # (width,) diagonal of XᵀX of a perturbed row space
    feature_sums: Matrix | None = None  # (width,) its last row: sums times the constant
    public_blocks: ReleasedBlocks | None = (
        None  # exact, of public features with noise on the outcomes
    )
    started: Matrix | None = None  # (width, l) mean W̄ that rounds took residuals of

    @property
    def covariance_sigma(self) -> float:
        """Noise scale on the diagonal of the covariance in scaled units; 0 where it is public."""
        return self.plan.covariance_sigma if self.scales is None else self.scales.covariance

    @property
    def held(self) -> str:
        """What is held of the covariance in words, of a release without all of it."""
        grid = self.plan.blocks
        return "the covariance inside blocks of features only" if grid is None else grid.part

    @property
    def association_sigma(self) -> float:
        """Noise scale on every entry of the association in scaled units."""
        return self.plan.association_sigma if self.scales is None else self.scales.association

    @property
    def outcome_sigma(self) -> float:
        """Noise scale of the outcome moments in scaled units; 0 where the outcomes are public."""
        return self.plan.outcome_sigma if self.scales is None else self.scales.outcome

    @property
    def row_variance(self) -> float:
        """Variance σ² of the noise on each entry of the outcomes in scaled units; 0 if there is none.

        The association has then noise of covariance σ²XᵀX, and none beside it.
        """
        return self.plan.row_sigma**2

    @property
    def association_variance(self) -> float:
        """Variance of the noise that is the same on every entry of the association, whatever X is."""
        return 0.0 if self.row_variance else self.association_sigma**2

    @property
    def mean_sigma(self) -> float:
        """Noise scale of the mean of an outcome in scaled units, with an intercept; 0 if public."""
        plan = self.plan
        if self.scales is None or not plan.protection.outcomes_private:
            return plan.mean_sigma
        return self.association_sigma / (plan.n * plan.constant)

    def __getstate__(self) -> dict[str, Any]:
        """Return the numbers alone: what was made from them can be made again."""
        return {name: value for name, value in self.__dict__.items() if name != KEPT}

    @property
    def publishable(self) -> bool:
        """Whether the noise is secret, which the guarantee needs."""
        return not self.reproducible


def expect_release(value: R) -> R:
    """Return what was given if it is a release, or say where to find one."""
    if not isinstance(value, ReleasedMoments):
        raise InputError(
            f"expected a release, got {type(value).__name__}; pass model.release_ of a fitted model, or "
            "primo.load_release(path)"
        )
    return value
