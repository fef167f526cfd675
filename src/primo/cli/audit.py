"""`primo audit`: attack this program on simulated rows."""

from __future__ import annotations

import dataclasses

import click

from primo.cli.option_types import PROTECTIONS, Whole
from primo.cli.options import json_option
from primo.cli.output import say, show_json, table
from primo.privacy.rounds import MOST_ROUNDS

__all__ = ["audit"]

TRIALS, FOUND_TRIALS = 4000, 400

#: Rows and canaries of a release whose bounds are found: few columns, so that all of them are counted.
FOUND_ROWS, FOUND_CANARIES = 4000, 4


@click.command(epilog="Example:  primo audit --epsilon 5 --protect both --trials 20000")
@click.option(
    "--epsilon",
    "epsilons",
    type=float,
    multiple=True,
    default=(5.0,),
    help="Claimed epsilon; 5 if not given. Repeat for several.",
)
@click.option("--delta", type=float, default=1e-6, show_default=True, help="Claimed delta.")
@click.option(
    "--protect",
    type=PROTECTIONS,
    multiple=True,
    help="What is secret; all three if not given.",
)
@click.option("--intercept/--no-intercept", default=True, help="Fit an intercept.")
@click.option("--split", type=float, help="Ratio of association to covariance, at most 2.")
@click.option(
    "--calibration",
    type=click.Choice(["exact", "paper"]),
    default="exact",
    show_default=True,
    help="paper: noise scales as the paper prints them, tested against the epsilon it claims.",
)
@click.option(
    "--norms",
    type=click.Choice(["stated", "auto"]),
    default="stated",
    show_default=True,
    help="auto: norms, centres and scales are found from the rows first, and all stages are attacked.",
)
@click.option(
    "--rounds",
    type=Whole(1, MOST_ROUNDS),
    default=1,
    show_default=True,
    help="Rounds of the release; all are attacked together.",
)
@click.option(
    "--covariance",
    type=click.Choice(["full", "blocks", "none"]),
    default="full",
    show_default=True,
    help="blocks, none: the covariance inside blocks of features, or its diagonal alone. panel releases "
    "what none releases.",
)
@click.option(
    "--association",
    type=click.Choice(["gauss", "perturbed"]),
    default="gauss",
    show_default=True,
    help="perturbed: noise on the outcomes themselves, under `outcomes`.",
)
@click.option(
    "--trials",
    type=Whole(min=1),
    help="Number of releases; 4000 if not given, 400 with --norms auto, where each reads rows again.",
)
@click.option(
    "--one-run", is_flag=True, help="Guess many canaries in one full-size fit under `both` instead."
)
@json_option
@click.pass_context
def audit(
    ctx: click.Context,
    epsilons: tuple[float, ...],
    delta: float,
    protect: tuple[str, ...],
    intercept: bool,
    split: float | None,
    calibration: str,
    norms: str,
    rounds: int,
    covariance: str,
    association: str,
    trials: int | None,
    one_run: bool,
    json_: bool,
) -> None:
    """Attack the program and see how much of epsilon can be proved; reads no data, costs nothing.

    The real mechanism releases two worst-case neighbours many times, and the best test guesses which
    of the two each release comes from. What the right guesses prove with 99.9 % confidence is a lower
    bound on epsilon. If it is above the claim, the claim is wrong (exit code 1). If it is near the
    claim, the claim is nearly tight.
    """
    from primo.audit import Setting, audit_in_one_run, audit_release, canaries_for
    from primo.audit.perturbed_attack import PERTURBED_ROWS
    from primo.audit.round_attack import ROUND_ROWS
    from primo.audit.table import HEADER, ONE_RUN_HEADER, line, one_run_line

    if trials is None:
        trials = TRIALS if norms == "stated" else FOUND_TRIALS
    if one_run:
        runs = [audit_in_one_run(epsilon=epsilon, delta=delta) for epsilon in epsilons]
        found = [each.to_dict() for each in runs]
        page = table(ONE_RUN_HEADER, [one_run_line(each) for each in runs])
        violated = any(each.violated for each in runs)
    else:
        protections: tuple[str, ...] = ("both", "features", "outcomes")
        rows = FOUND_ROWS if norms == "auto" else 1000
        if rounds != 1:
            rows = ROUND_ROWS
        if association == "perturbed":
            protections, rows = ("outcomes",), PERTURBED_ROWS
        settings = [
            Setting(
                epsilon=epsilon,
                delta=delta,
                protection=protection,
                intercept=intercept,
                split=split,
                calibration=calibration,
                claim=epsilon,
                norms_found=norms == "auto",
                scales_stated=scales,
                rounds=rounds,
                covariance=covariance,
                association=association,
                n=rows,
            )
            for protection in protect or protections
            # Nothing is stated of the columns, and then centres and scales: other stages are made.
            for scales in ((False, True) if norms == "auto" and intercept else (False,))
            for epsilon in epsilons
        ]
        audits = []
        for setting in settings:
            canaries = canaries_for(setting, trials)
            if setting.norms_found:  # few, so that there are few columns to be counted
                canaries = min(canaries, FOUND_CANARIES)
            audits.append(
                audit_release(dataclasses.replace(setting, canaries=canaries), trials=trials)
            )
        found = [each.to_dict() for each in audits]
        page = table(HEADER, [line(each) for each in audits])
        violated = any(each.violated for each in audits)
    if json_:
        show_json(found)
    else:
        click.echo(page)
        say("Lower bounds at 99.9 % confidence; docs/audit.md says what they mean.")
    if violated:
        ctx.exit(1)
