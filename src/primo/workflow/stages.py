"""The stages before the moments, which find bounds: each reads the rows, releases, settles the plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Protocol

from primo.planning.plan import Plan
from primo.released.found_centres import centred_plan, plan_for_sums
from primo.released.found_columns import plan_with_columns
from primo.released.found_norms import settled_plan
from primo.released.moments import ReleasedLengths
from primo.rows.lengths import fold_lengths
from primo.rows.sums import fold_sums
from primo.rows.values import fold_values
from primo.rows.walk import Folding, S
from primo.wall import mechanism, stages
from primo.wall.noise import RandomBits
from primo.wall.sealing import stage_digest

__all__ = ["Walk", "find_bounds"]


class Walk(Protocol):
    """Reads every row once and returns what a folding sums."""

    def __call__(self, folding: Folding[S], plan: Plan) -> S:
        """Fold all rows under a plan."""
        ...


def find_bounds(
    walk: Walk, plan: Plan, *, bits: RandomBits, backend: str
) -> tuple[Plan, ReleasedLengths]:
    """Find centres, scales and norms, as far as the plan asks for them.

    Guarantee: what is found is a function of the plan and of released numbers. All that is released is
    paid for by the searches of the plan, which its mu includes.
    Cost: a pass over the rows for the columns, two for the centres and one for the norms.
    """

    def bound(sums: Any, stage: str) -> RandomBits:
        """Tie sealed bits to exactly these sums, under the plan as it is by now."""
        return bits.bound(stage_digest(sums, plan, stage), stage=stage) if bits.unbound else bits

    columns = None
    if plan.column_search is not None:
        values = walk(fold_values, plan)
        columns = stages.release_columns(
            values, plan, bits=bound(values, "columns"), backend=backend
        )
        plan = plan_with_columns(plan, columns)
    if plan.centre_search is not None:
        first = walk(fold_lengths, plan)
        short = stages.release_first_lengths(
            first, plan, bits=bound(first, "first-lengths"), backend=backend
        )
        plan = plan_for_sums(plan, short)
        summed = walk(fold_sums, plan)
        sums = stages.release_sums(summed, plan, bits=bound(summed, "sums"), backend=backend)
        plan = centred_plan(plan, sums)
    counted = walk(fold_lengths, plan)
    lengths = mechanism.release_lengths(
        counted, plan, bits=bound(counted, "lengths"), backend=backend
    )
    return settled_plan(plan, lengths), replace(lengths, columns=columns)
