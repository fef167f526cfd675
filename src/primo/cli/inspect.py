"""`primo inspect`: verify a release and say what it holds."""

from __future__ import annotations

from pathlib import Path

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import say, show_json

__all__ = ["inspect"]


@click.command(epilog="Example:  primo inspect release/")
@release_argument
@json_option
def inspect(release: Path, json_: bool) -> None:
    """Verify every part of a release by its SHA-256 and print the privacy statement.

    A release that was changed after it was written is refused.
    """
    from primo.bundle import read_bundle

    bundle = read_bundle(release)
    if json_:
        show_json({"verified": True, "digest": bundle.digest, "manifest": bundle.manifest})
        return
    click.echo(bundle.release.statement())
    say()
    say(f"Verified: {len(bundle.manifest['parts'])} parts match the manifest.")
    say(f"Release {bundle.manifest['release_id']}, digest sha256:{bundle.digest}")
    say("The digest is what the ledger noted; compare it there: primo ledger history LEDGER")
