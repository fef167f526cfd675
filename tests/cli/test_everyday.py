"""What a new user meets: lists of columns, categories, decimal commas, messages that say what to do.

Noise is fresh here. Tolerances are more than five standard errors (`coefficients.tsv` has them), so a
test fails by chance less than once in a million runs.
"""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from primo.cli import main
from primo.released.bundle import read_bundle

N = 3000
BOUNDS = """
[features.columns.sex]
levels = ["F", "M"]
[features.columns.region]
levels = ["north", "south", "west"]
[features.columns.age]
lower = 18
upper = 90
[outcomes.columns.y]
lower = -6
upper = 6
[outcomes.columns.smokes]
levels = ["no", "yes"]
"""
FIT = "--features sex,region,age --outcomes y,smokes --id-column id --bounds b.toml"
FIT += " --epsilon 8 --delta 1e-6"


@pytest.fixture
def survey(tmp_path, monkeypatch):
    """A table with categories, in several formats, and its bounds."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    sex, region = rng.choice(["F", "M"], N), rng.choice(["north", "south", "west"], N)
    age = rng.uniform(20, 80, N).round(2)
    y = (
        (sex == "M")
        - 1.0 * (region == "south")
        + 2.0 * (region == "west")
        + rng.normal(size=N) * 0.3
    )
    smokes = np.where(rng.random(N) < 0.2 + 0.4 * (sex == "M"), "yes", "no")
    frame = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(N)],
            "sex": sex,
            "region": region,
            "age": age,
            "y": y.round(4),
        }
    ).assign(smokes=smokes)
    frame.to_csv("t.csv", index=False)
    frame.to_parquet("t.parquet")
    frame.to_csv("eu.csv", index=False, sep=";", decimal=",")
    Path("b.toml").write_text(BOUNDS)
    return frame


def slopes(folder):
    table = pd.read_csv(f"{folder}/coefficients.tsv", sep="\t")
    return table.pivot_table(index="feature", columns="outcome", values="slope")


@pytest.mark.parametrize("table", ["t.csv", "t.parquet", "eu.csv --separator ; --decimal ,"])
def test_categories_from_tables(survey, primo, table):
    primo(f"fit --table {table} {FIT} --out r")
    found = slopes("r")
    expected = {"sex=M": 1.0, "region=south": -1.0, "region=west": 2.0, "age": 0.0}
    for name, value in expected.items():
        assert found.loc[name, "y"] == pytest.approx(value, abs=0.3)
    assert found.loc["sex=M", "smokes=yes"] == pytest.approx(0.4, abs=0.1)
    # Three columns were asked for, so a row is at most √3 long, although there are four features.
    assert read_bundle(Path("r")).release.plan.features.norm == pytest.approx(3**0.5)


def test_predictions_need_the_levels(survey, primo):
    primo(f"fit --table t.csv {FIT} --out r")
    _, err = primo("predict r --table t.csv --id-column id --out p.tsv", code=2)
    assert "give the levels as in the fit: --bounds" in err
    primo("predict r --table t.csv --id-column id --bounds b.toml --out p.tsv")
    found = pd.read_csv("p.tsv", sep="\t")
    assert list(found.columns) == ["id", "y", "smokes=yes"]
    assert np.corrcoef(found["y"], survey["y"])[0, 1] > 0.9


def test_a_value_that_is_no_level_is_a_missing_value(survey, primo):
    text = Path("t.csv").read_text().replace(",north,", ",secretplace,", 1)
    Path("t.csv").write_text(text)
    out, err = primo(f"fit --table t.csv {FIT} --out r", code=2)
    plain = Path("t.csv").read_text().replace("secretplace", "")
    Path("t.csv").write_text(plain)
    empty = primo(f"fit --table t.csv {FIT} --out r", code=2)
    assert (out, err) == empty
    assert "secretplace" not in out + err
    assert "region" not in err  # not even which column
    primo(f"fit --table t.csv {FIT} --missing centre --out r")


def test_public_features_need_levels_only(survey, primo):
    Path("b.toml").write_text(
        BOUNDS.replace("[features.columns.age]\nlower = 18\nupper = 90\n", "")
    )
    primo(f"fit --table t.csv {FIT} --protect outcomes --out r")
    assert slopes("r").loc["region=west", "y"] == pytest.approx(2, abs=0.3)


def test_categories_among_covariates_and_phenotypes(folder, primo):
    rng = np.random.default_rng(0)
    people = [line.split()[:2] for line in Path("cohort.fam").read_text().splitlines()]
    sex = rng.choice(["F", "M"], len(people))
    ill = np.where(rng.random(len(people)) < 0.2 + 0.4 * (sex == "M"), "2", "1")
    for name, column, values in (("sex.tsv", "sex", sex), ("ill.tsv", "ill", ill)):
        rows = [f"{f}\t{i}\t{v}\n" for (f, i), v in zip(people, values, strict=True)]
        Path(name).write_text(f"FID\tIID\t{column}\n" + "".join(rows))
    Path("c.toml").write_text(
        '[features.columns.sex]\nlevels = ["F", "M"]\n[outcomes.columns.ill]\nlevels = [1, 2]\n'
    )
    primo(
        "fit --bfile cohort --covar sex.tsv --pheno ill.tsv --outcomes ill --bounds c.toml "
        "--epsilon 8 --delta 1e-8 --out r"
    )
    assert slopes("r").loc["sex=M", "ill=2"] == pytest.approx(0.4, abs=0.25)
    primo("predict r --bfile cohort --covar sex.tsv --bounds c.toml --out p.tsv")
    assert pd.read_csv("p.tsv", sep="\t").columns.tolist() == ["IID", "ill=2"]


def test_text_by_declared_type_is_refused_before_the_charge(survey, primo):
    primo("ledger init l.ledger --epsilon 9 --delta 1e-5 --person-column id")
    before = sorted(path.name for path in Path().iterdir())
    Path("b.toml").write_text(BOUNDS.replace('[features.columns.sex]\nlevels = ["F", "M"]\n', ""))
    _, err = primo(f"fit --table t.parquet {FIT} --ledger l.ledger --out r", code=2)
    assert "'sex'" in err
    assert '[features.columns.sex] (or [outcomes...]) levels = ["no", "yes"]' in err
    assert "nothing was charged" in primo("ledger show l.ledger")[1]
    assert sorted(path.name for path in Path().iterdir()) == before


def test_text_in_a_text_file_says_how_to_recode_and_can_be_resumed(survey, primo):
    primo("ledger init l.ledger --epsilon 9 --delta 1e-5 --person-column id")
    Path("b.toml").write_text(BOUNDS.replace('levels = ["F", "M"]', "lower = 0\nupper = 1"))
    _, err = primo(f"fit --table t.csv {FIT} --ledger l.ledger --out r", code=2)
    assert 'levels = ["no", "yes"]' in err
    assert "--decimal ," in err
    assert "primo fit --resume --out r" in err
    survey.assign(sex=(survey["sex"] == "M").astype(int)).to_csv("t.csv", index=False)
    primo("fit --resume --out r")
    assert " 1 " in primo("ledger show l.ledger")[0]  # one release was charged


def test_a_decimal_comma_can_be_declared_when_a_run_is_resumed(survey, primo):
    primo("ledger init l.ledger --epsilon 9 --delta 1e-5 --person-column id")
    _, err = primo(f"fit --table eu.csv --separator ; {FIT} --ledger l.ledger --out r", code=2)
    assert "--decimal" in err
    primo("fit --resume --decimal , --out r")
    assert 'decimal = ","' in Path("r/config.toml").read_text()
    assert slopes("r").loc["sex=M", "y"] == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit --table t.csv --features Age --outcomes y", "did you mean 'age'"),
        ("fit --table t.csv --features AGE,sex --outcomes y", "did you mean 'age'"),
        ("fit --table none.csv --features age --outcomes y", "there is no file none.csv"),
        (
            "fit --table t.csv --features age --outcomes y --bounds none.toml",
            "there is no file none",
        ),
        ("fit --table t.csv --features-from none.txt --outcomes y", "there is no file none.txt"),
        ("fit --config none.toml", "there is no file none.toml"),
        ("fit --table eu.csv --features age --outcomes y", "--separator"),
        ("fit --table t.csv --features age --outcomes y --decimal ,", "--separator"),
        (
            "fit --table t.csv --features age --outcomes y --pheno t.csv",
            "--pheno is not used with --table",
        ),
        ("fit --bfile x --pheno t.csv --features age", "--features is not used with --bfile"),
        ("plan --rows 100 --features 2 --outcomes 2 --epsilon inf", "must lie between"),
        ("ledger init l.ledger --epsilon inf --delta 1e-6", "must lie between"),
        ("audit --epsilon inf", "must lie between"),
        ("ledger init . --epsilon 1 --delta 1e-6", "is a folder"),
        ("ledger show .", "is a folder"),
        (f"fit --table t.csv {FIT} --ledger . --out r", "is a folder"),
        ("ledger show no.ledger", "primo ledger init no.ledger --epsilon 10"),
        (
            f"fit --table t.csv {FIT} --ledger my.ledger --out r",
            "primo ledger init my.ledger --epsilon 8 --delta 1e-06 --person-column id",
        ),
    ],
)
def test_messages(survey, primo, line, words):
    _, err = primo(line, code=2)
    assert words in err
    assert "write 5" not in err
    assert "Traceback" not in err


def test_the_command_that_is_printed_makes_the_ledger(survey, primo):
    _, err = primo(f"fit --table t.csv {FIT} --ledger my.ledger --out r", code=2)
    (line,) = [part.strip() for part in err.splitlines() if "primo ledger init" in part]
    primo(line.removeprefix("primo "))
    primo(f"fit --table t.csv {FIT} --ledger my.ledger --out r")


def test_errors_for_machines_name_option_and_remedy(survey):
    def error(line):
        result = CliRunner().invoke(main, line.split())
        assert result.exit_code == 2
        return json.loads(result.stdout)["error"]

    found = error("ledger init l --epsilon -1 --delta 1e-6 --json")
    assert (found["argument"], found["remedy"]) == ("--epsilon", None)
    found = error("ledger show no.ledger --json")
    assert found["argument"] is None
    assert found["remedy"].startswith("make one with primo ledger init no.ledger")
    found = error("fit --table t.csv --features age --outcomes y --association x --json")
    assert found["kind"] == "BadParameter"
    assert "--association" in found["message"]
    assert error("nonsense --json")["exit_code"] == 2


def test_plan_speaks_of_options(primo):
    out, _ = primo("plan --rows 400 --features 2 --outcomes 2 --epsilon 3")
    assert "Recommended: --protect both, --association gauss, --estimator auto" in out
    for word in ("signal=", "outcome_sd", "protection="):
        assert word not in out


def test_demo_and_completion_for_machines(tmp_path, monkeypatch, primo_json):
    monkeypatch.chdir(tmp_path)
    assert "_PRIMO_COMPLETE" in primo_json("completion bash")["script"]
    found = primo_json("demo --out d")
    assert "d/report.html" in found["files"]
    assert all(line.startswith("primo ") for line in found["commands"])
    outcomes = pd.read_csv("d/release/outcomes.tsv", sep="\t")
    slopes = pd.read_csv("d/release/coefficients.tsv", sep="\t")
    # All of them in every run that was looked at; without the panel and the norms that are found, none.
    assert outcomes["trusted"].mean() > 0.5
    assert slopes["trusted"].mean() > 0.5


def test_an_extension_with_norms_found(survey, primo):
    primo("ledger init l.ledger --epsilon 30 --delta 1e-5 --person-column id")
    line = f"--table t.csv {FIT} --ledger l.ledger".replace("y,smokes", "OUT")
    primo(f"fit {line.replace('OUT', 'smokes')} --out r".replace("b.toml", "s.toml"), code=2)
    Path("s.toml").write_text(BOUNDS.replace("[outcomes.columns.y]\nlower = -6\nupper = 6\n", ""))
    Path("e.toml").write_text(
        BOUNDS.replace('[outcomes.columns.smokes]\nlevels = ["no", "yes"]\n', "")
    )
    primo(f"fit {line.replace('OUT', 'smokes')} --out r".replace("b.toml", "s.toml"))
    later = f"extend --release r --protect both {line.replace('OUT', 'y')}".replace(
        "b.toml", "e.toml"
    )
    out, _ = primo(f"{later} --norms auto --out e")
    assert "the norm of the outcomes was found" in " ".join(out.split())
    _, err = primo(f"{later} --out f".replace("sex,region,age", "sex,age"), code=2)
    assert "'region=south', 'region=west' are missing now" in err
