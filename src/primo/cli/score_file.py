"""`primo score-file`: coefficients as scoring files for plink2 and in the PGS Catalog's form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from primo.cli.options import json_option, release_argument
from primo.cli.output import say, show_json
from primo.cli.overwriting import check_output, force_option
from primo.errors import InputError

if TYPE_CHECKING:
    from primo.released.bundle import Bundle
    from primo.released.coefficients import Coefficients
    from primo.variants import Variants

__all__ = ["score_file"]


@click.command(
    "score-file",
    epilog="Example:  primo score-file release/ --out scores.tsv, then "
    "plink2 --bfile new --score scores.tsv header-read cols=+scoresums --score-col-nums 3-12 "
    "--read-freq scores.tsv.afreq",
)
@release_argument
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    required=True,
    help="File, or folder with --pgs-catalog.",
)
@click.option("--pgs-catalog", is_flag=True, help="One file per outcome in the PGS Catalog's form.")
@click.option("--genome-build", default="NR", show_default=True, help="For example GRCh38.")
@click.option(
    "--ld-panel",
    type=click.Path(path_type=Path),
    multiple=True,
    help="For a release with --covariance panel or none: genotypes of public people (.bed, .pgen, .bgen "
    "or VCF), whose correlations stand in for the cohort's. May be repeated, or a pattern.",
)
@click.option(
    "--ld-blocks",
    type=click.Path(path_type=Path),
    help="BED file of the blocks inside which --ld-panel is used; found from the panel if not given.",
)
@force_option
@json_option
def score_file(
    release: Path,
    out: Path,
    pgs_catalog: bool,
    genome_build: str,
    ld_panel: tuple[Path, ...],
    ld_blocks: Path | None,
    force: bool,
    json_: bool,
) -> None:
    """Export polygenic scores: all outcomes in one file for plink2, or one file per outcome.

    They are the release's own coefficients (with the panel of `primo fit --ld-panel`, if it had one),
    unless --ld-panel has them estimated again.
    """
    from primo.released.bundle import read_bundle
    from primo.released.export.scoring import AFREQ, SIDECAR, write_pgs_catalog, write_plink_scores
    from primo.released.public_means import public_means

    # A folder is never replaced.
    endings = ("",) if pgs_catalog else ("", SIDECAR, AFREQ)
    targets = [out.with_name(out.name + ending) for ending in endings]
    check_output(*targets, force=force and not pgs_catalog)
    bundle = read_bundle(release)
    if bundle.variants is None:
        raise InputError(
            f"{str(release)!r} was not made from genotypes, so it has no alleles to score; "
            "use `primo predict`"
        )
    if ld_blocks is not None and not ld_panel:
        raise InputError("--ld-blocks goes with --ld-panel")
    if ld_panel:
        coefficients, linkage = _with_panel(bundle, bundle.variants, ld_panel, ld_blocks)
    else:
        coefficients, linkage = bundle.coefficients(), None
    if linkage is not None and not json_:
        say(f"{linkage[0].upper()}{linkage[1:]}.")
    if pgs_catalog:
        paths = write_pgs_catalog(coefficients, bundle.variants, out, genome_build=genome_build)
        if json_:
            show_json({"files": [str(path) for path in paths], "linkage": linkage})
        else:
            say(f"Wrote {len(paths)} scoring files to {out}.")
        return
    found = write_plink_scores(
        coefficients, bundle.variants, out, means=public_means(bundle.release), replace=force
    )
    last = 2 + len(found.columns)
    columns = f"3-{last}" if last > 3 else "3"
    command = f"plink2 --bfile NEW --score {out} header-read cols=+scoresums"
    command += f" --score-col-nums {columns} --read-freq {found.afreq}"
    if json_:
        show_json(
            {
                "file": str(found.path),
                "outcomes_file": str(found.sidecar),
                "frequencies_file": str(found.afreq),
                "columns": list(found.columns),
                "left_out": list(found.left_out),
                "plink2": command,
                "linkage": linkage,
            }
        )
        return
    say(f"Wrote {found.path}: {len(bundle.variants)} variants, {len(found.columns)} outcomes.")
    say(
        f"Intercepts and full names are in {found.sidecar}: add the intercept to a sum. Public "
        f"means, which missing genotypes count as, are in {found.afreq}."
    )
    if found.left_out:
        say(
            f"Left out, because plink2 scores alleles only: {', '.join(found.left_out[:5])}"
            + (" ..." if len(found.left_out) > 5 else "")
        )
    say(f"Use it:  {command}")


def _with_panel(
    bundle: Bundle, variants: Variants, paths: tuple[Path, ...], blocks: Path | None
) -> tuple[Coefficients, str]:
    """Estimate again with a public panel's correlations; return a sentence about how, too."""
    from primo._util.progress import working
    from primo.cli.linkage import linkage_of
    from primo.released.ld.panel import check_diagonal, with_ld_panel
    from primo.rows.sources.genotypes.panels import read_panel

    check_diagonal(bundle.release, variants)
    with working("reading the panel"):
        public = read_panel(paths, like=variants)
    with working("estimating"):
        known = linkage_of(public, variants, bundle.release.feature_names, blocks)
        linked, linkage = with_ld_panel(bundle.release, variants, known)
        return linked.coefficients(), linkage.sentence()
