"""The command line spells errors by one table; no spelling of Python's reaches the terminal."""

import ast
import contextlib
import re
from pathlib import Path

import numpy as np
import pytest

import primo
from primo.cli.render import ADVICE, OPTIONS, OPTIONS_OF, PYTHON_ONLY, in_options
from primo.errors import ABSENT, Advice, Argument, InputError, PrimoWarning

PACKAGE = Path(primo.__file__).parent

#: Names that a raise site computes: where, and what they can be.
COMPUTED = {
    ("audit/settings.py", "first"): (
        *("extended", "norms_found", "rounds", "association", "covariance"),
    ),
    ("audit/settings.py", "other"): (
        *("sampled", "reference", "extended", "norms_found", "rounds", "calibration", "split"),
        "association",
    ),
    ("forecast/assumptions.py", "f'signal.{name}'"): (
        *("signal.r2", "signal.feature_spread", "signal.outcome_spread"),
        *("signal.feature_mean", "signal.outcome_mean", "signal.feature_sd", "signal.outcome_sd"),
    ),
    ("forecast/assumptions.py", "f'signal.{block}_spread'"): (
        "signal.feature_spread",
        "signal.outcome_spread",
    ),
    ("forecast/blocks.py", "name"): ("heritability", "causal"),
    ("forecast/compare.py", "name"): ("n", "d", "l"),
    ("forecast/compare.py", "f'signal.{block}_sd'"): ("signal.feature_sd", "signal.outcome_sd"),
    ("forecast/law.py", "f'signal.{name}'"): (
        *("signal.feature_mean", "signal.outcome_mean", "signal.feature_sd", "signal.outcome_sd"),
    ),
    ("forecast/theory.py", "name"): (
        *("n", "d", "l", "epsilon", "feature_norm", "outcome_bound", "coefficient_norm"),
    ),
    ("ledger/book.py", "name"): ("release_id", "purpose", "digest"),
    ("planning/make.py", "name"): ("n", "d", "l"),
    ("planning/settings.py", "name"): ("missing", "outcome_moments", "calibration"),
    ("privacy/accounting.py", "name"): ("mu", "margin", "epsilon", "delta"),
    ("privacy/bounds.py", "name"): ("feature_bounds", "outcome_bounds"),
    ("privacy/bounds.py", "f'{block}_bounds'"): ("feature_bounds", "outcome_bounds"),
    ("privacy/bounds.py", "f'bounds.{name}'"): (
        *("bounds.lower", "bounds.upper", "bounds.norm", "bounds.centre", "bounds.scale"),
        "bounds.frequencies",
    ),
    ("privacy/budget.py", "name"): ("epsilon", "delta"),
    ("privacy/subsampling.py", "f'scales.{name}'"): (
        *("scales.covariance", "scales.association", "scales.outcome"),
    ),
    ("regressor.py", "name"): ("fit_intercept", "verbose", "score_public_rows"),
    ("released/estimation.py", "name"): ("ridge_lambda", "solver"),
}


def spoken_of():
    """Return the names of arguments and of advice at all raise sites, and the computed ones met."""
    arguments, advice, computed = set(), set(), set()
    for path in sorted(PACKAGE.rglob("*.py")):
        where = path.relative_to(PACKAGE).as_posix()
        if where in ("errors.py", "cli/render.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            named = [word.value for word in node.keywords if word.arg == "argument"]
            kind = node.func.id if isinstance(node.func, ast.Name) else ""
            found = advice if kind == "Advice" else arguments
            for name in (*named, *(node.args[:1] if kind in ("Argument", "Advice") else ())):
                if isinstance(name, ast.Constant):
                    found.add(name.value)
                elif ast.unparse(name) != "error.argument":  # handed on from another error
                    computed.add((where, ast.unparse(name)))
    return arguments, advice, computed


def test_every_setting_has_an_option_or_is_for_python_only():
    arguments, advice, computed = spoken_of()
    assert computed == set(COMPUTED), "name what the computed names can be"
    arguments.update(name for names in COMPUTED.values() for name in names)
    assert arguments == {*OPTIONS, *PYTHON_ONLY}
    assert not {*OPTIONS} & PYTHON_ONLY
    assert advice == set(ADVICE)


def test_every_option_exists():
    """The table names no option that no command has."""
    from primo.cli import main

    def options(command):
        for parameter in command.params:
            yield from parameter.opts
        for inner in getattr(command, "commands", {}).values():
            yield from options(inner)

    known = {
        option
        for name in main.list_commands(None)
        for option in options(main.get_command(None, name))
    }
    named = {*OPTIONS.values(), *(o for table in OPTIONS_OF.values() for o in table.values())}
    assert {option for option in named if option.startswith("--")} <= known


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (Argument("missing", "centre"), "--missing centre"),
        (Argument("table.missing", ...), "--na ..."),
        (Argument("same_order", True), "--same-order"),
        (Argument("split", 3.0), "--split 3.0"),
        (Argument("dataset", "the first"), "--dataset 'the first'"),
        (Argument("protection"), "--protect"),
        (Argument("solver", "qr"), 'solver="qr"'),
        (Advice("separator", "is it separator=';'?", about="';'"), "is it separated by ';'?"),
    ],
)
def test_the_command_line_spells_an_argument_as_an_option(argument, text):
    assert in_options(InputError(argument)).startswith(text)
    assert in_options(PrimoWarning(argument)).startswith(text)


def test_a_setting_may_have_another_name_in_a_command():
    error = InputError("give ", Argument("key_file"))
    assert in_options(error) == "give --ledger-key"
    assert in_options(error, command="ledger") == "give --key"


#: An argument of Python: `missing=`, `key_file`, `primo.Bounds`. Budgets are written mu=0.5, epsilon=1.
NAMES = "|".join(sorted({name.rpartition(".")[2] for name in (*OPTIONS, *PYTHON_ONLY)}))
PYTHON = re.compile(
    rf"\b(?!(?:mu|epsilon|delta)=)(?:{NAMES})="
    r"|[a-z]_[a-z]|\bprimo\.[A-Z]|\bnumpy\.|\bNone\b|\bTrue\b"
)

TABLE = "fit --table traits.tsv --id-column IID --features score0* --outcomes score1*"
BUDGET = "--epsilon 1 --delta 1e-6 --out r"


@pytest.mark.parametrize(
    "line",
    [
        "fit --bfile cohort --epsilon 1 --delta 1e-6 --out r",
        f"fit --bfile cohort --pheno traits.tsv {BUDGET}",
        "fit {data} --epsilon 0 --delta 1e-6 --out r",
        "fit {data} --epsilon 1 --delta 2 --out r",
        f"fit {{data}} --maf 0.1 {BUDGET}",
        f"fit {{data}} --maf 3 --frequencies none.afreq {BUDGET}",
        f"fit {{data}} --dosages {BUDGET}",
        f"fit {{data}} --haplotypes {BUDGET}",
        f"fit {{data}} --split 3 {BUDGET}",
        f"fit {{data}} --association projection {BUDGET}",
        f"fit {{data}} --covariance-rows 0 {BUDGET}",
        f"fit {{data}} --covariance-rows 10 --protect features {BUDGET}",
        f"fit {{data}} --public-covariance c.npy {BUDGET}",
        f"fit {{data}} --public-mean m.npy {BUDGET}",
        f"fit {{data}} --public-covariance c.npy --public-mean m.npy --protect outcomes {BUDGET}",
        f"fit {{data}} --calibration paper {BUDGET}",
        f"fit {{data}} --calibration paper-alg3 {BUDGET}",
        f"fit {{data}} --rows-per-person 100000000000 {BUDGET}",
        f"fit {{data}} --ledger none.ledger --purpose x {BUDGET}",
        f"fit {{data}} --scheduler nowhere:1 {BUDGET}",
        f"{TABLE} {BUDGET}",
        f"fit --table holes.csv --features a --outcomes b --bounds holes.toml {BUDGET}",
        f"fit --table holes.csv --features a --outcomes c --bounds holes.toml {BUDGET}",
        f"fit --table semicolons.csv --features a --outcomes b {BUDGET}",
        f"fit --table twice.csv --id-column id --features a --outcomes b --bounds holes.toml {BUDGET}",
        f"fit --table traits.tsv --features score0* --outcomes-table ages.tsv --outcomes age {BUDGET}",
        f"fit --feature-array c.npy --outcome-array c.npy {BUDGET}",
        "plan --rows 9 --features 2 --outcomes 2 --target-r2 0.4",
        "plan --rows 9 --features 2 --outcomes 2 --target-r2 4",
        "plan --rows 1 --features 2 --outcomes 2 --epsilon 1",
        "plan --rows 9 --features 2 --outcomes 2 --epsilon 1 --signal-r2 3",
        "plan --rows 9 --features 2 --outcomes 2 --epsilon 1 --outcome-sd -3",
        "plan --rows 9 --features 2 --outcomes 2 --epsilon 1 --feature-norm -1",
        "plan --rows 9 --features 2 --outcomes 2 --epsilon 1 --feature-range 2 0",
        "ledger show none.ledger",
        "ledger init l.ledger --epsilon 1 --delta 1e-6 --person-column IID --identity-by-values",
        "ledger init l.ledger --epsilon 0 --delta 1e-6",
        "ledger init postgresql://nobody@localhost/none --epsilon 1 --delta 1e-6",
        "audit --split 9",
        "score-file none --out x.txt",
    ],
)
def test_no_spelling_of_python_reaches_the_terminal(folder, primo, data_line, line):
    np.save("c.npy", np.eye(3))
    np.save("m.npy", np.zeros(3))
    Path("holes.csv").write_text("a,b,c\n" + "1,2,x\n,3,y\n" * 20)
    Path("holes.toml").write_text(
        "[features]\nlower = 0\nupper = 9\n[outcomes]\nlower = 0\nupper = 9\n"
    )
    Path("semicolons.csv").write_text("a;b\n1;2\n")
    Path("twice.csv").write_text("id,a,b\n" + "p,1,2\n" * 9)
    with impatient() if "--scheduler" in line else contextlib.nullcontext():
        out, err = primo(line.format(data=data_line), code=2)
    message = err[err.index("primo: ") :].replace("public_panel", "").replace(str(folder), "")
    assert not PYTHON.search(message), message
    assert "Traceback" not in out + err


def impatient():
    """Wait a second, not thirty, for a scheduler that is not there."""
    dask = pytest.importorskip("dask")
    pytest.importorskip("distributed")  # loads the defaults that are changed here
    return dask.config.set({"distributed.comm.timeouts.connect": "1s"})


def test_a_ledger_speaks_of_options(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6 --person-column patient")
    _, err = primo(f"{fit_line} --ledger books.ledger --purpose x --out r", code=2)
    assert "--id-column patient" in err
    assert not PYTHON.search(err), err
    _, err = primo("ledger note books.ledger --mu 0.1 --purpose x --dataset none", code=2)
    assert "--dataset none is not in the ledger" in err
    _, err = primo("ledger note books.ledger --mu -1 --purpose x", code=2)
    assert "--mu -1.0 of a cost" in err


def test_a_warning_speaks_of_options(folder, primo):
    _, err = primo("plan --rows 100 --features 2 --outcomes 2 --epsilon 1 --delta 0.1")
    assert "Note: --delta 0.1 is above 1/n" in err


def test_a_value_that_is_not_told_stays_so():
    assert InputError("give ", Argument("key_file")).value is ABSENT
