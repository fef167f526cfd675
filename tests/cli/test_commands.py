"""The other commands, and that every one of them is documented."""

import re
import shutil
import subprocess
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet as pq
import pytest

from primo.bundle import read_bundle
from primo.cli import main

ROOT = Path(__file__).parents[2]


def commands(group, prefix=()):
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        yield (*prefix, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*prefix, name))


COMMANDS = dict(commands(main))


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(primo, name):
    out, _ = primo(f"{' '.join(name)} --help")
    if not isinstance(COMMANDS[name], click.Group):
        assert "Example:" in out
    for parameter in COMMANDS[name].params:
        if isinstance(parameter, click.Option):
            assert parameter.help or parameter.name in ("out", "config", "help"), parameter.name


def test_every_command_and_option_is_documented():
    page = (ROOT / "docs" / "command-line.md").read_text()
    for name, command in COMMANDS.items():
        assert f"primo {' '.join(name)}" in page, name
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--") and option not in ("--help", "--version"):
                    assert f"`{option}`" in page, (name, option)


def test_version_and_completion(primo):
    out, _ = primo("--version")
    assert re.fullmatch(r"primo, version \d+\.\d+\.\d+\n", out)
    for shell in ("zsh", "fish"):
        assert "primo" in primo(f"completion {shell}")[0]


def test_plan(primo, primo_json):
    line = "plan --rows 5000 --features 10 --outcomes 20 --protect both"
    assert "Recommended" in primo(f"{line} --epsilon 2")[0]
    found = primo_json(f"{line} --target-r2 0.2")
    assert found["recommended"]["predicted_r2"] == pytest.approx(0.2, abs=0.02)


def test_inspect(release, primo, primo_json):
    out, err = primo("inspect release")
    assert "Privacy statement" in out
    assert "Verified" in err
    found = primo_json("inspect release")
    assert found["verified"]
    assert found["manifest"]["rows"] == 5000


def test_report(release, primo):
    primo("report release --out page.html --title Cohort")
    page = Path("page.html").read_text()
    assert "Cohort" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize("kind", ["tsv", "parquet"])
def test_predict_agrees_with_the_coefficients(release, primo, kind):
    primo(f"predict release --bfile cohort --covar ages.tsv --out predicted.{kind}")
    if kind == "parquet":
        table = pq.read_table("predicted.parquet")
        found = np.column_stack([table[name] for name in table.column_names[1:]])
    else:
        lines = Path("predicted.tsv").read_text().splitlines()
        found = np.array([line.split("\t")[1:] for line in lines[1:]], dtype=float)
    from primo.sources.cohort import open_feature_columns

    columns = open_feature_columns(bfile="cohort", covar=["ages.tsv"])
    features = np.vstack(list(columns.blocks(range(columns.n), 1000)))
    expected = read_bundle(release).coefficients().predict(features)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
def test_scores_of_plink2_are_the_predictions(folder, primo, primo_json):
    fit = "fit --bfile cohort --pheno traits.tsv --bounds limits.toml --epsilon 5 --delta 1e-8"
    Path("limits.toml").write_text("[outcomes]\nlower = -5\nupper = 5\nnorm = 2.2\n")
    primo(f"{fit} --out release")
    command = primo_json("score-file release --out scores.tsv")["plink2"]
    subprocess.run(
        [*command.replace("NEW", "cohort").split(), "--out", "scored"],
        check=True,
        capture_output=True,
    )
    primo("predict release --bfile cohort --out predicted.tsv")
    lines = Path("scored.sscore").read_text().splitlines()
    header = lines[0].split("\t")
    sums = [i for i, name in enumerate(header) if name.endswith("_SUM") and "ALLELE" not in name]
    found = np.array([[float(line.split("\t")[i]) for i in sums] for line in lines[1:]])
    predicted = Path("predicted.tsv").read_text().splitlines()
    expected = np.array([line.split("\t")[1:] for line in predicted[1:]], dtype=float)
    intercept = read_bundle(Path("release")).coefficients().intercept
    assert found.shape == expected.shape
    np.testing.assert_allclose(found + intercept, expected, atol=2e-5 * np.abs(expected).max())


def test_pgs_catalog(release, primo_json):
    found = primo_json("score-file release --pgs-catalog --genome-build GRCh38 --out pgs")
    assert len(found["files"]) == 40


def test_scores_need_genotypes(folder, primo):
    rng = np.random.default_rng(0)
    np.save("x.npy", rng.normal(size=(300, 3)))
    np.save("y.npy", rng.normal(size=(300, 2)))
    Path("limits.toml").write_text("[features]\nnorm = 3\n[outcomes]\nnorm = 3\n")
    primo(
        "fit --feature-array x.npy --outcome-array y.npy --bounds limits.toml --epsilon 2 "
        "--delta 1e-6 --out release"
    )
    assert "primo predict" in primo("score-file release --out s.tsv", code=2)[1]
    primo("predict release --feature-array x.npy --out predicted.tsv")


def test_the_steward_keeps_the_books(folder, primo, primo_json):
    primo("ledger init books.ledger --epsilon 3 --delta 1e-6")
    assert "nothing was charged" in primo("ledger show books.ledger")[1]
    primo("ledger note books.ledger --mu 0.3 --purpose histogram")
    primo("ledger note books.ledger --epsilon 1 --delta 1e-7 --purpose counts")
    primo("ledger note books.ledger --epsilon 1 --purpose counts", code=2)
    primo("ledger limit books.ledger --epsilon 4 --delta 1e-6 --purpose board")
    out, err = primo("ledger history books.ledger")
    assert "histogram" in out
    assert "Verified" in err
    primo("ledger export books.ledger --out books.jsonl")
    assert len(Path("books.jsonl").read_text().splitlines()) >= 4
    assert primo_json("ledger history books.ledger")["head"]


def test_the_demo_runs(tmp_path, monkeypatch, primo):
    monkeypatch.chdir(tmp_path)
    _, err = primo("demo")
    assert "Nothing was charged" in err
    assert (tmp_path / "primo-demo" / "report.html").exists()
    assert "exists already" in primo("demo", code=2)[1]
