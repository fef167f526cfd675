"""What `primo fit` and `primo extend` share: the preview, the run, and how it is resumed."""

from __future__ import annotations

import getpass
import math
import os
import shlex
import tomllib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import tomli_w
from click.core import ParameterSource
from numpy.typing import NDArray

from primo._util.progress import working
from primo.cli.accuracy import accuracy_numbers, doubts_about, show_accuracy
from primo.cli.data import Opened, has_levels, named_by
from primo.cli.linkage import linkage_note
from primo.cli.options import checked
from primo.cli.output import counted, say, show_json
from primo.cli.render import spelled
from primo.cli.searches import show_search
from primo.errors import InputError, PrimoError, WeakGuaranteeWarning
from primo.forecast.assumptions import Signal
from primo.forecast.block_plan import predict_blocks
from primo.forecast.compare import better_association, typical_sd, with_deviations
from primo.forecast.forecast import Prediction, is_forecast, predict
from primo.forecast.knowledge import better_knowledge, without_search
from primo.forecast.law import law_of
from primo.forecast.reduced import reduction_of
from primo.forecast.table import Better
from primo.ledger import open_ledger
from primo.planning.plan import Plan
from primo.privacy.accounting import epsilon_spent
from primo.released.bundle import Bundle
from primo.released.estimation import Estimation
from primo.rows.sources.base import Source
from primo.rows.sources.join import too_few
from primo.rows.sources.paired import Unmatched
from primo.workflow.fit import Account, Engine, Prepared
from primo.workflow.publish import begin, check_begin, publish
from primo.workflow.resume import Staging, partial_of

__all__ = ["Request", "check_naming", "planned", "preview", "resumed_options", "run"]

#: How cells are read. It may be changed when a run is resumed, as the file itself may be repaired.
_READING = ("missing", "na", "decimal", "separator")

_FEW = 30  # with fewer rows a note is printed


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A release that was asked for, planned, and neither paid for nor read."""

    options: Mapping[str, Any]
    opened: Opened
    prepared: Prepared
    config: str  # TOML, stored with the release

    @property
    def out(self) -> Path:
        """Where the bundle goes."""
        out: Path | None = self.options["out"]
        if out is None:
            raise InputError("give --out: the folder (or .zip file) to write the release to")
        return out

    def account(self) -> Account | None:
        """Open the ledger that pays, if one was named."""
        where = self.options["ledger"]
        if where is None:
            return None
        return Account(
            ledger=open_ledger(where, key_file=self.options["ledger_key"]),
            purpose=self.options["purpose"] or f"release {self.options['out'] or ''}".strip(),
            user=self.options["user"] or getpass.getuser(),
            dataset=self.options["dataset"],
        )

    def engine(self) -> Engine:
        """Return how the options want the work to be done."""
        workers, scheduler = self.options["workers"], self.options["scheduler"]
        if workers is not None and scheduler is not None:
            raise InputError("give --workers (a cluster on this machine) or --scheduler, not both")
        return Engine(
            threads=self.options["threads"], workers=scheduler or workers, show_progress=True
        )


def check_naming(options: Mapping[str, Any]) -> None:
    """Refuse rows that name people by another column than the ledger, before a file is opened.

    A join tells whether a value is in the column that it uses. So only the column that names people
    may be used.
    """
    if options["ledger"] is None:
        return
    _check_ledger(options)
    book = open_ledger(options["ledger"], key_file=options["ledger_key"])
    if not book.naming.by_values:
        book.naming.check(named_by(options), book.where)


def _check_ledger(options: Mapping[str, Any]) -> None:
    """Say how to make the ledger if there is none at a path."""
    where: str = options["ledger"]
    if "://" in where or os.path.lexists(where):
        return
    named = named_by(options)
    people = "--identity-by-values" if named is None else f"--person-column {shlex.quote(named[0])}"
    epsilon, delta = options["epsilon"] or 10, options["delta"] or 1e-6
    raise InputError(
        f"there is no ledger at {where!r}",
        remedy="its steward makes one, with limits for all releases together (here those of this one "
        f"alone):\n  primo ledger init {shlex.quote(where)} --epsilon {epsilon:g} --delta {delta:g} "
        f"{people}",
    )


def planned(request: Request, plan: Callable[[Source], Prepared]) -> Request:
    """Return the request with its people matched, if it is to be run.

    A refusal after the match tells something about the match, and nothing was charged for it. So
    everything that can be refused from public numbers is refused first: `request` was planned as for a
    dry run, its output and its engine are checked, and the ledger is asked whether such a release fits
    any of its limits. Every later refusal has the one message of `too_few`.
    """
    source = request.opened.source
    if request.options["dry_run"] or not isinstance(source, Unmatched):
        return request
    request.engine()
    account = request.account()
    if not request.options["resume"]:
        check_begin(request.out, request.prepared)
        if account is not None:
            account.ledger.check_limits(request.prepared.plan.cost)
    joined = source.join()
    try:
        with warnings.catch_warnings():
            # The warning was given for the upper bound on the rows; it holds with fewer as well.
            warnings.simplefilter("ignore", WeakGuaranteeWarning)
            prepared = plan(joined)
    except PrimoError:
        raise too_few() from None
    return replace(request, opened=replace(request.opened, source=joined), prepared=prepared)


def preview(request: Request) -> None:
    """Print the plan, the predicted accuracy and the cost; charge nothing, read no private column.

    Where files are to be joined, ids are not compared: the number of rows is an upper bound, that of
    the smallest file.
    """
    exact = not isinstance(request.opened.source, Unmatched)
    plan = request.prepared.plan
    with working("simulating releases"):
        expected = _forecast(request)
    account = request.account()
    alone, outlook = (None, None) if account is None else _ledger_outlook(account, plan)
    if request.options["json_"]:
        show_json(
            {
                "rows": plan.n,
                "rows_exact": exact,
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
        )
        return
    _show_counts(request)
    _note_few(plan)
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
    show_search(plan)
    if not plan.counted:
        of_first = "" if plan.rounds is None else ", first round"
        click.echo(
            f"Noise in scaled units{of_first}: covariance {plan.covariance_sigma:.4g}, association "
            f"{plan.association_sigma:.4g}, outcome moments {plan.outcome_sigma:.4g}"
            + (f", from {plan.row_sigma:.4g} on each outcome." if plan.row_sigma else ".")
        )
    if expected is not None:
        _show_forecast(expected)
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


def run(request: Request) -> None:
    """Publish, and say what was done."""
    account, engine, out = request.account(), request.engine(), request.out
    if request.options["resume"]:
        staging = Staging.resume(out)
    else:
        _show_counts(request)
        if account is None:
            say("Note: no --ledger was given, so what is spent on these people is not recorded.")
        staging = begin(out, request.prepared, config=request.config, account=account)
    try:
        bundle = publish(
            staging,
            request.opened.source,
            request.prepared,
            account=account,
            engine=engine,
            variants=request.opened.variants,
            ld_panel=request.opened.panel,
            estimation=Estimation(estimator=request.options["estimator"]),
            config=request.config,
        )
    except BaseException as error:
        if partial_of(out).exists():
            command = click.get_current_context().info_name
            again = f"primo {command} --resume"
            lines = ["Nothing was published. Finish the same release, at no further charge:"]
            if isinstance(error, KeyboardInterrupt | click.Abort):
                lines += [f"  run `{again} --out {out}`"]
            else:
                lines += [
                    f"  repair the file and run `{again} --out {out}` (--na, --decimal and --separator "
                    "may be given again; bounds and levels are part of the plan and may not: recode "
                    "text to numbers in the file)"
                ]
            # An extension treats missing values as the earlier release did.
            if "missing" in request.options and not isinstance(error, KeyboardInterrupt):
                lines += [
                    f"  or, if values are missing, run `{again} --missing centre --out {out}`"
                ]
            say("\n".join(lines))
        else:
            say("Nothing was published and nothing was charged.")
        if has_levels(request.options):
            say("A value that is none of the stated levels of its column counts as missing.")
        raise
    _finished(request, bundle)


def resumed_options(ctx: click.Context, options: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Return options and configuration of the interrupted run.

    Only options that do not change the release may be given again.
    """
    if options["out"] is None:
        raise InputError("--resume needs --out: the release that was interrupted")
    with Staging.resume(options["out"]) as staging:
        stored = _read_stored(staging.config)
        payer = staging.charge
    settings = checked(ctx.command, stored, "the interrupted run")
    changeable = {"out", "resume", "json_", "ledger", "ledger_key", "user", "threads", "workers"}
    changeable |= {"scheduler", "signal_r2", "outcome_sd", "feature_sd", *_READING}
    for name in options:
        given = ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name not in changeable:
            raise InputError(
                f"--{name.replace('_', '-')} cannot be changed when a run is resumed: the release was "
                "planned and paid for with the options of its first run"
            )
    with ctx.scope(cleanup=False):
        params = {p.name: p for p in ctx.command.params}
        for name, value in settings.items():
            if ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
                options[name] = params[name].type_cast_value(ctx, value)
    for name in ("ledger", "purpose", "dataset", "user"):
        options[name] = options[name] or payer.get(name)
    for name in _READING:
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            given = options[name]
            stored[name] = list(given) if isinstance(given, tuple) else given
    return options, tomli_w.dumps(stored)


def _read_stored(config: str) -> dict[str, Any]:
    try:
        return tomllib.loads(config)
    except (ValueError, RecursionError):
        pass
    raise InputError("the configuration of the interrupted run is damaged; it cannot be resumed")


def _finished(request: Request, bundle: Bundle) -> None:
    plan = request.prepared.plan
    if request.options["json_"]:
        show_json(
            {
                "release": str(bundle.path),
                "release_id": bundle.manifest["release_id"],
                "digest": bundle.digest,
                "rows": plan.n,
                "features": plan.d,
                "outcomes": plan.l,
                "counts": dict(request.opened.counts),
                "privacy": bundle.manifest["privacy"],
                "accuracy": accuracy_numbers(bundle),
                "linkage": bundle.linkage,
                "doubts": doubts_about(bundle),
            }
        )
        return
    click.echo(bundle.release.statement())
    say()
    _note_few(plan)
    show_accuracy(bundle)
    if bundle.linkage is not None:
        say(linkage_note(bundle.linkage))
    say(f"Published {bundle.path}. Next:  primo report {bundle.path}")


def _show_counts(request: Request) -> None:
    if request.options["json_"]:
        return
    for label, count in request.opened.counts:
        say(f"{label}: {count}")
    plan = request.prepared.plan
    say(_missing(request))
    if plan.rows_per_person > 1:
        say(
            f"Note: a person owns up to {plan.rows_per_person} rows. The budget is that of a row; the "
            "statement gives that of a person as well, and the ledger is charged for it."
        )


def _note_few(plan: Plan) -> None:
    if plan.n < _FEW:
        rows = counted(plan.n, "row")
        say(f"Note: with only {rows}, noise that protects one person also hides the signal.")


def _missing(request: Request) -> str:
    """Say how missing values are treated, and how that is changed."""
    plan = request.prepared.plan
    centre = "centre" if plan.centred else "public centre"  # otherwise it is found
    if plan.missing == "error":
        text = "A missing value stops the run"
        other = f"--missing centre counts it as the {centre} of its column"
    else:
        text = f"Missing values count as the {centre} of their column"
        variants = request.opened.variants
        if variants is not None:
            by_panel = request.opened.norm is not None
            middle = f"the middle of 0 to {variants.copies}"
            text += f", genotypes as {'their public mean' if by_panel else middle}"
        other = "--missing error refuses them"
    # An extension treats them as the release did that it extends.
    return (
        f"{text} ({other})."
        if "missing" in request.options
        else f"{text}, as in the earlier release."
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Forecast:
    """The predicted accuracy of this run, what it assumes, and which public knowledge would raise it."""

    chosen: Prediction
    words: tuple[str, ...]  # all assumptions
    outcome_sd: float | None  # None where their units are found, so that nothing is assumed
    better: tuple[Better, ...]
    not_found: float | None  # R² with the norms of the ranges instead of norms that are found
    simulated: str  # what stood for the whole; empty if all of it was simulated
    association: Better | None = None  # another one, where it is predicted to do better


def _forecast(request: Request) -> _Forecast | None:
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
    return _Forecast(
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


def _forecast_blocks(plan: Plan, signal: Signal, starts: NDArray[np.int64] | None) -> _Forecast:
    found = predict_blocks(plan, signal, starts)
    return _Forecast(
        chosen=found.prediction,
        words=found.words,
        outcome_sd=found.outcome_sd,
        better=(),
        not_found=None,
        simulated="",
    )


def _show_forecast(expected: _Forecast) -> None:
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
        click.echo("Rounds are not expected to help here: take --rounds 1.")
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
