"""What a dry run says of bounds that are to be found from the rows."""

from __future__ import annotations

import math

import click

from primo.cli.output import say
from primo.planning.plan import Plan

__all__ = ["show_search"]


def show_search(plan: Plan) -> None:
    """Say what will be found, what that costs, and where there are too few rows for it."""
    if plan.declined:
        click.echo(
            f"Norms of the {' and '.join(plan.declined)}: not looked for, because there are too few "
            "rows to tell them at this budget. The norm is that of the ranges; nothing is spent on it."
        )
    if not plan.counted:
        return
    if (columns := plan.column_search) is not None:
        which = " and ".join(b for b in plan.counted if getattr(columns, b))
        click.echo(
            f"Centres and scales of the {which}: found first, from counts of each column's values."
        )
    if (centres := plan.centre_search) is not None:
        which = " and ".join(b for b in plan.counted if getattr(centres, b))
        click.echo(f"Centres of the {which}: found first, from a sum of shortened rows.")
    click.echo(
        f"Norms of the {' and '.join(plan.counted)}: found {'then' if plan.centred else 'first'}, from "
        f"counts of rows by length, {'all together ' * bool(plan.centred)}{_cost(plan)}. The rows are "
        f"read {plan.search_passes + plan.round_count} times. Noise is proportional to these norms."
    )
    for block in plan.counted:
        clip = plan.features if block == "features" else plan.outcomes
        scaled = plan.column_search is not None and getattr(plan.column_search, block)
        if clip.is_plain and not clip.box and not scaled:
            say(
                f"Note: the {block} have no range and no centre, so one norm holds for their raw "
                "values. That serves columns about 0 in comparable units. Otherwise give ranges, or "
                f"centres and scales: [{block}.columns.NAME] in the bounds file."
            )


def _cost(plan: Plan) -> str:
    """Say which share of the budget is spent, and what that does to the noise of everything else."""
    if plan.norm_search is None:
        return "at no cost: they are public"
    share = float(plan.searched) / plan.mu**2
    louder = 1 / math.sqrt(1 - share) - 1
    return (
        f"for {share:.1%} of the budget (of mu squared), which makes all other noise {louder:.1%} "
        "larger than it would be with the same norms stated"
    )
