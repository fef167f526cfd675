"""A small cohort as files, and the program run as a user runs it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from primo.cli import main

#: With a stated norm, so that most tests read the rows once; the demo's own bounds find theirs.
BOUNDS = """\
[features.columns.age]
lower = 18
upper = 90

[outcomes]
lower = -5
upper = 5
norm = 2.2
"""


@pytest.fixture(scope="session")
def cohort_files(tmp_path_factory):
    """PLINK fileset, outcomes, covariates and bounds of the demo's simulated people."""
    from primo.cli import demo

    folder = tmp_path_factory.mktemp("cohort")
    demo._write_cohort(folder)
    (folder / "bounds.toml").write_text(BOUNDS)
    rng = np.random.default_rng(1)
    lines = (folder / "cohort.fam").read_text().splitlines()
    people = ["\t".join(line.split("\t")[:2]) for line in lines]
    demo._write_table(folder / "later.tsv", ["late0", "late1"], people, rng.normal(size=(5000, 2)))
    return folder


@pytest.fixture
def folder(cohort_files, tmp_path, monkeypatch):
    """A working folder of its own with the cohort in it."""
    for path in cohort_files.iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def primo():
    """Run a command line; `code` is what is expected. Returns standard output and error."""

    def run(line, *, code=0, **environment):
        result = CliRunner(env=environment).invoke(main, line.split())
        said = result.stdout + result.stderr
        assert result.exit_code == code, said
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.stdout, result.stderr

    return run


@pytest.fixture
def primo_json(primo):
    """Run a command with --json and return what it printed."""

    def run(line, **options):
        return json.loads(primo(f"{line} --json", **options)[0])

    return run


DATA = "--bfile cohort --pheno traits.tsv --covar ages.tsv --bounds bounds.toml"
FIT = f"fit {DATA} --epsilon 5 --delta 1e-8"


@pytest.fixture
def fit_line():
    return FIT


@pytest.fixture
def data_line():
    return DATA


@pytest.fixture
def release(folder, primo, fit_line):
    """A published release of the cohort."""
    primo(f"{fit_line} --out release")
    return Path("release")
