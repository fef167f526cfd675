"""Which data options belong to which kind of data; one that does not is refused, not ignored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from primo.errors import InputError

__all__ = ["GENOTYPES", "refuse_unused"]

#: Options that name genotypes.
GENOTYPES = ("bfile", "pfile", "vcf", "vcf_zarr", "bgen")

#: Options that only some kinds of data use.
_USED_BY = {
    **dict.fromkeys(
        ("pheno", "covar", "keep", "remove", "extract", "exclude", "frequencies", "maf"), GENOTYPES
    ),
    **dict.fromkeys(("haplotypes", "dosages"), GENOTYPES),
    "sample": ("bgen",),
    **dict.fromkeys(("ld_blocks", "ld_panel"), GENOTYPES),
    **dict.fromkeys(("features", "features_from", "outcomes_table", "same_order"), ("table",)),
    "id_column": ("table",),
    "outcome_array": ("feature_array",),
    **dict.fromkeys(("outcomes", "outcomes_from", "na"), (*GENOTYPES, "table")),
    "separator": ("table",),
}

#: What to use instead, where there is something.
_INSTEAD = {
    "features": "choose variants with --extract, and covariates by their --covar file",
    "id_column": "genotype files name people by IID",
}


def refuse_unused(options: Mapping[str, Any], kind: str) -> None:
    """Refuse options that this kind of data does not use: they would be ignored in silence."""
    for name, kinds in _USED_BY.items():
        if options.get(name) and kind not in kinds:
            used = " or ".join("--" + each.replace("_", "-") for each in kinds)
            instead = _INSTEAD.get(name) if kind in GENOTYPES else None
            raise InputError(
                f"--{name.replace('_', '-')} is not used with --{kind.replace('_', '-')}, only with "
                f"{used}",
                remedy=instead or "leave it out",
            )
