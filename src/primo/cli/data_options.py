"""Options that name the files of rows, their columns, and how cells are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from primo.cli.option_types import FILE, F, SpelledChoice, together

__all__ = ["data_options", "feature_options", "missing_option"]

_ONE_COHORT = " Repeat it, or give a pattern ('chr*'), for files of the same people."


def _files(name: str, text: str) -> Callable[[Any], Any]:
    """Declare an option that names one file or several."""
    return click.option(name, type=FILE, multiple=True, help=text)


data_options = together(
    _files("--bfile", "PLINK 1 files: prefix of .bed, .bim, .fam." + _ONE_COHORT),
    _files("--pfile", "PLINK 2 files: prefix of .pgen, .pvar, .psam; several as above."),
    _files("--vcf", "VCF or BCF file (.vcf, .vcf.gz, .bcf); several as above."),
    _files("--vcf-zarr", "VCF Zarr store; several as above."),
    _files("--bgen", "BGEN 1.2 file, read as dosages; several as above."),
    _files("--sample", "The .sample file of a --bgen: one for all, or one for each."),
    click.option(
        "--vcf-field",
        type=click.Choice(["GT", "DS", "GP"]),
        default="GT",
        show_default=True,
        help="What to read of a --vcf: calls, dosages or genotype probabilities.",
    ),
    click.option(
        "--haplotypes", is_flag=True, help="One row per haplotype (two per person) of a phased VCF."
    ),
    click.option(
        "--dosages", is_flag=True, help="Read dosages instead of hard calls from a --pfile."
    ),
    click.option(
        "--pheno",
        type=FILE,
        multiple=True,
        help="Outcomes in the PLINK convention (FID IID ...); repeat for several files.",
    ),
    click.option(
        "--covar",
        type=FILE,
        multiple=True,
        help="Further features (age, sex, ...), in files of the same form; may be repeated.",
    ),
    click.option("--keep", type=FILE, help="List of people to keep."),
    click.option("--remove", type=FILE, help="List of people to leave out."),
    click.option("--extract", type=FILE, help="List of variants to use."),
    click.option("--exclude", type=FILE, help="List of variants to leave out."),
    click.option(
        "--frequencies",
        type=FILE,
        help="Public allele frequencies (.afreq, .frq or TSV): centre and scale the genotypes.",
    ),
    click.option(
        "--maf", type=float, help="Smallest minor allele frequency to use, by --frequencies."
    ),
    click.option(
        "--multiallelic",
        type=click.Choice(["refuse", "skip"]),
        default="refuse",
        show_default=True,
        help="Variants with several ALT alleles.",
    ),
    click.option("--table", type=FILE, help="CSV, TSV (.gz too), Parquet or Arrow file."),
    click.option(
        "--outcomes-table", type=FILE, help="Second file with the outcomes, joined by --id-column."
    ),
    click.option("--feature-array", type=FILE, help="Features as .npy or Zarr array."),
    click.option("--outcome-array", type=FILE, help="Outcomes as .npy or Zarr array."),
    click.option(
        "--features",
        multiple=True,
        help="Columns by name or pattern ('age,sex,snp_*'); may be repeated. '*': all that are not "
        "outcomes.",
    ),
    click.option("--features-from", type=FILE, help="File with the names of the features."),
    click.option(
        "--outcomes",
        multiple=True,
        help="Outcomes by name or pattern, in the same way; default for --pheno: all.",
    ),
    click.option("--outcomes-from", type=FILE, help="File with the names of the outcomes."),
    click.option("--id-column", help="Column that names the person of a row."),
    click.option(
        "--na",
        metavar="TEXT",
        multiple=True,
        help="Further spelling of a missing cell in tables, phenotypes and covariates ('-99'); may be "
        "repeated.",
    ),
    click.option(
        "--separator",
        metavar="SIGN",
        help="Sign between the cells of a text table, where its name does not tell: ';', 'tab' or "
        "'blank'.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="Sign before the decimals of numbers in text files.",
    ),
    click.option(
        "--same-order",
        is_flag=True,
        help="State that two tables without ids have the same rows in the same order.",
    ),
)

#: Options of `data_options` that choose or describe columns, which a release has fixed.
_FIXED_BY_A_RELEASE = {
    *("pheno", "outcomes_table", "outcome_array", "outcomes", "outcomes_from", "same_order"),
    *("features", "features_from"),
    *("extract", "exclude", "frequencies", "maf", "multiallelic"),
}


def feature_options(command: F) -> F:
    """Add the options that name the rows to predict for; the features are those of the release."""
    levels = "TOML file with the levels of columns of categories, as in the fit."
    command = click.option("--bounds", type=FILE, help=levels)(command)
    command = data_options(command)
    listed: list[click.Parameter] = command.__click_params__  # type: ignore[attr-defined]
    listed[:] = [p for p in listed if p.name not in _FIXED_BY_A_RELEASE]
    return command


missing_option = click.option(
    "--missing",
    type=SpelledChoice(["error", "centre"], {"center": "centre"}),
    help="Missing values: refuse, or count them as the public centre of their column. Default: "
    "centre for genotype files, error for tables and arrays.",
)
