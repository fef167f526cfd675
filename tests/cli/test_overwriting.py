"""Nothing that exists is replaced without --force, and never an input of the same command."""

import os
from pathlib import Path

import pytest

from primo._util.atomic import whole_file
from primo.errors import InputError


@pytest.fixture
def ledger(release, primo):
    primo("ledger init l.ledger --epsilon 5 --delta 1e-6 --person-column IID")


#: Every command that writes a file; NAME is the file.
WRITERS = {
    "predict": "predict release --bfile cohort --covar ages.tsv --out NAME.tsv",
    "report": "report release --out NAME.html",
    "score-file": "score-file release --out NAME.tsv",
    "ld-blocks": "ld-blocks --panel panel.bed --out NAME.bed",
    "export": "ledger export l.ledger --out NAME.csv",
}


@pytest.mark.parametrize("line", WRITERS.values(), ids=WRITERS)
def test_a_file_that_exists_stays_unless_forced(ledger, primo, line):
    name = Path(line.split()[-1].replace("NAME", "made"))
    name.write_text("mine")
    line = line.replace("NAME", "made")
    _, err = primo(line, code=2)
    assert "exists already" in err
    assert "--force" in err
    assert name.read_text() == "mine"
    primo(f"{line} --force")
    assert name.read_bytes() != b"mine"


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("predict release --bfile cohort --covar ages.tsv --out OUT", "ages.tsv"),
        ("predict release --bfile cohort --covar ages.tsv --out OUT", "cohort.bim"),
        ("predict release --bfile cohort --covar ages.tsv --out OUT", "release/outcomes.tsv"),
        ("report release --out OUT", "release/manifest.json"),
        ("report release --out OUT", "release/new.html"),
        ("score-file release --out OUT", "release/features.tsv"),
        ("ledger export l.ledger --out OUT", "l.ledger"),
        ("ledger export l.ledger --out OUT", "l.ledger.key"),
    ],
)
@pytest.mark.parametrize("through", ["itself", "link", "hard link", "other spelling"])
def test_an_input_is_never_replaced(ledger, primo, line, read, through):
    before = Path(read).read_bytes() if Path(read).exists() else None
    out = read
    if through == "other spelling":
        out = f"{Path.cwd()}/./{read}"
    elif through != "itself":
        if before is None:
            pytest.skip("nothing to link to")
        out = "linked.tsv"
        (os.symlink if through == "link" else os.link)(read, out)
    _, err = primo(f"{line.replace('OUT', out)} --force", code=2)
    assert "which this command reads" in err
    assert (Path(read).read_bytes() if Path(read).exists() else None) == before


def test_the_second_file_of_scores_counts_too(release, primo):
    Path("s.tsv.outcomes.tsv").write_text("mine")
    _, err = primo("score-file release --out s.tsv", code=2)
    assert "s.tsv.outcomes.tsv" in err
    assert not Path("s.tsv").exists()


@pytest.mark.parametrize(
    "line",
    [
        "score-file release --pgs-catalog --force --out there",
        "fit --bfile cohort --pheno traits.tsv --covar ages.tsv --bounds bounds.toml --epsilon 5 "
        "--delta 1e-8 --out there",
        "demo --out there",
        "ledger init there --epsilon 1 --delta 1e-6",
        "report release --force --out there",
    ],
)
def test_folders_releases_and_ledgers_are_never_replaced(release, primo, line):
    Path("there").mkdir()
    Path("there/mine").write_text("mine")
    primo(line, code=2)
    assert [p.name for p in Path("there").iterdir()] == ["mine"]


def test_a_file_that_appears_meanwhile_stays(tmp_path):
    target = tmp_path / "page.html"

    def write():
        with whole_file(target, replace=False) as file:
            file.write(b"ours")
            target.write_bytes(b"theirs")

    with pytest.raises(InputError, match="exists already"):
        write()
    assert target.read_bytes() == b"theirs"
    assert [p.name for p in tmp_path.iterdir()] == ["page.html"]


def test_where_hard_links_do_not_exist(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(95, "not supported")

    monkeypatch.setattr(os, "link", refused)
    with whole_file(tmp_path / "page.html", replace=False) as f:
        f.write(b"ours")
    assert (tmp_path / "page.html").read_bytes() == b"ours"
