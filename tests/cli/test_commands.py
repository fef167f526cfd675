"""The other commands, and that every one of them is documented."""

import html
import re
from pathlib import Path

import click
import numpy as np
import pyarrow.parquet as pq
import pytest

from primo.cli import main
from primo.released.bundle import read_bundle

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
    genotypes = primo_json(f"{line} --epsilon 1 --feature-range 0 2 --outcome-range -4 4")
    wide = primo_json(f"{line} --epsilon 1 --feature-range -40 40 --feature-sd 1 --outcome-sd 1")
    assert "genotypes" in " ".join(genotypes["assumptions"])
    assert any("frequencies" in b["knowledge"] for b in genotypes["better_knowledge"])
    assert wide["recommended"]["predicted_r2"] < genotypes["recommended"]["predicted_r2"] - 0.05
    assert wide["better_knowledge"][0]["predicted_r2"] > 0.1
    tight = f"{line} --outcome-range -4 4 --outcome-norm 1.3 --outcome-sd 1"
    assert primo_json(f"{tight} --target-r2 0.2")["epsilon"] < 10


def test_inspect(release, primo, primo_json):
    out, err = primo("inspect release")
    assert "Privacy statement" in out
    assert "Verified" in err
    found = primo_json("inspect release")
    assert found["accuracy"]["outcomes"] == 40
    assert any("--frequencies" in said for said in found["doubts"])
    assert found["verified"]
    assert found["manifest"]["rows"] == 5000


def test_inspect_asks_the_ledger(folder, primo, primo_json, fit_line):
    for name in ("books", "other"):
        primo(f"ledger init {name}.ledger --epsilon 20 --delta 1e-6")
    primo(f"{fit_line} --ledger books.ledger --out first")
    assert "noted" in primo("inspect first --ledger books.ledger")[1].splitlines()[-1]
    assert primo_json("inspect first --ledger books.ledger")["in_ledger"] is True
    assert primo_json("inspect first")["in_ledger"] is None
    assert "knows no release" in primo("inspect first --ledger other.ledger", code=1)[1]
    # A forger who knows hashes and passes every check of the parts.
    manifest = Path("first/manifest.json")
    text = manifest.read_text()
    assert '"level": 0.95' in text
    manifest.write_text(text.replace('"level": 0.95', '"level": 0.96'))
    _, err = primo("inspect first --ledger books.ledger", code=1)
    assert "not the release" in err


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
    from primo.rows.sources.genotypes.cohort import open_feature_columns

    columns = open_feature_columns(bfile="cohort", covar=["ages.tsv"])
    features = np.vstack(list(columns.blocks(range(columns.n), 1000)))
    expected = read_bundle(release).coefficients().predict(features)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


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
    head = primo_json("ledger history books.ledger")["head"]
    assert head in primo("ledger verify books.jsonl")[1]
    primo(f"ledger verify books.jsonl --head {head}")
    primo("ledger verify books.jsonl --head 0000", code=1)
    primo(f"ledger show books.ledger --head {head}")
    assert "cut off" in primo("ledger show books.ledger --head 0000", code=1)[1]


def test_the_history_says_what_and_the_books_who_is_over(folder, primo, primo_json, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    digest = primo_json(f"{fit_line} --ledger books.ledger --out release")["digest"]
    out, _ = primo("ledger history books.ledger")
    assert "limit epsilon=6, delta=1e-06" in out
    assert digest[:12] in out
    assert "over the limit" not in primo("ledger show books.ledger")[0]
    primo("ledger note books.ledger --mu 2 --purpose elsewhere")
    out, err = primo("ledger show books.ledger")
    assert "over the limit" in out
    assert "smaller delta" in err
    assert primo_json("ledger show books.ledger")["datasets"][0]["over_limit"]


def test_bounds_that_do_nothing_and_few_rows_are_noted(folder, primo):
    Path("few.txt").write_text("".join(f"person{i:05d} person{i:05d}\n" for i in range(20)))
    Path("limits.toml").write_text(
        "[features]\nnorm = 99\n[outcomes]\ncentre = 0\nscale = 1\nnorm = 50\n"
    )
    line = "fit --bfile cohort --pheno traits.tsv --bounds limits.toml --epsilon 1 --delta 0.1"
    out, err = primo(f"{line} --keep few.txt --dry-run")
    assert "[features] norm = 99 does nothing" in err
    assert "[outcomes] norm = 50 is more than 3 times" in err
    assert "only 20 rows" in err
    assert "above 1/n" in err
    assert "the outcomes have a standard deviation of" in out


def test_further_spellings_of_missing_cells(folder, primo, fit_line):
    lines = Path("traits.tsv").read_text().splitlines()
    cells = lines[7].split("\t")
    lines[7] = "\t".join([*cells[:5], "unknown", *cells[6:]])
    Path("traits.tsv").write_text("\n".join(lines) + "\n")
    _, err = primo(f"{fit_line} --out release", code=2)
    assert "--na" in err
    assert "unknown" not in err
    _, err = primo(f"{fit_line} --na unknown --missing error --out second", code=2)
    assert "--missing centre" in err
    out, err = primo(f"{fit_line} --na unknown --out third")
    assert "missing values count as the public centre" in " ".join(out.split())
    assert "--missing error" in err


def test_further_spellings_in_a_table(folder, primo):
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f}" for a, b in rng.uniform(-1, 1, (200, 2))]
    Path("data.csv").write_text("x,y\n" + "\n".join([*rows, "NA,?", "-99,0"]) + "\n")
    Path("limits.toml").write_text("[features]\nnorm = 1\n[outcomes]\nnorm = 1\n")
    line = "fit --table data.csv --features x --outcomes y --bounds limits.toml --epsilon 1 "
    line += "--delta 1e-4 --na ? --na -99"
    _, err = primo(f"{line} --out first", code=2)
    assert "--missing centre" in err
    primo(f"{line} --missing centre --out second")


def test_the_demo_runs(tmp_path, monkeypatch, primo):
    monkeypatch.chdir(tmp_path)
    _, err = primo("demo")
    assert "Nothing was charged" in err
    assert (tmp_path / "primo-demo" / "report.html").exists()
    assert "exists already" in primo("demo", code=2)[1]


def test_what_the_steward_changes_is_told_to_machines(folder, primo, primo_json):
    primo("ledger init books.ledger --epsilon 3 --delta 1e-6")
    line = "ledger limit books.ledger --epsilon 5 --delta 1e-6 --purpose board"
    assert primo_json(line)["epsilon"] == 5
    noted = primo_json("ledger note books.ledger --mu 0.1 --purpose counts")
    assert noted["head"] == primo_json("ledger history books.ledger")["head"]


def test_inspect_lists_the_doubts_of_the_report(folder, primo, primo_json, fit_line):
    primo(f"{fit_line} --out release")
    doubts = primo_json("inspect release")["doubts"]
    said = primo("inspect release")[1]
    primo("report release --out page.html")
    page = html.unescape(Path("page.html").read_text())
    assert len(doubts) > 1
    for doubt in doubts:
        assert f"Doubt: {doubt}" in said
        assert doubt in page
    assert said.count("Doubt: ") == len(doubts)
