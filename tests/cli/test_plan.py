"""`primo plan`: options as the command line spells them, and columns that stay apart."""

import dataclasses
import json
import re

import pytest
from click.testing import CliRunner

from primo.cli import main
from primo.forecast.compare import choose_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds

SIZE = ["plan", "--rows", "500", "--features", "4", "--outcomes", "3", "--epsilon", "1"]


def test_advice_is_in_options():
    shown = CliRunner().invoke(
        main, [*SIZE, "--feature-range", "0", "2", "--outcome-range", "-5", "5"]
    )
    assert shown.exit_code == 0
    text = " ".join(shown.output.split())
    assert "public allele frequencies (--frequencies)" in text
    for python in ("Bounds", "signal=", "**", "outcome_sd", "...."):
        assert python not in text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--feature-range", "2", "0"], "--feature-range 2 0 is no range"),
        (["--outcome-range", "nan", "0"], "--outcome-range nan 0 is no range"),
        (["--outcome-norm", "0"], "--outcome-norm 0 must be a positive number"),
        (["--feature-norm", "inf"], "--feature-norm inf must be a positive number"),
    ],
)
def test_bad_bounds_name_their_option(options, said):
    shown = CliRunner().invoke(main, [*SIZE, *options])
    assert shown.exit_code == 2
    assert said in shown.output


def test_blocks_are_forecast():
    size = "plan --rows 20000 --features 40 --outcomes 1 --epsilon 5 --block-size 10"
    shown = CliRunner().invoke(main, f"{size} --covariance blocks --protect both")
    assert shown.exit_code == 0, shown.output
    assert re.match(r"both secret: predicted R² on new rows 0\.\d+ \(without privacy", shown.output)
    assert "neighbours inside a block are correlated by 0.8" in shown.output
    shown = CliRunner().invoke(main, f"{size} --covariance none --protect outcomes --json")
    assert 0 < json.loads(shown.stdout)["plans"]["outcomes"]["predicted_r2"] < 1
    line = size.replace("--epsilon 5", "--target-r2 0.1")
    shown = CliRunner().invoke(main, f"{line} --covariance blocks")
    assert shown.exit_code == 2
    assert "--target-r2 is not for --covariance blocks" in shown.output


def test_a_hopeless_score_does_not_run_into_the_next_column():
    line = "plan --rows 200 --features 80 --outcomes 5 --epsilon 1 --feature-range 0 2"
    shown = CliRunner().invoke(main, f"{line} --outcome-norm 3 --outcome-sd 2")
    rows = re.findall(r"(?m)^[* ] (?:both|features|outcomes) {3,}.*", shown.output)
    assert len(rows) == 18
    assert all(len(re.split(r" {2,}", row[2:].strip())) == 7 for row in rows)


def test_a_folder_for_a_table_is_called_a_folder(tmp_path):
    line = f"fit --table {tmp_path} --features a --outcomes b --epsilon 1 --out {tmp_path}/x"
    shown = CliRunner().invoke(main, line)
    assert shown.exit_code == 2
    assert "is a folder; give a file" in shown.output


def test_rounds_are_explained_and_forecast():
    plain, auto = (CliRunner().invoke(main, [*SIZE, *more]) for more in ([], ["--rounds", "auto"]))
    assert auto.exit_code == 0
    table, _, said = auto.output.partition("\n  Several rounds, every one after the first")
    assert plain.output.startswith(table)
    for protection in ("both", "features"):
        shown = protection + r", --rounds 3: 0\.\d{3} ± 0\.\d{3} instead of 0\.\d{3} with one round"
        assert re.search(shown, " ".join(said.split()))


def test_what_is_for_one_round_says_so_beside_several():
    for rounds, said in ((3, True), (1, False)):
        shown = (
            CliRunner().invoke(main, [*SIZE, "--protect", "both", "--rounds", f"{rounds}"]).output
        )
        text = " ".join(shown.split())
        assert ("--estimator filter: predicted R² with one round 0." in text) == said
        assert ("--estimator filter: predicted R² 0." in text) != said
        line = f"plan --rows 9000 --features 2 --outcomes 2 --target-r2 0.2 --rounds {rounds}"
        text = " ".join(CliRunner().invoke(main, line).output.split())
        assert (re.search(r"need epsilon = \S+ with one round \(both;", text) is not None) == said
        assert (re.search(r"need epsilon = \S+ \(both;", text) is None) == said


def test_rounds_auto_says_what_a_fit_would_take():
    for rows, count in ((50_000, 6), (500, 1)):
        line = f"plan --rows {rows} --features 4 --outcomes 300 --epsilon 1 --delta 1e-6 --protect both"
        shown = CliRunner().invoke(main, f"{line} --outcome-norm 5 --rounds auto --json")
        (said,) = json.loads(shown.output)["rounds"]
        settings = Settings(
            epsilon=1, delta=1e-6, outcome_bounds=Bounds(norm=5.0), feature_bounds=Bounds(norm=2.0)
        )
        made = choose_plan(dataclasses.replace(settings, rounds="auto"), n=rows, d=4, l=300)
        assert said["rounds"] == made.round_count == count
        assert "less than 10%" in said["why"]
        assert (said["predicted_r2"] is None) == (count == 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "--rows 50 --features 60 --rounds 4 --protect outcomes",
            "--rounds 4 is not possible here: there are more public features than rows",
        ),
        ("--rounds 0", '--rounds 0 must be "auto" or a whole number'),
        ("--rounds x", '--rounds x must be "auto" or a whole number from 1 to 256'),
    ],
)
def test_rounds_that_cannot_be(options, said):
    shown = CliRunner().invoke(main, [*SIZE, *options.split()])
    assert shown.exit_code == 2
    assert said in shown.output


def test_units_that_will_be_found_are_not_stated():
    found = [*SIZE, "--rows", "5000", "--norms", "auto", "--protect", "both"]
    assert "own units" not in CliRunner().invoke(main, found).output
    said = CliRunner().invoke(main, [*found, "--outcome-range", "0", "9"]).output
    assert "own units" in " ".join(said.split())


def test_rounds_that_are_not_expected_to_help_are_advised_against():
    line = "plan --rows 5000 --features 124 --outcomes 18 --epsilon 1 --protect both"
    said = " ".join(CliRunner().invoke(main, f"{line} --rounds 50").output.split())
    shown = re.search(r"--rounds 50: (0\.\d+) ± 0\.\d+ instead of (0\.\d+) with one round", said)
    assert float(shown[1]) < float(shown[2])
    assert "Under these assumptions rounds do not help; --rounds 1 reads the rows once." in said
    said = CliRunner().invoke(main, [*SIZE, "--rows", "9000", "--rounds", "3"]).output
    assert "rounds do not help" not in " ".join(said.split())
