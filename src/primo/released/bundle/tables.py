"""The tables of a bundle: coefficients, outcomes and variants."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import new_file
from primo._util.writers import Schema, escaped, open_table, unescaped
from primo.errors import InputError
from primo.released.bundle.manifest import has_intervals
from primo.released.coefficients import Coefficients
from primo.released.estimation import Estimation
from primo.released.release import Release
from primo.released.uncertainty import goodness_of_fit, published_r_squared
from primo.released.uncertainty.intervals import outcome_blocks
from primo.released.uncertainty.table import table_blocks
from primo.variants import Variants

__all__ = [
    "coefficient_blocks",
    "coefficient_schema",
    "outcome_columns",
    "read_variants",
    "variants_text",
    "write_tables",
]

Columns = dict[str, NDArray[Any]]

VARIANT_SCHEMA = {"chromosome": "text", "position": "whole", "counted": "text", "other": "text"}
#: Columns of a coefficient; `slope` is called `shrunk` in `uncertainty.table`.
SLOPE_SCHEMA = {
    "slope": "number",
    "slope_lower": "number",
    "slope_upper": "number",
    "estimate": "number",
    "standard_error": "number",
    "lower": "number",
    "upper": "number",
    "z": "number",
    "p": "number",
    "q": "number",
    "trusted": "flag",
    "slope_trusted": "flag",
}
OUTCOME_SCHEMA = {
    "outcome": "text",
    "intercept": "number",
    "r_squared": "number",
    "r_squared_lower": "number",
    "r_squared_upper": "number",
    "published_r_squared": "number",
    "published_error": "number",
    "statistic": "number",
    "p": "number",
    "q": "number",
    "signal_found": "flag",
    "trusted": "flag",
    "published_trusted": "flag",
}


def write_tables(
    folder: Path,
    release: Release,
    fitted: Coefficients,
    *,
    estimation: Estimation,
    variants: Variants | None,
    level: float,
    slope_intervals: bool,
) -> None:
    """Write coefficients and outcomes, each as Parquet and as text, in one pass over the outcomes."""
    schema = coefficient_schema(variants)
    blocks = coefficient_blocks(
        release, fitted, variants=variants, level=level, slope_intervals=slope_intervals
    )
    _write_both(folder, "coefficients", schema, blocks)
    outcomes = outcome_columns(release, fitted, estimation=estimation, level=level)
    _write_both(folder, "outcomes", OUTCOME_SCHEMA, iter([outcomes]))


def _write_both(folder: Path, name: str, schema: Schema, blocks: Iterator[Columns]) -> None:
    with (
        new_file(folder / f"{name}.parquet") as binary,
        new_file(folder / f"{name}.tsv") as text,
        open_table(binary, ".parquet", schema) as parquet,
        open_table(text, ".tsv", schema) as tsv,
    ):
        for block in blocks:
            parquet(block)
            tsv(block)


def coefficient_schema(variants: Variants | None) -> Schema:
    """Name the columns of the table of coefficients."""
    where = {} if variants is None else VARIANT_SCHEMA
    return {"outcome": "text", "feature": "text", **where, **SLOPE_SCHEMA}


def coefficient_blocks(
    release: Release,
    fitted: Coefficients,
    *,
    variants: Variants | None,
    level: float,
    slope_intervals: bool,
) -> Iterator[Columns]:
    """Yield the table of coefficients in blocks of outcomes, all features of an outcome together.

    What a release cannot give (intervals after a projection, or with more features than rows) is NaN.
    """
    d, l = fitted.slopes.shape
    if has_intervals(release.plan):
        blocks = table_blocks(release, level=level, target="population")
    else:
        blocks = (_names(fitted, part) for part in outcome_blocks(l, d))
    where = {} if variants is None else _places(variants, release.feature_names)
    start = 0
    for block in blocks:
        lines = len(block["outcome"])
        stop = start + lines // d
        block["slope"] = fitted.slopes[:, start:stop].T.ravel()
        if slope_intervals:
            for end in ("lower", "upper", "trusted"):
                block[f"slope_{end}"] = block[f"shrunk_{end}"]
        block |= {name: np.tile(values, stop - start) for name, values in where.items()}
        yield _filled(block, SLOPE_SCHEMA, lines)
        start = stop


def outcome_columns(
    release: Release, fitted: Coefficients, *, estimation: Estimation, level: float
) -> Columns:
    """Return one line per outcome: intercept, private R², held-out R² and whether signal was found."""
    columns: Columns = {
        "outcome": np.array(fitted.outcome_names, dtype=object),
        "intercept": fitted.intercept,
    }
    if has_intervals(release.plan):
        fit = goodness_of_fit(release, level=level)
        published = published_r_squared(release, **dataclasses.asdict(estimation))
        columns |= {
            "r_squared": fit.r_squared,
            "r_squared_lower": fit.lower,
            "r_squared_upper": fit.upper,
            "published_r_squared": published.r_squared,
            "published_error": published.standard_error,
            "published_trusted": published.trusted,
            "statistic": fit.statistic,
            "p": fit.p,
            "q": fit.q,
            "signal_found": fit.found,
            "trusted": fit.trusted,
        }
    return _filled(columns, OUTCOME_SCHEMA, len(fitted.outcome_names))


def _names(fitted: Coefficients, part: slice) -> Columns:
    outcomes = np.array(fitted.outcome_names[part], dtype=object)
    features = np.array(fitted.feature_names, dtype=object)
    return {
        "outcome": np.repeat(outcomes, len(features)),
        "feature": np.tile(features, len(outcomes)),
    }


def _places(variants: Variants, features: tuple[str, ...]) -> Columns:
    """Spread what is known of the variants over all features; None for the others."""
    place = {name: i for i, name in enumerate(features)}
    unknown = [name for name in variants.names if name not in place]
    if unknown:
        raise InputError(
            f"variant {unknown[0]!r} is not a feature of the release; describe its features only"
        )
    at = [place[name] for name in variants.names]
    columns = {name: np.full(len(features), None, dtype=object) for name in VARIANT_SCHEMA}
    for name, values in columns.items():
        values[at] = np.array(getattr(variants, name), dtype=object)
    return columns


def _filled(block: Columns, schema: Schema, lines: int) -> Columns:
    """Fill columns that do not exist for this release: no number, not to be trusted."""
    empty = {"number": np.full(lines, np.nan), "flag": np.zeros(lines, dtype=np.bool_)}
    return {name: empty[kind] for name, kind in schema.items() if name not in block} | block


def variants_text(variants: Variants) -> str:
    """Write the variants as a TSV that `read_variants` reads back exactly."""
    lines = ["\t".join(("feature", *VARIANT_SCHEMA))]
    columns = (
        variants.names,
        variants.chromosome,
        map(str, variants.position.tolist()),
        variants.counted,
        variants.other,
    )
    lines += ["\t".join(map(escaped, line)) for line in zip(*columns, strict=True)]
    return "\n".join(lines) + "\n"


def read_variants(text: str, *, haplotypes: bool) -> Variants:
    """Read what `variants_text` wrote."""
    header, *lines = text.removesuffix("\n").split("\n")
    cells = [tuple(map(unescaped, line.split("\t"))) for line in lines]
    try:
        if tuple(header.split("\t")) != ("feature", *VARIANT_SCHEMA):
            raise ValueError("other columns")
        names, chromosome, position, counted, other = zip(*cells, strict=True)
        return Variants(
            names=names,
            chromosome=chromosome,
            position=np.array(position, dtype=np.int64),
            counted=counted,
            other=other,
            haplotypes=haplotypes,
        )
    except (ValueError, OverflowError):
        raise InputError("variants.tsv is not a table of variants; the bundle is damaged") from None
