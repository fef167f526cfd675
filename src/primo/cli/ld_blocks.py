"""`primo ld-blocks`: blocks of linked variants from a public panel, as a BED file."""

from __future__ import annotations

from pathlib import Path

import click

from primo.cli.option_types import Whole
from primo.cli.options import json_option
from primo.cli.output import counted, say, show_json
from primo.cli.overwriting import check_output, force_option

__all__ = ["ld_blocks"]


@click.command(
    "ld-blocks",
    epilog="Example:  primo ld-blocks --panel panel.bed --out blocks.bed, then "
    "primo fit ... --covariance blocks --ld-blocks blocks.bed",
)
@click.option(
    "--panel",
    type=click.Path(path_type=Path),
    multiple=True,
    required=True,
    help="Genotypes of public people (.bed, .pgen, .bgen or VCF); may be repeated, or a pattern "
    "such as 'chr*.bed', for one file per chromosome.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), required=True, help="BED file of blocks to write."
)
@click.option(
    "--bfile",
    type=click.Path(path_type=Path),
    multiple=True,
    help="The cohort's filesets: only their variants are used, and builds and alleles are compared. Of "
    "them only the .bim is read, which holds no person.",
)
@click.option("--extract", type=click.Path(path_type=Path), help="List of variants to use.")
@click.option(
    "--least",
    type=Whole(min=1),
    default=10,
    show_default=True,
    help="Fewest variants in a block.",
)
@click.option(
    "--most",
    type=Whole(min=1),
    default=100,
    show_default=True,
    help="Most variants in a block.",
)
@force_option
@json_option
def ld_blocks(
    panel: tuple[Path, ...],
    out: Path,
    bfile: tuple[Path, ...],
    extract: Path | None,
    least: int,
    most: int,
    force: bool,
    json_: bool,
) -> None:
    """Find blocks of linked variants in a panel of public people.

    Borders are put where they separate as little correlation as possible. Reads nobody of a cohort and
    costs no privacy.
    """
    import numpy as np

    from primo._util.progress import working
    from primo.released.ld.align import aligned
    from primo.released.ld.find import find_ld_blocks, write_ld_blocks
    from primo.rows.sources.genotypes.panels import read_panel, variants_of_bim

    check_output(out, force=force)
    cohort = variants_of_bim(bfile) if bfile else None
    with working("reading the panel"):
        public = read_panel(panel, extract=extract, among=cohort)
    if cohort is not None:
        place = {name: i for i, name in enumerate(cohort.names)}
        shared = cohort.select([place[name] for name in public.variants.names])
        aligned(public.variants, shared, where="the cohort")
    with working("finding blocks"):
        starts = find_ld_blocks(public.counts, public.variants, least=least, most=most)
    write_ld_blocks(out, public.variants, starts, replace=force)
    widths = np.diff(starts)
    if json_:
        show_json(
            {
                "file": str(out),
                "people": len(public.counts),
                "variants": len(public.variants),
                "blocks": len(widths),
                "smallest": int(widths.min()),
                "largest": int(widths.max()),
            }
        )
        return
    say(
        f"Wrote {out}: {counted(len(widths), 'block')} of {widths.min()} to {widths.max()} variants, "
        f"from {counted(len(public.variants), 'variant')} of {len(public.counts)} public people."
    )
    say(f"Use it:  primo fit ... --covariance blocks --ld-blocks {out}")
