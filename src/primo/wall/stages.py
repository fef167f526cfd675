"""Noise for the stages that find centres and scales, before the norms and the moments."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError, PrivacyError
from primo.planning.plan import Plan
from primo.privacy.centre_search import RADIUS, CentreSearch
from primo.privacy.column_search import ColumnSearch
from primo.privacy.norm_search import NormSearch
from primo.released.moments import ReleasedColumns, ReleasedLengths, ReleasedSums
from primo.rows.lengths import Lengths
from primo.rows.sums import RowSums
from primo.rows.values import ColumnCounts
from primo.wall.noise import RandomBits, add_noise

__all__ = ["release_columns", "release_first_lengths", "release_sums"]

_BLOCKS = ("features", "outcomes")

T = TypeVar("T", CentreSearch, ColumnSearch)


def release_first_lengths(
    lengths: Lengths, plan: Plan, *, bits: RandomBits, backend: str = "primo"
) -> ReleasedLengths:
    """Add noise to the histograms that say to which norm rows are shortened before they are summed.

    Guarantee: √`plan.centre_search.counts.spent`-GDP under replace-one, if `lengths` were counted with
    `plan`. Cost: one discrete Gaussian per bin.
    """
    search = _checked(plan.centre_search, lengths.rows, plan).counts
    return ReleasedLengths(**_noisy(lengths, search, "first lengths", bits, backend))


def release_sums(
    sums: RowSums, plan: Plan, *, bits: RandomBits, backend: str = "primo"
) -> ReleasedSums:
    """Add noise to the sums of shortened rows that centres are found from.

    Guarantee: with `release_first_lengths`, √`plan.centre_search.spent`-GDP under replace-one, if the
    rows were summed with `plan`. Cost: one discrete Gaussian per column.
    """
    search = _checked(plan.centre_search, sums.rows, plan)
    return ReleasedSums(**_noisy(sums, search, "sums", bits, backend, size=RADIUS))


def release_columns(
    counts: ColumnCounts, plan: Plan, *, bits: RandomBits, backend: str = "primo"
) -> ReleasedColumns:
    """Add noise to the histograms of columns that centres and scales are found from.

    Guarantee: √`plan.column_search.spent`-GDP under replace-one, if the values were counted with `plan`.
    Cost: one discrete Gaussian per bin and column.
    """
    search = _checked(plan.column_search, counts.rows, plan)
    return ReleasedColumns(**_noisy(counts, search, "columns", bits, backend))


def _noisy(
    sums: Lengths | RowSums | ColumnCounts,
    search: NormSearch | CentreSearch | ColumnSearch,
    stage: str,
    bits: RandomBits,
    backend: str,
    *,
    size: int = 1,
) -> dict[str, Any]:
    """Return noisy sums of every block that is searched, in units of `size`; None for others."""
    noisy: dict[str, NDArray[np.float64] | None] = dict.fromkeys(_BLOCKS)
    for block in _BLOCKS:
        if getattr(search, block):
            scaled = getattr(sums, block) * search.unit
            add_noise(
                scaled,
                variance_bits=search.variance_bits,
                bits=bits,
                label=f"{stage} of {block}",
                backend=backend,
            )
            noisy[block] = scaled / (search.unit * size)
    return noisy


def _checked(search: T | None, rows: int, plan: Plan) -> T:
    """Return a stage's search; refuse a plan that has none, and sums of other rows."""
    if search is None:
        raise PrivacyError("the plan has no noise for this stage")
    if rows != plan.n:
        raise InputError("these sums do not belong to this plan: the number of rows differs")
    return search
