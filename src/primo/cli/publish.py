"""How `primo fit` and `primo extend` publish, and what they say when it is done or has failed."""

from __future__ import annotations

import click

from primo.cli.accuracy import accuracy_numbers, doubts_about, show_accuracy
from primo.cli.data import has_levels
from primo.cli.linkage import linkage_note
from primo.cli.notes import note_few, show_counts
from primo.cli.output import say, show_json
from primo.cli.request import Request
from primo.released.bundle import Bundle
from primo.released.estimation import Estimation
from primo.workflow.publish import begin, publish
from primo.workflow.resume import Staging, partial_of

__all__ = ["run"]


def run(request: Request) -> None:
    """Publish, and say what was done."""
    account, engine, out = request.account(), request.engine(), request.out
    if request.options["resume"]:
        staging = Staging.resume(out)
    else:
        show_counts(request)
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
    note_few(plan)
    show_accuracy(bundle)
    if bundle.linkage is not None:
        say(linkage_note(bundle.linkage))
    say(f"Published {bundle.path}. Next:  primo report {bundle.path}")
