"""Correlations of a public panel inside blocks, as commands ask for them (--ld-panel, --ld-blocks)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from primo.errors import Argument, InputError, Message

if TYPE_CHECKING:
    from primo.released.ld.panel import LdPanel
    from primo.rows.sources.genotypes.panels import Panel
    from primo.variants import Variants

__all__ = ["check_linkage", "linkage_note", "linkage_of"]


def check_linkage(options: Mapping[str, Any]) -> None:
    """Refuse a panel that no covariance asks for; `options` are those of `primo fit`."""
    if options.get("ld_panel") and options["covariance"] != "panel":
        raise InputError(
            "--ld-panel goes with ",
            Argument("covariance", "panel"),
            f", not with {options['covariance']!r}",
            remedy=Message.of("ask for ", Argument("covariance", "panel"), ", or leave it out"),
        )


def linkage_note(linkage: str) -> str:
    """Say how a panel was used, as a sentence."""
    return f"{linkage[0].upper()}{linkage[1:]}."


def linkage_of(
    public: Panel, variants: Variants, feature_names: tuple[str, ...], blocks: Path | None
) -> LdPanel:
    """Return the correlations of a panel inside blocks of a BED file, or blocks found from it.

    Refuses, before anything is charged or written, a panel of another build, of the opposite strand or
    with other alleles, values that are missing in it, and features that are no variants.
    """
    import numpy as np

    from primo.planning.ld_blocks import read_ld_blocks
    from primo.released.ld.align import aligned
    from primo.released.ld.find import find_ld_blocks
    from primo.released.ld.panel import ld_panel

    if len(feature_names) != len(variants):
        raise InputError(
            f"{len(feature_names) - len(variants)} of the features are no variants, and a panel knows "
            "no correlations of theirs",
            argument="panel",
            remedy="leave out --covar, or --ld-panel",
        )
    aligned(public.variants, variants, where="the cohort")
    if blocks is None:
        starts = find_ld_blocks(public.counts, public.variants)
    else:
        borders = read_ld_blocks(blocks, variants, feature_names).borders
        starts = np.array(borders, dtype=np.intp)
    return ld_panel(public.counts, public.variants, starts)
