"""A dry run of `primo fit` or `primo extend`: the plan, its cost and the accuracy to expect."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import click

from primo._util.progress import working
from primo.cli.expected import Forecast, forecast_of, show_forecast
from primo.cli.notes import note_few, show_counts
from primo.cli.output import counted, say, show_json
from primo.cli.request import Request
from primo.cli.searches import show_search
from primo.planning.plan import Plan
from primo.privacy.accounting import epsilon_spent
from primo.rows.sources.paired import Unmatched
from primo.workflow.fit import Account

__all__ = ["preview"]


def preview(request: Request) -> None:
    """Print the plan, the predicted accuracy and the cost; charge nothing, read no private column.

    Where files are to be joined, ids are not compared: the number of rows is an upper bound, that of
    the smallest file.
    """
    exact, plan = _exact(request), request.prepared.plan
    with working("simulating releases"):
        expected = forecast_of(request)
    account = request.account()
    alone, outlook = (None, None) if account is None else _ledger_outlook(account, plan)
    if request.options["json_"]:
        show_json(_numbers(request, expected, alone))
        return
    show_counts(request)
    note_few(plan)
    click.echo(
        f"Plan: {counted(plan.l, 'regression')} on {counted(plan.d, 'feature')}, "
        f"{'' if exact else 'at most '}{counted(plan.n, 'row')}; "
        f"{plan.protection} secret."
    )
    click.echo(
        f"Cost: epsilon {plan.epsilon:g}, delta {plan.budget.delta:g} (mu {plan.mu:.4g}), for all "
        "outcomes together."
    )
    if plan.rounds is not None:
        click.echo(
            f"Rounds: {plan.round_count} under this one cost; every round after the first looks at what "
            "is left."
        )
    if plan.blocks is not None:
        click.echo(_covariance(request, plan.blocks.count))
    show_search(plan)
    if not plan.counted:
        of_first = "" if plan.rounds is None else ", first round"
        click.echo(
            f"Noise in scaled units{of_first}: covariance {plan.covariance_sigma:.4g}, association "
            f"{plan.association_sigma:.4g}, outcome moments {plan.outcome_sigma:.4g}"
            + (f", from {plan.row_sigma:.4g} on each outcome." if plan.row_sigma else ".")
        )
    if expected is not None:
        show_forecast(expected)
    if account is not None:
        click.echo(f"Ledger {account.ledger.where}: {outlook}")
    if not exact:
        say("The number of people who are in all files is shown once the release is paid for.")
    if request.options.get("table"):
        say(
            "Note: a dry run looks at no private cell, so it cannot tell whether all columns that were "
            "chosen hold numbers; text stops the run. Of a column of categories state its levels in the "
            "file of --bounds, give one that names people as --id-column, and leave out all others."
        )
    say("Dry run: no private column was opened and nothing was charged.")


def _numbers(request: Request, expected: Forecast | None, alone: float | None) -> dict[str, Any]:
    """Return the preview for machines; `alone` is the epsilon that is spent on a new data set."""
    plan = request.prepared.plan
    return {
        "rows": plan.n,
        "rows_exact": _exact(request),
        "features": plan.d,
        "outcomes": plan.l,
        "counts": dict(request.opened.counts),
        "protection": str(plan.protection),
        "epsilon": plan.epsilon,
        "delta": plan.budget.delta,
        "mu": plan.mu,
        "rounds": plan.round_count,
        # Noise is proportional to norms, which are not known before they are found.
        "noise": None
        if plan.counted
        else {
            "covariance": plan.covariance_sigma,
            "association": plan.association_sigma,
            "outcome_moments": plan.outcome_sigma,
            **({"outcomes": plan.row_sigma} if plan.row_sigma else {}),
        },
        "norms_to_find": list(plan.counted),
        "centres_to_find": list(plan.centred),
        "too_few_rows_for_norms": list(plan.declined),
        "share_that_finds_bounds": float(plan.searched) / plan.mu**2,
        "predicted_r2_without_search": None if expected is None else expected.not_found,
        "predicted_r2": None if expected is None else expected.chosen.r2,
        "no_privacy_r2": None if expected is None else expected.chosen.no_privacy_r2,
        "assumptions": None if expected is None else expected.words,
        "assumed_outcome_sd": None if expected is None else expected.outcome_sd,
        "better_association": None
        if expected is None or expected.association is None
        else {
            "association": expected.association.knowledge,
            "predicted_r2": expected.association.predicted_r2,
        },
        "better_knowledge": []
        if expected is None
        else [asdict(better) for better in expected.better],
        "missing": plan.missing,
        "ledger_epsilon_if_new": alone,
        "config": request.config,
    }


def _exact(request: Request) -> bool:
    """Tell whether the number of rows is known; without ids compared it is an upper bound."""
    return not isinstance(request.opened.source, Unmatched)


def _covariance(request: Request, blocks: int) -> str:
    """Say what is released of the covariance, and what coefficients are made with."""
    if blocks < request.prepared.plan.d:
        return f"Covariance: inside {counted(blocks, 'block')} of features, nothing between them."
    diagonal = "Covariance: its diagonal alone; coefficients are made "
    if request.opened.panel is None:
        return f"{diagonal}from each feature alone."
    return f"{diagonal}with the panel's correlations, which the prediction does not count in."


def _ledger_outlook(account: Account, plan: Plan) -> tuple[float, str]:
    """Return the epsilon that this release would spend on a new data set, and a sentence about it."""
    alone = epsilon_spent([plan.cost], account.ledger.limit.delta)
    limit = account.ledger.limit
    text = f"limit epsilon {limit.epsilon:g}, delta {limit.delta:g} per data set; "
    text += f"this release alone spends epsilon {alone:.4g} of it. "
    text += f"What is left for known data sets: primo ledger show {account.ledger.where}"
    if not math.isfinite(alone) or alone > limit.epsilon:
        text = f"this release does not fit the limit (epsilon {limit.epsilon:g}): " + text
    return alone, text
