"""What a request that is refused before the charge tells of who is in the files: nothing."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

N = 40
LINE = "--table cohort.csv --features x* --id-column IID --bounds b.toml --delta 1e-6 --ledger l.ledger"


@pytest.fixture
def people(tmp_path, monkeypatch, primo):
    """A table of people, guesses of who is in it, and a ledger of limit 1."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    rows = [f"p{i},{a:.3f},{b:.3f}\n" for i, (a, b) in enumerate(rng.random((N, 2)))]
    Path("cohort.csv").write_text("IID,x0,x1\n" + "".join(rows))
    for name, ids in {
        "member": ["p7", *(f"z{i}" for i in range(N))],
        "stranger": ["zz", *(f"z{i}" for i in range(N))],
        "all": [f"p{i}" for i in range(N)],
    }.items():
        Path(f"{name}.csv").write_text("IID,y\n" + "".join(f"{i},0.5\n" for i in ids))
    Path("b.toml").write_text(
        "[features]\nlower = 0\nupper = 1\n[outcomes]\nlower = 0\nupper = 1\n"
    )
    primo("ledger init l.ledger --epsilon 1 --delta 1e-6 --person-column IID")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("--epsilon 50 --out o", 2),
        ("--epsilon 0.5 --out o --split 3", 2),
        ("--epsilon 0.5 --out no/such/place", 2),
        ("--epsilon 0.5 --out b.toml", 2),
        ("--epsilon 0.5", 2),
        ("--epsilon 0.5 --out o --covariance-rows 1000", 2),
        ("--epsilon 0.5 --out o --workers 2 --scheduler tcp://nowhere:1", 2),
        ("--epsilon 0.5 --out o --calibration paper", 2),
    ],
)
def test_members_and_strangers_are_refused_alike(people, primo, options, code):
    """The attack: a file with one id, and a request that is refused anyway, so it costs nothing."""
    code = 1 if "50" in options.split() else code
    said = {
        primo(f"fit {LINE} --outcomes-table {who}.csv --outcomes y {options}", code=code)[1]
        for who in ("member", "stranger")
    }
    assert len(said) == 1
    assert "too few" not in said.pop()


def test_a_sample_of_more_people_than_there_are_is_all_of_them(people, primo):
    line = f"fit {LINE} --outcomes-table member.csv --outcomes y --epsilon 0.5"
    _, err = primo(f"{line} --covariance-rows 30 --out o")
    assert "between 1 and" not in err


def test_an_extension_with_other_people_counts_nobody(people, primo):
    primo(f"fit {LINE} --outcomes-table all.csv --outcomes y --epsilon 0.5 --out base")
    for name in ("member", "stranger"):
        text = Path(f"{name}.csv").read_text().replace("IID,y", "IID,late")
        Path(f"{name}.csv").write_text(text)
    line = f"extend {LINE} --release base --protect both --outcomes late --epsilon 0.1 --out e"
    said = {
        primo(f"{line} --outcomes-table {who}.csv", code=2)[1] for who in ("member", "stranger")
    }
    assert len(said) == 1
    assert "too few people" in said.pop()


def test_a_delta_above_one_in_n_tells_of_the_files_only(people, primo):
    line = LINE.replace("1e-6", "0.5")
    line = f"fit {line} --outcomes-table member.csv --outcomes y --epsilon 50 --out o"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        _, err = primo(line, code=1)
    assert f"1/n={1 / N}" in err


def test_a_missing_value_is_mended_as_the_message_says(people, primo):
    text = Path("all.csv").read_text().replace("p3,0.5", "p3,")
    Path("all.csv").write_text(text)
    _, err = primo(
        f"fit {LINE} --outcomes-table all.csv --outcomes y --epsilon 0.5 --out r1", code=2
    )
    assert "repair the file and run `primo fit --resume --out r1`" in err
    assert "`primo fit --resume --missing centre --out r1`" in err
    _, err = primo(
        f"fit {LINE} --outcomes-table all.csv --outcomes y --epsilon 0.5 --out r1", code=2
    )
    assert "was begun and not finished" in err
    primo("fit --resume --missing centre --out r1")


def test_an_infinite_epsilon_is_out_of_range(people, primo):
    line = f"fit {LINE} --outcomes-table all.csv --outcomes y --out r1"
    _, err = primo(f"{line} --epsilon inf", code=2)
    assert "--epsilon inf must lie between" in err
    assert "write 5" not in err


def test_by_values_a_text_among_outcomes_is_found_after_the_charge(people, primo):
    """Tokens by values are made of features; a text among those is found before (docs/ledger.md)."""
    primo("ledger init v.ledger --epsilon 9 --delta 1e-6 --identity-by-values")
    rows = [f"0.{i:03d},0.{2 * i:03d},0.5\n" for i in range(1, N)]
    Path("b.csv").write_text("x0,x1,y\n" + "".join(rows) + "0.5,0.5,secret\n")
    line = "fit --table b.csv --features x* --outcomes y --bounds b.toml --epsilon 0.5 --delta 1e-6"
    _, err = primo(f"{line} --ledger v.ledger --out v", code=2)
    assert "at no further charge" in err
    assert "secret" not in err
    out, _ = primo("ledger show v.ledger --json")
    assert [spent["releases"] for spent in json.loads(out)["datasets"]] == [1]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '{"a": 1}\n', "[1\n"])
def test_what_is_no_export_is_bad_input(tmp_path, primo, text):
    (tmp_path / "x.jsonl").write_text(text)
    _, err = primo(f"ledger verify {tmp_path / 'x.jsonl'}", code=2)
    assert "is no exported history" in err
    assert "primo ledger export" in err
