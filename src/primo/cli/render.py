"""Errors in the spelling of the command line: `missing="centre"` is `--missing centre`."""

from __future__ import annotations

import shlex
from functools import partial

from primo.errors import ABSENT, Advice, Argument, Part, PrimoError, PrimoWarning, in_python

__all__ = [
    "ADVICE",
    "OPTIONS",
    "OPTIONS_OF",
    "PYTHON_ONLY",
    "argument_of",
    "in_options",
    "in_parts",
    "spelled",
]

#: The option for each setting that a message of the library may speak of, or the word for it.
OPTIONS = {
    "association": "--association",
    "bfile": "--bfile",
    "bgen": "--bgen",
    "bounds.centre": "centre",
    "bounds.lower": "lower",
    "bounds.norm": "norm",
    "bounds.scale": "scale",
    "bounds.upper": "upper",
    "blocks": "--ld-blocks",
    "by_values": "--identity-by-values",
    "calibration": "--calibration",
    "covariance": "--covariance",
    "covariance_rows": "--covariance-rows",
    "covariates": "--covariates",
    "d": "--features",
    "dataset": "--dataset",
    "decimal": "--decimal",
    "delta": "--delta",
    "dosages": "--dosages",
    "epsilon": "--epsilon",
    "estimator": "--estimator",
    "exclude": "--exclude",
    "feature_bounds": "--bounds",
    "fit_intercept": "--intercept",
    "format": "--format",
    "frequencies": "--frequencies",
    "genome_build": "--genome-build",
    "haplotypes": "--haplotypes",
    "id_column": "--id-column",
    "key_file": "--ledger-key",
    "l": "--outcomes",
    "least": "--least",
    "levels": "levels",
    "maf": "--maf",
    "missing": "--missing",
    "mu": "--mu",
    "multiallelic": "--multiallelic",
    "n": "--rows",
    "n_jobs": "--threads",
    "norm_share": "--norm-share",
    "norms_found": "--norms",
    "outcome_bounds": "--bounds",
    "outcome_moments": "--outcome-moments",
    "panel": "--panel",
    "person": "--person-column",
    "pfile": "--pfile",
    "pheno": "--pheno",
    "protection": "--protect",
    "public_covariance": "--public-covariance",
    "public_mean": "--public-mean",
    "purpose": "--purpose",
    "role": "--role",
    "rounds": "--rounds",
    "rows_per_person": "--rows-per-person",
    "same_order": "--same-order",
    "sample": "--sample",
    "separator": "--separator",
    "signal.feature_sd": "--feature-sd",
    "signal.outcome_sd": "--outcome-sd",
    "signal.r2": "--signal-r2",
    "split": "--split",
    "table.missing": "--na",
    "target_r2": "--target-r2",
    "trials": "--trials",
    "vcf": "--vcf",
    "vcf_field": "--vcf-field",
    "vcf_zarr": "--vcf-zarr",
    "workers": "--workers",
}

#: Where a command calls a setting differently.
OPTIONS_OF = {
    "ledger": {"key_file": "--key"},
    "score-file": {"panel": "--ld-panel"},
    "fit": {"panel": "--ld-panel"},
}

#: Settings without an option: no command lets them be wrong.
PYTHON_ONLY = frozenset(
    {
        "account",
        "algorithm",
        "array",
        "block_norms",
        "bounds.frequencies",
        "canaries",
        "causal",
        "coefficient_norm",
        "confidence",
        "copies",
        "digest",
        "draws",
        "estimators",
        "extended",
        "failure",
        "feature_norm",
        "heritability",
        "id_name",
        "ids",
        "kind",
        "level",
        "margin",
        "missing_centre",
        "outcome",
        "outcome_bound",
        "random_state",
        "readonly",
        "reference",
        "release_id",
        "ridge_lambda",
        "sampled",
        "scales.association",
        "scales.covariance",
        "scales.outcome",
        "score_public_rows",
        "signal",
        "signal.alignment",
        "signal.effective_rank",
        "signal.eigenvalues",
        "signal.feature_mean",
        "signal.feature_spread",
        "signal.outcome_correlation",
        "signal.outcome_mean",
        "signal.outcome_spread",
        "solver",
        "target",
        "verbose",
    }
)

#: What to say instead of advice that serves callers of Python; `{about}` is what it is about.
ADVICE = {
    "create_ledger": "primo ledger init",
    "create_ledger_at": "primo ledger init {about} --epsilon 10 --delta 1e-6 --person-column IID (with "
    "the limits that its steward chose, and the column that names people)",
    "from_frequencies": "--frequencies",
    "grant_reader": "`primo ledger grant`",
    "index": "",
    "levels": "{about} in the file of --bounds",
    "missing_bounds": """\
Write what is publicly known of them into a TOML file, and give it as --bounds:
  [{about}]
  lower = ...   # the range of each column: questionnaire scales, laboratory limits
  upper = ...
  norm = ...    # optional: length of a row in half-widths; alone, of columns that are centred already;
                # norm = "auto", or --norms auto, has it found privately for a small part of the budget
docs/data.md has more, "Bounds in a file". """,
    "missing_centre": "--missing centre",
    "of_python": " of Python",
    "one_array": "give the path of one of them",
    "panel_moments": "save both as .npy",
    "own_signal": "--signal-r2, --outcome-sd and --feature-sd",
    "resume": "--resume",
    "scratch": "",
    "separator": "is it separated by {about}? Give it with --separator; without, a .csv has commas, a "
    ".tsv tabs, a .txt blanks",
    "signal_r2": "--signal-r2",
}


def in_options(problem: PrimoError | PrimoWarning, *, command: str = "") -> str:
    """Return the text of an error or warning with options in place of Python's arguments.

    `command` is the one that was called; some call a setting differently.
    """
    return problem.render(partial(_spell, {**OPTIONS, **OPTIONS_OF.get(command, {})}))


def in_parts(problem: PrimoError, *, command: str = "") -> dict[str, str | None]:
    """Return the option that is wrong and the remedy of an error, each None where it has none."""
    options = {**OPTIONS, **OPTIONS_OF.get(command, {})}
    remedy = None if problem.remedy is None else problem.remedy.render(partial(_spell, options))
    argument = problem.argument
    return {"argument": None if argument is None else options.get(argument), "remedy": remedy}


def spelled(part: Argument | Advice) -> str:
    """Spell one part of a text as the command line does."""
    return _spell(OPTIONS, part)


def argument_of(option: str, value: object) -> Part:
    """Return an option with its value as part of a message: an argument, where it is one."""
    name = next((name for name, known in OPTIONS.items() if known == option), None)
    return f"{option} {value}" if name is None else Argument(name, value)


def _spell(options: dict[str, str], part: Argument | Advice) -> str:
    if isinstance(part, Advice):
        return ADVICE[part.name].format(about=part.about) if part.name in ADVICE else part.text
    if part.name not in options:
        return in_python(part)
    option, value = options[part.name], part.value
    if value is ABSENT or value is True:
        return option
    if value is ...:
        return f"{option} ..."
    return f"{option} {shlex.quote(value) if isinstance(value, str) else value}"
