"""Open the rows that the data options name, and say what is publicly known of their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from primo.cli.linkage import check_linkage, linkage_of
from primo.cli.output import say
from primo.cli.unused import GENOTYPES, refuse_unused
from primo.errors import InputError
from primo.planning.bounds_file import (
    Limit,
    block_bounds,
    read_bounds_file,
    stated_levels,
    without_levels,
)
from primo.planning.ld_blocks import read_ld_blocks
from primo.planning.settings import Settings
from primo.privacy.bounds import AUTO, Bounds
from primo.privacy.protection import Protection
from primo.released.ld.panel import LdPanel
from primo.rows.sources.base import Columns, Source
from primo.rows.sources.select import read_list
from primo.variants import Variants

__all__ = [
    "Opened",
    "has_levels",
    "missing_of",
    "named_by",
    "open_features",
    "open_rows",
    "outcome_bounds",
    "settings_of",
]

_KINDS = (*GENOTYPES, "table", "feature_array")

Options = Mapping[str, Any]

_AMPLE = 3.0  # a norm above this multiple of the usual row length gets a note


@dataclass(frozen=True, kw_only=True, eq=False)
class Opened:
    """Rows that can be read, and what is public about them."""

    source: Source
    variants: Variants | None = None
    counts: tuple[tuple[str, int], ...] = ()
    known: Mapping[str, Limit] = field(default_factory=dict)  # limits of genotypes, by name
    norm: float | None = None  # of the features, where frequencies are known
    panel: LdPanel | None = None  # public correlations that scores are made with


def open_rows(options: Options) -> Opened:
    """Open what the options name; check names and sizes, and read no cell.

    Ids are not read either: files to be joined are held unjoined, which is enough for a plan, until
    `Unmatched.join`.
    """
    kind = _kind(options)
    check_linkage(options)
    if kind in GENOTYPES:
        return _cohort(options)
    return Opened(source=_table(options) if kind == "table" else _arrays(options))


def named_by(options: Options) -> tuple[str, ...] | None:
    """Return the names of the columns that name people in this data; None if there are none."""
    if _kind(options) in GENOTYPES:
        return ("IID",)
    return (options["id_column"],) if options["id_column"] else None


def open_features(
    options: Options, names: tuple[str, ...], variants: Variants | None, *, strict: bool
) -> Columns:
    """Open the features of rows to predict for; other columns of the file are ignored.

    Variants that a genotype file lacks are missing values, and are counted in a note; an error if
    `strict`.
    """
    kind = _kind(options)
    if kind in GENOTYPES:
        return _aligned_features(options, variants, strict=strict)
    if kind == "table":
        return _table_features(options, names)
    return _open_array(options["feature_array"], names)


def _table_features(options: Options, names: tuple[str, ...]) -> Columns:
    from primo.rows.sources.tabular.tables import open_table

    levels = _levels(options)["levels"]
    table = open_table(
        options["table"], id_column=options["id_column"], levels=levels, **_reading(options)
    )
    try:
        return table.select(names, what="features of the release")
    except InputError as error:
        indicators = [name for name in names if "=" in name and name not in table.names]
        if not indicators or error.remedy is not None:
            raise
        raise InputError(
            error.message,
            remedy=f"if {indicators[0]!r} is the indicator of a level, give the levels as in the fit: "
            "--bounds",
        ) from None


def _aligned_features(options: Options, variants: Variants | None, *, strict: bool) -> Columns:
    from primo.rows.sources.genotypes.aligned import AlignedGenotypes
    from primo.rows.sources.genotypes.cohort import open_feature_columns

    if variants is None:
        raise InputError(
            "the release was not made from genotypes; give the rows as --table or --feature-array"
        )
    levels = _levels(options)["levels"]
    columns = open_feature_columns(
        **_genotype_options(options), levels=levels, like=variants, strict=strict
    )
    aligned = columns.parts[0]
    assert isinstance(aligned, AlignedGenotypes)
    if aligned.absent:
        other = f" ({aligned.different} of them have other alleles there)"
        say(
            f"Note: {aligned.absent} of the {len(variants)} variants of the release are not in the "
            f"genotype file{other if aligned.different else ''}. They count as their public mean; "
            "--strict refuses."
        )
    flipped = int(aligned.swapped.sum())
    if flipped:
        say(f"Note: {flipped} variants count the other allele in the genotype file: swapped.")
    return columns


def settings_of(options: Options, opened: Opened) -> Settings:
    """Return the settings of a release that the options ask for."""
    source = opened.source
    if options["epsilon"] is None or options["delta"] is None:
        raise InputError(
            "give the privacy budget: --epsilon (0.5 to 2 is strict, 5 moderate, 10 lenient) and "
            "--delta (below one over the number of rows; for example one over its square)"
        )
    spec = _bounds_file(options)
    protection = Protection.parse(options["protect"])
    for block in ("features", "outcomes"):
        # Levels alone say nothing of the other columns of a public block, whose bounds are read off it.
        secret = protection.features_private if block == "features" else protection.outcomes_private
        if not secret and not without_levels(spec.get(block)):
            spec.pop(block, None)
    auto = (
        AUTO if options["norms"] == AUTO else None
    )  # of a private block: a public one can be read
    whole = options["covariance"] in ("full", "auto")
    if auto and protection.features_private and not whole:
        say(
            f"Note: with --covariance {options['covariance']} the norm of the features is not found "
            "from the rows: it follows from ranges or frequencies, unless [features] norm states one."
        )
    return Settings(
        epsilon=options["epsilon"],
        delta=options["delta"],
        protection=options["protect"],
        feature_bounds=_noted(
            block_bounds(
                spec.get("features"),
                source.feature_names,
                block="features",
                known=opened.known,
                norm=(auto if protection.features_private and whole else None) or opened.norm,
            ),
            len(source.feature_names),
            "features",
        ),
        outcome_bounds=_outcome_bounds(
            spec, source, norm=auto if protection.outcomes_private else None
        ),
        association=options["association"],
        calibration=options["calibration"],
        covariance_rows=options["covariance_rows"],
        public_covariance=_public_numbers(options["public_covariance"]),
        public_mean=_public_numbers(options["public_mean"]),
        fit_intercept=options["intercept"],
        missing=missing_of(options),
        split=options["split"],
        outcome_moments=options["outcome_moments"],
        rows_per_person=options["rows_per_person"],
        norm_share=options["norm_share"],
        rounds=options["rounds"],
        covariance=options["covariance"],
        blocks=_blocks(options, opened),
    )


def _blocks(options: Options, opened: Opened) -> Any:
    """Return the borders of the blocks that a BED file states, by feature position."""
    path = options["ld_blocks"]
    if path is None or opened.variants is None or opened.panel is not None:
        return None  # with a panel they are where its correlations are used
    found = read_ld_blocks(path, opened.variants, opened.source.feature_names)
    if options["json_"]:
        return found.borders
    say(f"Blocks of variants: {found.used}")
    if found.alone:
        say(
            f"Note: {found.alone} features lie in no block of the BED file. Each is a block of its own."
        )
    return found.borders


def missing_of(options: Options) -> str:
    """Return how missing values are treated: as asked, else the default for this kind of file."""
    asked: str | None = options["missing"]
    return asked or ("centre" if _kind(options) in GENOTYPES else "error")


def outcome_bounds(options: Options, source: Source) -> Bounds | None:
    """Return the bounds of the outcomes of an extension: of the bounds file, and --norms."""
    private = Protection.parse(options["protect"]).outcomes_private
    auto = AUTO if options["norms"] == AUTO and private else None
    return _outcome_bounds(_bounds_file(options), source, norm=auto)


def _bounds_file(options: Options) -> dict[str, Any]:
    return read_bounds_file(options["bounds"]) if options["bounds"] else {}


def _outcome_bounds(
    spec: Mapping[str, Any], source: Source, *, norm: str | None = None
) -> Bounds | None:
    names = source.outcome_names
    found = block_bounds(spec.get("outcomes"), names, block="outcomes", norm=norm)
    return _noted(found, len(source.outcome_names), "outcomes")


def _noted(bounds: Bounds | None, width: int, block: str) -> Bounds | None:
    """Return bounds unchanged; print a note if their norm is larger than any row needs."""
    if bounds is None or bounds.norm is None or isinstance(bounds.norm, str):
        return bounds
    longest = width**0.5
    if bounds.lower is not None and bounds.norm > longest * (1 + 1e-9):
        say(
            f"Note: [{block}] norm = {bounds.norm:g} does nothing: a row of {width} {block} in their "
            f"ranges is at most √{width} = {longest:.4g} long."
        )
    elif bounds.scale is not None and bounds.norm > _AMPLE * longest:
        say(
            f"Note: [{block}] norm = {bounds.norm:g} is more than {_AMPLE:g} times √{width} = "
            f"{longest:.4g}, the length of a row whose columns are one scale from their centres. Noise "
            "grows with it."
        )
    return bounds


def _kind(options: Options) -> str:
    given = [kind for kind in _KINDS if options.get(kind)]
    if len(given) == 1:
        refuse_unused(options, given[0])
        return given[0]
    choices = ", ".join("--" + kind.replace("_", "-") for kind in _KINDS)
    raise InputError(
        f"name the data with one of {choices}; "
        + (f"{len(given)} of them were given" if given else "none was given")
    )


def _genotype_options(options: Options) -> dict[str, Any]:
    own = ("sample", "haplotypes", "dosages", "vcf_field", "covar", "keep", "remove")
    names = (*GENOTYPES, *own)
    return {
        **{name: options[name] for name in names},
        "also_missing": options["na"],
        "decimal": options["decimal"],
    }


def _cohort_options(options: Options) -> dict[str, Any]:
    public = ("extract", "exclude", "frequencies", "maf", "multiallelic")
    return {
        **_genotype_options(options),
        **{name: options[name] for name in public},
        "ld_panel": options.get("ld_panel", ()),  # an extension has none
    }


def _cohort(options: Options) -> Opened:
    from primo.rows.sources.genotypes.cohort import open_cohort

    cohort = open_cohort(
        **_cohort_options(options),
        **_levels(options),
        pheno=options["pheno"],
        outcomes=_wanted(options, "outcomes") or None,
        matched=False,
    )
    variants = cohort.variants
    panel = None
    if cohort.panel is not None:
        panel = linkage_of(
            cohort.panel, variants, cohort.source.feature_names, options["ld_blocks"]
        )
    elif options.get("covariance") == "panel":
        say(
            "Note: without --ld-panel no linkage is used: coefficients are made from each variant "
            "alone, as with --covariance none. Name a public panel with --ld-panel, or later, at no "
            "cost, with `primo score-file RELEASE --ld-panel PANEL`."
        )
    limits: dict[str, Limit] = {}
    norm = None
    if cohort.frequencies is None:
        limits = dict.fromkeys(variants.names, Limit.of_range(0, variants.copies))
    else:
        found = Bounds.from_frequencies(cohort.frequencies, copies=variants.copies)
        clip = found.clip(len(variants), "features")
        norm = clip.norm
        limits = {
            name: Limit(centre=float(centre), scale=float(scale), box=False)
            for name, centre, scale in zip(variants.names, clip.centre, clip.scale, strict=True)
        }
    return Opened(
        source=cohort.source,
        variants=variants,
        counts=cohort.counts,
        known=limits,
        norm=norm,
        panel=panel,
    )


def _table(options: Options) -> Source:
    from primo.rows.sources.tabular.tables import table_source

    features, outcomes = _wanted(options, "features"), _wanted(options, "outcomes")
    for name, chosen in (("features", features), ("outcomes", outcomes)):
        if not chosen:
            rest = ", --features '*' for all that are not outcomes," if name == "features" else ""
            raise InputError(
                f"say which columns of the table are the {name}: --{name} 'pattern*' (may be "
                f"repeated){rest} or --{name}-from list.txt"
            )
    return table_source(
        options["table"],
        features=features,
        outcomes=outcomes,
        outcomes_table=options["outcomes_table"],
        id_column=options["id_column"],
        same_order=options["same_order"],
        matched=False,
        **_reading(options),
        **_levels(options),
    )


def _reading(options: Options) -> dict[str, Any]:
    """Return how the cells of tables are read."""
    return {
        "missing": _spellings(options),
        "separator": _separator(options),
        "decimal": options["decimal"],
    }


def _levels(options: Options) -> dict[str, Any]:
    """Return the public levels of categories, for each block its own."""
    spec = _bounds_file(options)
    return {
        "levels": stated_levels(spec, "features"),
        "outcome_levels": stated_levels(spec, "outcomes"),
    }


def has_levels(options: Options) -> bool:
    """Whether the bounds file states levels of categories."""
    return any(_levels(options).values())


def _separator(options: Options) -> str | None:
    given: str | None = options["separator"]
    return "\t" if given in ("tab", "\\t") else " " if given == "blank" else given


def _spellings(options: Options) -> tuple[str, ...] | None:
    """Return the spellings of a missing cell; None for the default ones."""
    from primo.rows.sources.tabular.text import MISSING

    return (*MISSING, *options["na"]) if options["na"] else None


def _arrays(options: Options) -> Source:
    from primo.rows.sources.paired import PairedSource

    if not options["outcome_array"]:
        raise InputError(
            "--feature-array needs --outcome-array, with the same rows in the same order"
        )
    features = _open_array(options["feature_array"])
    outcomes = _open_array(options["outcome_array"])
    return PairedSource(
        features=features,
        outcomes=outcomes,
        feature_rows=range(features.n),
        outcome_rows=range(outcomes.n),
    )


def _open_array(path: Path, names: tuple[str, ...] | None = None) -> Columns:
    from primo.rows.sources.arrays.npy import open_npy
    from primo.rows.sources.arrays.zarr import open_zarr

    return open_npy(path, names) if path.suffix == ".npy" else open_zarr(path, names=names)


def _wanted(options: Options, block: str) -> tuple[str, ...]:
    """Return the columns asked for, by name, pattern and list file."""
    listed = read_list(options[f"{block}_from"]) if options[f"{block}_from"] else ()
    return (*options[block], *listed)


def _public_numbers(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        raise InputError(f"{str(path)!r} is not a readable .npy file") from None
