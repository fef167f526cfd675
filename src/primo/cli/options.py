"""Options that several commands share, each declared once; and the configuration file."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import tomli_w
from click.core import ParameterSource

from primo._util.reading import unreadable
from primo.errors import InputError
from primo.privacy.norm_search import DEFAULT_SHARE
from primo.privacy.protection import PROTECTION_SPELLINGS, Protection

__all__ = [
    "PROTECTIONS",
    "config_option",
    "cost_options",
    "data_options",
    "engine_options",
    "estimator_option",
    "feature_options",
    "forecast_options",
    "json_option",
    "ledger_options",
    "missing_option",
    "norms_option",
    "out_options",
    "person_option",
    "release_argument",
    "release_options",
    "used_config",
]

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)

_AUTO = "auto"  # as `planning.rounds` has it, which help must not load


class SpelledChoice(click.Choice):  # type: ignore[type-arg, unused-ignore]
    """A choice of words, some of which may also be spelled in another way."""

    def __init__(self, choices: Sequence[str], spellings: Mapping[str, str]) -> None:
        super().__init__(choices)
        self._spellings = spellings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word in the spelling that is listed."""
        word = self._spellings.get(value, value) if isinstance(value, str) else value
        return super().convert(word, param, ctx)


class WholeOrAuto(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A whole number, or "auto"; a configuration file may have either."""

    name = "integer or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the word."""
        if value == _AUTO or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        try:
            return int(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is neither a whole number nor 'auto'", param, ctx)


#: What is secret; "full", "feature" and "label" are accepted, too.
PROTECTIONS = SpelledChoice([str(kind) for kind in Protection], PROTECTION_SPELLINGS)


def _together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> Path | None:
    """Take options from a TOML file; options on the command line override it."""
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            settings = flattened(tomllib.load(file))
    except OSError as error:
        raise unreadable(path, error) from None
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of a number too long
        raise InputError(f"configuration {str(path)!r} is not TOML: {error}") from None
    ctx.default_map = {**(ctx.default_map or {}), **checked(ctx.command, settings, str(path))}
    return path


def flattened(settings: dict[str, Any]) -> dict[str, Any]:
    """Drop section headings: they are for the reader."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        flat.update(flattened(value) if isinstance(value, dict) else {key: value})
    return flat


def checked(command: click.Command, settings: dict[str, Any], where: str) -> dict[str, Any]:
    """Map options as they are written (`outcomes-from`) to parameters; refuse unknown ones."""
    known = {
        option.lstrip("-"): parameter.name or ""
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    found: dict[str, Any] = {}
    for key, value in settings.items():
        name = key.replace("_", "-")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"{where}: {key!r} is not an option of `primo {command.name}`{hint}")
        # A switch may be written under its other name: no-intercept = true.
        parameter = next(p for p in command.params if p.name == known[name])
        _check_kind(parameter, value, f"{where}: {key}")
        negative = f"--{name}" in parameter.secondary_opts
        many = isinstance(parameter, click.Option) and parameter.multiple
        one = many and not isinstance(value, list)
        found[known[name]] = (not value) if negative else [value] if one else value
    return found


def _check_kind(parameter: click.Parameter, value: Any, where: str) -> None:
    """Refuse a value of another type than the option has."""
    numeric = isinstance(parameter.type, click.types.FloatParamType | click.types.IntParamType)
    if isinstance(parameter.type, WholeOrAuto) and value == _AUTO:
        return
    numeric = numeric or isinstance(parameter.type, WholeOrAuto)
    kinds = (int, float) if numeric else bool if getattr(parameter, "is_flag", False) else str
    many = parameter.multiple if isinstance(parameter, click.Option) else False
    items = value if many and isinstance(value, list) else [value]
    if not all(isinstance(item, kinds) and (not numeric or item is not True) for item in items):
        wanted = "a number" if numeric else "true or false" if kinds is bool else "text in quotes"
        raise InputError(f"{where} must be {wanted}" + (", or a list of such" if many else ""))


#: Options about this call, the machine or the ledger rather than about the release: not stored with it.
_NOT_STORED = {
    *("config", "out", "resume", "dry_run", "json_"),
    *("ledger", "ledger_key", "user", "purpose", "dataset"),
    *("threads", "workers", "scheduler"),
    *("signal_r2", "outcome_sd", "feature_sd"),
}


def used_config(ctx: click.Context) -> str:
    """Return the options that were given, by command line or file, as a configuration file."""
    given = {}
    for parameter in ctx.command.params:
        name = parameter.name or ""
        value = ctx.params.get(name)
        chosen = ctx.get_parameter_source(name) is not ParameterSource.DEFAULT
        if chosen and value is not None and name not in _NOT_STORED:
            given[parameter.opts[0].lstrip("-")] = _toml(value)
    return tomli_w.dumps(given)


def _toml(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_toml(item) for item in value]
    return str(value) if isinstance(value, Path) else value


_ONE_COHORT = " Repeat it, or give a pattern ('chr*'), for files of the same people."


def _files(name: str, text: str) -> Callable[[Any], Any]:
    """Declare an option that names one file or several."""
    return click.option(name, type=_FILE, multiple=True, help=text)


config_option = click.option(
    "--config",
    type=_FILE,
    is_eager=True,
    callback=_read_config,
    help="TOML file with any of these options (without the dashes); the command line overrides it.",
)

json_option = click.option("--json", "json_", is_flag=True, help="Print JSON, for machines.")

release_argument = click.argument("release", type=_FILE)

data_options = _together(
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
        type=_FILE,
        multiple=True,
        help="Outcomes in the PLINK convention (FID IID ...); repeat for several files.",
    ),
    click.option(
        "--covar",
        type=_FILE,
        multiple=True,
        help="Further features (age, sex, ...), in files of the same form; may be repeated.",
    ),
    click.option("--keep", type=_FILE, help="List of people to keep."),
    click.option("--remove", type=_FILE, help="List of people to leave out."),
    click.option("--extract", type=_FILE, help="List of variants to use."),
    click.option("--exclude", type=_FILE, help="List of variants to leave out."),
    click.option(
        "--frequencies",
        type=_FILE,
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
    click.option("--table", type=_FILE, help="CSV, TSV (.gz too), Parquet or Arrow file."),
    click.option(
        "--outcomes-table", type=_FILE, help="Second file with the outcomes, joined by --id-column."
    ),
    click.option("--feature-array", type=_FILE, help="Features as .npy or Zarr array."),
    click.option("--outcome-array", type=_FILE, help="Outcomes as .npy or Zarr array."),
    click.option(
        "--features",
        multiple=True,
        help="Columns by name or pattern ('age,sex,snp_*'); may be repeated. '*': all that are not "
        "outcomes.",
    ),
    click.option("--features-from", type=_FILE, help="File with the names of the features."),
    click.option(
        "--outcomes",
        multiple=True,
        help="Outcomes by name or pattern, in the same way; default for --pheno: all.",
    ),
    click.option("--outcomes-from", type=_FILE, help="File with the names of the outcomes."),
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
    command = click.option("--bounds", type=_FILE, help=levels)(command)
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

cost_options = _together(
    click.option("--epsilon", type=float, help="Privacy budget of this release: epsilon."),
    click.option("--delta", type=float, help="Privacy budget of this release: delta, below 1/n."),
)

forecast_options = _together(
    click.option(
        "--signal-r2",
        type=float,
        default=0.3,
        show_default=True,
        help="For the prediction: share of the outcomes' variance that the features explain.",
    ),
    click.option(
        "--outcome-sd",
        type=float,
        help="For the prediction: typical standard deviation of an outcome, in its own units.",
    ),
    click.option(
        "--feature-sd",
        type=float,
        help="For the prediction: typical standard deviation of a feature, in its own units.",
    ),
)

estimator_option = click.option(
    "--estimator",
    type=click.Choice(["auto", "ridge", "filter", "one-sided", "two-sided"]),
    default="auto",
    show_default=True,
    help="How coefficients are computed from the release; costs no privacy.",
)

person_option = click.option(
    "--rows-per-person",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many rows one person may own; the ledger is charged for all of them.",
)

norms_option = click.option(
    "--norms",
    type=click.Choice(["stated", "auto"]),
    default="stated",
    show_default=True,
    help="auto: find row norms privately, for a small part of the budget, where none is stated.",
)

release_options = _together(
    click.option(
        "--protect",
        type=PROTECTIONS,
        default="both",
        show_default=True,
        help="What is secret about a person (full, feature and label are accepted, too).",
    ),
    click.option(
        "--bounds", type=_FILE, help="TOML file with public bounds and levels (docs/data.md)."
    ),
    norms_option,
    click.option(
        "--norm-share",
        type=float,
        default=DEFAULT_SHARE,
        show_default=True,
        help="Share of the budget (of mu squared) that finds norms. Up to 2.8 times as much is spent "
        "where rows are few or centres and scales are found, too: --dry-run says it.",
    ),
    click.option(
        "--rounds",
        type=WholeOrAuto(),
        default=1,
        show_default=True,
        help="How often the rows are read under the one budget: each round after the first looks at "
        "what is left. auto: chosen from public numbers.",
    ),
    missing_option,
    person_option,
    click.option(
        "--association",
        type=click.Choice(["gauss", "projection", "perturbed", "auto"]),
        default="gauss",
        show_default=True,
        help="Mechanism for the association. perturbed: noise on the outcomes themselves, where "
        "the features are public.",
    ),
    estimator_option,
    click.option("--intercept/--no-intercept", default=True, help="Fit an intercept."),
    click.option("--split", type=float, help="Ratio of association to covariance, at most 2."),
    click.option(
        "--outcome-moments",
        type=click.Choice(["auto", "full", "diagonal"]),
        default="auto",
        show_default=True,
        help="Which second moments of the outcomes are released as well, at no cost.",
    ),
    click.option(
        "--covariance",
        type=click.Choice(["full", "blocks", "panel", "none", "auto"]),
        default="full",
        show_default=True,
        help="What is released of the covariance: all, inside --ld-blocks, or the diagonal (none, and "
        "panel). auto: chosen from public numbers.",
    ),
    click.option(
        "--ld-blocks",
        type=_FILE,
        help="BED file (chromosome, start, end) of public blocks of linked variants. With --ld-panel: "
        "where its correlations are used; found from the panel if not given.",
    ),
    click.option(
        "--ld-panel",
        type=_FILE,
        multiple=True,
        help="With --covariance panel: genotypes of public people (.bed, .pgen, .bgen or VCF), whose "
        "correlations the published scores are made with. May be repeated, or a pattern.",
    ),
    click.option(
        "--covariance-rows", type=int, help="Compute the covariance from a sample of so many rows."
    ),
    click.option("--public-covariance", type=_FILE, help=".npy: covariance of a public panel."),
    click.option("--public-mean", type=_FILE, help=".npy: means of the same panel."),
    click.option(
        "--calibration",
        type=click.Choice(["exact", "paper", "paper-alg3"]),
        default="exact",
        show_default=True,
        help="paper: noise scales as the paper prints them, to reproduce its figures.",
    ),
)

ledger_options = _together(
    click.option("--ledger", help="Ledger to charge: a file, or postgresql://... for a team."),
    click.option("--ledger-key", type=_FILE, help="Key of the ledger, if not beside it."),
    click.option("--purpose", default="", help="What the release is for; kept in the ledger."),
    click.option("--dataset", help="Name of the data set in the ledger, when it is new there."),
    click.option(
        "--user", envvar="PRIMO_USER", help="User name for the ledger; default: the login name."
    ),
)

engine_options = _together(
    click.option(
        "--threads",
        type=click.IntRange(1, 1024),
        help="Threads on this machine; default: its cores.",
    ),
    click.option(
        "--workers",
        type=click.IntRange(1, 1024),
        help="Worker processes of a local Dask cluster.",
    ),
    click.option("--scheduler", help="Address of a Dask scheduler, for example tcp://host:8786."),
)

out_options = _together(
    click.option("--out", type=_FILE, help="Folder to write the release to, or a .zip file."),
    click.option(
        "--dry-run",
        is_flag=True,
        help="Print plan, cost and predicted accuracy; open no private column and match no ids.",
    ),
    click.option(
        "--resume",
        is_flag=True,
        help="Finish the interrupted release at --out: paid once, noise drawn once.",
    ),
)
