"""The numbers that leave the wall: noisy moments, and the plan that they were made under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.released.projection import Projected
from primo.released.row_space import RowSpace

__all__ = [
    "PublicFeatures",
    "ReleasedColumns",
    "ReleasedLengths",
    "ReleasedMoments",
    "ReleasedSums",
    "expect_release",
]

Matrix = NDArray[np.float64]
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, eq=False)
class PublicFeatures:
    """Public features seen through their row space, where they outnumber the rows."""

    means: Matrix  # (d,) in scaled units
    row_space: RowSpace  # of the features about their means


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedLengths:
    """Histograms of row lengths in scaled units, over `privacy.lengths`; noisy for a private block."""

    features: Matrix | None  # (BINS,) rows in each bin; None where the norm was stated
    outcomes: Matrix | None


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedSums:
    """Noisy sums of shortened rows, in units of the norm they were shortened to."""

    features: Matrix | None  # (d,); None where no centre is found
    outcomes: Matrix | None  # (l,)


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedColumns:
    """Noisy histograms of the values of every column, over `privacy.values`."""

    features: Matrix | None  # (d, BINS); None where they were not counted
    outcomes: Matrix | None  # (l, BINS)


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
