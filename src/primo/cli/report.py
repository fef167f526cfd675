"""`primo report`: one page about a release."""

from __future__ import annotations

from pathlib import Path

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import say, show_json
from primo.cli.overwriting import check_output, force_option

__all__ = ["report"]


@click.command(epilog="Example:  primo report release/ --out report.html")
@release_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default="report.html",
    show_default=True,
    help="File to write.",
)
@click.option("--title", help="Heading of the page.")
@force_option
@json_option
def report(release: Path, out: Path, title: str | None, force: bool, json_: bool) -> None:
    """Write one self-contained HTML page about a release, from released numbers alone."""
    from primo._util.progress import working
    from primo.cli.linkage import linkage_note
    from primo.released.bundle import read_bundle
    from primo.report import write_report

    check_output(out, force=force)
    bundle = read_bundle(release)
    # Coefficients that the released numbers alone do not give: with a panel, or public features.
    alone = bundle.linkage is not None or bundle.manifest["needs_features"]
    with working("computing intervals, R² and the forecast"):
        path = write_report(
            bundle.release,
            out,
            variants=bundle.variants,
            title=title,
            release_id=bundle.manifest["release_id"],
            estimation=bundle.estimation,
            fitted=bundle.coefficients() if alone else None,
            notes=() if bundle.linkage is None else (linkage_note(bundle.linkage),),
            replace=force,
        )
    if json_:
        show_json({"report": str(path)})
    else:
        say(f"Wrote {path}. Open it in any browser; it needs no network.")
