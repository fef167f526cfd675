"""`primo inspect`: verify a release and say what it holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import say, show_json
from primo.errors import LedgerError

if TYPE_CHECKING:
    from primo.released.bundle import Bundle

__all__ = ["inspect"]


@click.command(epilog="Example:  primo inspect release/ --ledger cohort.ledger")
@release_argument
@click.option(
    "--ledger", help="Ledger that paid: check that it has noted the digest of this very release."
)
@json_option
def inspect(release: Path, ledger: str | None, json_: bool) -> None:
    """Verify every part of a release by its SHA-256 and print the privacy statement.

    A release whose parts do not belong together is refused. Only the ledger that paid can tell whether
    it is the release that was made: with --ledger, the exit code is 1 if the ledger has noted another
    digest, or none.
    """
    from primo.cli.accuracy import accuracy_numbers, doubts_about, show_accuracy
    from primo.cli.linkage import linkage_note
    from primo.released.bundle import read_bundle

    bundle = read_bundle(release)
    if ledger is not None:
        _check_noted(bundle, ledger)
    if json_:
        found = {"verified": True, "in_ledger": None if ledger is None else True}
        seen = {"accuracy": accuracy_numbers(bundle), "doubts": doubts_about(bundle)}
        show_json({**found, "digest": bundle.digest, "manifest": bundle.manifest, **seen})
        return
    click.echo(bundle.release.statement())
    say()
    show_accuracy(bundle)
    if bundle.linkage is not None:
        say(linkage_note(bundle.linkage))
    say(f"Verified: {len(bundle.manifest['parts'])} parts match the manifest.")
    say(f"Release {bundle.manifest['release_id']}, digest sha256:{bundle.digest}")
    if ledger is not None:
        say(f"The digest is the one that {ledger} noted.")
    else:
        say("To compare the digest with the one that the ledger has noted, give --ledger LEDGER.")


def _check_noted(bundle: Bundle, where: str) -> None:
    """Refuse a release whose digest is not the one that the ledger has noted."""
    from primo.ledger import open_ledger

    book = open_ledger(where, readonly=True)
    name = bundle.manifest["release_id"]
    known = book.find(name)
    if known is None:
        raise LedgerError(
            f"{book.where} knows no release {name}; it was paid for in another ledger, or in none"
        )
    if known.digest is None:
        raise LedgerError(
            f"{book.where} was charged for release {name}, but has noted no digest: it was not finished "
            "there. Finish it with --resume"
        )
    if known.digest != bundle.digest:
        raise LedgerError(
            f"{bundle.path} is not the release {name} that {book.where} noted: its digest is "
            f"{bundle.digest[:12]}…, there it is {known.digest[:12]}…. It was changed; use an "
            "untouched copy"
        )
