"""The accuracy that a dry run expects of a request, and what it prints of it."""

from __future__ import annotations

from dataclasses import dataclass

import click
import numpy as np
from numpy.typing import NDArray

from primo.cli.render import spelled
from primo.cli.request import Request
from primo.forecast.assumptions import Signal
from primo.forecast.block_plan import predict_blocks
from primo.forecast.compare import better_association, typical_sd, with_deviations
from primo.forecast.forecast import Prediction, is_forecast, predict
from primo.forecast.knowledge import better_knowledge, without_search
from primo.forecast.law import law_of
from primo.forecast.reduced import reduction_of
from primo.forecast.table import Better
from primo.planning.plan import Plan

__all__ = ["Forecast", "forecast_of", "show_forecast"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """The predicted accuracy of this run, what it assumes, and which public knowledge would raise it."""

    chosen: Prediction
    words: tuple[str, ...]  # all assumptions
    outcome_sd: float | None  # None where their units are found, so that nothing is assumed
    better: tuple[Better, ...]
    not_found: float | None  # R² with the norms of the ranges instead of norms that are found
    simulated: str  # what stood for the whole; empty if all of it was simulated
    association: Better | None = None  # another one, where it is predicted to do better


def forecast_of(request: Request) -> Forecast | None:
    """Forecast the accuracy; None for plans that the forecast does not cover."""
    plan, options = request.prepared.plan, request.options
    signal = with_deviations(
        Signal(r2=options["signal_r2"]),
        outcome_sd=options["outcome_sd"],
        feature_sd=options["feature_sd"],
    )
    starts = request.prepared.public_blocks
    if plan.blocks is not None or starts is not None:
        return _forecast_blocks(plan, signal, starts)
    if not is_forecast(plan):
        return None
    chosen = predict(plan, association=plan.association, signal=signal)
    return Forecast(
        chosen=chosen,
        words=law_of(plan, signal).words,
        outcome_sd=typical_sd(plan, signal=signal),
        better=better_knowledge(
            plan,
            association=plan.association,
            estimator="auto",
            signal=signal,
            than=chosen.r2 if chosen.one_round_r2 is None else chosen.one_round_r2,
        ),
        not_found=without_search(plan, association=plan.association, signal=signal),
        simulated=reduction_of([plan]).words,
        # What an earlier release fixed, or a forecast chose, needs no advice.
        association=better_association(plan, signal=signal)
        if options.get("association", "auto") != "auto"
        else None,
    )


def _forecast_blocks(plan: Plan, signal: Signal, starts: NDArray[np.int64] | None) -> Forecast:
    found = predict_blocks(plan, signal, starts)
    return Forecast(
        chosen=found.prediction,
        words=found.words,
        outcome_sd=found.outcome_sd,
        better=(),
        not_found=None,
        simulated="",
    )


def show_forecast(expected: Forecast) -> None:
    """Print the prediction, what it assumes, and what better bounds would bring."""
    chosen = expected.chosen
    one = "" if chosen.one_round_r2 is None else f"with one round {chosen.one_round_r2:.3f}, "
    as_one = one and " (one round)"
    click.echo(
        f"Predicted R² on new rows: {chosen.r2:.3f} ({one}without privacy {chosen.no_privacy_r2:.3f})."
    )
    if (
        chosen.one_round_r2 is not None
        and chosen.r2 < chosen.one_round_r2
        and not expected.simulated
    ):
        click.echo("Under these assumptions rounds do not help; --rounds 1 reads the rows once.")
    if (other := expected.association) is not None:
        click.echo(
            f"With --association {other.knowledge}: {other.predicted_r2:.3f} instead of "
            f"{other.instead_of:.3f}. It is expected to predict better here."
        )
    if expected.not_found is not None:
        click.echo(
            f"With the norms of the ranges, at the whole budget{as_one}: {expected.not_found:.3f}. "
            "Finding norms gains more where ranges are wider than is assumed here."
        )
    click.echo("Assumed (--signal-r2, --outcome-sd and --feature-sd state other numbers):")
    for words in expected.words:
        click.echo(f"  - {words}")
    if expected.outcome_sd is not None:
        click.echo(
            f"  - the outcomes have a standard deviation of {expected.outcome_sd:.3g} (median, in their "
            "own units)"
        )
    if expected.simulated:
        click.echo(f"Simulated: {expected.simulated}.")
    if expected.better:
        click.echo(f"Better public knowledge, everything else unchanged{as_one}: predicted R²")
        for better in expected.better:
            click.echo(f"  - {better.render(spelled)}")
