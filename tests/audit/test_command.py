"""`primo audit`, and the page that reports what it finds at full size."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks import audit as benchmark
from primo.cli import main


def run(line):
    return CliRunner().invoke(main, line.split())


def test_the_table(capsys):
    done = run("audit --epsilon 10 --protect both --trials 60")
    assert done.exit_code == 0, done.output
    assert done.stdout.split()[:2] == ["setting", "stated"]
    assert "holds" in done.stdout
    assert "99.9 %" in done.stderr


def test_json_and_several_claims():
    done = run("audit --epsilon 5 --epsilon 10 --protect outcomes --trials 40 --json")
    found = json.loads(done.stdout)
    assert [each["stated"] for each in found] == [5, 10]
    assert all(each["lower"] <= each["stated"] for each in found)


def test_the_papers_claim_is_refuted():
    done = run("audit --epsilon 5 --protect both --calibration paper --no-intercept --trials 300")
    assert done.exit_code == 1
    assert "VIOLATED" in done.stdout


def test_one_run():
    done = run("audit --one-run --json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert found["canaries"] == 3000
    assert not found["violated"]


@pytest.fixture(scope="module")
def tables():
    """The tables of docs/audit.md, by their heading."""
    page = Path(benchmark.PAGE).read_text(encoding="utf-8")
    assert page.count(benchmark.START) == page.count(benchmark.END) == 1
    written = page.split(benchmark.START)[1].split(benchmark.END)[0]
    found = {}
    for section in written.split("### ")[1:]:
        heading, table = section.split("\n\n", 1)
        lines = [line.strip("| ").split(" | ") for line in table.strip().splitlines()]
        found[heading] = [dict(zip(lines[0], cells, strict=True)) for cells in lines[2:]]
    return found


def test_the_page_shows_what_was_promised(tables):
    held = tables["Statements that have to hold"]
    assert {"0.5", "1", "2", "5", "10"} <= {row["stated ε"] for row in held}
    for row in held:
        assert float(row["proved ε"]) <= float(row["stated ε"])
        assert "of the rows" in row["setting"] or float(row["ratio"]) >= 0.85
    assert {row["verdict"] for row in tables["Faults that have to be seen"]} == {"VIOLATED"}
    assert {row["verdict"] for row in tables["The law of the noise"]} == {"right"}
    assert {row["draws"] for row in tables["The law of the noise"]} == {"1e+08"}


@pytest.mark.parametrize("options", ["--covariance blocks", "--covariance none"])
def test_blocks(options):
    done = run(f"audit --epsilon 10 --protect both {options} --trials 60 --json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert found["guesses"] % 4 == 0
    assert found["distance"] == pytest.approx(found["stated_mu"], rel=1e-4)


def test_noise_on_the_outcomes_is_attacked_under_outcomes_alone():
    done = run("audit --epsilon 10 --association perturbed --trials 60 --json")
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout)
    assert found["setting"] == "outcomes, noise on the outcomes"
    assert run("audit --association perturbed --protect both --trials 5").exit_code == 2
    assert run("audit --association perturbed --covariance blocks --trials 5").exit_code == 2
