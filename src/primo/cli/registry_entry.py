"""`primo registry-entry`: a release in the form that registries of deployments ask for."""

from __future__ import annotations

from pathlib import Path

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import as_json, say, show_json
from primo.cli.overwriting import check_output, force_option

__all__ = ["registry_entry"]


@click.command(
    "registry-entry",
    epilog="Example:  primo registry-entry release/ --name 'Biobank scores' --out entry.json",
)
@release_argument
@click.option("--name", help="Name of the deployment.")
@click.option("--curator", help="Who holds the rows and publishes the release.")
@click.option("--intended-use", help="What the release is for.")
@click.option("--description", help="What was measured on whom, in a sentence.")
@click.option("--url", help="Where the release is published.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="File to write; standard output if not given."
)
@force_option
@json_option
def registry_entry(
    release: Path,
    name: str | None,
    curator: str | None,
    intended_use: str | None,
    description: str | None,
    url: str | None,
    out: Path | None,
    force: bool,
    json_: bool,
) -> None:
    """Write the record that public registries of deployments ask for.

    Mechanism, unit of privacy, epsilon, delta, trust model and what is public, as JSON (which is YAML,
    too). The release is verified first; the record is made of published numbers alone.
    """
    from primo._util.atomic import whole_file, writing
    from primo.released.bundle import read_bundle
    from primo.released.registry import About, registry_entry, unanswered

    if out is not None:
        check_output(out, force=force)
    entry = registry_entry(
        read_bundle(release),
        About(
            name=name,
            curator=curator,
            intended_use=intended_use,
            description=description,
            url=url,
        ),
    )
    text = as_json(entry)
    missing = unanswered(entry)
    if out is None:
        click.echo(text)
    else:
        with writing(out), whole_file(out, replace=force) as file:
            file.write(f"{text}\n".encode())
        if json_:
            show_json({"file": str(out), "unanswered": missing})
            return
        say(f"Wrote {out}.")
    if missing:
        say(f"A release cannot know these; fill them in: {', '.join(missing)}.")
    if not entry["deployment"]["additional_information"]["publishable"]:
        say("Note: this release is marked as not for publication.")
