"""Messages of the library in the words of the command line: `missing="centre"` is `--missing centre`."""

from __future__ import annotations

import re

__all__ = ["in_options"]

_BOUNDS = r"""Write what is publicly known of them into a TOML file, and give it as --bounds:
  [\1s]
  lower = ...   # the range of each column: questionnaire scales, laboratory limits
  upper = ...
  norm = ...    # optional: length of a row in half-widths; alone, of columns that are centred already
docs/data.md has more, "Bounds in a file". """

_VALUE = r"(?P<quote>[\"']?)(?P<value>[\w.+-]+)(?P=quote)"

_BARE, _END = (
    r"(?<![\w'\"/.-])",
    r"(?!['\"/]|[.-]?\w)",
)  # neither a part of a path nor a quoted name

#: Python's spelling of an option, and the option; the value follows unless it is a switch.
_OPTIONS = {
    "association": "--association",
    "calibration": "--calibration",
    "covariance_rows": "--covariance-rows",
    "genome_build": "--genome-build",
    "maf": "--maf",
    "missing": "--missing",
    "multiallelic": "--multiallelic",
    "protection": "--protect",
    "rows_per_person": "--rows-per-person",
    "split": "--split",
    "target_r2": "--target-r2",
    "trials": "--trials",
}

#: What is tried in this order. A whole sentence comes before the words in it.
_TABLE: tuple[tuple[str, str], ...] = (
    (r"(?s)Choose (feature|outcome)_bounds from public knowledge:.*?(?=Tight is better)", _BOUNDS),
    (
        r"give missing_centre, the centres of a plan with missing=\"centre\"",
        "give --missing centre",
    ),
    (
        r"public_covariance=numpy\.cov\(panel\.T\), public_mean=panel\.mean\(axis=0\)",
        "save both as .npy",
    ),
    (r"create_ledger \((primo ledger init)\)", r"\1"),
    (r"ask the steward for grant_reader", "ask the steward for `primo ledger grant`"),
    (r"\(scratch=\.\.\., or the variable TMPDIR\)", "(the variable TMPDIR)"),
    (
        r"; is it separator=(.+?)\?",
        r"; is it separated by \1? A .csv has commas, a .tsv tabs, a .txt blanks",
    ),
    (r"say which with array=", "give the path of one of them"),
    (r"signal=Signal\(r2=\.\.\.\)", "--signal-r2"),
    (r"to explain r2=", "to explain R² = "),
    (r"^r2=", "--signal-r2 "),
    (r"^(outcome|feature)_sd=(?=\S+ must)", r"--\1-sd "),
    (r"^n=(?=\d+ is too few rows)", "--rows "),
    (r"use PrimoRegressor, or", "use PrimoRegressor of Python, or"),
    (r"missing=\.\.\.", "--na ..."),
    (r"rows_per_person=\.\.\.", "--rows-per-person ..."),
    (r"with by_values=True", "with --identity-by-values"),
    (
        r"id_column=(.+?), or make it the index of a pandas frame, X\.set_index\(\1\)",
        r"--id-column \1",
    ),
    (r"^(epsilon|delta|mu)=(\S+) (?=must|is too|is above|of a cost)", r"--\1 \2 "),
    (r"^(dataset|role)=", r"--\1 "),
    (rf"\b(?P<name>{'|'.join(_OPTIONS)})={_VALUE}", ""),  # see `_option`
    (r"\bsame_order=True", "--same-order"),
    (rf"{_BARE}id_column{_END}", "--id-column"),
    (r"\bpublic_(covariance|mean)\b", r"--public-\1"),
    (
        r"(?<![-\w])(pheno|covar|frequencies|exclude|extract|keep|remove|pfile)=(?=[\s:,;.)]|$)",
        r"--\1",
    ),
)


def in_options(message: str, *, key: str = "--ledger-key") -> str:
    """Return a message with options in place of Python's arguments.

    `key` is the option for a ledger's key file, which two commands call differently.
    """
    for pattern, words in _TABLE:
        message = re.sub(pattern, words or _option, message)
    return re.sub(rf"{_BARE}key_file{_END}", key, message)


def _option(found: re.Match[str]) -> str:
    return f"{_OPTIONS[found['name']]} {found['value']}"
